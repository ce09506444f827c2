#include "algorithm/schedule/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace anyccl {
namespace {

// "4", or "4..6": the chunks of piece k, without their space.
std::string range_text(const Schedule& s, const Slice& slice, std::size_t k) {
  auto first = slice.first + static_cast<std::uint32_t>(k) * slice.stride;
  const std::uint32_t chunks = s.chunks(slice.space);
  if (slice.space != Space::scratch && chunks > 0) first %= chunks;  // circular
  if (slice.count == 1) return fmt::format("{}", first);
  return fmt::format("{}..{}", first, first + slice.count - 1);
}

std::string term(const Schedule& s, const Slice& slice, std::size_t k = 0) {
  return fmt::format("{}[{}]", name(slice.space), range_text(s, slice, k));
}

// "1", or "0 1 2" for several: the peers, without the rank itself.
std::string peers_text(const Schedule& s, const Step& step) {
  std::vector<int> others;
  for (Rank r : step.peers)
    if (r != s.rank) others.push_back(index(r));
  return fmt::format("{}", fmt::join(others, " "));
}

// A copy or receive, without pieces that are in place already: "output[0] = from 0, ..."
std::string moves_text(const Schedule& s, const Step& step) {
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

std::string sum_text(const Schedule& s, const Step& step) {
  std::vector<std::string> parts;
  if (step.op == Op::reduce) parts.push_back(term(s, step.dst));
  for (std::size_t k = 0; k < step.peers.size(); ++k)
    parts.push_back(step.peers[k] == s.rank ? term(s, step.src, k)
                                            : fmt::format("from {}", index(step.peers[k])));
  return fmt::format("{} = {}", term(s, step.dst), fmt::join(parts, " + "));
}

std::string sent_text(const Schedule& s, const Step& step) {
  if (step.src.stride == 0) return fmt::format("{} to {}", term(s, step.src), peers_text(s, step));
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < step.peers.size(); ++k)
    if (step.peers[k] != s.rank)
      parts.push_back(fmt::format("{} to {}", term(s, step.src, k), index(step.peers[k])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string effect_text(const Schedule& s, const Step& step) {
  if (step.op == Op::send) return sent_text(s, step);
  if (step.op == Op::reduce || step.op == Op::recv_reduce) return sum_text(s, step);
  return moves_text(s, step);
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
                     range_text(s, slice, k));
}

std::string cell_text(const Schedule& s, std::uint32_t cell) {
  const std::uint32_t in = s.chunks(Space::input), out = s.chunks(Space::output);
  if (cell < in) return fmt::format("input chunk {}", cell);
  if (cell < in + out) return fmt::format("output chunk {}", cell - in);
  return fmt::format("scratch chunk {}", cell - in - out);
}

std::string step_text(const Schedule& s, std::uint32_t step) {
  const std::string_view place = step < s.places.size() ? s.places[step] : "";
  return fmt::format("rank {} step {} ({}{}{})", index(s.rank), step,
                     step < s.steps.size() ? name(s.steps[step].op) : "end",
                     place.empty() ? "" : ", ", place);
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
    text += fmt::format("{:3} {:<11}  {}", i, name(step.op), effect_text(s, step));
    if (!step.after.empty()) text += fmt::format("  (after {})", fmt::join(step.after, " "));
    text += '\n';
  }
  return text;
}

}  // namespace anyccl
