#pragma once

#include <string_view>

#include "support/ranks.hpp"

/// Fails the test unless the Status has this code and these words.
#define EXPECT_REFUSED(status_, code_, words_)                                                \
  do {                                                                                        \
    const ::anyccl::Status refused_ = (status_);                                              \
    EXPECT_EQ(refused_.code(), code_) << refused_.message();                                  \
    EXPECT_NE(refused_.message().find(words_), std::string_view::npos) << refused_.message(); \
  } while (false)

namespace anyccl::test {

/// Fails the test unless the group of what `function` calls succeeds.
template <typename Function>
void expect_group(Function function) {
  const Status done = group(function);
  EXPECT_TRUE(done.ok()) << done.message();
}

}  // namespace anyccl::test
