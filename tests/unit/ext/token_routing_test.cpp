#include "ext/experts/token_routing.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace anyccl {
namespace {

TokenRouting routing(std::size_t capacity, bool padded) {
  const std::vector<int> expert_of{0, 1};
  auto made = TokenRouting::make(
      {.tokens = 2, .choices = 1, .experts = 2, .capacity = capacity, .padded = padded}, expert_of,
      2);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

TEST(TokenRouting, takes_no_more_rows_of_a_peer_than_its_padding_has_room_for) {
  TokenRouting padded = routing(4, true);
  EXPECT_TRUE(padded.set_received(std::vector<std::size_t>{1, 4}).ok());
  const Status more = padded.set_received(std::vector<std::size_t>{1, 5});
  EXPECT_EQ(more.code(), Code::invalid_usage);
  EXPECT_NE(more.message().find("rank 1 sends 5 rows"), std::string_view::npos) << more.message();
  EXPECT_EQ(padded.received_from(), (std::vector<std::size_t>{1, 4})) << "as before";
}

TEST(TokenRouting, takes_no_counts_of_a_peer_whose_sum_overflows) {
  TokenRouting packed = routing(0, false);
  const std::size_t half = std::size_t{1} << 63;
  EXPECT_EQ(packed.set_received(std::vector<std::size_t>{half, half}).code(), Code::invalid_usage);
}

}  // namespace
}  // namespace anyccl
