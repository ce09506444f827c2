// Every algorithm moves real bytes right with every pattern of shared memory forced, whatever its
// size would choose.

#include "conformance/run_collective.hpp"

namespace anyccl::test {
namespace {

struct Pattern {
  const char* name;
  Environment::Variables variables;
  std::size_t most;  ///< Elements: a large vector in lines is thousands of tiles.
};
const Pattern kPatterns[] = {
    {"LL", {{"ANYCCL_PROTO", "LL"}}, 4099},
    {"LL128", {{"ANYCCL_PROTO", "LL128"}}, 20000},
    {"staged", {{"ANYCCL_PROTO", "Simple"}, {"ANYCCL_SHM_COPY", "staged"}}, 300001},
    {"cma", {{"ANYCCL_PROTO", "Simple"}, {"ANYCCL_SHM_COPY", "cma"}}, 300001},
};

Environment forced(const Pattern& pattern, const Algorithm& algorithm) {
  Environment::Variables variables = pattern.variables;
  variables.emplace_back("ANYCCL_ALGO", std::string(algorithm.name));
  return Environment(variables);
}

void run_all_counts(Communicator& comm, const Pattern& pattern, Collective collective) {
  for (const std::size_t count : kCounts)
    if (count <= pattern.most && !testing::Test::HasFailure()) run_once(comm, collective, count);
}

bool supports(const Algorithm& algorithm, int ranks) {
  return algorithm.supports({algorithm.collective, ranks, Rank{0}, false, {}});
}

std::vector<int> sizes() {
  return effort<std::vector<int>>({3}, {3, 4}, {2, 3, 4, 5});
}

using Case = std::tuple<const Algorithm*, const Pattern*>;
class Patterns : public testing::TestWithParam<Case> {};

TEST_P(Patterns, are_right_between_threads) {
  const auto& [algorithm, pattern] = GetParam();
  const Environment env = forced(*pattern, *algorithm);
  for (const int ranks : sizes())
    if (supports(*algorithm, ranks))
      run_ranks(ranks, [&, a = algorithm, p = pattern](Communicator& comm) {
        run_all_counts(comm, *p, a->collective);
      });
}

class Messages : public testing::TestWithParam<const Pattern*> {};

TEST_P(Messages, are_right_between_threads) {
  const Environment env(GetParam()->variables);
  for (const int ranks : sizes())
    run_ranks(ranks,
              [](Communicator& comm) { run_all_counts(comm, *GetParam(), Collective::send); });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Algorithm* a : all_algorithms())
    for (const Pattern& p : kPatterns) all.emplace_back(a, &p);
  return all;
}
std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string text = id(*std::get<0>(info.param)) + "_" + std::get<1>(info.param)->name;
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}
std::vector<const Pattern*> patterns() {
  std::vector<const Pattern*> all;
  for (const Pattern& p : kPatterns) all.push_back(&p);
  return all;
}
INSTANTIATE_TEST_SUITE_P(With, Messages, testing::ValuesIn(patterns()),
                         [](const auto& of) { return std::string(of.param->name); });
INSTANTIATE_TEST_SUITE_P(Catalog, Patterns, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace anyccl::test
