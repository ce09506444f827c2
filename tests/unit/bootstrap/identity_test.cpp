// Secrets and unique ids.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "platform/bootstrap/rendezvous/unique_id.hpp"
#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

std::string hex_of(Bytes bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

Bytes text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Hmac, is_hmac_sha256_of_label_zero_and_parts) {
  // python3: hmac.new(b"key", b"label\0" + b"data" + b"more", "sha256").hexdigest()
  const Result<Mac> mac =
      hmac(text_bytes("key"), "label", {text_bytes("data"), text_bytes("more")});
  ASSERT_OK(mac.status());
  EXPECT_EQ(hex_of(*mac), "ddaad66a611c7b365769da3123803ac4ce1e8fda153ee10d17a6a95010362e39");
}

TEST(Secret, survives_its_hex_digits) {
  const Result<Secret> secret = Secret::random();
  ASSERT_OK(secret.status());
  EXPECT_EQ(secret->hex().size(), 32U);
  EXPECT_EQ(*Secret::parse(secret->hex()), *secret);
}

TEST(Secret, is_another_one_each_time) {
  EXPECT_NE(*Secret::random(), *Secret::random());
}

TEST(Secret, refuses_other_texts_without_repeating_them) {
  for (const char* text :
       {"", "12", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0",
        "0x23456789abcdef0123456789abcdef"}) {
    const Result<Secret> secret = Secret::parse(text);
    EXPECT_EQ(secret.status().code(), Code::invalid_argument) << text;
    EXPECT_TRUE(*text == '\0' || text[1] == '2' || !contains(message_of(secret), text));
  }
}

TEST(Secret, has_other_children_for_other_labels_and_contexts) {
  const Secret parent = *Secret::random();
  EXPECT_EQ(*parent.derive("a"), *parent.derive("a"));
  EXPECT_NE(*parent.derive("a"), *parent.derive("b"));
  EXPECT_NE(*parent.derive("a", text_bytes("x")), *parent.derive("a", text_bytes("y")));
  EXPECT_NE(*parent.derive("a"), parent);
}

class UniqueIdTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<Address> addresses = {{4, 4000, 0, {192, 0, 2, 1}}, {6, 4001, 0, kLoopback6}};
    Result<UniqueId> made = UniqueId::make(*Secret::random(), addresses);
    ASSERT_OK(made.status());
    id_ = *made;
    id_.to_bytes(bytes_);
  }
  std::string problem() { return message_of(UniqueId::from_bytes(bytes_)); }

  UniqueId id_;
  std::array<char, kUniqueIdBytes> bytes_{};
};

TEST_F(UniqueIdTest, survives_its_bytes) {
  const Result<UniqueId> read = UniqueId::from_bytes(bytes_);
  ASSERT_OK(read.status());
  EXPECT_EQ(read->secret, id_.secret);
  ASSERT_EQ(read->addresses().size(), 2U);
  EXPECT_EQ(to_string(read->addresses()[0]), "192.0.2.1:4000");
  EXPECT_EQ(to_string(read->addresses()[1]), "[::1]:4001");
}

TEST_F(UniqueIdTest, knows_what_is_no_id) {
  bytes_.fill('x');
  EXPECT_TRUE(contains(problem(), "not an anyccl unique id")) << problem();
  bytes_.fill('\0');
  EXPECT_TRUE(contains(problem(), "not an anyccl unique id")) << problem();
}

TEST_F(UniqueIdTest, knows_another_version) {
  bytes_[8] = 99;
  EXPECT_TRUE(contains(problem(), "version 99")) << problem();
}

TEST_F(UniqueIdTest, notices_every_changed_byte) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    bytes_[i] = static_cast<char>(bytes_[i] ^ 1);
    EXPECT_EQ(UniqueId::from_bytes(bytes_).status().code(), Code::invalid_argument) << "byte " << i;
    bytes_[i] = static_cast<char>(bytes_[i] ^ 1);
  }
}

TEST_F(UniqueIdTest, notices_that_it_was_copied_like_a_string) {
  std::fill(std::find(bytes_.begin(), bytes_.end(), '\0'), bytes_.end(), '\0');
  EXPECT_FALSE(problem().empty());
}

TEST(UniqueIds, keep_only_as_many_addresses_as_they_have_room_for) {
  std::vector<Address> many(9, Address{6, 4000, 0, {0x20, 0x01, 0x0d, 0xb8}});
  many.push_back({4, 4000, 0, {127, 0, 0, 1}});
  const std::vector<Address> kept = UniqueId::make(*Secret::random(), many)->addresses();
  ASSERT_EQ(kept.size(), 5U);
  EXPECT_EQ(kept.back(), many.back());
}

}  // namespace
}  // namespace anyccl::bootstrap
