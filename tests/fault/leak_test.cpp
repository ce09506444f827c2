// Nothing is left of a communicator: no descriptor, thread or mapping.

#include <cstdint>
#include <fstream>

#include "support/ranks.hpp"
#include "support/usage.hpp"

namespace anyccl::test {
namespace {

struct Usage {
  std::ptrdiff_t descriptors, threads, mappings;
};

Usage usage(std::ptrdiff_t threads_wanted = PTRDIFF_MAX) {
  std::ifstream maps("/proc/self/maps");
  return {descriptors(), threads(threads_wanted),
          std::count(std::istreambuf_iterator<char>(maps), {}, '\n')};
}

#if defined(__SANITIZE_THREAD__)
constexpr std::ptrdiff_t kMostMappings = 90;  // some of its own for threads that have ended
#else
constexpr std::ptrdiff_t kMostMappings = 50;
#endif

void expect_no_growth(const Usage& before) {
  const Usage after = usage(before.threads);
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
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
    const Usage before = usage();
    for (int i = 0; i < 500; ++i) cycle_all_here();
    expect_no_growth(before);
  }
}

TEST(Leak, nothing_after_a_hundred_unique_ids) {
  const auto cycle = [] {
    auto id = UniqueIdentifier::create();
    ASSERT_TRUE(id.ok()) << id.status().message();
    auto comm = Communicator::from_unique_id(*id, Rank{0}, 1);
    ASSERT_TRUE(comm.ok()) << comm.status().message();
    ASSERT_OK(comm->destroy());
  };
  for (int i = 0; i < 3; ++i) cycle();
  const Usage before = usage();
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
      if (comm.rank() == Rank{i % 3}) ASSERT_OK(comm.abort());
    });
  };
  for (int i = 0; i < 5; ++i) cycle(i);
  const Usage before = usage();
  for (int i = 0; i < 50; ++i) cycle(i);
  expect_no_growth(before);
}

}  // namespace
}  // namespace anyccl::test
