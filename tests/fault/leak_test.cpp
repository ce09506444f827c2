// Nothing is left of a communicator: no descriptor, thread or mapping.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "support/ranks.hpp"
#include "support/usage.hpp"

namespace anyccl::test {
namespace {

struct Usage {
  std::ptrdiff_t descriptors, threads, mappings;
};

/// Once no more threads and descriptors than wanted are left, or after a while.
Usage usage(std::ptrdiff_t descriptors_wanted, std::ptrdiff_t threads_wanted) {
  const std::ptrdiff_t threads_now = threads(threads_wanted);
  const std::ptrdiff_t descriptors_now = descriptors(descriptors_wanted);
  std::ifstream maps("/proc/self/maps");
  return {descriptors_now, threads_now, std::count(std::istreambuf_iterator<char>(maps), {}, '\n')};
}

/// After some cycles. What still ends then is counted, too: a leak is one more per cycle.
Usage usage_at_start() {
  constexpr std::ptrdiff_t any = std::numeric_limits<std::ptrdiff_t>::max();
  return usage(any, any);
}

#if defined(__SANITIZE_THREAD__)
constexpr std::ptrdiff_t kMostMappings = 90;  // some of its own for threads that have ended
#else
constexpr std::ptrdiff_t kMostMappings = 50;
#endif

void expect_no_growth(const Usage& before) {
  const Usage after = usage(before.descriptors, before.threads);
  EXPECT_LE(after.descriptors, before.descriptors);
  EXPECT_LE(after.threads, before.threads);
  // Allocators may keep an arena per thread; a leak would be one mapping per cycle or more.
  EXPECT_LT(after.mappings, before.mappings + kMostMappings);
}

void cycle_all_here() {
  auto comms = Communicator::init_all(2);
  ASSERT_TRUE(comms.ok()) << comms.status().message();
  for (Communicator& comm : *comms) ASSERT_OK(comm.destroy());
}

TEST(Leak, nothing_after_a_thousand_communicators) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    for (int i = 0; i < 10; ++i) cycle_all_here();
    const Usage before = usage_at_start();
    for (int i = 0; i < 500; ++i) cycle_all_here();
    expect_no_growth(before);
  }
}

TEST(Leak, nothing_after_a_hundred_unique_ids) {
  const auto cycle = [] {
    auto id = UniqueId::create();
    ASSERT_TRUE(id.ok()) << id.status().message();
    auto comm = Communicator::from_unique_id(*id, Rank{0}, 1);
    ASSERT_TRUE(comm.ok()) << comm.status().message();
    ASSERT_OK(comm->destroy());
  };
  for (int i = 0; i < 3; ++i) cycle();
  const Usage before = usage_at_start();
  for (int i = 0; i < 100; ++i) cycle();
  expect_no_growth(before);
}

TEST(Leak, nothing_after_splits_and_failures) {
  const auto cycle = [](int i) {
    run_ranks(3, [&](Communicator& comm) {
      auto part = comm.split(index(comm.rank()) % 2, 0);
      ASSERT_TRUE(part.ok()) << part.status().message();
      std::vector<float> x(100000, 1.0F);
      ASSERT_OK(wait(part->all_reduce(view(x), view(x), ReduceOp::sum)));
      (void)wait(comm.barrier());  // others may be in the split yet, which the abort would end
      if (comm.rank() == Rank{i % 3}) ASSERT_OK(comm.abort());
    });
  };
  for (int i = 0; i < 5; ++i) cycle(i);
  const Usage before = usage_at_start();
  for (int i = 0; i < 50; ++i) cycle(i);
  expect_no_growth(before);
}

/// Large enough that its region goes back to the system at once.
constexpr std::size_t kRegionOfItsOwn = std::size_t{10} << 20;  // floats

std::size_t windows_mapped() {
  std::ifstream maps("/proc/self/maps");
  std::size_t mapped = 0;
  for (std::string line; std::getline(maps, line);)
    mapped += line.find("memfd:anyccl") != std::string::npos ? 1U : 0U;
  return mapped;
}

void lend_once(Communicator& comm) {
  void* memory = nullptr;
  ASSERT_EQ(anycclMemAlloc(&memory, kRegionOfItsOwn * sizeof(float)), anycclSuccess);
  auto* const x = static_cast<float*>(memory);
  x[0] = x[kRegionOfItsOwn - 1] = 1;
  const View v{x, kRegionOfItsOwn, DType::f32};
  ASSERT_OK(wait(comm.all_reduce(v, v, ReduceOp::sum)));
  ASSERT_EQ(x[0], comm.size());
  ASSERT_EQ(x[kRegionOfItsOwn - 1], comm.size());
  ASSERT_EQ(anycclMemFree(memory), anycclSuccess);
}

/// Peers unmap a window within some calls after its memory was freed, and nobody keeps descriptors.
TEST(Leak, nothing_of_memory_that_was_lent_to_other_processes) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    const auto calm_down = [&] {
      for (int i = 0; i < 64; ++i) ASSERT_OK(wait(comm.barrier()));
    };
    lend_once(comm);
    calm_down();
    const Usage before = usage_at_start();
    const std::size_t mapped = windows_mapped();
    for (int i = 0; i < 20; ++i) lend_once(comm);
    calm_down();
    EXPECT_EQ(windows_mapped(), mapped);
    EXPECT_LE(usage(before.descriptors, before.threads).descriptors, before.descriptors);
  }));
}

TEST(Leak, nothing_of_memory_that_was_lent_to_threads) {
  const std::size_t mapped = windows_mapped();
  for (int i = 0; i < 5; ++i)
    run_ranks(3, [&](Communicator& comm) {
      lend_once(comm);
      lend_once(comm);
    });
  EXPECT_EQ(windows_mapped(), mapped);
}

/// Takes maxima; `countdown`, if any, counts the calls and ends the process with the last.
void maximum(const void* in, void* inout, std::size_t count, anycclDataType_t, void* countdown) {
  if (countdown != nullptr && --*static_cast<int*>(countdown) == 0) ::raise(SIGKILL);
  const auto* const from = static_cast<const float*>(in);
  auto* const to = static_cast<float*>(inout);
  for (std::size_t i = 0; i < count; ++i) to[i] = std::max(to[i], from[i]);
}

/// A peer that is killed while it lends leaves no mapping behind once the communicator is gone.
TEST(Leak, nothing_of_memory_that_a_dead_peer_lent) {
  const auto outcomes = run_processes(3, [](Communicator& comm) {
    void* memory = nullptr;
    ASSERT_EQ(anycclMemAlloc(&memory, kRegionOfItsOwn * sizeof(float)), anycclSuccess);
    int countdown = 50;  // in the middle of a call, when the input is lent
    anycclRedOp_t op{};
    ASSERT_EQ(anycclRedOpCreate(&op, maximum, comm.rank() == Rank{2} ? &countdown : nullptr,
                                comm.handle()),
              anycclSuccess);
    anycclResult_t result = anycclSuccess;
    for (int i = 0; i < 1000 && result == anycclSuccess; ++i)
      result = anycclAllReduce(memory, memory, kRegionOfItsOwn, anycclFloat32, op, comm.handle(),
                               nullptr);
    EXPECT_EQ(result, anycclRemoteError);
    const std::string reason = anycclGetLastError(comm.handle());
    EXPECT_NE(reason.find("rank 2"), std::string::npos) << reason;
    EXPECT_OK(comm.abort());
    ASSERT_EQ(anycclMemFree(memory), anycclSuccess);
    EXPECT_EQ(windows_mapped(), 0U);
  });
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 2 ? -SIGKILL : 0)
        << "rank " << r << ": " << outcomes[r].output;
}

}  // namespace
}  // namespace anyccl::test
