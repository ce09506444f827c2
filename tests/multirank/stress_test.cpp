// Random issue, test, wait, drop and abort from two threads per rank.

#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Buffer = std::vector<float>;
struct Started {
  Work work;
  Buffer* buffer = nullptr;
};

/// What one thread issues and another one deals with.
class Handover {
 public:
  void put(Started issued) {
    while (size_ > 1000) std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(issued));
    ++size_;
  }
  bool take(Started& issued) {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return false;
    issued = std::move(queue_.front());
    queue_.pop_front();
    --size_;
    return true;
  }
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  std::mutex mutex_;
  std::deque<Started> queue_;
  std::atomic<int> size_{0};
  std::atomic<bool> closed_{false};
};

/// Tests, waits for or drops what comes, at random. Returns the number of actions.
int deal_with(Handover& handover, int ranks, std::uint32_t seed, bool may_fail) {
  std::mt19937 random(seed);
  int actions = 0;
  for (Started issued; !handover.closed() || handover.take(issued);) {
    if (issued.buffer == nullptr && !handover.take(issued)) continue;
    ++actions;
    const auto what = random() % 4;
    if (what == 0) {
      const auto done = issued.work.test();
      EXPECT_TRUE(done.ok() || may_fail) << done.status().message();
    }
    if (what < 3) {
      const Status status = issued.work.wait();
      EXPECT_TRUE(status.ok() || may_fail) << status.message();
      if (status.ok()) {
        EXPECT_EQ(issued.buffer->back(), static_cast<float>(ranks));
      }
    }
    issued = {};
  }
  return actions;
}

/// Issues `count` operations, the same ones on all ranks with this seed; stops at the first error.
int issue_many(Communicator& comm, Handover& handover, int count, std::uint32_t seed,
               std::deque<Buffer>& buffers, bool may_fail) {
  std::mt19937 random(seed);
  int actions = 0;
  for (; actions < count; ++actions) {
    Buffer& x = buffers.emplace_back(1 + random() % 40, 1.0F);
    auto work = comm.all_reduce(view(x), view(x), ReduceOp::sum);
    if (!work.ok()) {
      EXPECT_TRUE(may_fail) << work.status().message();
      break;
    }
    handover.put({*std::move(work), &x});
  }
  handover.close();
  return actions;
}

TEST(Stress, random_actions_from_two_threads_per_rank) {
  const int operations = effort(50000, 50000, 250000);  // the long form: a million actions
  std::atomic<int> actions{0};
  run_ranks(
      2,
      [&](Communicator& comm) {
        std::deque<Buffer>
            buffers;  // also those of dropped works live until everything is complete
        Handover handover;
        std::thread other(
            [&] { actions += deal_with(handover, comm.size(), 7U + uindex(comm.rank()), false); });
        actions += issue_many(comm, handover, operations, 2026, buffers, false);
        other.join();
        ASSERT_OK(wait(comm.barrier()));
      },
      900);
  EXPECT_EQ(actions, 4 * operations);  // issued and dealt with, on two ranks
}

TEST(Stress, aborts_at_any_moment_end_everything_on_all_ranks) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const int when = static_cast<int>(random() % 400);
    const auto culprit = static_cast<std::int32_t>(random() % 2);
    run_ranks(2, [&](Communicator& comm) {
      const bool aborts = comm.rank() == Rank{culprit};
      std::deque<Buffer> buffers;
      Handover handover;
      std::thread other([&] { deal_with(handover, 2, 3U, true); });
      issue_many(comm, handover, aborts ? when : 100000, 11U, buffers, true);
      if (aborts) EXPECT_OK(comm.abort());
      other.join();
      if (!aborts) {
        const Status failure = comm.failure();
        EXPECT_EQ(failure.code(), Code::aborted) << failure.message();
        EXPECT_NE(failure.message().find("rank " + std::to_string(culprit)), std::string::npos)
            << failure.message();
      }
    });
  }
}

}  // namespace
}  // namespace anyccl::test
