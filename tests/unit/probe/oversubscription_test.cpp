#include "platform/probe/oversubscription.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/probe/text_file.hpp"

namespace anyccl::probe {
namespace {

TEST(Oversubscription, counts_what_the_names_say) {
  EXPECT_EQ(count_ranks(""), 0);
  EXPECT_EQ(count_ranks("0: 2 0 0 2 01 7 @anyccl-ranks-4-ab12\n1: 2 0 0 2 01 8 @anyccl-ranks-1-0\n"
                        "2: 2 0 0 2 01 9 /run/other\n"),
            5);
}

TEST(Oversubscription, refuses_nonsense) {
  EXPECT_EQ(
      count_ranks("@anyccl-ranks- @anyccl-ranks-x @anyccl-ranks--3-1 anyccl-ranks-99999999999"), 0);
  EXPECT_GT(count_ranks("@anyccl-ranks-2000000000-1 @anyccl-ranks-2000000000-2"), 0);
}

TEST(Oversubscription, sees_ranks_of_others_come_and_go) {
  const auto cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const auto ranks = [] { return count_ranks(read_text("/proc/net/unix")); };
  OversubscriptionMonitor here;
  constexpr int kMany = 50000;  // more than all tests that run beside this one
  const auto registration = here.add(cores);
  {
    OversubscriptionMonitor other;
    const auto many = other.add(kMany), few = other.add(1);
    EXPECT_GE(ranks(), kMany + cores);
    EXPECT_LT(ranks(), 2 * kMany) << "the larger one counts";
    const auto again = here.add(1);
    EXPECT_TRUE(here.is_oversubscribed());
  }
  EXPECT_GE(ranks(), cores);
  EXPECT_LT(ranks(), kMany);
}

TEST(Oversubscription, takes_ranks_that_are_known_to_be_more_than_cores_as_counted) {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN), many = 70000;  // more than all tests have
  OversubscriptionMonitor here;
  const auto few = here.add(1, cores);
  EXPECT_LT(here.ranks(), many);
  const auto registration = here.add(1, many);
  EXPECT_TRUE(here.is_oversubscribed());
  EXPECT_EQ(here.ranks(), many);
  EXPECT_EQ(here.crowding(), many / cores / 4);
}

TEST(Oversubscription, adds_ranks_that_are_known_in_other_network_namespaces) {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN), many = 80000;  // more than all tests have
  OversubscriptionMonitor here;
  const auto registration = here.add(1, 1);
  {
    const auto beside = here.add(1, 1, many);
    EXPECT_TRUE(here.is_oversubscribed());
    EXPECT_EQ(here.ranks(), 1 + many);
    EXPECT_EQ(here.crowding(), (1 + many) / cores / 4);
    const auto more = here.add(1, 1);  // counts again
    EXPECT_GT(here.ranks(), many);
  }
  const auto again = here.add(1, 1);
  EXPECT_LT(here.ranks(), many);
}

TEST(Oversubscription, sees_forked_children_as_soon_as_they_have_ranks) {
  const auto ranks = [] { return count_ranks(read_text("/proc/net/unix")); };
  constexpr int kMany = 60000;
  OversubscriptionMonitor here;
  const auto registration = here.add(1);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mine = here.add(kMany);
    ::_exit(ranks() >= kMany ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_LT(ranks(), kMany);
}

}  // namespace
}  // namespace anyccl::probe
