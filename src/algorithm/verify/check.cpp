#include "algorithm/verify/check.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "algorithm/schedule/print.hpp"
#include "base/error.hpp"

namespace anyccl::verify {
namespace {

// Whether step `to` waits for step `from`, directly or through others.
bool reaches(const Schedule& s, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> open{to};
  std::vector<bool> seen(to + 1);
  while (!open.empty()) {
    const auto& after = s.steps[open.back()].after;
    open.pop_back();
    if (std::binary_search(after.begin(), after.end(), from)) return true;
    for (std::uint32_t a : after)
      if (a > from && a < to && !seen[a]) {
        seen[a] = true;
        open.push_back(a);
      }
  }
  return false;
}

// Piece k of the slice exists, and this rank knows the sizes of its chunks.
Status check_slice(const Schedule& s, std::uint32_t step, const Slice& slice, std::size_t k) {
  const std::uint32_t room = s.chunks(slice.space);
  const std::uint32_t first = slice.first + static_cast<std::uint32_t>(k) * slice.stride;
  const bool beyond = slice.space == Space::scratch && first + slice.count > room;
  if (room == 0 || slice.count == 0 || slice.count > room || beyond)
    return error(Code::internal, "{} uses {} of {}", step_text(s, step), chunk_text(s, slice, k),
                 room);
  for (std::uint32_t c = first; c < first + slice.count; ++c)
    if (!s.contract.knows_size(s.rank, s.origin(slice.space, c)))
      return error(Code::internal, "{} uses {}, whose size only other ranks know",
                   step_text(s, step), chunk_text(s, slice, k));
  return {};
}

// A piece is written chunk by chunk while own pieces are read: one may be the other, but not
// overlap.
Status check_overlap(const Schedule& s, std::uint32_t i) {
  const Step& step = s.steps[i];
  const bool sum = step.op == Op::reduce || step.op == Op::recv_reduce;
  if (step.op == Op::send) return {};
  for (std::size_t k = 0; k < step.peers.size(); ++k) {
    if (step.peers[k] != s.rank) continue;
    const auto read = s.piece(step.src, k);
    for (std::size_t j = 0; j < (sum ? 1 : step.peers.size()); ++j) {
      const auto written = s.piece(step.dst, j);
      if ((sum || j == k) && read == written) continue;
      if (std::find_first_of(read.begin(), read.end(), written.begin(), written.end()) !=
          read.end())
        return error(Code::internal, "{} reads {} while it writes {}", step_text(s, i),
                     chunk_text(s, step.src, k), chunk_text(s, step.dst, j));
    }
  }
  return {};
}

Status check_step(const Schedule& s, std::uint32_t i) {
  const Step& step = s.steps[i];
  const int n = s.contract.shape().size;
  for (std::size_t k = 0; k < step.peers.size(); ++k) {
    const Rank peer = step.peers[k];
    if (index(peer) < 0 || index(peer) >= n)
      return error(Code::internal, "{} names rank {} of {}", step_text(s, i), index(peer), n);
    const auto next = step.peers.begin() + static_cast<std::ptrdiff_t>(k) + 1;
    if (step.op == Op::send && std::find(next, step.peers.end(), peer) != step.peers.end())
      return error(Code::internal, "{} of {} names rank {} twice", step_text(s, i),
                   chunk_text(s, step.src, k), index(peer));
    if (peer == s.rank || step.op == Op::send) ANYCCL_CHECK(check_slice(s, i, step.src, k));
    if (step.op != Op::send) ANYCCL_CHECK(check_slice(s, i, step.dst, k));
  }
  ANYCCL_CHECK(check_overlap(s, i));
  for (std::uint32_t a : step.after)
    if (a >= i)
      return error(Code::internal, "{} waits for step {}, which does not precede it",
                   step_text(s, i), a);
  return {};
}

// All ranks that end with a chunk of one origin end with the same bits for it.
Status check_same_bits(const std::vector<Schedule>& ranks, const Outcome& outcome, Terms& terms) {
  const Contract& contract = ranks[0].contract;
  if (contract.combine() == Combine::none || !contract.same_everywhere()) return {};
  std::map<Origin, std::pair<std::size_t, TermId>> first;  // who ends with it first
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::uint32_t c = 0; c < outcome.output[r].size(); ++c) {
      const TermId term = outcome.output[r][c];
      const auto [known, fresh] =
          first.try_emplace(ranks[r].origin(Space::output, c), std::pair(r, term));
      if (!fresh && terms.bits_key(known->second.second) != terms.bits_key(term))
        return error(Code::internal,
                     "rank {} output chunk {} is {} but at rank {} it is {}: other bits", r, c,
                     terms.text(term), known->second.first, terms.text(known->second.second));
    }
  return {};
}

std::uint32_t most_publications(const std::vector<Plan>& plans) {
  const auto& p = plans[0].publications;
  return std::max(1U, *std::max_element(p.begin(), p.end()));
}

Status with(const std::string& context, const Status& s) {
  return s.ok() ? s : error(s.code(), "{}: {}", context, s.message());
}

}  // namespace

Status check_structure(const Schedule& s) {
  struct Cell {
    std::int64_t writer = -1;
    std::vector<std::uint32_t> readers = {};
  };
  std::vector<Cell> cells(s.cells());
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    ANYCCL_CHECK(check_step(s, i));
    const auto ordered = [&](std::int64_t before, std::uint32_t cell) -> Status {
      if (before < 0 || before == i || reaches(s, static_cast<std::uint32_t>(before), i)) return {};
      return error(Code::internal, "race: {} and step {} ({}) both use {}, and neither waits",
                   step_text(s, static_cast<std::uint32_t>(before)), i, name(s.steps[i].op),
                   cell_text(s, cell));
    };
    const Schedule::Access access = s.access(s.steps[i]);
    for (std::uint32_t c : access.reads) {
      ANYCCL_CHECK(ordered(cells[c].writer, c));
      cells[c].readers.push_back(i);
    }
    for (std::uint32_t c : access.writes) {
      ANYCCL_CHECK(ordered(cells[c].writer, c));
      for (std::uint32_t reader : cells[c].readers) ANYCCL_CHECK(ordered(reader, c));
      cells[c] = {.writer = i};
    }
  }
  return {};
}

Status check_same_messages(const Schedule& a, const Schedule& b) {
  const auto messages = [](const Schedule& s) {
    std::vector<std::uint32_t> steps;
    for (std::uint32_t i = 0; i < s.steps.size(); ++i)
      if (std::any_of(s.steps[i].peers.begin(), s.steps[i].peers.end(),
                      [&](Rank r) { return r != s.rank; }))
        steps.push_back(i);
    return steps;
  };
  const auto remote_chunks = [](const Schedule& s, const Step& step) {
    std::vector<std::pair<Rank, Origin>> chunks;
    const bool one = step.op == Op::recv_reduce;
    const Slice& slice = step.op == Op::send ? step.src : step.dst;
    for (std::size_t k = 0; k < step.peers.size(); ++k)
      for (std::uint32_t c = 0; c < slice.count && step.peers[k] != s.rank; ++c) {
        const auto piece = static_cast<std::uint32_t>(one ? 0 : k) * slice.stride;
        chunks.emplace_back(step.peers[k], s.origin(slice.space, slice.first + piece + c));
      }
    return chunks;
  };
  const auto in_a = messages(a), in_b = messages(b);
  for (std::size_t i = 0; i < std::max(in_a.size(), in_b.size()); ++i) {
    const bool both = i < in_a.size() && i < in_b.size();
    if (both) {
      const Step &x = a.steps[in_a[i]], &y = b.steps[in_b[i]];
      const bool personal = (x.src.stride > 0) == (y.src.stride > 0) || x.op != Op::send;
      if (x.op == y.op && personal && remote_chunks(a, x) == remote_chunks(b, y)) continue;
    }
    const Schedule& s = i < in_a.size() ? a : b;
    return error(Code::internal, "{} is another message, or none, when the call is {}in place",
                 step_text(s, (i < in_a.size() ? in_a : in_b)[i]),
                 s.contract.shape().in_place ? "not " : "");
  }
  return {};
}

Result<Outcome> check(const std::vector<Schedule>& ranks, Terms& terms, bool thorough) {
  for (const Schedule& s : ranks) ANYCCL_CHECK(check_structure(s));
  ANYCCL_TRY(const std::vector<Plan> plans, lower_plainly(ranks));
  const Operation once{&plans}, tiled{&plans, 5};
  auto outcome =
      simulate({&once, 1}, {.slots = most_publications(plans), .rendezvous = true}, terms);
  if (!outcome.ok()) return with("over rendezvous", outcome.status());
  const auto staged = fewest_slots(plans, terms);
  if (!staged.ok()) return with("over slots", staged.status());
  if (thorough && ranks[0].contract.has_bytes()) {
    auto overlapped = simulate({&tiled, 1}, {.slots = staged->slots, .lanes = 3}, terms);
    if (!overlapped.ok()) return with("with three tiles in flight", overlapped.status());
  }
  ANYCCL_CHECK(check_same_bits(ranks, *outcome, terms));
  return outcome;
}

Result<std::uint32_t> check_plans(const std::vector<Schedule>& ranks, const Outcome& expected,
                                  Terms& terms, bool thorough) {
  ANYCCL_TRY(const std::vector<Plan> plans, lower_all(ranks, 1));
  const auto outcome = fewest_slots(plans, terms);
  if (!outcome.ok()) return with("lowered", outcome.status());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t c = 0; c < outcome->output[r].size(); ++c)
      if (outcome->output[r][c] != expected.output[r][c])
        return error(Code::internal, "lowered, rank {} output chunk {} is {} instead of {}", r, c,
                     terms.text(outcome->output[r][c]), terms.text(expected.output[r][c]));
  const std::uint32_t slots = outcome->slots;
  // Fewer banks than there are: slots are reused by the next operation, or by the one after it.
  const std::vector<bool> all(ranks.size(), true);
  std::vector<bool> some(ranks.size());
  for (std::size_t r = 0; r < some.size(); r += 2) some[r] = true;
  const auto thrice = [&](const std::vector<Plan>& p, std::uint32_t tile_count,
                          const Setting& setting) {
    const std::array<Operation, 3> operations = {{{&p, tile_count}, {&p, 1}, {&p, tile_count}}};
    return with("lowered, three times", simulate(operations, setting, terms).status());
  };
  ANYCCL_CHECK(thrice(plans, 1, {.slots = slots, .banks = 1, .lends = some}));
  if (!thorough) return slots;
  ANYCCL_CHECK(thrice(plans, 1, {.slots = slots, .banks = 1}));
  ANYCCL_CHECK(thrice(plans, 1, {.slots = slots, .banks = 2, .lends = all}));
  if (ranks[0].contract.has_bytes())
    ANYCCL_CHECK(thrice(plans, 4, {.slots = slots, .banks = 1, .lanes = 3, .lends = some}));
  const std::uint32_t most = most_publications(plans);
  ANYCCL_TRY(const std::vector<Plan> roomy, lower_all(ranks, most));
  if (!roomy[0].posts_each) ANYCCL_CHECK(thrice(roomy, 1, {.slots = most, .banks = 1}));
  return slots;
}

}  // namespace anyccl::verify
