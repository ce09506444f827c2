#include "platform/probe/host_facts.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>

namespace anyccl::test {
namespace {

using namespace probe;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

TEST(UsableCores, are_those_of_the_affinity_without_a_quota) {
  EXPECT_EQ(usable_cores(6, kNoLimit), 6);
}

TEST(UsableCores, round_the_quota_down) {
  EXPECT_EQ(usable_cores(6, 1.5), 1);
  EXPECT_EQ(usable_cores(6, 3.99), 3);
  EXPECT_EQ(usable_cores(2, 3.0), 2);
}

TEST(UsableCores, are_at_least_one) {
  EXPECT_EQ(usable_cores(6, 0.2), 1);
  EXPECT_EQ(usable_cores(0, kNoLimit), 1);
}

TEST(HostFacts, are_all_known_on_linux) {
  const HostFacts facts = host_facts();
  EXPECT_FALSE(facts.hostname.empty());
  EXPECT_EQ(facts.boot_id.size(), 36U) << facts.boot_id;  // A UUID, without the line's end.
  EXPECT_NE(facts.network_namespace, 0U);
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.quota, 0);
}

TEST(HostFacts, are_the_same_when_read_again) {
  const HostFacts a = host_facts(), b = host_facts();
  EXPECT_EQ(a.boot_id, b.boot_id);
  EXPECT_EQ(a.network_namespace, b.network_namespace);
}

TEST(HostFacts, follow_the_affinity_of_the_process) {
  const auto bind_and_count = [] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      ::sched_setaffinity(std::stoi(task.path().filename()), sizeof one, &one);
    ::_exit(host_facts().cores);
  };
  EXPECT_EXIT(bind_and_count(), testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace anyccl::test
