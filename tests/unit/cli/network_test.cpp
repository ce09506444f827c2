#include "simulate/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "simulate/link_loads.hpp"
#include "simulate/read_network.hpp"
#include "well_formed.hpp"

namespace anyccl::cli {
namespace {

Network network(std::string_view text, std::uint32_t ranks = 1) {
  Result<Network> made = read_network(text, ranks);
  if (!made.ok()) ADD_FAILURE() << made.status().message();
  return *std::move(made);
}

std::string refused(std::string_view text, std::uint32_t ranks = 1) {
  const Result<Network> made = read_network(text, ranks);
  EXPECT_FALSE(made.ok()) << text;
  return std::string(made.status().message());
}

/// Ports are of ends that have a router of their own.
std::size_t cables(const Network& n, bool ports = false) {
  return static_cast<std::size_t>(
             std::count_if(n.links().begin(), n.links().end(),
                           [&](const Network::Link& link) {
                             return ports == (n.classes()[link.link_class].name == "port");
                           })) /
         2;
}

std::vector<std::uint32_t> way(const Network& n, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> links;
  n.route(from, to, links);
  return links;
}

/// The most links from the first, the last or the middle end to any other one.
std::size_t longest_way(const Network& n) {
  std::size_t longest = 0;
  for (const std::uint32_t from : {0U, n.ends() / 2, n.ends() - 1})
    for (std::uint32_t to = 0; to < n.ends(); ++to)
      if (from != to) longest = std::max(longest, way(n, from, to).size());
  return longest;
}

struct Counts {
  std::string_view text;
  std::uint32_t ends, switches;
  std::size_t cables, longest;  // without ports
};
class NetworkCounts : public ::testing::TestWithParam<Counts> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, NetworkCounts,
    ::testing::Values(Counts{"flat:ends=9", 9, 1, 9, 2}, Counts{"ring:ends=16", 16, 16, 16, 8},
                      Counts{"tree:ends=15", 15, 15, 14, 6},
                      Counts{"torus:dims=4x4", 16, 16, 32, 4},
                      Counts{"torus:dims=16x16x16", 4096, 4096, 12288, 24},
                      Counts{"hypercube:dims=4", 16, 16, 32, 4},
                      Counts{"hypercube:dims=10", 1024, 1024, 5120, 10},
                      Counts{"fat-tree:k=4", 16, 20, 48, 6},
                      Counts{"fat-tree:k=48", 27648, 2880, 82944, 6},
                      Counts{"fat-tree:k=8,taper=4", 128, 32 + 8 + 4, 128 + 32 + 32, 6},
                      // Group a h + 1; three hops between routers, and two to ends.
                      Counts{"dragonfly:p=2,a=4,h=2", 72, 36, 72 + 54 + 36, 5},
                      Counts{"dragonfly:p=8,a=16,h=8", 16512, 2064, 16512 + 15480 + 8256, 5},
                      Counts{"dragonfly+:radix=4", 20, 20, 20 + 20 + 10, 5},
                      Counts{"dragonfly+:radix=36", 105300, 11700, 105300 + 105300 + 52650, 5},
                      Counts{"rails:devices=8,hosts=4", 32, 12, 64, 4}));

TEST_P(NetworkCounts, are_those_of_the_formulas) {
  const Counts& expected = GetParam();
  const Network n = network(expected.text);
  EXPECT_EQ(n.ends(), expected.ends);
  EXPECT_EQ(n.nodes() - n.ends(), expected.switches);
  EXPECT_EQ(cables(n), expected.cables);
  const bool direct = cables(n, true) > 0;
  EXPECT_EQ(longest_way(n), expected.longest + (direct ? 2 : 0));
}

/// Whose map must not be drawn by a recursion of so many levels.
TEST(Network, is_a_chain_where_each_end_has_one_child) {
  const Network n = network("tree:arity=1,ends=300000");
  EXPECT_EQ(n.ends(), 300000U);
}

class NetworkKinds : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, NetworkKinds,
                         ::testing::Values("flat", "ring", "tree", "tree:arity=3", "torus",
                                           "torus:dims=6x5", "hypercube", "fat-tree",
                                           "fat-tree:k=8,taper=2", "dragonfly",
                                           "dragonfly:p=1,a=5,h=2", "dragonfly+", "rails",
                                           "rails:devices=5"));

TEST_P(NetworkKinds, lead_each_message_from_its_end_to_the_other_one) {
  const Network n = network(GetParam(), 30);
  ASSERT_GE(n.ends(), 30U);
  for (std::uint32_t a = 0; a < n.ends(); ++a)
    for (std::uint32_t b = 0; b < n.ends(); ++b) {
      if (a == b) continue;
      std::uint32_t at = a;
      std::set<std::uint32_t> seen = {a};
      for (const std::uint32_t link : way(n, a, b)) {
        ASSERT_LT(link, n.links().size());
        ASSERT_EQ(n.links()[link].from, at) << a << " to " << b;
        at = n.links()[link].to;
        ASSERT_TRUE(seen.insert(at).second) << "in a circle from " << a << " to " << b;
      }
      ASSERT_EQ(at, b);
    }
}

TEST_P(NetworkKinds, are_the_same_again_from_their_text_and_json) {
  const Network n = network(GetParam(), 30);
  for (const std::string& form : {n.text(), to_json(n)}) {
    const Network again = network(form);
    EXPECT_EQ(again.text(), n.text());
    EXPECT_EQ(again.nodes(), n.nodes());
    EXPECT_EQ(again.links().size(), n.links().size());
  }
}

TEST_P(NetworkKinds, are_drawn_with_each_cable) {
  const Network n = network(GetParam(), 30);
  const Result<std::string> picture = network_svg(n, nullptr);
  ASSERT_TRUE(picture.ok()) << picture.status().message();
  EXPECT_EQ(XmlReader(*picture).fault(), "");
  std::size_t drawn = 0;
  for (auto at = picture->find("class=\"cable\""); at != std::string::npos;
       at = picture->find("class=\"cable\"", at + 1))
    ++drawn;
  EXPECT_EQ(drawn, cables(n));
}

TEST(Network, names_nodes_by_level) {
  const Network n = network("fat-tree:k=4");
  EXPECT_EQ(n.name_of(n.links()[way(n, 0, 15)[1]]), "edge switch 0 > aggregation switch 1");
  EXPECT_EQ(network("flat:ends=2").name_of(2), "switch");
}

TEST(Network, of_rails_stays_on_the_rail_of_the_receiver) {
  const Network n = network("rails:devices=2,hosts=2");  // ranks 0 and 1, 2 and 3
  EXPECT_EQ(way(n, 0, 2).size(), 2U);
  EXPECT_EQ(way(n, 0, 1).size(), 2U);
  std::string names;
  for (const std::uint32_t link : way(n, 0, 3)) names += n.name_of(n.links()[link]) + "; ";
  EXPECT_EQ(names,
            "rank 0 > host switch 0; host switch 0 > rank 1; rank 1 > rail 1; rail 1 > rank 3; ");
}

TEST(Network, has_room_for_the_ranks_if_nothing_else_is_said) {
  EXPECT_EQ(network("torus", 64).text(), "torus:dims=4x4x4");
  EXPECT_EQ(network("hypercube", 65).text(), "hypercube:dims=7");
  EXPECT_EQ(network("fat-tree", 17).text(), "fat-tree:k=6,taper=1");
  EXPECT_EQ(network("dragonfly", 73).text(), "dragonfly:p=3,a=6,h=3,groups=19");
}

TEST(Network, that_cannot_be_is_refused_in_words) {
  EXPECT_EQ(refused("star"),
            "there is no topology 'star', but flat, ring, tree, torus, hypercube, fat-tree, "
            "dragonfly, dragonfly+, rails");
  EXPECT_EQ(refused("torus:k=4"), "torus has no parameter k, but dims");
  EXPECT_EQ(refused("torus:dims=4x"),
            "torus: dims=4x is not dimensions such as 4x4x2, with 1048576 places at most");
  EXPECT_EQ(refused("torus:dims"), "'dims' is no parameter such as k=4");
  EXPECT_EQ(refused("torus:dims=4x4,"), "'' is no parameter such as k=4");
  EXPECT_EQ(refused("torus:dims=4!x4"),
            "torus: dims=4!x4 is not dimensions such as 4x4x2, with 1048576 places at most");
  EXPECT_EQ(refused("torus:dims=2,dims=3"), "parameter dims is given twice");
  EXPECT_EQ(refused("torus:dims=4x4", 17), "torus:dims=4x4 has room for 16 ranks, not for 17");
  EXPECT_EQ(refused("fat-tree:k=129"), "fat-tree: k=129 is not a number from 2 to 128");
  EXPECT_EQ(refused("fat-tree:k=5"), "fat-tree: k=5 is not an even number of ports");
  EXPECT_EQ(refused("fat-tree:k=8,taper=3"),
            "fat-tree: taper=3 does not divide the 4 cables above an edge switch");
  EXPECT_EQ(refused("rails:inside=0"), "rails: inside=0 is not a number above 0");
  EXPECT_EQ(
      refused("{\"kind\": \"torus\"}"),
      "a topology in JSON is an object with \"format\": \"anyccl.topology/1\", a \"kind\" and "
      "\"params\"");
  EXPECT_EQ(
      refused("{\"format\": \"anyccl.topology/1\", \"kind\": \"flat\", \"params\": 3}"),
      "a topology in JSON is an object with \"format\": \"anyccl.topology/1\", a \"kind\" and "
      "\"params\"");
}

TEST(Placement, at_random_is_the_same_for_the_same_seed) {
  const auto first = read_placement("random:3", 64, 64),
             second = read_placement("random:3", 64, 64);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *read_placement("random:4", 64, 64));
  auto sorted = *first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, *read_placement("linear", 64, 64));
  EXPECT_EQ(read_placement("random:", 2, 2).status().message(),
            "'random:' is no placement: linear, or random: and a number");
}

}  // namespace
}  // namespace anyccl::cli
