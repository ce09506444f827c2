// Descriptions of peers' calls, reasons of their aborts, and their counts of rows.

#include "ext/experts/token_routing.hpp"
#include "framework/call/call.hpp"
#include "input.hpp"
#include "platform/link/frame.hpp"

namespace anyccl::fuzz {
namespace {

void route(Input& input) {
  const bool padded = input.take<std::uint8_t>() % 2 != 0;
  const std::size_t capacity = input.take<std::uint8_t>() + std::size_t{1};
  const int expert_of[] = {0, 1, 2, 3};
  auto routing = TokenRouting::make({4, 1, 4, capacity, padded}, expert_of, 2);
  std::vector<std::size_t> counts;
  for (int i = 0; i < 4; ++i) counts.push_back(input.take<std::size_t>());
  if (!routing->set_received(counts).ok()) return;
  const std::size_t rows = routing->rows();
  for (const TokenRouting::Block& block : routing->blocks())
    if (block.rows > rows || block.belongs > rows - block.rows) std::abort();
}

}  // namespace

void run(Input input) {
  CallRecord record = input.take<CallRecord>();
  static_cast<void>(describe(record));
  record.parts = 0;
  static_cast<void>(describe(record));
  route(input);
  const auto words = input.rest();
  if (words.size() >= 4)
    static_cast<void>(link::received_abort(Rank{1}, words.data(), words.size()));
}

}  // namespace anyccl::fuzz
