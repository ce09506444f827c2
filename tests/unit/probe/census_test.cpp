#include "platform/probe/census.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "platform/probe/text_file.hpp"

namespace anyccl {
namespace {

TEST(Census, counts_what_the_names_say) {
  EXPECT_EQ(count_ranks(""), 0);
  EXPECT_EQ(count_ranks("0: 2 0 0 2 01 7 @anyccl-ranks-4-ab12\n1: 2 0 0 2 01 8 @anyccl-ranks-1-0\n"
                        "2: 2 0 0 2 01 9 /run/other\n"),
            5);
}

TEST(Census, refuses_nonsense) {
  EXPECT_EQ(
      count_ranks("@anyccl-ranks- @anyccl-ranks-x @anyccl-ranks--3-1 anyccl-ranks-99999999999"), 0);
  EXPECT_GT(count_ranks("@anyccl-ranks-2000000000-1 @anyccl-ranks-2000000000-2"), 0);
}

TEST(Census, sees_ranks_of_others_come_and_go) {
  const auto cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const auto ranks = [] { return count_ranks(read_text("/proc/net/unix")); };
  Census here;
  constexpr int kMany = 50000;  // more than all tests that run beside this one
  {
    Census other;
    other.enter(kMany);
    other.enter(1);  // it had more
    here.enter(cores);
    EXPECT_GE(ranks(), kMany + cores);
    EXPECT_TRUE(here.is_crowded());
  }
  EXPECT_GE(ranks(), cores);
  EXPECT_LT(ranks(), kMany);
}

}  // namespace
}  // namespace anyccl
