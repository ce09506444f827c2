#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace anyccl {
namespace {

TEST(Printable, leaves_text_in_any_language_as_it_is) {
  for (const char* text :
       {"", "rank 3 (host n7, pid 12)", "naïve", "größer", "计算", "𝄞 €", "\u00a0"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, shows_control_characters_as_question_marks) {
  EXPECT_EQ(printable(std::string_view("a\0b\nc\x1b[2Jd\x7f", 11)), "a?b?c?[2Jd?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "??1m")
      << "U+009B begins a sequence like ESC [";
}

TEST(Printable, shows_what_is_no_utf8_as_question_marks) {
  EXPECT_EQ(printable("\x80\xff"), "??");
  EXPECT_EQ(printable("\xe8\xae"), "??") << "cut";
  EXPECT_EQ(printable("\xc0\x8a"), "??") << "a newline, two bytes long";
  EXPECT_EQ(printable("\xed\xa0\x80"), "???") << "half a surrogate pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????") << "beyond U+10FFFF";
}

}  // namespace
}  // namespace anyccl
