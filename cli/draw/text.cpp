#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "draw/picture.hpp"

namespace anyccl::cli {
namespace {

using Line = std::vector<std::string>;

/// Columns as wide as their widest word; the first line is the head.
std::string table(const std::vector<Line>& lines) {
  std::vector<std::size_t> widths(lines[0].size());
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i)
      row += fmt::format("{:<{}}  ", line[i], widths[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

/// "0..3 6"
std::string numbers(const std::vector<Chunk>& chunks) {
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
  for (const Chunk& chunk : chunks) of_each.push_back(contributors(chunk));
  if (std::adjacent_find(of_each.begin(), of_each.end(), std::not_equal_to<>()) == of_each.end())
    of_each.resize(std::min<std::size_t>(of_each.size(), 1));
  return fmt::format("{}", fmt::join(of_each, " "));
}

std::string memory(const std::vector<Chunk>& chunks) {
  return chunks.empty() ? "-" : fmt::format("{} of {}", numbers(chunks), ranks_in(chunks));
}

Line line_of(const Movement& m, const Message& message) {
  const Action& action = m.actions[message.action];
  const std::string read =
      action.round == message.round ? "" : fmt::format(" in round {}", action.round);
  return {fmt::format("{}", message.round),
          fmt::format("{}", index(message.from)),
          fmt::format("{}", index(message.to)),
          numbers(message.chunks),
          ranks_in(message.chunks),
          action.name + read};
}

}  // namespace

std::string to_text(const Movement& m) {
  std::vector<Line> memories = {{"rank", "before: chunks of ranks", "after: chunks of ranks"}};
  for (std::size_t r = 0; r < m.before.size(); ++r)
    memories.push_back({fmt::format("{}", r), memory(m.before[r]), memory(m.after[r])});
  std::vector<Line> messages = {
      {"round", "from", "to", "chunks", "of ranks", "the receiver's step"}};
  for (const Message& message : m.messages) messages.push_back(line_of(m, message));
  return fmt::format("{}: {}\n\n{}\n{}", title(m), summary(m), table(memories),
                     m.messages.empty() ? "nothing is sent\n" : table(messages));
}

}  // namespace anyccl::cli
