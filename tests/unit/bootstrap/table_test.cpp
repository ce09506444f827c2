// The table that everyone gets: small, the same after decoding, and harmless whatever it holds.

#include "platform/bootstrap/group/table.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "random_bytes.hpp"
#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

/// As processes of `hosts` hosts send them, rank r on host r % hosts.
std::vector<Hello> similar_hellos(std::mt19937& random, std::uint32_t size, std::uint32_t hosts) {
  const Member member = make_member(0, 1, "NAME=value");
  std::vector<Hello> hellos(size, member.hello);
  for (std::uint32_t r = 0; r < size; ++r) {
    Hello& hello = hellos[r];
    hello.rank = r;
    hello.size = size;
    hello.pid = 70000 + 3 * r;
    const std::uint32_t host = r % hosts;
    std::memcpy(hello.boot_id.data(), &host, sizeof host);
    for (std::byte& b : hello.process) b = static_cast<std::byte>(random());
    for (std::size_t i = 7; i < 39; ++i) hello.unix_name[i] = "0123456789abcdef"[random() % 16];
    std::vector<Address> addresses = addresses_of(member.hello);
    for (Address& address : addresses)
      address.port = static_cast<std::uint16_t>(32768 + random() % 28000);
    pack(addresses, hello.addresses);
  }
  return hellos;
}

/// Any bytes where check_hello() allows any.
Hello random_hello(std::mt19937& random, std::uint32_t rank, std::uint32_t size) {
  Hello hello = read_as<Hello>(random_text(random, sizeof(Hello)));
  const Hello proper = make_member(0, 1).hello;
  hello.magic = proper.magic;
  hello.protocol = proper.protocol;
  hello.rank = rank;
  hello.size = size;
  hello.host_name.back() = hello.unix_name.back() = hello.settings.back() = 0;
  hello.addresses = proper.addresses;
  return hello;
}

bool same(const std::vector<Hello>& a, const std::vector<Hello>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Hello)) == 0;
}

Result<std::vector<Hello>> after_the_wire(const std::vector<Hello>& hellos) {
  return decode_table(encode_table(hellos), static_cast<std::uint32_t>(hellos.size()));
}

TEST(Table, holds_the_hellos_that_were_encoded) {
  std::mt19937 random = seeded();
  for (const std::uint32_t size : {1U, 2U, 3U, 64U, 300U})
    for (const std::uint32_t hosts : {1U, 7U}) {
      const std::vector<Hello> hellos = similar_hellos(random, size, hosts);
      const Result<std::vector<Hello>> decoded = after_the_wire(hellos);
      ASSERT_OK(decoded.status());
      EXPECT_TRUE(same(*decoded, hellos)) << size << " on " << hosts;
    }
}

TEST(Table, holds_hellos_that_have_nothing_in_common_in_the_room_it_promises) {
  std::mt19937 random = seeded();
  for (int round = 0; round < 20; ++round) {
    std::vector<Hello> hellos;
    for (std::uint32_t r = 0; r < 9; ++r) hellos.push_back(random_hello(random, r, 9));
    EXPECT_LE(encode_table(hellos).size(), hellos.size() * kMostEntryBytes);
    const Result<std::vector<Hello>> decoded = after_the_wire(hellos);
    ASSERT_OK(decoded.status());
    EXPECT_TRUE(same(*decoded, hellos));
  }
}

TEST(Table, of_1024_similar_hellos_takes_128_bytes_for_each_at_most) {
  std::mt19937 random = seeded();
  for (const std::uint32_t hosts : {1U, 128U})
    EXPECT_LE(encode_table(similar_hellos(random, 1024, hosts)).size(), 128U * 1024) << hosts;
}

TEST(Table, with_ranks_in_other_places_or_of_another_size_is_refused) {
  std::mt19937 random = seeded();
  std::vector<Hello> hellos = similar_hellos(random, 3, 1);
  const std::vector<std::byte> table = encode_table(hellos);
  for (const std::uint32_t size : {0U, 1U, 2U, 4U, 65536U})
    EXPECT_FALSE(decode_table(table, size).ok()) << size;
  std::swap(hellos[1], hellos[2]);
  EXPECT_EQ(after_the_wire(hellos).status().code(), Code::remote_error);
}

TEST(Table, with_a_hello_that_cannot_be_used_is_refused) {
  std::mt19937 random = seeded();
  std::vector<Hello> hellos = similar_hellos(random, 3, 1);
  hellos[1].host_name.fill('x');  // without an end
  EXPECT_EQ(after_the_wire(hellos).status().code(), Code::invalid_argument);
}

TEST(Table, that_is_cut_anywhere_or_goes_on_is_refused) {
  std::mt19937 random = seeded();
  std::vector<std::byte> table = encode_table(similar_hellos(random, 5, 2));
  for (std::size_t size = 0; size < table.size(); ++size)
    EXPECT_FALSE(decode_table(Bytes(table).first(size), 5).ok()) << size;
  table.push_back(std::byte{0});
  EXPECT_FALSE(decode_table(table, 5).ok());
}

TEST(Table, that_refers_to_a_hello_before_the_first_or_writes_beyond_one_is_refused) {
  const auto refuses = [](std::initializer_list<unsigned> bytes) {
    std::vector<std::byte> table;
    for (const unsigned b : bytes) table.push_back(static_cast<std::byte>(b));
    table.resize(2000);
    return decode_table(table, 1).status().code() == Code::remote_error;
  };
  EXPECT_TRUE(refuses({1, 0})) << "distance";
  EXPECT_TRUE(refuses({0, 1, 0xff, 0x7f, 1})) << "skip";
  EXPECT_TRUE(refuses({0, 1, 4, 0xff, 0x7f})) << "length";
  EXPECT_TRUE(refuses({0, 1, 0, 0})) << "a run of nothing";
  EXPECT_TRUE(refuses({0xff, 0xff, 0xff, 0xff, 0xff})) << "a number without end";
}

/// For the sanitizers: most of these are errors, and none reads or writes where it must not.
TEST(Table, of_random_or_damaged_bytes_harms_nobody) {
  std::mt19937 random = seeded();
  const std::vector<std::byte> proper = encode_table(similar_hellos(random, 4, 2));
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> table =
        round % 2 == 0 ? proper : random_text(random, random() % (2 * sizeof(Hello)));
    for (unsigned i = 0; !table.empty() && i < 1 + random() % 4; ++i)
      table[random() % table.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0 : random());
    const Result<std::vector<Hello>> decoded = decode_table(table, 4);
    EXPECT_TRUE(!decoded.ok() || decoded->size() == 4);
  }
}

}  // namespace
}  // namespace anyccl::bootstrap
