#include "platform/probe/machine.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace anyccl::test {
namespace {

using namespace probe;

const Machine kMachine{.cpu = "Fast 9000 25 1",
                       .cores = "0-7",
                       .nodes = "0",
                       .caches = "L1 48K 0",
                       .quota = std::numeric_limits<double>::infinity()};

TEST(Fingerprint, is_another_one_where_anything_about_the_machine_differs) {
  Machine cpu = kMachine, cores = kMachine, nodes = kMachine, caches = kMachine, quota = kMachine;
  cpu.cpu = "Fast 9001 25 1";
  cores.cores = "0-15";
  nodes.nodes = "0-1";
  caches.caches = "L1 32K 0";
  quota.quota = 2;
  std::set<std::string> all;
  for (const Machine& m : {kMachine, cpu, cores, nodes, caches, quota}) all.insert(fingerprint(m));
  EXPECT_EQ(all.size(), 6U);
}

TEST(Fingerprint, is_16_digits_that_stay_the_same) {
  EXPECT_EQ(fingerprint(kMachine), fingerprint(Machine(kMachine)));
  EXPECT_EQ(fingerprint(kMachine).size(), 16U);
  EXPECT_EQ(fingerprint(kMachine).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Machine, is_described_for_people) {
  EXPECT_EQ(describe(kMachine), "Fast 9000 25 1, cores 0-7, NUMA nodes 0, caches L1 48K 0");
  Machine limited = kMachine;
  limited.quota = 1.5;
  EXPECT_NE(describe(limited).find("cores 0-7 (quota 1.5)"), std::string::npos);
}

TEST(Machine, is_known_and_the_same_when_read_again) {
  EXPECT_FALSE(this_machine().cpu.empty());
  EXPECT_EQ(describe(this_machine()), describe(this_machine()));
}

TEST(CpuFact, is_that_of_the_first_core) {
  const char* text =
      "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t:\n\n"
      "processor\t: 1\nmodel name\t: Other\n";
  EXPECT_EQ(cpu_fact(text, "model name"), "AMD EPYC");
  EXPECT_EQ(cpu_fact(text, "model"), "2");
  EXPECT_EQ(cpu_fact(text, "flags"), "");
  EXPECT_EQ(cpu_fact(text, "CPU part"), "");
}

}  // namespace
}  // namespace anyccl::test
