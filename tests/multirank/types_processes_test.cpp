// Sums into a wider type between hosts: what travels.

#include <bit>
#include <string>

#include "support/ranks.hpp"
#include "typed_sums.hpp"

namespace anyccl::test {
namespace {

/// The plan of a ReduceScatter whose result is checked.
std::string plan_of(Communicator& comm, const Types& types, const char* algorithm = nullptr,
                    int force = 1) {
  constexpr std::size_t kCount = 100'000;
  const std::size_t n = static_cast<std::size_t>(comm.size());
  anycclCollConfig_t config = configuration(types);
  config.algSelection = algorithm;
  config.forceAlgSelection = force;
  std::vector<BFloat16> in(n * kCount, BFloat16{0x3f81});  // 1 + 2^-7
  std::vector<float> wide(kCount);
  std::vector<BFloat16> small(kCount);
  const bool widens = types.output == anycclFloat32;
  EXPECT_EQ(run_sum(comm, anycclCollReduceScatter, DType::bf16, in.data(),
                    widens ? static_cast<void*>(wide.data()) : small.data(), kCount, ReduceOp::sum,
                    config),
            anycclSuccess)
      << anycclGetLastError(comm.handle());
  for (const std::size_t i : {std::size_t{0}, kCount - 1}) {
    const float sum = static_cast<float>(n) * 1.0078125F;
    EXPECT_EQ(widens ? wide[i] : std::bit_cast<float>(std::uint32_t{small[i].bits} << 16), sum);
  }
  return comm.last_plan();
}

const Types kWide{DType::bf16, anycclFloat32}, kOnce{DType::bf16, kUnset, anycclFloat32};

TEST(TypesBetweenHosts, let_elements_of_the_input_travel_where_each_host_has_a_rank) {
  expect_all_passed(run_processes(
      4,
      [](Communicator& comm) {
        for (const Types& types : {kWide, kOnce}) {
          EXPECT_TRUE(plan_of(comm, types).starts_with("reduce_scatter/direct"))
              << comm.last_plan();
          EXPECT_TRUE(plan_of(comm, types, "ring").starts_with("reduce_scatter/ring"))
              << comm.last_plan();  // as it was asked for
          EXPECT_TRUE(plan_of(comm, types, "ring", 0).starts_with("reduce_scatter/ring"))
              << comm.last_plan();
        }
        EXPECT_TRUE(plan_of(comm, {DType::bf16}).starts_with("reduce_scatter/ring"))
            << comm.last_plan();  // nothing is saved
      },
      [](int r) {
        return Environment::Variables{{"ANYCCL_HOSTID", std::to_string(r)}};
      }));
}

TEST(TypesBetweenHosts, let_hosts_with_several_ranks_add_up_first) {
  expect_all_passed(run_processes(
      4,
      [](Communicator& comm) {
        EXPECT_TRUE(plan_of(comm, kWide).starts_with("reduce_scatter/two_level"))
            << comm.last_plan();
      },
      [](int r) {
        return Environment::Variables{{"ANYCCL_HOSTID", std::to_string(r / 2)}};
      }));
}

}  // namespace
}  // namespace anyccl::test
