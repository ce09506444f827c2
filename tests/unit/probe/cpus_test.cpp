#include "platform/probe/cpus.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <thread>

#include "platform/probe/text_file.hpp"

namespace anyccl::test {
namespace {

using namespace probe;

std::string text(const CpuSet& cpus) {
  std::string all;
  for (std::size_t cpu = 0; cpu < kMostCpus; ++cpu)
    if (cpus.test(cpu)) all += std::to_string(cpu) + " ";
  return all;
}

TEST(CpusIn, understands_what_the_kernel_writes) {
  EXPECT_EQ(text(cpus_in("0")), "0 ");
  EXPECT_EQ(text(cpus_in("0-2,5,7-8")), "0 1 2 5 7 8 ");
  EXPECT_EQ(text(cpus_in("1022-1025")), "0 1 1022 1023 ") << "as their remainders";
  EXPECT_EQ(text(cpus_in("")), "");
}

TEST(CpusIn, ends_where_it_does_not_understand) {
  EXPECT_EQ(text(cpus_in("3,x,4")), "3 ");
  EXPECT_EQ(text(cpus_in("5-3")), "");
  EXPECT_EQ(cpus_in("0-4294967295").count(), kMostCpus);
}

void bind_to(std::size_t cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
}

/// A program that binds each of its threads to one core has all of those.
TEST(CpusOfProcess, are_those_of_all_threads) {
  const CpuSet all = cpus_of_process();
  ASSERT_GE(all.count(), 2U) << "this test needs two CPUs";
  std::size_t first = 0;
  while (!all.test(first)) ++first;
  std::thread([&] {
    bind_to(first);
    EXPECT_EQ(text(cpus_of_process()), text(all)) << "the main thread is not bound";
  }).join();
}

TEST(Nearness, is_known_for_one_cpu) {
  CpuSet one;
  one.set(cpus_in(read_line("/sys/devices/system/cpu/online")).test(0) ? 0 : 1);
  const Nearness near = nearness_of(one);
  EXPECT_NE(near.cache, 0U);
  EXPECT_NE(near.node, 0U);
}

TEST(Nearness, is_not_known_for_none_and_for_what_does_not_exist) {
  CpuSet last;
  last.set(kMostCpus - 1);
  for (const CpuSet& cpus : {CpuSet(), last}) {
    EXPECT_EQ(nearness_of(cpus).cache, 0U);
    EXPECT_EQ(nearness_of(cpus).node, 0U);
  }
}

}  // namespace
}  // namespace anyccl::test
