// An algorithm of your own: all_reduce/bidirectional_ring.cpp states which rank sends which data
// where. Here it is checked by machine, printed, and run on real ranks.
//   07_own_algorithm
// This program has a catalog of its own: the library's plus one line (see
// anyccl_catalog_with in cmake/AnycclCatalog.cmake). In the library's own tree, the file would be
// in src/algorithm/catalog/all_reduce, and a line in the list in
// src/algorithm/catalog/CMakeLists.txt would do the same.

#include "algorithm/schedule/print.hpp"
#include "algorithm/verify/check.hpp"
#include "example.hpp"

namespace {

using anyccl::Algorithm, anyccl::Collective, anyccl::Communicator, anyccl::Rank;
using example::expect, example::must;

constexpr int kRanks = 4;

/// Proves it for all sizes of 2 to 17 ranks: the result, no deadlock, no race, also in place.
void check(const Algorithm& algorithm) {
  const anyccl::verify::CheckReport report =
      must(anyccl::verify::check_algorithm(algorithm, 2, 17));
  const anyccl::Cost& cost = report.sizes.back().cost;
  std::printf("%s is right on 2..17 ranks (%u shapes); on 17: %u rounds, %u roundings\n",
              id(algorithm).c_str(), report.shapes, cost.rounds, cost.roundings);
}

void run(Communicator& comm) {
  const auto rank = static_cast<float>(index(comm.rank()));
  std::vector<float> x(1000, rank + 1);
  must(wait(comm.all_reduce(anyccl::view(x), anyccl::view(x), anyccl::ReduceOp::sum)));
  expect(x == std::vector<float>(1000, 10.0F), "the sum");

  const char* plan = "";
  must(anycclCommLastPlan(comm.handle(), &plan), comm.handle());
  expect(std::string_view(plan).starts_with("all_reduce/bidirectional_ring"), plan);
  if (comm.rank() == Rank{0}) std::printf("%d ranks ran %s: the sum is %g\n", kRanks, plan, x[0]);
}

}  // namespace

int main() {
  const Algorithm* const mine =
      anyccl::find_algorithm(Collective::all_reduce, "bidirectional_ring");
  expect(mine != nullptr, "it is not in the catalog");
  check(*mine);
  std::printf("%s\n", to_text(mine->build({Collective::all_reduce, kRanks}, Rank{0})).c_str());

  setenv("ANYCCL_ALGO", "bidirectional_ring", 1);  // as a user would, in front of the command
  example::as_threads(kRanks, run);
}
