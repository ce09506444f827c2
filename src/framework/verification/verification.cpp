#include "framework/verification/verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "algorithm/schedule/contract.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/types.hpp"
#include "platform/reduce/row_sums.hpp"

namespace anyccl {
namespace {

/// Who has to know the summaries: those that have a result of what a rank gave.
Collective exchange_for(Collective collective) {
  switch (collective) {
    case Collective::reduce:
    case Collective::gather:
    case Collective::gather_v:
      return Collective::gather;
    case Collective::scatter:
    case Collective::scatter_v:
      return Collective::scatter;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return Collective::all_to_all;
    default:
      return Collective::all_gather;
  }
}

bool gives_blocks(Collective exchange) {
  return exchange == Collective::scatter || exchange == Collective::all_to_all;
}

/// A number of any type of floats, or both parts of a complex one.
void read_factor(const Method& method, const void* factor, double (&parts)[2]) {
  std::byte row[kRow * 8] = {};
  std::memcpy(row, factor, method.bytes * method.per_element);
  double sums[kRow] = {}, squares[kRow] = {};
  const double weight = 1;
  row_sums().add_floats[static_cast<std::size_t>(method.dtype)](row, 1, &weight, sums, squares);
  parts[0] = sums[0];
  parts[1] = sums[1];
}

}  // namespace

Verification::Verification(const VerifiedCall& call, const RankNamer& name_of)
    : kept_(call.call, call.me, call.size),
      call_(call),
      of_result_(of_result(call.method, call.output)),
      name_of_(name_of),
      seed_(mix(call.secret, call.sequence)),
      hash_(mix(seed_, 1)),
      exchange_(exchange_for(call.call.collective)) {
  call_.call = kept_.call();
  block_words_ = kHeadWords + call_.method.words(most_elements());
  const bool at_root = is_root();
  given_.resize(block_words_ * blocks_held(exchange_, call_.size, at_root, Space::input));
  got_.resize(block_words_ * blocks_held(exchange_, call_.size, at_root, Space::output));
  hashes_.resize(n());
  result_.resize(block_words_ - kHeadWords);
}

Call Verification::check() const {
  Call check;
  check.collective = exchange_;
  check.dtype = DType::u8;
  if (is_rooted(exchange_)) check.root = call_.call.root;
  check.timeout = call_.call.timeout;
  check.threads = call_.call.threads;
  check.count = block_words_ * sizeof(std::uint64_t);
  const auto address = [](const std::vector<std::uint64_t>& words) {
    return words.empty() ? nullptr
                         : reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(words.data()));
  };
  check.input = address(given_);
  check.output = address(got_);
  return check;
}

// --- what the program's memory holds ------------------------------------------------------------

/// One of several. Of a v-form: as the arrays say.
Verification::Piece Verification::block(const std::byte* base, std::size_t r,
                                        const std::size_t* counts,
                                        const std::size_t* displs) const {
  const std::size_t element = bytes_of(call_.call.dtype);
  if (counts != nullptr) return {base + displs[r] * element, counts[r], true};
  return {base + r * call_.call.count * element, call_.call.count, true};
}

Verification::Piece Verification::input_for(std::size_t to) const {
  const Call& call = call_.call;
  const Collective kind = call.collective;
  if (kind == Collective::broadcast && !is_root()) return {};
  if (!gives_blocks(exchange_)) return {call.input, call.count, true};
  if (exchange_ == Collective::scatter && !is_root()) return {};
  const bool varies = !has_equal_blocks(kind);
  return block(call.input, to, varies ? call.send_counts : nullptr, call.send_displs);
}

Verification::Piece Verification::result_of(std::size_t from) const {
  const Call& call = call_.call;
  switch (call.collective) {
    case Collective::broadcast:
    case Collective::scatter:
    case Collective::scatter_v:
      if (from != uindex(call.root)) return {};
      return {call.output, call.count, true};
    case Collective::gather:
    case Collective::gather_v:
      if (!is_root()) return {};
      [[fallthrough]];
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return block(call.output, from,
                   has_equal_blocks(call.collective) ? nullptr : call.recv_counts,
                   call.recv_displs);
    default:
      return {call.output, call.count, true};
  }
}

/// Where this piece of part `k` of the input is.
const std::byte* Verification::part_of_input(const Piece& piece, std::size_t k) const {
  const Call& call = call_.call;
  const std::size_t blocks = call.collective == Collective::reduce_scatter ? n() : 1;
  return piece.at + k * blocks * call.count * bytes_of(call.dtype);
}

/// The most elements that any rank summarizes.
std::size_t Verification::most_elements() const {
  const Call& call = call_.call;
  if (call_.method.family == Family::moved) return 0;
  if (call.collective != Collective::reduce_scatter_v) return call.count;
  return *std::max_element(call.send_counts, call.send_counts + n());
}

bool Verification::is_summand(std::size_t r) const {
  if (call_.call.collective == Collective::scan) return r <= uindex(call_.me);
  if (call_.call.collective == Collective::exscan) return r < uindex(call_.me);
  return true;
}

bool Verification::has_result() const {
  if (call_.call.collective == Collective::reduce) return is_root();
  return call_.call.collective != Collective::exscan || call_.me != Rank{0};
}

bool Verification::is_alike() const {
  switch (call_.call.collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::all_gather:
    case Collective::all_gather_v:
      return true;
    default:
      return false;
  }
}

// --- what ranks tell each other -----------------------------------------------------------------

std::uint64_t Verification::route(std::size_t from, std::size_t to) const {
  const std::size_t reader = gives_blocks(exchange_) ? to : 0xffffffffU;
  return from | reader << 32;
}

std::uint64_t Verification::self_hash(const std::uint64_t* block) const {
  return hash_(reinterpret_cast<const std::byte*>(block + 1), (block_words_ - 1) * sizeof *block);
}

/// The sum of products, of sums: this rank's factor is read now.
void Verification::scale_by_factor(std::uint64_t* words) const {
  if (call_.op == nullptr) return;
  const Method& method = call_.method;
  const std::size_t count = method.words(most_elements());
  if (method.family == Family::integers) {
    std::uint64_t factor = 0;
    std::memcpy(&factor, call_.op->factor(), method.bytes);
    for (std::size_t i = 0; i < count; ++i) words[i] *= factor;
    return;
  }
  double f[2];
  read_factor(method, call_.op->factor(), f);
  std::vector<double> numbers(count);
  std::memcpy(numbers.data(), words, count * sizeof(double));
  const std::size_t step = 2 * method.per_element;
  for (std::size_t i = 0; i < count; i += step) {
    double* const x = numbers.data() + i;
    if (method.per_element == 1) {
      x[0] *= f[0];
      x[1] *= std::abs(f[0]);
      continue;
    }
    const double re = x[0], im = x[2], size = (x[1] + x[3]) * (std::abs(f[0]) + std::abs(f[1]));
    x[0] = re * f[0] - im * f[1];
    x[2] = re * f[1] + im * f[0];
    x[1] = x[3] = size;
  }
  std::memcpy(words, numbers.data(), count * sizeof(double));
}

/// Summarizes all parts of the input.
void Verification::summarize_input(const Piece& piece, std::uint64_t* words) const {
  const Method& method = call_.method;
  summarize(method, seed_, piece.at, piece.elements, most_elements(), words);
  std::vector<std::uint64_t> more(call_.parts > 1 ? method.words(most_elements()) : 0);
  for (std::size_t k = 1; k < call_.parts; ++k) {
    summarize(method, seed_, part_of_input(piece, k), piece.elements, most_elements(), more.data());
    join(method, words, more.data(), more.size());
  }
}

/// The first element of the result that does not take in this rank's; ~0: all do. In place the
/// first part is left out, as the result has overwritten it.
std::size_t Verification::first_not_above(const Piece& y) const {
  const Piece x = input_for(uindex(call_.me));
  for (std::size_t k = x.at == y.at ? 1 : 0; k < call_.parts; ++k)
    if (const std::size_t first =
            anyccl::first_not_above(call_.method, y.at, part_of_input(x, k), y.elements);
        first < y.elements)
      return first;
  return ~std::size_t{0};
}

void Verification::take_input() {
  const Method& method = call_.method;
  for (std::size_t to = 0; to * block_words_ < given_.size(); ++to) {
    std::uint64_t* const words = given_.data() + to * block_words_;
    const Piece piece = input_for(to);
    words[kRoute] = route(uindex(call_.me), to);
    words[kElements] = piece.elements;
    words[kHash] = words[kResult] = 0;
    if (!piece.exists) continue;
    if (method.family == Family::moved) {
      words[kHash] = hash_(piece.at, piece.elements * bytes_of(call_.call.dtype));
      continue;
    }
    summarize_input(piece, words + kHeadWords);
    scale_by_factor(words + kHeadWords);
  }
}

void Verification::take_result() {
  const Method& method = call_.method;
  const std::size_t element = bytes_of(call_.call.dtype);
  std::uint64_t alike = 0;
  if (method.family == Family::moved) {
    for (std::size_t from = 0; from < n(); ++from) {
      const Piece piece = result_of(from);
      hashes_[from] = piece.exists ? hash_(piece.at, piece.elements * element) : 0;
      alike = mix(alike, hashes_[from]);
    }
  } else if (has_result()) {
    const Piece y = result_of(0);
    summarize(of_result_, seed_, y.at, y.elements, most_elements(), result_.data());
    if (is_alike()) alike = hash_(y.at, y.elements * bytes_of(call_.output));
    if (method.family == Family::order && is_summand(uindex(call_.me)))
      not_above_ = first_not_above(y);
  }
  for (std::size_t at = 0; at < given_.size(); at += block_words_) {
    std::uint64_t* const words = given_.data() + at;
    if (is_alike()) words[kResult] = alike;
    words[kSelf] = self_hash(words);
  }
}

// --- comparing ----------------------------------------------------------------------------------

bool Verification::hears_from(std::size_t r) const {
  if (exchange_ == Collective::gather) return is_root();
  return exchange_ != Collective::scatter || r == uindex(call_.call.root);
}

const std::uint64_t* Verification::given_by(std::size_t r) const {
  return got_.data() + (exchange_ == Collective::scatter ? 0 : r * block_words_);
}

std::string Verification::what() const {
  CallRecord record;
  record.collective = static_cast<std::uint8_t>(call_.call.collective);
  record.dtype = static_cast<std::uint8_t>(call_.call.dtype);
  record.op = static_cast<std::uint8_t>(call_.op != nullptr ? kPreMulSum : ReduceOp{call_.call.op});
  record.root = index(call_.call.root);
  record.count = call_.call.count;
  return fmt::format("{} (operation {})", describe(record), call_.sequence);
}

Status Verification::wrong(const std::string& how) const {
  return error(Code::internal, "verification: {}: {}", what(), how);
}

Status Verification::check_block(std::size_t r) const {
  const std::uint64_t* const words = given_by(r);
  if (words[kSelf] == self_hash(words) && words[kRoute] == route(r, uindex(call_.me))) return {};
  return wrong(
      fmt::format("the verification itself went wrong: what came from {} to {} is not what that "
                  "gave; the result may be "
                  "right",
                  name(r), name(uindex(call_.me))));
}

Status Verification::compare() const {
  for (std::size_t r = 0; r < n(); ++r)
    if (hears_from(r)) ANYCCL_CHECK(check_block(r));
  if (call_.method.family == Family::moved)
    ANYCCL_CHECK(compare_moved());
  else if (has_result())
    ANYCCL_CHECK(compare_sums());
  return is_alike() ? compare_alike() : Status();
}

Status Verification::compare_moved() const {
  for (std::size_t from = 0; from < n(); ++from) {
    const Piece piece = result_of(from);
    if (!piece.exists) continue;
    const std::uint64_t* const words = given_by(from);
    if (words[kElements] != piece.elements)
      return wrong(fmt::format("{} has {} elements of {}, which gave {}", name(uindex(call_.me)),
                               piece.elements, name(from), words[kElements]));
    if (words[kHash] != hashes_[from])
      return wrong(fmt::format("the {} elements that {} has of {} are not those that it gave",
                               piece.elements, name(uindex(call_.me)), name(from)));
  }
  return {};
}

/// Own results agree with what ranks gave: so those that differ are wrong.
Status Verification::compare_alike() const {
  const std::uint64_t mine = given_[kResult];
  for (std::size_t r = 0; r < n(); ++r)
    if (given_by(r)[kResult] != mine)
      return wrong(
          fmt::format("{} has another result than {}, whose result agrees with what ranks gave",
                      name(r), name(uindex(call_.me))));
  return {};
}

std::string Verification::elements_of(std::size_t set) const {
  const Method& method = call_.method;
  const std::size_t first = set * method.set / method.per_element;
  const std::size_t last =
      std::min(result_of(0).elements, (set + 1) * method.set / method.per_element) - 1;
  return fmt::format("elements {}..{} at {}", first, last, name(uindex(call_.me)));
}

Status Verification::compare_sums() const {
  if (not_above_ != ~std::size_t{0})
    return wrong(fmt::format("element {} at {} does not take in its own contribution", not_above_,
                             name(uindex(call_.me))));
  const Method& method = call_.method;
  for (std::size_t set = 0; set < method.sets(result_of(0).elements); ++set)
    ANYCCL_CHECK(method.family == Family::floats ? compare_floats(set) : compare_words(set));
  return {};
}

Status Verification::compare_words(std::size_t set) const {
  const Method& method = call_.method;
  const std::size_t lanes = method.lanes(most_elements());
  const std::uint64_t mask = method.family == Family::bits
                                 ? ~std::uint64_t{0}
                                 : ~std::uint64_t{0} >> (64 - 8 * method.bytes);
  std::vector<bool> lacks(n(), true), doubles(n(), true);
  bool is_wrong = false;
  for (std::size_t b = 0; b < lanes; ++b) {
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r < n(); ++r) {
      if (!is_summand(r)) continue;
      const std::uint64_t x = given_by(r)[kHeadWords + set * lanes + b];
      if (method.family == Family::integers)
        sum += x;
      else if (method.family == Family::bits)
        sum ^= x;
      else
        sum = method.op == ReduceOp::max || method.op == ReduceOp::min ? std::max(sum, x) : sum | x;
    }
    const std::uint64_t y = result_[set * lanes + b];
    if (((y ^ sum) & mask) == 0) continue;
    is_wrong = true;
    for (std::size_t r = 0; r < n(); ++r) {
      const std::uint64_t x = given_by(r)[kHeadWords + set * lanes + b];
      const std::uint64_t without = method.family == Family::bits ? sum ^ x : sum - x;
      lacks[r] = lacks[r] && is_summand(r) && (x & mask) != 0 && ((y ^ without) & mask) == 0;
      doubles[r] = doubles[r] && is_summand(r) && (x & mask) != 0 && ((y ^ (sum + x)) & mask) == 0;
    }
  }
  if (!is_wrong) return {};
  std::string fault = "are not what the contributions of ranks make";
  if (method.family == Family::order) return wrong(elements_of(set) + " " + fault);
  const auto only = [&](const std::vector<bool>& ranks) {
    return std::count(ranks.begin(), ranks.end(), true) == 1
               ? std::find(ranks.begin(), ranks.end(), true) - ranks.begin()
               : -1;
  };
  if (const auto r = only(lacks); r >= 0)
    fault += fmt::format(": that of {} is missing", name(static_cast<std::size_t>(r)));
  else if (const auto twice = method.family == Family::integers ? only(doubles) : -1; twice >= 0)
    fault += fmt::format(": that of {} is in it twice", name(static_cast<std::size_t>(twice)));
  return wrong(elements_of(set) + " " + fault);
}

}  // namespace anyccl
