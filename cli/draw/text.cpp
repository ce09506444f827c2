#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "draw/picture.hpp"
#include "draw/table.hpp"

namespace anyccl::cli {
namespace {

/// "0..3 6"
std::string number_ranges(const std::vector<Chunk>& chunks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0, last = 0; i < chunks.size(); i = last + 1) {
    last = i;
    while (last + 1 < chunks.size() && chunks[last + 1].number == chunks[last].number + 1) ++last;
    runs.push_back(i == last ? fmt::format("{}", chunks[i].number)
                             : fmt::format("{}..{}", chunks[i].number, chunks[last].number));
  }
  return fmt::format("{}", fmt::join(runs, " "));
}

/// "0+1" if all chunks have these contributions, else those of each: "0 1".
std::string ranks_in(const std::vector<Chunk>& chunks) {
  std::vector<std::string> of_each;
  of_each.reserve(chunks.size());
  for (const Chunk& chunk : chunks) of_each.push_back(contributors(chunk));
  if (std::adjacent_find(of_each.begin(), of_each.end(), std::not_equal_to<>()) == of_each.end())
    of_each.resize(std::min<std::size_t>(of_each.size(), 1));
  return fmt::format("{}", fmt::join(of_each, " "));
}

std::string memory(const std::vector<Chunk>& chunks) {
  return chunks.empty() ? "-" : fmt::format("{} of {}", number_ranges(chunks), ranks_in(chunks));
}

/// A row of the table of moves, and its sort key.
struct Move {
  std::uint32_t round = 0;
  Line line;
};

Move move_of(const Movement& m, const Message& message) {
  const Action& action = m.actions[message.action];
  const std::string read =
      action.round == message.round ? "" : fmt::format(" in round {}", action.round);
  return {message.round,
          {fmt::format("{}", message.round), fmt::format("{}", index(message.from)),
           fmt::format("{}", index(message.to)), number_ranges(message.chunks),
           ranks_in(message.chunks), action.name + read}};
}

/// The move of an action that reads no message.
Move move_of(const Action& action) {
  return {action.round,
          {fmt::format("{}", action.round), "-", fmt::format("{}", index(action.rank)),
           number_ranges(action.sums), ranks_in(action.sums), action.name}};
}

/// The messages of each round, then its sums without a message.
std::vector<Line> moves_of(const Movement& m) {
  std::vector<bool> reads(m.actions.size());
  std::vector<Move> moves;
  for (const Message& message : m.messages) {
    moves.push_back(move_of(m, message));
    reads[message.action] = true;
  }
  for (std::size_t i = 0; i < m.actions.size(); ++i)
    if (!reads[i]) moves.push_back(move_of(m.actions[i]));
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) { return a.round < b.round; });
  std::vector<Line> lines = {{"round", "from", "to", "chunks", "of ranks", "the receiver's step"}};
  for (Move& move : moves) lines.push_back(std::move(move.line));
  return lines;
}

}  // namespace

std::string to_text(const Movement& m) {
  std::vector<Line> memories = {{"rank", "before: chunks of ranks", "after: chunks of ranks"}};
  for (std::size_t r = 0; r < m.before.size(); ++r)
    memories.push_back({fmt::format("{}", r), memory(m.before[r]), memory(m.after[r])});
  const std::vector<Line> moves = moves_of(m);
  return fmt::format("{}: {}\n\n{}\n{}", title(m), caption_of(m), table(memories),
                     moves.size() == 1 ? "nothing is sent\n" : table(moves));
}

}  // namespace anyccl::cli
