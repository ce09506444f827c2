// AllReduce with a codec between hosts that have several ranks, as many or not.

#include <string>

#include "support/coded_reference.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

void expect_sums(Communicator& comm, const std::string& hosts) {
  for (const CodecName codec : {CodecName::int8, CodecName::mxfp8_e4m3, CodecName::int4}) {
    auto coded = codec::AllReduce::create(comm, codec);
    ASSERT_OK(coded.status());
    std::vector<std::size_t> counts{1, 200, 1000, 70001};
    if (codec == CodecName::int8) counts.push_back(1'300'001);  // several pieces of each slice
    for (const std::size_t count : counts) {
      const bool avg = count % 2 == 0;
      const Floats x = vector_of(index(comm.rank()), count);
      Floats y(count);
      ASSERT_OK(coded->run(x, y, avg ? ReduceOp::avg : ReduceOp::sum));
      const Floats expected = coded_sum(codec, hosts, count, avg);
      ASSERT_TRUE(same_bits(y, expected)) << hosts << ", " << count << " elements";
      std::vector<BFloat16> small(count);
      for (std::size_t i = 0; i < count; ++i)
        small[i].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x[i]) >> 16);
      ASSERT_OK(coded->run(small, small, avg ? ReduceOp::avg : ReduceOp::sum));
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(expected[i]);
        ASSERT_EQ(small[i].bits, (bits + 0x7fff + (bits >> 16 & 1)) >> 16) << i;
      }
    }
    ASSERT_OK(coded->destroy());
  }
}

class CodedHosts : public testing::TestWithParam<const char*> {};

TEST_P(CodedHosts, have_the_bits_of_the_definition) {
  const std::string hosts = GetParam();
  expect_all_passed(run_processes(
      static_cast<int>(hosts.size()), [&](Communicator& comm) { expect_sums(comm, hosts); },
      [&](int r) {
        return Environment::Variables{
            {"ANYCCL_HOSTID", hosts.substr(static_cast<std::size_t>(r), 1)}};
      }));
}

INSTANTIATE_TEST_SUITE_P(, CodedHosts,
                         testing::Values("ab", "aabb", "abab", "aaab", "abc", "aabbc"),
                         [](const auto& hosts) { return std::string(hosts.param); });

TEST(CodedProcesses, are_refused_at_level_3_unless_each_rank_is_one) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        const auto refused = codec::AllReduce::create(comm, CodecName::int8);
        EXPECT_EQ(refused.status().code(), Code::unsupported);
        EXPECT_NE(refused.status().message().find("level 3 of reproducibility with codec int8"),
                  std::string::npos)
            << refused.status().message();
        auto coded = codec::AllReduce::create(comm, CodecName::int8, true);
        ASSERT_OK(coded.status());
        Floats x = vector_of(index(comm.rank()), 300);
        ASSERT_OK(coded->run(x, x, ReduceOp::sum));
        EXPECT_TRUE(same_bits(x, coded_sum(CodecName::int8, "ab", 300, false)));
      },
      [](int r) {
        return Environment::Variables{{"ANYCCL_HOSTID", r == 0 ? "a" : "b"},
                                      {"ANYCCL_REPRODUCIBLE", "3"}};
      }));
}

/// A mismatch inside one host is seen by the ranks of the other, which wait for that one.
TEST(CodedProcesses, that_differ_inside_one_of_them_all_hear_of_it) {
  const std::string hosts = "aabb";
  expect_all_passed(run_processes(
      4,
      [](Communicator& comm) {
        auto coded = codec::AllReduce::create(comm, CodecName::int8);
        ASSERT_OK(coded.status());
        Floats x(1000, 1.0F);
        const Status status =
            coded->run(x, x, comm.rank() == Rank{3} ? ReduceOp::avg : ReduceOp::sum);
        EXPECT_NE(status.message().find("rank 2 called coded all_reduce of 1000 f32, sum, but rank "
                                        "3 all_reduce of 1000 f32, avg"),
                  std::string::npos)
            << status.message();
      },
      [&](int r) {
        return Environment::Variables{
            {"ANYCCL_HOSTID", hosts.substr(static_cast<std::size_t>(r), 1)}};
      }));
}

}  // namespace
}  // namespace anyccl::test
