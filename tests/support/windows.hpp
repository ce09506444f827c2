#pragma once
// What tests of windows need.

#include "anyccl/window.hpp"
#include "support/streams.hpp"

namespace anyccl::test {

class Windows : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
#define OVER_ALL_TRANSPORTS(suite)                                                  \
  INSTANTIATE_TEST_SUITE_P(Over, suite, testing::Values("loopback", "unix", "tcp"), \
                           [](const auto& transport) { return std::string(transport.param); })

using Bytes = std::vector<std::uint8_t>;

inline Bytes pattern(std::size_t count, int salt) {
  Bytes x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(salt) * 31 + i % 251);
  return x;
}
inline Rank next(const Communicator& comm) {
  return Rank{(index(comm.rank()) + 1) % comm.size()};
}
inline Rank previous(const Communicator& comm) {
  return Rank{(index(comm.rank()) + comm.size() - 1) % comm.size()};
}
inline Window new_window(Communicator& comm, Bytes& memory) {
  auto made = Window::create(comm, memory);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}
inline void expect_error(const Status& status, Code code,
                         std::initializer_list<std::string> parts) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "no '" << part << "' in: " << status.message();
}

}  // namespace anyccl::test
