#include "runtime/members/members.hpp"

#include <gtest/gtest.h>

namespace anyccl {
namespace {

using namespace std::chrono_literals;

TEST(Problems, of_other_ranks_are_shown_without_control_characters) {
  Problem problem;
  problem.set(Status(Code::system_error, "no memory\n\x1b[2J"));
  EXPECT_EQ(problem.of("split", Rank{3}).message(),
            "split: rank 3 cannot take part: no memory??[2J");
}

TEST(InheritedSettings, are_the_parents_unless_the_own_say_something) {
  CommSettings parent, own;
  parent.algo = "ring";
  parent.time_limit = 1s;
  EXPECT_EQ(inherited(parent, own).algo, "ring");
  EXPECT_EQ(inherited(parent, own).time_limit, 1s);
  own.algo = "flat";
  own.time_limit = 2s;
  EXPECT_EQ(inherited(parent, own).algo, "flat");
  EXPECT_EQ(inherited(parent, own).time_limit, 2s);
}

TEST(InheritedSettings, have_no_time_limit_of_creation_but_their_own) {
  CommSettings parent, own;
  parent.creation_limit = 1s;
  EXPECT_EQ(inherited(parent, own).creation_limit, std::nullopt);
  own.creation_limit = 2s;
  EXPECT_EQ(inherited(parent, own).creation_limit, 2s);
}

}  // namespace
}  // namespace anyccl
