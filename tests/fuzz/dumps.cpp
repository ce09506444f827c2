// Dumps of ranks, as `anyccl blame` reads them: one a line.

#include "blame/blame.hpp"
#include "input.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  std::vector<cli::RankDump> dumps;
  while (!input.empty()) {
    auto dump = cli::parse_dump(input.line());
    if (dump.ok()) dumps.push_back(*std::move(dump));
  }
  static_cast<void>(cli::find_blame(dumps));
}

}  // namespace anyccl::fuzz
