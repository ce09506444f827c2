// Probes, and synchronous sends. Ranks as threads.

#include <atomic>
#include <span>
#include <thread>

#include "support/effort.hpp"
#include "support/ranks.hpp"
#include "support/streams.hpp"

namespace anyccl::test {
namespace {

constexpr const char* kTransports[] = {"loopback", "unix", "tcp"};
const auto name_of_transport = [](const auto& test) { return std::string(test.param); };

class Probes : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
class Synchronous : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(Over, Probes, testing::ValuesIn(kTransports), name_of_transport);
INSTANTIATE_TEST_SUITE_P(Over, Synchronous, testing::ValuesIn(kTransports), name_of_transport);

constexpr std::size_t kLong = 3 << 20;  // floats: more than any connection holds on the way
constexpr std::size_t kSizes[] = {0, 1, 1000, kSanitized ? 1 << 19 : kLong};

std::vector<float> numbers(std::size_t count, int salt) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(salt) + static_cast<float>(i % 97);
  return x;
}

void expect_message(const Result<MessageInfo>& found, Rank source, int tag, std::size_t count,
                    DType dtype = DType::f32) {
  ASSERT_OK(found.status());
  EXPECT_EQ(found->source, source);
  EXPECT_EQ(found->tag, tag);
  EXPECT_EQ(found->count, count);
  EXPECT_EQ(found->dtype, dtype);
}

void receive(Communicator& comm, std::size_t count, Rank from, int tag, int salt) {
  std::vector<float> x(count);
  ASSERT_OK(wait(comm.recv(view(x), from, {}, tag)));
  EXPECT_EQ(x, numbers(count, salt));
}

/// Asks until there is one.
Result<MessageInfo> probe_often(Communicator& comm, Rank from, int tag) {
  for (;;) {
    const auto found = iprobe_message(comm, from, tag);
    if (!found.ok()) return found.status();
    if (found->has_value()) return **found;
    std::this_thread::yield();
  }
}

TEST_P(Probes, tell_of_the_message_that_the_next_receive_gets) {
  run_ranks(2, [](Communicator& comm) {
    for (const std::size_t count : kSizes) {
      const int tag = static_cast<int>(count % 1000) + 3;
      if (comm.rank() == Rank{0}) {
        const std::vector<float> x = numbers(count, 1);
        ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, tag)));
        continue;
      }
      for (int again = 0; again < 2; ++again)
        expect_message(probe_message(comm, Rank{0}, tag), Rank{0}, tag, count);
      expect_message(probe_often(comm, kAnySource, tag), Rank{0}, tag, count);
      receive(comm, count, Rank{0}, tag, 1);
    }
  });
}

TEST_P(Probes, tell_the_type) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<std::complex<double>> x(5);
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, ANYCCL_MAX_TAG)));
      return;
    }
    expect_message(probe_message(comm, Rank{0}, ANYCCL_MAX_TAG), Rank{0}, ANYCCL_MAX_TAG, 5,
                   DType::complex128);
    ASSERT_OK(wait(comm.recv(view(x), Rank{0}, {}, ANYCCL_MAX_TAG)));
  });
}

/// The sender does not wait: its messages may be longer than what fits on the way.
TEST_P(Probes, see_a_message_behind_unexpected_ones) {
  for (const bool often : {false, true})
    run_ranks(2, [&](Communicator& comm) {
      const std::size_t counts[] = {kLong, 7, 100};
      if (comm.rank() == Rank{0}) {
        std::vector<std::vector<float>> data;
        std::vector<Work> works;
        for (int m = 0; m < 3; ++m) data.push_back(numbers(counts[m], m));
        for (int m = 0; m < 3; ++m) {
          auto work = comm.send(view(data[static_cast<std::size_t>(m)]), Rank{1}, {}, m);
          ASSERT_OK(work.status());
          works.push_back(*std::move(work));
        }
        ASSERT_OK(wait_all(works));
        return;
      }
      const auto look = [&](int tag) {
        return often ? probe_often(comm, Rank{0}, tag) : probe_message(comm, Rank{0}, tag);
      };
      expect_message(look(2), Rank{0}, 2, 100);
      expect_message(look(0), Rank{0}, 0, kLong);  // kept, and seen all the same
      expect_message(look(1), Rank{0}, 1, 7);
      for (const int m : {1, 2, 0}) receive(comm, counts[m], Rank{0}, m, m);
    });
}

/// A server that knows neither who asks nor how much.
TEST_P(Probes, of_any_source_serve_everyone) {
  run_ranks(4, [](Communicator& comm) {
    if (comm.rank() != Rank{0}) {
      const int me = index(comm.rank());
      const std::vector<float> x = numbers(static_cast<std::size_t>(me) * 100, me);
      ASSERT_OK(wait(comm.send(view(x), Rank{0}, {}, 9)));
      return;
    }
    std::vector<bool> seen(4);
    for (int i = 0; i < 3; ++i) {
      const auto found = probe_message(comm, kAnySource, 9);
      ASSERT_OK(found.status());
      EXPECT_FALSE(seen[uindex(found->source)]);
      seen[uindex(found->source)] = true;
      EXPECT_EQ(found->count, uindex(found->source) * 100);
      receive(comm, found->count, found->source, 9, index(found->source));
    }
  });
}

TEST_P(Probes, see_messages_of_a_rank_to_itself) {
  run_ranks(2, [](Communicator& comm) {
    const std::vector<float> x = numbers(4, 1);
    const auto none = iprobe_message(comm, comm.rank(), 1);
    ASSERT_OK(none.status());
    EXPECT_FALSE(none->has_value());
    auto sent = comm.send(view(x), comm.rank(), {}, 1);
    for (const Rank from : {comm.rank(), kAnySource})
      expect_message(probe_message(comm, from, 1), comm.rank(), 1, 4);
    receive(comm, 4, comm.rank(), 1, 1);
    ASSERT_OK(sent->wait());
  });
}

TEST_P(Probes, leave_messages_to_receives_that_were_called_before) {
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      const std::vector<float> x = numbers(3, 1), y = numbers(5, 2);
      ASSERT_OK(wait(comm.barrier()));
      ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, 5)));
      ASSERT_OK(wait(comm.send(view(y), Rank{1}, {}, 5)));
      return;
    }
    std::vector<float> first(3);
    auto work = comm.recv(view(first), kAnySource, {}, 5);
    ASSERT_OK(wait(comm.barrier()));
    expect_message(probe_message(comm, Rank{0}, 5), Rank{0}, 5, 5);
    ASSERT_OK(work->wait());
    EXPECT_EQ(first, numbers(3, 1));
    receive(comm, 5, Rank{0}, 5, 2);
  });
}

TEST_P(Probes, without_a_message_say_so) {
  std::atomic<bool> asked{false};
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      while (!asked) std::this_thread::yield();
      const std::vector<float> x = numbers(1, 1);
      ASSERT_OK(wait(comm.send(view(x), Rank{1})));
      return;
    }
    const auto now = iprobe_message(comm, Rank{0});
    ASSERT_OK(now.status());
    EXPECT_FALSE(now->has_value());
    EXPECT_EQ(probe_message_for(comm, Rank{0}, 20).status().code(), Code::in_progress);
    asked = true;
    expect_message(probe_message_for(comm, Rank{0}, 50'000), Rank{0}, 0, 1);
    receive(comm, 1, Rank{0}, 0, 1);
  });
}

TEST_P(Probes, end_when_nobody_can_send_any_more) {
  for (const bool often : {false, true})
    for (const Rank from : {Rank{0}, kAnySource})
      run_ranks(2, [&](Communicator& comm) {
        if (comm.rank() == Rank{0}) {
          ASSERT_OK(comm.destroy());
          return;
        }
        const Status status =
            (often ? probe_often(comm, from, 0) : probe_message(comm, from, 0)).status();
        EXPECT_EQ(status.code(), Code::remote_error) << status.message();
        EXPECT_NE(status.message().find(from == Rank{0} ? "rank 0" : "all others are gone"),
                  std::string::npos)
            << status.message();
      });
}

TEST_P(Probes, end_when_the_communicator_is_aborted) {
  std::atomic<bool> probes{false};
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      while (!probes) std::this_thread::yield();
      ASSERT_OK(comm.abort());
      return;
    }
    probes = true;
    EXPECT_EQ(probe_message(comm, Rank{0}).status().code(), Code::aborted);
    EXPECT_EQ(iprobe_message(comm, Rank{0}).status().code(), Code::aborted);
  });
}

/// One thread probes for what another one's send has to wait for.
TEST_P(Probes, do_not_keep_other_threads_from_calling) {
  run_ranks(2, [](Communicator& comm) {
    const std::vector<float> x = numbers(2, 1);
    if (comm.rank() == Rank{0}) {
      receive(comm, 2, Rank{1}, 1, 1);
      ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, 2)));
      return;
    }
    std::thread other([&] { ASSERT_OK(wait(comm.send(view(x), Rank{0}, {}, 1))); });
    expect_message(probe_message(comm, Rank{0}, 2), Rank{0}, 2, 2);
    other.join();
    receive(comm, 2, Rank{0}, 2, 1);
  });
}

TEST_P(Probes, see_past_a_message_whose_receive_waits_in_a_stream) {
  run_ranks(2, [](Communicator& comm) {
    const std::vector<float> x = numbers(3, 1), y = numbers(2, 2);
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, 1)));
      ASSERT_OK(wait(comm.send(view(y), Rank{1}, {}, 2)));
      return;
    }
    Door door;
    Stream stream = new_stream();
    std::vector<float> got(3);
    ASSERT_OK(stream.run([&] { ASSERT_TRUE(door.pass()); }));
    ASSERT_OK(comm.recv(view(got), Rank{0}, stream, 1).status());
    expect_message(probe_message(comm, Rank{0}, 2), Rank{0}, 2, 2);
    door.open();
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(got, x);
    receive(comm, 2, Rank{0}, 2, 2);
  });
}

TEST_P(Probes, find_the_message_that_a_receive_called_now_would_get) {
  run_ranks(2, [](Communicator& comm) {
    const std::vector<float> x = numbers(3, 1), y = numbers(2, 2);
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, 1)));
      ASSERT_OK(wait(comm.send(view(y), Rank{1}, {}, 1)));
      return;
    }
    Door door;
    Stream stream = new_stream();
    std::vector<float> got(3);
    ASSERT_OK(stream.run([&] { ASSERT_TRUE(door.pass()); }));
    ASSERT_OK(comm.recv(view(got), Rank{0}, stream, 1).status());  // of the first
    expect_message(probe_message(comm, Rank{0}, 1), Rank{0}, 1, 2);
    door.open();
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(got, x);
    receive(comm, 2, Rank{0}, 1, 2);
  });
}

TEST_P(Synchronous, sends_are_complete_only_when_they_were_received) {
  for (const std::size_t count : kSizes) {
    std::atomic<bool> asked{false};
    run_ranks(2, [&](Communicator& comm) {
      if (comm.rank() == Rank{0}) {
        const std::vector<float> x = numbers(count, 1), y = numbers(1, 2);
        auto work = ssend(comm, view(x), Rank{1}, {}, 3);
        ASSERT_OK(work.status());
        auto behind = comm.send(view(y), Rank{1}, {}, 4);
        EXPECT_EQ(work->wait_for(10).code(), Code::in_progress);
        asked = true;
        ASSERT_OK(work->wait());
        ASSERT_OK(behind->wait());
        return;
      }
      receive(comm, 1, Rank{0}, 4, 2);  // the other one is kept, and not yet received
      while (!asked) std::this_thread::yield();
      receive(comm, count, Rank{0}, 3, 1);
    });
  }
}

TEST_P(Synchronous, sends_are_answered_in_the_order_of_their_receives) {
  std::atomic<bool> asked{false};
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      const std::vector<float> x = numbers(10, 1), y = numbers(10, 2);
      auto first = ssend(comm, view(x), Rank{1}, {}, 1),
           second = ssend(comm, view(y), Rank{1}, {}, 2);
      ASSERT_OK(second->wait());
      EXPECT_EQ(first->wait_for(10).code(), Code::in_progress);
      asked = true;
      ASSERT_OK(first->wait());
      return;
    }
    receive(comm, 10, Rank{0}, 2, 2);
    while (!asked) std::this_thread::yield();
    receive(comm, 10, Rank{0}, 1, 1);
  });
}

/// Rank 1 sends something long that rank 0 wants only after its synchronous send.
void exchange_behind_a_long_send(Communicator& comm) {
  for (const std::size_t count : kSizes) {
    if (comm.rank() == Rank{0}) {
      const std::vector<float> x = numbers(count, 1);
      ASSERT_OK(wait(ssend(comm, view(x), Rank{1}, {}, 1)));
      receive(comm, kLong, Rank{1}, 2, 2);
    } else {
      const std::vector<float> y = numbers(kLong, 2);
      auto sent = comm.send(view(y), Rank{0}, {}, 2);
      ASSERT_OK(sent.status());
      receive(comm, count, Rank{0}, 1, 1);
      ASSERT_OK(sent->wait());
    }
  }
}

TEST_P(Synchronous, sends_are_answered_past_a_long_message_that_nobody_wants_yet) {
  run_ranks(2, exchange_behind_a_long_send);
}

/// So many that the way back is full before the answer.
TEST_P(Synchronous, sends_are_answered_past_many_short_messages_that_nobody_wants_yet) {
  run_ranks(2, [](Communicator& comm) {
    constexpr int kMany = 500;
    if (comm.rank() == Rank{0}) {
      const std::vector<float> x = numbers(5, 1);
      ASSERT_OK(wait(ssend(comm, view(x), Rank{1}, {}, 1)));
      for (int m = 0; m < kMany; ++m) receive(comm, 2000, Rank{1}, 2, m);
      return;
    }
    std::vector<std::vector<float>> data;
    std::vector<Work> works;
    for (int m = 0; m < kMany; ++m) data.push_back(numbers(2000, m));
    for (const auto& one : data) {
      auto work = comm.send(view(one), Rank{0}, {}, 2);
      ASSERT_OK(work.status());
      works.push_back(*std::move(work));
    }
    receive(comm, 5, Rank{0}, 1, 1);
    ASSERT_OK(wait_all(works));
  });
}

TEST_P(Synchronous, sends_are_answered_while_other_messages_wait_for_their_streams) {
  std::atomic<bool> answered{false};
  run_ranks(2, [&](Communicator& comm) {
    Stream stream = new_stream();
    Door door;
    ASSERT_OK(stream.run([&] { ASSERT_TRUE(door.pass()); }));
    const std::vector<float> x = numbers(9, 1), y = numbers(8, 2), z = numbers(7, 3);
    std::vector<float> got(7);
    if (comm.rank() == Rank{0}) {
      auto in_stream = comm.recv(view(got), Rank{1}, stream, 3);  // its message has come
      ASSERT_OK(in_stream.status());
      ASSERT_OK(wait(comm.barrier()));
      ASSERT_OK(wait(ssend(comm, view(x), Rank{1}, {}, 1)));
      answered = true;
      receive(comm, 8, Rank{1}, 2, 2);
    } else {
      ASSERT_OK(wait(comm.send(view(z), Rank{0}, {}, 3)));
      ASSERT_OK(wait(comm.barrier()));
      ASSERT_OK(comm.send(view(y), Rank{0}, stream, 2).status());
      receive(comm, 9, Rank{0}, 1, 1);
      while (!answered) std::this_thread::yield();
    }
    door.open();
    ASSERT_OK(stream.synchronize());
    if (comm.rank() == Rank{0}) {
      EXPECT_EQ(got, z);
    }
  });
}

TEST_P(Synchronous, sends_of_both_sides_may_be_long) {
  run_ranks(2, [](Communicator& comm) {
    const Rank other{1 - index(comm.rank())};
    const std::vector<float> x = numbers(kLong, index(comm.rank()));
    for (int round = 0; round < 3; ++round) {
      auto sent = ssend(comm, view(x), other);
      ASSERT_OK(sent.status());
      receive(comm, kLong, other, 0, index(other));
      ASSERT_OK(sent->wait());
    }
  });
}

TEST_P(Synchronous, sends_work_in_groups_and_streams_and_to_the_rank_itself_and_any_source) {
  run_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank()), n = comm.size();
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    Stream stream = new_stream();
    for (const anycclStream_t where : {anycclStream_t{}, stream.handle()})
      for (const std::size_t count : kSizes) {
        const std::vector<float> x = numbers(count, me);
        std::vector<float> y(count), own(count), any(count);
        ASSERT_EQ(anycclGroupStart(), anycclSuccess);
        const auto send_to = [&](int peer) {
          return anycclSsend(x.data(), count, anycclFloat32, peer, comm.handle(), where);
        };
        const auto receive_into = [&](std::vector<float>& to, int peer) {
          return anycclRecv(to.data(), count, anycclFloat32, peer, comm.handle(), where);
        };
        ASSERT_EQ(send_to(next), anycclSuccess);
        ASSERT_EQ(send_to(me), anycclSuccess);
        ASSERT_EQ(receive_into(own, me), anycclSuccess);
        ASSERT_EQ(receive_into(y, before), anycclSuccess);
        ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << comm.failure().message();
        ASSERT_OK(stream.synchronize());
        EXPECT_EQ(own, x);
        EXPECT_EQ(y, numbers(count, before));
        ASSERT_OK(wait(comm.barrier()));
        if (me == 1) {
          ASSERT_EQ(send_to(2), anycclSuccess);
        }
        if (me == 2) {
          ASSERT_EQ(receive_into(any, ANYCCL_ANY_SOURCE), anycclSuccess);
        }
        ASSERT_OK(stream.synchronize());
        if (me == 2) {
          EXPECT_EQ(any, numbers(count, 1));
        }
      }
  });
}

TEST_P(Synchronous, sends_and_others_of_all_ranks_may_be_under_way_together) {
  run_ranks(4, [](Communicator& comm) {
    constexpr int kMessages = 40;
    const auto count_of = [](int from, int to, int m) {
      return static_cast<std::size_t>((from * 7 + to * 3 + m) % 11) * 97 +
             (m % 13 == 0 ? 200000U : 0U);
    };
    const int me = index(comm.rank());
    std::vector<std::vector<float>> data;
    std::vector<Work> works;
    data.reserve(2 * 4 * kMessages);
    const auto keep = [&](Result<Work> work) {
      ASSERT_OK(work.status());
      works.push_back(*std::move(work));
    };
    for (int m = 0; m < kMessages; ++m)
      for (int peer = 0; peer < 4; ++peer) {
        data.push_back(numbers(count_of(me, peer, m), me + m));
        if (m % 2 == 0)
          keep(ssend(comm, view(data.back()), Rank{peer}, {}, m));
        else
          keep(comm.send(view(data.back()), Rank{peer}, {}, m));
      }
    const std::size_t sent = data.size();
    for (int m = kMessages - 1; m >= 0; --m)
      for (int peer = 0; peer < 4; ++peer) {
        data.emplace_back(count_of(peer, me, m));
        keep(comm.recv(view(data.back()), Rank{peer}, {}, m));
      }
    ASSERT_OK(wait_all(works));
    for (int m = kMessages - 1, i = 0; m >= 0; --m)
      for (int peer = 0; peer < 4; ++peer, ++i)
        ASSERT_EQ(data[sent + static_cast<std::size_t>(i)],
                  numbers(count_of(peer, me, m), peer + m));
  });
}

TEST_P(Synchronous, sends_are_found_by_probes_which_do_not_answer) {
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      const std::vector<float> x = numbers(6, 1);
      auto work = ssend(comm, view(x), Rank{1}, {}, 1);
      ASSERT_OK(wait(comm.barrier()));  // it was probed
      EXPECT_EQ(work->wait_for(10).code(), Code::in_progress);
      ASSERT_OK(wait(comm.barrier()));
      ASSERT_OK(work->wait());
      return;
    }
    expect_message(probe_message(comm, Rank{0}, 1), Rank{0}, 1, 6);
    ASSERT_OK(wait(comm.barrier()));
    ASSERT_OK(wait(comm.barrier()));
    receive(comm, 6, Rank{0}, 1, 1);
  });
}

TEST_P(Synchronous, sends_fail_when_their_receiver_leaves_or_is_late) {
  for (const bool leaves : {true, false}) {
    std::atomic<bool> failed{false};
    run_ranks(2, [&](Communicator& comm) {
      if (comm.rank() == Rank{1}) {
        while (!leaves && !failed) std::this_thread::yield();
        if (leaves) ASSERT_OK(comm.destroy());
        return;
      }
      const std::vector<float> x = numbers(6, 1);
      auto work = ssend(comm, view(x), Rank{1});
      ASSERT_OK(work.status());
      if (!leaves) ASSERT_OK(work->limit(50));
      const Status status = work->wait();
      EXPECT_EQ(status.code(), leaves ? Code::remote_error : Code::timeout) << status.message();
      EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
      failed = true;
    });
  }
}

}  // namespace
}  // namespace anyccl::test
