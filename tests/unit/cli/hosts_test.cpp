#include "launch/hosts.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "launch/order.hpp"

namespace anyccl::cli {
namespace {

/// "a:2 b:1", or the error.
std::string spread(std::string_view list, std::optional<int> ranks) {
  const Result<std::vector<HostRanks>> hosts = parse_hosts(list, ranks);
  if (!hosts.ok()) return std::string(hosts.status().message());
  std::string text;
  for (const HostRanks& host : *hosts)
    text += (text.empty() ? "" : " ") + host.name + "=" + std::to_string(host.ranks);
  return text;
}

TEST(Hosts, without_numbers_share_the_ranks_evenly_in_blocks) {
  EXPECT_EQ(spread("a,b", 4), "a=2 b=2");
  EXPECT_EQ(spread("a,b,c", 8), "a=3 b=3 c=2");
}

TEST(Hosts, with_numbers_are_filled_from_the_first_on) {
  EXPECT_EQ(spread("a:2,b,c:3", std::nullopt), "a=2 b=1 c=3");
  EXPECT_EQ(spread("a:2,b,c:3", 4), "a=2 b=1 c=1");
  EXPECT_EQ(spread("a:2,b,c:3", 2), "a=2");
}

TEST(Hosts, may_be_addresses_and_have_users) {
  EXPECT_EQ(spread("me@a:2,10.0.0.1,[fd00::1]:4,fd00::2", std::nullopt),
            "me@a=2 10.0.0.1=1 fd00::1=4 fd00::2=1");
}

TEST(Hosts, that_do_not_fit_are_named) {
  EXPECT_EQ(spread("", 1), "--hosts: there is no host");
  EXPECT_EQ(spread("a,b", std::nullopt), "--hosts: how many ranks? Give --ranks, or numbers: a:2");
  EXPECT_EQ(spread("a,b", 1), "--ranks 1 is less than the 2 hosts");
  EXPECT_EQ(spread("a:2,b:2", 5), "--ranks 5: --hosts has room for 4");
  EXPECT_EQ(spread("a,b,a", 3), "--hosts: a is there twice: write a:2");
  EXPECT_EQ(spread("a,b,A.", 3), "--hosts: A. is there twice, also as a: write a:2");
  EXPECT_EQ(spread("me@a,b,you@a", 3), "--hosts: you@a is there twice, also as me@a: write me@a:2");
}

class NoHost : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Texts, NoHost,
                         ::testing::Values("a,,b", "a,", ",a", ",", "a:", "a:0", "a:x", "a:2x",
                                           "a:-1", "a:70000", ":2", "[fd00::1", "[]:2",
                                           "-oProxyCommand=x"));

TEST_P(NoHost, is_an_error) {
  EXPECT_NE(spread(GetParam(), 100).find(" is no host: write NAME"), std::string::npos)
      << spread(GetParam(), 100);
}

TEST(Master, has_a_port_or_none) {
  EXPECT_EQ(parse_master("a")->host, "a");
  EXPECT_EQ(parse_master("a")->port, std::nullopt);
  EXPECT_EQ(parse_master("a:29500")->port, 29500);
  EXPECT_EQ(parse_master("fd00::1")->host, "fd00::1");
  EXPECT_EQ(parse_master("[fd00::1]:7")->host, "fd00::1");
  EXPECT_EQ(parse_master("[fd00::1]:7")->port, 7);
}

TEST(Master, that_is_none_is_named) {
  for (const char* text : {"", "a:0", "a:65535", "a:b"}) {
    const Result<HostPort> master = parse_master(text);
    ASSERT_FALSE(master.ok()) << text;
    EXPECT_NE(master.status().message().find(std::string("--master ") + text), std::string::npos);
  }
}

/// What a reader of `bytes` gets.
Result<Order> read_back(std::string_view bytes) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  EXPECT_EQ(::fcntl(reader.get(), F_SETPIPE_SZ, 1 << 18), 1 << 18);
  EXPECT_EQ(::write(writer.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  writer.reset();
  return read_order(reader.get());
}

Order some_order() {
  Order order;
  order.job.ranks = 3;
  order.job.part = HostPart{.first_rank = 2, .world_size = 5, .master_addr = "a", .master_port = 7};
  order.job.part->secret = "s";
  order.job.settings = {{"A", "1=2"}, {"EMPTY", ""}, {"LINES", "a\nb"}};
  order.job.command = {"p", "", "with space", "it's", "\xff"};
  order.job.keep_going = true;
  order.job.user_grace = std::chrono::seconds(9);
  order.folder = "/somewhere";
  return order;
}

TEST(Order, arrives_as_it_was) {
  const Order sent = some_order();
  const Result<Order> got = read_back(*text_of(sent));
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->job.ranks, 3);
  EXPECT_EQ(got->job.part->first_rank, 2);
  EXPECT_EQ(got->job.part->world_size, 5);
  EXPECT_EQ(got->job.part->master_addr, "a");
  EXPECT_EQ(got->job.part->master_port, 7);
  EXPECT_EQ(got->job.part->secret, "s");
  EXPECT_EQ(got->job.settings, sent.job.settings);
  EXPECT_EQ(got->job.command, sent.job.command);
  EXPECT_TRUE(got->job.keep_going);
  EXPECT_TRUE(got->job.prefix_output);
  EXPECT_FALSE(got->job.coloured);
  EXPECT_EQ(got->job.user_grace.count(), 9);
  EXPECT_EQ(got->folder, "/somewhere");
}

TEST(Order, that_is_cut_anywhere_is_an_error) {
  const std::string text = *text_of(some_order());
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(read_back(text.substr(0, size)).ok()) << size;
}

TEST(Order, of_another_version_is_named) {
  const Result<Order> got = read_back("anyccl order 0.0.1 5\nabcde");
  EXPECT_NE(got.status().message().find("the launcher says 'anyccl order 0.0.1 5'"),
            std::string::npos)
      << got.status().message();
}

TEST(Order, that_is_too_long_for_a_socket_is_refused) {
  Order order = some_order();
  order.job.command.emplace_back(100'000, 'x');
  EXPECT_EQ(text_of(order).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace anyccl::cli
