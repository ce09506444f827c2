#include "algorithm/schedule/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace anyccl {
namespace {

std::string range(const Schedule& s, const Slice& slice, std::size_t k) {
  auto first = slice.first + static_cast<std::uint32_t>(k) * slice.stride;
  const std::uint32_t chunks = s.chunks(slice.space);
  if (slice.space != Space::scratch && chunks > 0) first %= chunks;  // circular
  if (slice.count == 1) return fmt::format("{}", first);
  return fmt::format("{}..{}", first, first + slice.count - 1);
}

std::string term(const Schedule& s, const Slice& slice, std::size_t k = 0) {
  return fmt::format("{}[{}]", name(slice.space), range(s, slice, k));
}

// "1", or "0 1 2" for several: the peers, without the rank itself.
std::string peers(const Schedule& s, const Step& step) {
  std::vector<int> others;
  for (Rank r : step.peers)
    if (r != s.rank) others.push_back(index(r));
  return fmt::format("{}", fmt::join(others, " "));
}

// Piece by piece where they differ: "output[0] = from 0, output[1] = input[1], ..."
std::string moves(const Schedule& s, const Step& step) {
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < step.peers.size(); ++k) {
    const Rank from = step.peers[k];
    const bool own = from == s.rank;
    if (own && s.piece(step.src, k) == s.piece(step.dst, k)) continue;
    parts.push_back(fmt::format("{} = {}", term(s, step.dst, k),
                                own ? term(s, step.src, k) : fmt::format("from {}", index(from))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string sum(const Schedule& s, const Step& step) {
  std::vector<std::string> parts;
  if (step.op == Op::reduce) parts.push_back(term(s, step.dst));
  for (std::size_t k = 0; k < step.peers.size(); ++k)
    parts.push_back(step.peers[k] == s.rank ? term(s, step.src, k)
                                            : fmt::format("from {}", index(step.peers[k])));
  return fmt::format("{} = {}", term(s, step.dst), fmt::join(parts, " + "));
}

std::string sent(const Schedule& s, const Step& step) {
  if (step.src.stride == 0) return fmt::format("{} to {}", term(s, step.src), peers(s, step));
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < step.peers.size(); ++k)
    if (step.peers[k] != s.rank)
      parts.push_back(fmt::format("{} to {}", term(s, step.src, k), index(step.peers[k])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string effect(const Schedule& s, const Step& step) {
  if (step.op == Op::send) return sent(s, step);
  if (step.op == Op::reduce || step.op == Op::recv_reduce) return sum(s, step);
  return moves(s, step);
}

nlohmann::json json(const Slice& slice) {
  return {{"space", name(slice.space)},
          {"first", slice.first},
          {"count", slice.count},
          {"stride", slice.stride}};
}

}  // namespace

std::string_view name(Op op) {
  constexpr std::string_view kNames[] = {"copy", "reduce", "send", "recv", "recv_reduce"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name(Space space) {
  constexpr std::string_view kNames[] = {"input", "output", "scratch"};
  return kNames[static_cast<std::size_t>(space)];
}

std::string chunk_text(const Schedule& s, const Slice& slice, std::size_t k) {
  return fmt::format("{} chunk{} {}", name(slice.space), slice.count == 1 ? "" : "s",
                     range(s, slice, k));
}

std::string cell_text(const Schedule& s, std::uint32_t cell) {
  const std::uint32_t in = s.chunks(Space::input), out = s.chunks(Space::output);
  if (cell < in) return fmt::format("input chunk {}", cell);
  if (cell < in + out) return fmt::format("output chunk {}", cell - in);
  return fmt::format("scratch chunk {}", cell - in - out);
}

std::string step_text(const Schedule& s, std::uint32_t step) {
  return fmt::format("rank {} step {} ({})", index(s.rank), step,
                     step < s.steps.size() ? name(s.steps[step].op) : "end");
}

std::string to_text(const Schedule& s) {
  const Shape& shape = s.contract.shape();
  std::string text =
      fmt::format("{}, rank {} of {}{}{}: {} chunks in, {} out, {} scratch\n",
                  name(shape.collective), index(s.rank), shape.size,
                  is_rooted(shape.collective) ? fmt::format(", root {}", index(shape.root)) : "",
                  shape.in_place ? ", in place" : "", s.chunks(Space::input),
                  s.chunks(Space::output), s.chunks(Space::scratch));
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    text += fmt::format("{:3} {:<11}  {}", i, name(step.op), effect(s, step));
    if (!step.after.empty()) text += fmt::format("  (after {})", fmt::join(step.after, " "));
    text += '\n';
  }
  return text;
}

std::string to_json(const Schedule& s) {
  const Shape& shape = s.contract.shape();
  nlohmann::json steps = nlohmann::json::array();
  for (const Step& step : s.steps) {
    nlohmann::json peers = nlohmann::json::array();
    for (Rank r : step.peers) peers.push_back(index(r));
    nlohmann::json line = {{"op", name(step.op)}, {"peers", peers}, {"after", step.after}};
    if (step.src.count > 0) line["src"] = json(step.src);
    if (step.op != Op::send) line["dst"] = json(step.dst);
    steps.push_back(std::move(line));
  }
  return nlohmann::json{{"rank", index(s.rank)},
                        {"collective", name(shape.collective)},
                        {"size", shape.size},
                        {"root", index(shape.root)},
                        {"in_place", shape.in_place},
                        {"host_of", shape.host_of},
                        {"parts", s.contract.chunks_per_block()},
                        {"scratch", s.scratch},
                        {"steps", std::move(steps)}}
      .dump();
}

}  // namespace anyccl
