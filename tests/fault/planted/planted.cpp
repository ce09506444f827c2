#include "planted.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Variables = Environment::Variables;

/// "| `name` | ... | `kind` | 0, 1 |"
bool read_row(const std::string& line, Listed& row) {
  std::vector<std::string> cells;
  std::istringstream text(line);
  for (std::string cell; std::getline(text, cell, '|');) cells.push_back(cell);
  if (cells.size() < 5 || !cells[1].starts_with(" `") || !cells[3].starts_with(" `")) return false;
  const auto quoted = [](const std::string& cell) {
    const std::size_t begin = cell.find('`') + 1;
    return cell.substr(begin, cell.find('`', begin) - begin);
  };
  row = {quoted(cells[1]), quoted(cells[3]), {}};
  std::istringstream ranks(cells[4]);
  for (std::string rank; std::getline(ranks, rank, ',');) row.ranks.push_back(std::stoi(rank));
  return true;
}

}  // namespace

/// Nothing wakes a process when the count in their shared memory changes.
void wait_for(const SharedCounts& shared, int over) {
  while (shared->over < over) std::this_thread::sleep_for(1ms);
}

cli::Blame blamed(const std::string& transport, const Part& part, bool dies) {
  const TemporaryFolder folder;
  const SharedCounts shared;
  const auto outcomes = run_processes(
      kRanks,
      [&](Communicator& comm) {
        EXPECT_OK(wait(comm.barrier()));
        part(comm, shared);
        ++shared->over;
        if (comm.rank() != kFaulty && shared->stopped != 0 && shared->over == kRanks - 1)
          ::kill(shared->stopped, SIGCONT);
        wait_for(shared, dies ? kRanks - 1 : kRanks);
        static_cast<void>(comm.abort());
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      [&](int) {
        return Variables{{"ANYCCL_TRANSPORT", transport},
                         {"ANYCCL_WARN_AFTER", "0.2"},
                         {"ANYCCL_OP_TIMEOUT", "0.5"},
                         {"ANYCCL_DEBUG", "NONE"},
                         {"ANYCCL_DUMP_DIR", folder.path()}};
      },
      30);
  for (int r = 0; r < kRanks; ++r)
    EXPECT_EQ(outcomes[static_cast<std::size_t>(r)].exit_code,
              dies && r == index(kFaulty) ? -SIGKILL : 0)
        << r << ": " << outcomes[static_cast<std::size_t>(r)].output;
  const auto dumps = cli::read_dumps({folder.path()});
  if (!dumps.ok()) return {"none", "", {}, std::string(dumps.status().message())};
  return cli::find_blame(*dumps);
}

Status reduce(Communicator& comm, std::size_t count, ReduceOp op) {
  std::vector<float> x(count, 1.0F);
  return wait(comm.all_reduce(view(x), view(x), op));
}

std::vector<Listed> listed() {
  std::ifstream file(TEST_TABLE);
  std::vector<Listed> rows;
  bool is_there = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_there = line == "## Twenty hangs";
    if (Listed row; is_there && read_row(line, row)) rows.push_back(std::move(row));
  }
  return rows;
}

void expect_as_listed(const cli::Blame& blame) {
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string name = test.substr(0, test.find('/'));
  const std::vector<Listed> rows = listed();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Listed& one) { return one.name == name; });
  ASSERT_NE(row, rows.end()) << name << " is not in " TEST_TABLE;
  EXPECT_EQ(blame.kind, row->kind) << blame.text;
  EXPECT_EQ(blame.ranks, row->ranks) << blame.text;
}

void expect_in(const cli::Blame& blame, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(blame.text.find(part), std::string::npos) << "no '" << part << "' in: " << blame.text;
}

INSTANTIATE_TEST_SUITE_P(Over, Planted, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

}  // namespace anyccl::test
