#pragma once
// Plants a hang or a failure among ranks that are processes, and asks `anyccl blame` about their
// dumps. docs/observe/blame.md has the verdicts: by the name of the test.

#include <functional>
#include <string>
#include <vector>

#include "blame/blame.hpp"
#include "support/ranks.hpp"
#include "support/shared_counts.hpp"

namespace anyccl::test {

inline constexpr int kRanks = 3;
inline constexpr Rank kFaulty{2};

/// The part of one rank. `shared` counts the ranks that are through.
using Part = std::function<void(Communicator& comm, const SharedCounts& shared)>;

/// Until so many ranks are through.
void wait_for(const SharedCounts& shared, int over);
/// The verdict on ranks that play `part`. Nobody leaves before all are through, or all but the
/// faulty one if it `dies`: that would tell the others.
cli::Blame blamed(const std::string& transport, const Part& part, bool dies = false);

Status reduce(Communicator& comm, std::size_t count = 2, ReduceOp op = ReduceOp::sum);

/// A row of the table.
struct Listed {
  std::string name, kind;
  std::vector<int> ranks;
};
std::vector<Listed> listed();
/// That it is the verdict that is listed for the test that runs.
void expect_as_listed(const cli::Blame& blame);
void expect_in(const cli::Blame& blame, std::initializer_list<const char*> parts);

/// Over a transport.
class Planted : public testing::TestWithParam<const char*> {};

}  // namespace anyccl::test
