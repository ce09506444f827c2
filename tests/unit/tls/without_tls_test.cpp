#include <gtest/gtest.h>

#include "platform/tls/tls.hpp"

namespace anyccl {
namespace {

TEST(WithoutTls, says_that_the_build_has_none) {
  for (const Status& status :
       {tls::is_available(), tls::make_stream(tls::Side::client, {}).status()}) {
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_NE(status.message().find("ANYCCL_TLS needs a build with"), std::string_view::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace anyccl
