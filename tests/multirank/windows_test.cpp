// Windows: puts, signals and waits for them, blocking, with streams and in groups. Ranks as
// threads, over every transport.

#include "support/windows.hpp"

#include <atomic>
#include <span>
#include <thread>

namespace anyccl::test {
namespace {

OVER_ALL_TRANSPORTS(Windows);

// With the header, just beyond it, one fragment, several, and lent.
constexpr std::size_t kSizes[] = {0, 1, 8, 1000, 1001, 40'000, 3 << 20};

TEST_P(Windows, get_what_the_peer_puts_and_nothing_beside_it) {
  run_ranks(3, [](Communicator& comm) {
    for (const std::size_t bytes : kSizes) {
      constexpr std::size_t kBefore = 13;  // not aligned to anything
      Bytes memory(kBefore + bytes + 7, 0xee);
      Window window = new_window(comm, memory);
      ASSERT_OK(window.put_signal(view(pattern(bytes, index(comm.rank()))), next(comm), kBefore));
      ASSERT_OK(wait_signal(comm, {{previous(comm)}}));
      Bytes expected(memory.size(), 0xee);
      const Bytes theirs = pattern(bytes, index(previous(comm)));
      std::copy(theirs.begin(), theirs.end(), expected.begin() + kBefore);
      EXPECT_TRUE(memory == expected) << bytes;
      ASSERT_OK(window.deregister());
    }
  });
}

TEST_P(Windows, get_puts_of_any_type_and_of_their_own_rank) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<double> memory(4);
    auto window = Window::create(comm, memory);
    ASSERT_OK(window.status());
    const std::vector<double> mine{1.5, 2.5};
    ASSERT_OK(window->put_signal(view(mine), comm.rank(), 16, {.index = 255, .context = 15}));
    ASSERT_OK(wait_signal(comm, {{comm.rank(), 1, {255, 15}}}));
    EXPECT_EQ(memory, (std::vector<double>{0, 0, 1.5, 2.5}));
  });
}

TEST_P(Windows, may_have_another_size_on_each_rank) {
  run_ranks(3, [](Communicator& comm) {
    Bytes memory(static_cast<std::size_t>(index(comm.rank())) * 100);  // rank 0 has none
    Window window = new_window(comm, memory);
    const Bytes mine = pattern(100, 5);
    for (int peer = 0; peer < 3; ++peer) {
      const std::size_t room = static_cast<std::size_t>(peer) * 100;
      ASSERT_OK(window.put_signal(view(std::span(mine).first(peer > 0 ? 100 : 0)), Rank{peer},
                                  room - (peer > 0 ? 100 : 0)));
      expect_error(window.put_signal(view(mine), Rank{peer}, room - (peer > 0 ? 99 : 0)),
                   Code::invalid_argument,
                   {"peerWinOffset", "window of rank " + std::to_string(peer),
                    "has " + std::to_string(room) + " bytes"});
    }
    ASSERT_OK(wait_signal(comm, {{Rank{0}}, {Rank{1}}, {Rank{2}}}));
    if (comm.rank() == Rank{2}) {
      EXPECT_TRUE(std::equal(mine.begin(), mine.end(), &memory[100]));
    }
  });
}

TEST_P(Windows, get_puts_of_one_rank_in_their_order) {
  run_ranks(2, [](Communicator& comm) {
    constexpr int kPuts = 300;
    Bytes memory(40'000);
    Window window = new_window(comm, memory);
    if (comm.rank() == Rank{0}) {
      for (int i = 0; i < kPuts; ++i)  // lengths that go all ways, each over the last one
        ASSERT_OK(window.put_signal(view(pattern(i % 3 == 0   ? 40'000U
                                                 : i % 3 == 1 ? 2000U
                                                              : 50U,
                                                 i)),
                                    Rank{1}, 0, {.index = i == kPuts - 1 ? 1 : 0}));
    } else {
      ASSERT_OK(wait_signal(comm, {{Rank{0}, 1, {.index = 1}}}));  // the last one
      Bytes expected = pattern(40'000, kPuts - 3);
      for (const int i : {kPuts - 2, kPuts - 1}) {
        const Bytes part = pattern(i % 3 == 1 ? 2000 : 50, i);
        std::copy(part.begin(), part.end(), expected.begin());
      }
      EXPECT_TRUE(memory == expected);
      ASSERT_OK(wait_signal(comm, {{Rank{0}, kPuts - 1}}));
    }
  });
}

TEST_P(Windows, count_signals_by_peer_index_and_context) {
  run_ranks(3, [](Communicator& comm) {
    if (comm.rank() != Rank{0}) {
      const int salt = index(comm.rank());
      for (int i = 0; i < 3; ++i) ASSERT_OK(signal(comm, Rank{0}, {.index = salt, .context = 2}));
      ASSERT_OK(signal(comm, Rank{0}, {.index = salt, .context = 3}));
      ASSERT_OK(wait_signal(comm, {{Rank{0}}}));
      return;
    }
    ASSERT_OK(wait_signal(comm, {{Rank{1}, 1, {1, 3}}, {Rank{2}, 1, {2, 3}}}));
    ASSERT_OK(wait_signal(comm, {{Rank{1}, 2, {1, 2}}}));
    ASSERT_OK(wait_signal(comm, {{Rank{1}, 1, {1, 2}}, {Rank{2}, 3, {2, 2}}, {Rank{1}, 0}}));
    for (const int peer : {1, 2}) ASSERT_OK(signal(comm, Rank{peer}));
  });
}

/// A wait that has got more than its own would let the second one hang.
TEST_P(Windows, give_signals_to_waits_in_the_order_of_the_calls) {
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      for (int i = 0; i < 6; ++i) ASSERT_OK(signal(comm, Rank{1}));
      return;
    }
    Stream stream = new_stream();
    Door door;
    ASSERT_OK(stream.run([&] { EXPECT_TRUE(door.pass()); }));
    ASSERT_OK(wait_signal(comm, {{Rank{0}, 2}, {Rank{0}, 1}}, stream));
    ASSERT_OK(wait_signal(comm, {{Rank{0}, 3}}));  // all six have arrived
    door.open();
    ASSERT_OK(stream.synchronize());
  });
}

TEST_P(Windows, get_large_puts_of_both_sides_at_once) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(4 << 20);
    Window window = new_window(comm, memory);
    const Rank peer = next(comm);
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK(window.put_signal(view(pattern(memory.size(), round)), peer, 0));
      ASSERT_OK(wait_signal(comm, {{peer}}));
      EXPECT_TRUE(memory == pattern(memory.size(), round));
      ASSERT_OK(signal(comm, peer, {.index = 1}));  // it may be overwritten
      ASSERT_OK(wait_signal(comm, {{peer, 1, {.index = 1}}}));
    }
  });
}

/// The target calls nothing until everything is there: the test hangs if a put needs it.
TEST_P(Windows, get_puts_while_their_rank_is_in_no_call) {
  std::atomic<bool> put{false};
  run_ranks(2, [&](Communicator& comm) {
    Bytes memory(3 << 20);
    Window window = new_window(comm, memory);
    if (comm.rank() == Rank{0}) {
      for (int i = 0; i < 20; ++i)
        ASSERT_OK(window.put_signal(view(pattern(memory.size() / 8, i)), Rank{1}, 0));
      ASSERT_OK(window.put_signal(view(pattern(memory.size(), 3)), Rank{1}, 0));
      put = true;
      return;
    }
    while (!put) std::this_thread::yield();
    ASSERT_OK(wait_signal(comm, {{Rank{0}, 21}}));
    EXPECT_TRUE(memory == pattern(memory.size(), 3));
  });
}

/// Both barriers would be called for ever.
TEST_P(Windows, get_puts_while_their_rank_is_in_a_collective) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(3 << 20);
    Window window = new_window(comm, memory);
    for (int round = 0; round < 3; ++round) {
      if (comm.rank() == Rank{0})
        ASSERT_OK(window.put_signal(view(pattern(memory.size(), round)), Rank{1}, 0));
      ASSERT_EQ(anycclBarrier(comm.handle(), nullptr), anycclSuccess);
      if (comm.rank() == Rank{1}) {
        ASSERT_OK(wait_signal(comm, {{Rank{0}}}));
        EXPECT_TRUE(memory == pattern(memory.size(), round));
      }
      ASSERT_EQ(anycclBarrier(comm.handle(), nullptr), anycclSuccess);
    }
  });
}

TEST_P(Windows, get_puts_past_messages_that_nobody_wants_yet) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(2000), large = pattern(3 << 20, 1);
    Window window = new_window(comm, memory);
    if (comm.rank() == Rank{0}) {
      auto sent = comm.send(view(large), Rank{1});
      ASSERT_OK(sent.status());
      ASSERT_OK(window.put_signal(view(pattern(2000, 7)), Rank{1}, 0));
      ASSERT_OK(window.deregister());
      ASSERT_OK(sent->wait());
      return;
    }
    ASSERT_OK(wait_signal(comm, {{Rank{0}}}));
    EXPECT_TRUE(memory == pattern(2000, 7));
    ASSERT_OK(window.deregister());
    Bytes got(large.size());
    ASSERT_OK(wait(comm.recv(view(got), Rank{0})));
    EXPECT_TRUE(got == large);
  });
}

/// The receive has its place already, and its turn comes after the wait.
TEST_P(Windows, get_puts_past_messages_whose_receive_comes_later_in_the_stream) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(10), large = pattern(3 << 20, 1), got(large.size());
    Window window = new_window(comm, memory);
    if (comm.rank() == Rank{0}) {
      auto sent = comm.send(view(large), Rank{1});
      ASSERT_OK(sent.status());
      ASSERT_OK(window.put_signal(view(pattern(10, 7)), Rank{1}, 0));
      ASSERT_OK(sent->wait());
      return;
    }
    Stream stream = new_stream();
    ASSERT_OK(wait_signal(comm, {{Rank{0}}}, stream));
    ASSERT_OK(comm.recv(view(got), Rank{0}, stream).status());
    ASSERT_OK(stream.synchronize());
    EXPECT_TRUE(memory == pattern(10, 7));
    EXPECT_TRUE(got == large);
  });
}

TEST_P(Windows, have_got_everything_when_they_are_deregistered) {
  run_ranks(3, [](Communicator& comm) {
    for (int round = 0; round < 5; ++round) {
      Bytes memory(3 * 100'000);
      Window window = new_window(comm, memory);
      for (int peer = 0; peer < 3; ++peer)
        ASSERT_OK(window.put_signal(view(pattern(100'000, index(comm.rank()) + round)), Rank{peer},
                                    100'000 * uindex(comm.rank())));
      ASSERT_OK(window.deregister());
      for (int peer = 0; peer < 3; ++peer) {
        const Bytes theirs = pattern(100'000, peer + round);
        EXPECT_TRUE(
            std::equal(theirs.begin(), theirs.end(), &memory[100'000UL * uindex(Rank{peer})]));
      }
    }
    ASSERT_OK(wait_signal(comm, {{Rank{0}, 5}, {Rank{1}, 5}, {Rank{2}, 5}}));  // these are left
  });
}

TEST_P(Windows, wait_for_puts_of_streams_when_they_are_deregistered) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(5000), mine = pattern(5000, 3);
    Window window = new_window(comm, memory);
    Stream stream = new_stream();
    ASSERT_OK(stream.run(busy_for(std::chrono::milliseconds(20))));
    for (const Rank peer : {Rank{0}, Rank{1}})
      ASSERT_OK(window.put_signal(view(mine), peer, 0, {}, stream));
    ASSERT_OK(window.deregister());
    EXPECT_TRUE(memory == mine);
    ASSERT_OK(stream.synchronize());
  });
}

TEST_P(Windows, do_what_streams_say_in_the_order_of_the_stream) {
  run_ranks(3, [](Communicator& comm) {
    constexpr std::size_t kCount = 100'000;
    std::vector<float> mine(kCount), memory(kCount);
    auto window = Window::create(comm, memory);
    ASSERT_OK(window.status());
    Stream stream = new_stream();
    float seen = 0;
    for (int i = 1; i <= 10; ++i) {
      ASSERT_OK(stream.run([&, i] { mine.assign(kCount, static_cast<float>(i)); }));
      ASSERT_OK(window->put_signal(view(mine), next(comm), 0, {}, stream));
      ASSERT_OK(wait_signal(comm, {{previous(comm)}}, stream));
      ASSERT_OK(stream.run([&] { seen += memory[0] + memory[kCount - 1]; }));
      ASSERT_OK(signal(comm, previous(comm), {.index = 1}, stream));
      ASSERT_OK(wait_signal(comm, {{next(comm), 1, {.index = 1}}}, stream));
    }
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(seen, 110.0F);
  });
}

TEST_P(Windows, do_groups_that_wait_for_each_other) {
  run_ranks(3, [](Communicator& comm) {
    constexpr std::size_t kBlock = 500'000;
    Bytes memory(3 * kBlock), mine = pattern(kBlock, index(comm.rank()));
    Window window = new_window(comm, memory);
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(anycclGroupStart(), anycclSuccess);
      ASSERT_OK(wait_signal(comm, {{Rank{0}}, {Rank{1}}, {Rank{2}}}));  // before the puts
      for (int peer = 0; peer < 3; ++peer)
        ASSERT_OK(window.put_signal(view(mine), Rank{peer}, kBlock * uindex(comm.rank())));
      ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
      for (int peer = 0; peer < 3; ++peer) {
        const Bytes theirs = pattern(kBlock, peer);
        EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), &memory[kBlock * uindex(Rank{peer})]));
      }
      std::fill(memory.begin(), memory.end(), std::uint8_t{0});
      ASSERT_OK(wait(comm.barrier()));
    }
  });
}

}  // namespace
}  // namespace anyccl::test
