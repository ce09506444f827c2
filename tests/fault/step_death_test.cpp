// A rank dies at each step of each algorithm: all others name it, whatever they were doing.
//
// The long form does so with 2 to 8 ranks, and each of them as the one that dies. It prints how
// long the others need.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "algorithm/catalog/algorithm.hpp"
#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBlock = 37;  // elements
constexpr int kIsThrough = 7;       // the exit code of a rank that has got through without dying

/// What the ranks of a job share.
struct Times {
  std::atomic<int> ready{0};
  std::array<Clock::time_point, 8> ended{};  // of each rank; of the one that dies: when it called
};

struct Buffers {
  explicit Buffers(int ranks)
      : n(static_cast<std::size_t>(ranks)),
        in(n * kBlock, 1),
        out(n * kBlock),
        counts(n, kBlock),
        places(n) {
    for (std::size_t r = 0; r < n; ++r) places[r] = r * kBlock;
  }
  View all_in() { return view(in); }
  View all_out() { return view(out); }
  View one_in() { return view(std::span(in).first(kBlock)); }
  View one_out() { return view(std::span(out).first(kBlock)); }
  BlockLayout blocks() const { return {counts, places}; }

  std::size_t n;
  std::vector<float> in, out;
  std::vector<std::size_t> counts, places;
};

Status call(Communicator& c, Collective what, Buffers& b) {
  const Rank root{0};
  switch (what) {
    case Collective::all_reduce:
      return wait(c.all_reduce(b.all_in(), b.all_out(), ReduceOp::sum));
    case Collective::broadcast:
      return wait(c.broadcast(b.all_in(), b.all_out(), root));
    case Collective::barrier:
      return wait(c.barrier());
    case Collective::reduce:
      return wait(c.reduce(b.all_in(), b.all_out(), ReduceOp::sum, root));
    case Collective::scan:
      return wait(c.scan(b.all_in(), b.all_out(), ReduceOp::sum));
    case Collective::exscan:
      return wait(c.exscan(b.all_in(), b.all_out(), ReduceOp::sum));
    case Collective::reduce_scatter:
      return wait(c.reduce_scatter(b.all_in(), b.one_out(), ReduceOp::sum));
    case Collective::reduce_scatter_v:
      return wait(c.reduce_scatter_v(b.all_in(), b.blocks(), b.one_out(), ReduceOp::sum));
    case Collective::all_gather:
      return wait(c.all_gather(b.one_in(), b.all_out()));
    case Collective::all_gather_v:
      return wait(c.all_gather_v(b.one_in(), b.all_out(), b.blocks()));
    case Collective::gather:
      return wait(c.gather(b.one_in(), b.all_out(), root));
    case Collective::gather_v:
      return wait(c.gather_v(b.one_in(), b.all_out(), b.blocks(), root));
    case Collective::scatter:
      return wait(c.scatter(b.all_in(), b.one_out(), root));
    case Collective::scatter_v:
      return wait(c.scatter_v(b.all_in(), b.blocks(), b.one_out(), root));
    case Collective::all_to_all:
      return wait(c.all_to_all(b.all_in(), b.all_out()));
    case Collective::all_to_all_v:
      return wait(c.all_to_all_v(b.all_in(), b.blocks(), b.all_out(), b.blocks()));
    case Collective::send:
    case Collective::recv:
      break;
  }
  return {Code::internal, "no collective"};
}

/// A rank that dies instead of publication number `at` of `algorithm`.
struct Case {
  const Algorithm* algorithm;
  int ranks, victim, at;
};

void run_rank(Communicator& world, const Case& c, Times& times) {
  const int me = index(world.rank());
  Result<Communicator> comm = [&] {
    const Environment env(
        me == c.victim ? Environment::Variables{{"ANYCCL_ALGO", std::string(c.algorithm->name)},
                                                {"ANYCCL_CHAOS", "die=" + std::to_string(c.at)}}
                       : Environment::Variables{{"ANYCCL_ALGO", std::string(c.algorithm->name)}});
    return world.split(0, me);
  }();
  ASSERT_OK(comm.status());
  Buffers buffers(c.ranks);
  ++times.ready;
  while (me == c.victim && times.ready < c.ranks) std::this_thread::yield();
  if (me == c.victim) times.ended[static_cast<std::size_t>(me)] = Clock::now();
  Status status = call(*comm, c.algorithm->collective, buffers);
  if (me == c.victim) {
    if (!status.ok()) say(std::string(status.message()));
    ::_exit(status.ok() ? kIsThrough : 1);
  }
  // A rank that needs nothing of the others is through before one dies.
  if (status.ok()) status = wait(comm->barrier());
  times.ended[static_cast<std::size_t>(me)] = Clock::now();
  EXPECT_EQ(status.code(), Code::remote_error) << status.message();
  for (const std::string& words : {"rank " + std::to_string(c.victim) + " (", std::string("died")})
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

class StepDeath : public testing::TestWithParam<std::string> {
 protected:
  StepDeath()
      : times_(new (::mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Times) {}
  ~StepDeath() override { ::munmap(times_, sizeof(Times)); }

  /// False if the rank was through before it died.
  bool dies(const Case& c) {
    SCOPED_TRACE(id(*c.algorithm) + ", " + std::to_string(c.ranks) + " ranks, rank " +
                 std::to_string(c.victim) + " dies instead of publication " + std::to_string(c.at));
    times_->ready = 0;
    const auto outcomes = run_processes(
        c.ranks, [&](Communicator& world) { run_rank(world, c, *times_); },
        [&](int) {
          return Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}};
        },
        60);
    const auto& victim = outcomes[static_cast<std::size_t>(c.victim)];
    if (victim.exit_code == kIsThrough) return false;
    EXPECT_EQ(victim.exit_code, -SIGKILL) << victim.output;
    for (int r = 0; r < c.ranks; ++r) {
      if (r == c.victim) continue;
      const auto i = static_cast<std::size_t>(r);
      EXPECT_EQ(outcomes[i].exit_code, 0) << "rank " << r << ": " << outcomes[i].output;
      took_.push_back(times_->ended[i] - times_->ended[static_cast<std::size_t>(c.victim)]);
    }
    return true;
  }

  int die_at_each_step(int ranks) {
    int deaths = 0, turn = 0;
    for (const Algorithm* algorithm : all_algorithms()) {
      if (!algorithm->supports({algorithm->collective, ranks, Rank{0}, false, {}})) continue;
      const int victims = is_long() ? ranks : 1;
      for (int v = 0; v < victims && !HasFailure(); ++v, ++turn)
        for (int at = 1; !HasFailure() && dies({algorithm, ranks, turn % ranks, at}); ++at)
          ++deaths;
    }
    return deaths;
  }

  void report(int ranks, int deaths) {
    std::sort(took_.begin(), took_.end());
    const auto at = [&](double share) {
      return std::chrono::duration<double, std::milli>(
                 took_[static_cast<std::size_t>(share * static_cast<double>(took_.size() - 1))])
          .count();
    };
    std::printf(
        "%s, %d ranks: %d deaths, named by all %zu others after %.1f ms (median), %.1f (99 %%), "
        "%.1f (all)\n",
        GetParam().c_str(), ranks, deaths, took_.size(), at(0.5), at(0.99), at(1));
    took_.clear();
  }

 private:
  Times* times_;
  std::vector<Clock::duration> took_;
};
INSTANTIATE_TEST_SUITE_P(over, StepDeath, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

TEST_P(StepDeath, is_named_by_all_others) {
  for (int ranks = is_long() ? 2 : 3; ranks <= (is_long() ? 8 : 3); ++ranks) {
    const int deaths = die_at_each_step(ranks);
    ASSERT_FALSE(HasFailure());
    EXPECT_GE(deaths, static_cast<int>(all_algorithms().size()) / 2) << "does nobody die?";
    report(ranks, deaths);
  }
}

}  // namespace
}  // namespace anyccl::test
