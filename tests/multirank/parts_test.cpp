// anycclAllReducePart: teams of threads, with ranks as threads of one process, too.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "support/ranks.hpp"
#include "support/team.hpp"

namespace anyccl::test {
namespace {

constexpr std::size_t kSliced = 50001;  // floats: a slice for each of some threads

Status sum_part(Communicator& comm, std::vector<float>& x, int thread, int threads) {
  return comm.all_reduce_part(view(x), view(x), ReduceOp::sum, thread, threads);
}

/// What each thread of a team that sums up `count` floats has got.
std::vector<Status> sums(Communicator& comm, int threads, std::size_t count = kSliced) {
  std::vector<float> x(count, 1.0F);
  std::vector<Status> results(static_cast<std::size_t>(threads));
  team(threads,
       [&](int t) { results[static_cast<std::size_t>(t)] = sum_part(comm, x, t, threads); });
  return results;
}

void expect_all(const std::vector<Status>& results, Code code, const std::string& words) {
  for (const Status& status : results) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }
}

class Parts : public testing::TestWithParam<std::string> {
 protected:
  Parts() : environment_({{"ANYCCL_TRANSPORT", GetParam()}}) {}

 private:
  Environment environment_;
};

TEST_P(Parts, of_any_number_and_size_make_the_sum) {
  for (const int ranks : {2, 3})
    run_ranks(ranks, [&](Communicator& comm) {
      ASSERT_OK(comm.make_parts(4));
      const int me = index(comm.rank());
      for (const std::size_t count : {0UL, 1UL, 2047UL, 4096UL, 4097UL, 8191UL, 100003UL})
        for (const int threads : {1, 2, 3, 4})
          for (const bool in_place : {false, true}) {
            std::vector<float> in(count), out(count, -1.0F);
            for (std::size_t i = 0; i < count; ++i)
              in[i] = static_cast<float>(me + static_cast<int>(i % 1000));
            std::vector<float>& result = in_place ? in : out;
            team(threads, [&](int t) {
              EXPECT_OK(comm.all_reduce_part(view(in), view(result), ReduceOp::sum, t, threads));
            });
            for (std::size_t i = 0; i < count; ++i)
              ASSERT_EQ(result[i], static_cast<float>(ranks * static_cast<int>(i % 1000) +
                                                      ranks * (ranks - 1) / 2))
                  << "element " << i << " of " << count << ", " << threads << " threads";
          }
    });
}

TEST_P(Parts, come_one_after_the_other_and_between_other_calls) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_OK(comm.make_parts(3));
    std::vector<float> a(kSliced, 1.0F), b(kSliced, 1.0F), c(10, 1.0F);
    for (int round = 0; round < 20; ++round) {
      team(3, [&](int t) {  // no barrier: the buffers differ
        EXPECT_OK(sum_part(comm, a, t, 3));
        EXPECT_OK(sum_part(comm, c, t, 3));
        EXPECT_OK(sum_part(comm, b, t, 3));
      });
      ASSERT_OK(wait(comm.broadcast(view(a), view(b), Rank{round % 2})));
      std::fill(a.begin(), a.end(), 1.0F);
      ASSERT_EQ(b, std::vector<float>(kSliced, 2.0F));
      std::fill(b.begin(), b.end(), 1.0F);
    }
  });
}

TEST_P(Parts, whose_threads_differ_between_ranks_are_an_error_of_all) {
  run_ranks(3, [](Communicator& comm) {
    ASSERT_OK(comm.make_parts(4));
    const int threads = comm.rank() == Rank{1} ? 4 : 3;
    const auto results = sums(comm, threads);
    expect_all(results, Code::invalid_usage, "differs between ranks");
    expect_all(results, Code::invalid_usage, "of " + std::to_string(threads));
    expect_all(sums(comm, threads), Code::invalid_usage, "differs between ranks");  // for good
    EXPECT_EQ(comm.failure().code(), Code::invalid_usage);
  });
}

TEST_P(Parts, whose_arguments_differ_in_one_thread_are_an_error_of_all) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_OK(comm.make_parts(3));
    std::vector<Status> results(3);
    team(3, [&](int t) {
      std::vector<float> x(kSliced, 1.0F);  // of this thread: the wrong slice is another's
      const bool wrong = comm.rank() == Rank{1} && t == 2;
      const View all = view(x), some{x.data(), kSliced - 1000, DType::f32};
      const View mine = wrong ? some : all;
      Status& status = results[static_cast<std::size_t>(t)];
      while (status.ok()) status = comm.all_reduce_part(mine, mine, ReduceOp::sum, t, 3);
    });
    expect_all(results, Code::invalid_usage, "differs between ranks");
  });
}

TEST_P(Parts, meet_another_call_and_both_are_named) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_OK(comm.make_parts(3));
    if (comm.rank() == Rank{0}) {
      expect_all(sums(comm, 3), Code::invalid_usage, "rank 1 called barrier");
    } else {
      const Status status = wait(comm.barrier());
      EXPECT_NE(status.message().find("rank 0 called all_reduce"), std::string::npos)
          << status.message();
    }
  });
}

TEST_P(Parts, end_when_a_peer_aborts) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_OK(comm.make_parts(3));
    if (comm.rank() == Rank{1}) return static_cast<void>(comm.abort());
    expect_all(sums(comm, 3), Code::aborted, "rank 1");
  });
}

/// An operator that tells which threads have called it, and lets them go on when it may.
class Station {
 public:
  explicit Station(bool open) : open_(open) {}
  static void pass(const void*, void*, std::size_t, anycclDataType_t, void* station) {
    static_cast<Station*>(station)->pass();
  }
  std::size_t came() {
    const std::lock_guard lock(mutex_);
    return threads_.size();
  }
  void open() { open_ = true; }

 private:
  void pass() {
    {
      const std::lock_guard lock(mutex_);
      threads_.insert(std::this_thread::get_id());
    }
    while (!open_) std::this_thread::yield();
  }
  std::atomic<bool> open_;
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

TEST_P(Parts, end_when_another_thread_of_their_rank_aborts) {
  // Rank 0 cannot finish: it needs what rank 1 reduces.
  const Environment environment(Environment::Variables{{"ANYCCL_ALGO", "two_shot"}});
  Station stations[] = {Station(true), Station(false)};
  run_ranks(2, [&](Communicator& comm) {
    ASSERT_OK(comm.make_parts(3));
    Station& station = stations[index(comm.rank())];
    const auto op = comm.create_operator(Station::pass, &station);
    ASSERT_OK(op.status());
    std::vector<std::int32_t> x(50000);
    std::vector<anycclResult_t> results(3);
    const auto work = [&, handle = comm.handle()](int t) {
      results[static_cast<std::size_t>(t)] = anycclAllReducePart(
          x.data(), x.data(), x.size(), anycclInt32, static_cast<anycclRedOp_t>(*op), handle, t, 3);
    };
    if (comm.rank() == Rank{1}) return team(3, work);
    std::jthread aborting([&] {
      while (station.came() < 3) std::this_thread::yield();
      EXPECT_OK(comm.abort());
      stations[1].open();
    });
    team(3, work);
    EXPECT_EQ(results, std::vector<anycclResult_t>(3, anycclAborted));
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Parts, testing::Values("loopback", "tcp"),
                         [](const auto& test) { return test.param; });

TEST(PartsOf, any_type_have_the_bits_of_one_call) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> bits(200003 * 16);
  for (std::uint8_t& byte : bits) byte = static_cast<std::uint8_t>(random());
  run_ranks(5, [&](Communicator& comm) {
    ASSERT_OK(comm.make_parts(3));
    for (const DType dtype : {DType::i8, DType::u16, DType::i64, DType::bf16, DType::f16,
                              DType::f32, DType::f64, DType::f8e4m3, DType::complex128})
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
        const auto type = static_cast<anycclDataType_t>(dtype);
        const auto redop = static_cast<anycclRedOp_t>(op);
        constexpr std::size_t kCount = 40001;
        const std::uint8_t* const in = bits.data() + index(comm.rank()) * 16 * 7919;
        std::vector<std::uint8_t> whole(kCount * 16), parts(kCount * 16);
        ASSERT_EQ(anycclAllReduce(in, whole.data(), kCount, type, redop, comm.handle(), nullptr),
                  anycclSuccess);
        team(3, [&](int t) {
          EXPECT_EQ(anycclAllReducePart(in, parts.data(), kCount, type, redop, comm.handle(), t, 3),
                    anycclSuccess);
        });
        EXPECT_EQ(whole, parts) << "datatype " << type << ", op " << redop;
      }
  });
}

void largest(const void* in, void* inout, std::size_t count, anycclDataType_t, void* factor) {
  const auto* const a = static_cast<const std::int32_t*>(in);
  auto* const b = static_cast<std::int32_t*>(inout);
  for (std::size_t i = 0; i < count; ++i)
    b[i] = std::max(a[i], b[i]) * *static_cast<const std::int32_t*>(factor);
}

TEST(PartsOf, operators_of_the_communicator_can_be_used) {
  run_ranks(2, [](Communicator& comm) {
    const auto check = [&](ReduceOp op, std::int32_t wanted) {
      std::vector<std::int32_t> x(kSliced, 10 + index(comm.rank()));
      team(3, [&](int t) { EXPECT_OK(comm.all_reduce_part(view(x), view(x), op, t, 3)); });
      EXPECT_EQ(x, std::vector<std::int32_t>(kSliced, wanted));
    };
    std::int32_t one = 1, ten = 10;
    const auto before = comm.create_operator(largest, &one);
    ASSERT_OK(comm.make_parts(3));
    const auto times = comm.create_pre_mul_sum<std::int32_t>(2 + index(comm.rank()));
    ASSERT_TRUE(before.ok() && times.ok());
    check(*before, 11);
    check(*times, 10 * 2 + 11 * 3);
    ASSERT_OK(comm.destroy_operator(*before));
    const auto again = comm.create_operator(largest, &ten);  // takes its number
    ASSERT_TRUE(again.ok());
    EXPECT_NE(*again, *before);
    check(*again, 110);
  });
}

TEST(MakeParts, refuses_numbers_that_differ_or_make_no_sense) {
  run_ranks(3, [](Communicator& comm) {
    const bool other = comm.rank() == Rank{2};
    const Status differs = comm.make_parts(other ? 3 : 2);
    EXPECT_EQ(differs.code(), Code::invalid_usage);
    EXPECT_NE(differs.message().find("rank 2"), std::string::npos) << differs.message();
    EXPECT_NE(differs.message().find("3"), std::string::npos) << differs.message();
    EXPECT_EQ(comm.make_parts(other ? 0 : 2).code(),
              other ? Code::invalid_argument : Code::remote_error);
    expect_all(sums(comm, 1), Code::ok, "");  // the communicator itself is fine
    ASSERT_OK(comm.make_parts(2));
    expect_all(sums(comm, 2), Code::ok, "");
  });
}

TEST(MakeParts, adds_what_is_missing_and_keeps_what_is_there) {
  run_ranks(2, [](Communicator& comm) {
    for (const int threads : {2, 5, 1}) {
      ASSERT_OK(comm.make_parts(threads));
      for (const int in_team : {1, 2, 5})
        if (threads == 1 || in_team <= threads) expect_all(sums(comm, in_team), Code::ok, "");
    }
  });
}

TEST(Part, refuses_threads_that_are_not_there_and_starts_nothing) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(kSliced, 1.0F);
    EXPECT_EQ(sum_part(comm, x, 0, 2).code(), Code::invalid_usage);  // none were made
    ASSERT_OK(comm.make_parts(2));
    EXPECT_EQ(sum_part(comm, x, 0, 3).code(), Code::invalid_usage);
    EXPECT_EQ(sum_part(comm, x, 0, 0).code(), Code::invalid_usage);
    EXPECT_EQ(sum_part(comm, x, 2, 2).code(), Code::invalid_argument);
    EXPECT_EQ(sum_part(comm, x, -1, 2).code(), Code::invalid_argument);
    expect_all(sums(comm, 2), Code::ok, "");
  });
}

TEST(Part, checks_the_whole_vector_in_every_thread) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_OK(comm.make_parts(2));
    std::vector<float> x(kSliced + 1, 1.0F);
    const View low{x.data(), kSliced, DType::f32}, high{x.data() + 1, kSliced, DType::f32},
        none{nullptr, kSliced, DType::f32}, huge{x.data(), std::size_t{1} << 61, DType::f32};
    for (int t = 0; t < 2; ++t) {
      EXPECT_EQ(comm.all_reduce_part(low, high, ReduceOp::sum, t, 2).code(),
                Code::invalid_argument);
      EXPECT_EQ(comm.all_reduce_part(none, none, ReduceOp::sum, t, 2).code(),
                Code::invalid_argument);
      EXPECT_EQ(comm.all_reduce_part(huge, huge, ReduceOp::sum, t, 2).code(),
                Code::invalid_argument);
      EXPECT_EQ(comm.all_reduce_part(low, low, static_cast<ReduceOp>(77), t, 2).code(),
                Code::invalid_argument);
    }
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    EXPECT_EQ(sum_part(comm, x, 0, 2).code(), Code::invalid_usage);
    EXPECT_EQ(anycclGroupEnd(), anycclInvalidUsage);
    expect_all(sums(comm, 2), Code::ok, "");
  });
}

TEST(Part, of_a_small_vector_is_empty_for_most_threads_which_wait_for_nobody) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_OK(comm.make_parts(4));
    std::vector<float> x(4096, 1.0F);  // two slices
    for (const int t : {2, 3}) ASSERT_OK(sum_part(comm, x, t, 4));
    EXPECT_EQ(x, std::vector<float>(4096, 1.0F));
    team(2, [&](int t) { EXPECT_OK(sum_part(comm, x, t, 4)); });
    EXPECT_EQ(x, std::vector<float>(4096, 2.0F));
  });
}

}  // namespace
}  // namespace anyccl::test
