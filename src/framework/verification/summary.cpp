#include "framework/verification/summary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "algorithm/schedule/contract.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/types.hpp"
#include "platform/reduce/row_sums.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kSet = 64 << 10, kPortion = 1024;  // elements; rows
constexpr std::size_t kWidenedAtOnce = 64;               // rows

bool is_float(DType dtype) {
  return dtype >= DType::f16 && dtype <= DType::f8e5m2;
}
bool is_signed(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

/// All operators of bool are logical ones.
ReduceOp logical(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor:
      return ReduceOp::lor;
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::band:
      return ReduceOp::land;
    case ReduceOp::bxor:
      return ReduceOp::lxor;
    default:
      return op;
  }
}

// --- bits, as numbers that order alike ----------------------------------------------------------

/// The bits of an element as those of u64, which a maximum or an or joins.
template <typename U>
class Bits {
 public:
  explicit Bits(const Method& method)
      : op_(method.op), is_float_(is_float(method.dtype)), last_(last_number(method.dtype)) {
    if (op_ == ReduceOp::min || op_ == ReduceOp::band || op_ == ReduceOp::land)
      flip_ = static_cast<U>(~U{0});
    asks_truth_ = op_ == ReduceOp::land || op_ == ReduceOp::lor || op_ == ReduceOp::lxor;
    is_maximum_ = op_ == ReduceOp::max || op_ == ReduceOp::min;
    if (is_maximum_ && is_signed(method.dtype)) sign_ = kSign;
  }
  /// Returns what join() takes: what is true has all bits; min, band and land flip them.
  U of(const std::byte* element) const {
    U bits;
    std::memcpy(&bits, element, sizeof bits);
    if (asks_truth_) return static_cast<U>((bits != 0 ? ~U{0} : U{0}) ^ flip_);
    if (is_float_) return key(bits);
    return static_cast<U>(bits ^ sign_ ^ flip_);
  }
  U join(U a, U b) const { return is_maximum_ ? std::max(a, b) : static_cast<U>(a | b); }

 private:
  static constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  static U last_number(DType dtype) {  // of the positive ones, with infinity
    switch (dtype) {
      case DType::f16:
        return static_cast<U>(0x7c00);
      case DType::bf16:
        return static_cast<U>(0x7f80);
      case DType::f32:
        return static_cast<U>(0x7f800000);
      case DType::f64:
        return static_cast<U>(0x7ff0000000000000);
      case DType::f8e4m3:
        return static_cast<U>(0x7e);
      default:
        return static_cast<U>(0x7c);
    }
  }
  /// Returns, for floats, a number that is greater for what wins, which a NaN always does.
  U key(U bits) const {
    if (static_cast<U>(bits & static_cast<U>(~kSign)) > last_)
      return static_cast<U>(~U{0});  // NaN wins
    return static_cast<U>(((bits & kSign) != 0 ? ~bits : bits | kSign) ^ flip_);
  }
  ReduceOp op_;
  bool is_float_, asks_truth_ = false, is_maximum_ = false;
  U last_, sign_ = 0, flip_ = 0;
};

template <typename Function>
void with_type_of(std::size_t bytes, const Function& function) {
  switch (bytes) {
    case 1:
      return function(std::uint8_t{});
    case 2:
      return function(std::uint16_t{});
    case 4:
      return function(std::uint32_t{});
    default:
      return function(std::uint64_t{});
  }
}

// --- the summaries of one set -------------------------------------------------------------------

/// A part of a set: whole rows, and what is left.
struct Rows {
  const std::byte* memory;
  std::size_t count, rest;  ///< Rows; elements of one more.
  std::uint64_t number;     ///< The first row's, in the vector.
};

/// The last row, filled up with zeros.
class FilledRow {
 public:
  FilledRow(const Method& method, const Rows& rows) {
    std::memcpy(row_, rows.memory + rows.count * kRow * method.bytes, rows.rest * method.bytes);
  }
  const std::byte* get() const { return row_; }

 private:
  std::byte row_[kRow * 8] = {};
};

struct Summary {
  double sums[kRow] = {}, squares[kRow] = {};
  std::uint64_t words[kRow] = {};
};

/// A random sign, which the bound of wrong alarms lives on, and 1/2 to 1 with 20 bits, so that rows
/// that were swapped count otherwise.
double weight_of(std::uint64_t random) {
  const double size = 0.5 + std::ldexp(static_cast<double>(random & 0x7ffff), -20);
  return (random >> 63) != 0 ? -size : size;
}

void add_floats(const Method& method, std::uint64_t seed, const Rows& rows, Summary& to) {
  const auto add = row_sums().add_floats[static_cast<std::size_t>(method.dtype)];
  double weights[kPortion];
  for (std::size_t i = 0; i <= rows.count && i < std::size(weights); ++i)
    weights[i] = weight_of(random_at(seed, rows.number + i));
  if (rows.count > 0) add(rows.memory, rows.count, weights, to.sums, to.squares);
  if (rows.rest == 0) return;
  const FilledRow row(method, rows);
  add(row.get(), 1, weights + rows.count, to.sums, to.squares);
}

void add_integers(const Method& method, std::uint64_t seed, const Rows& rows, Summary& to) {
  const auto add = row_sums().add_weighted[std::countr_zero(method.bytes)];
  std::uint64_t weights[kPortion];
  for (std::size_t i = 0; i <= rows.count && i < std::size(weights); ++i)
    weights[i] = random_at(seed, rows.number + i) | 1;
  if (rows.count > 0) add(rows.memory, rows.count, weights, to.words);
  if (rows.rest == 0) return;
  const FilledRow row(method, rows);
  add(row.get(), 1, weights + rows.count, to.words);
}

/// Calls visit(number of the row, lane, bits) for all elements.
template <typename Visit>
void for_each(const Method& method, const Rows& rows, const Visit& visit) {
  with_type_of(method.bytes, [&]<typename U>(U) {
    const Bits<U> bits(method);
    const std::byte* at = rows.memory;
    for (std::size_t j = 0; j <= rows.count; ++j) {
      const std::size_t lanes = j < rows.count ? kRow : rows.rest;
      for (std::size_t b = 0; b < lanes; ++b, at += sizeof(U))
        visit(rows.number + j, b, bits.of(at));
    }
  });
}

/// For exclusive or: joins the bits of each element, rotated by a random number of its row; of lxor
/// that number, if the element is true.
void add_bits(const Method& method, std::uint64_t seed, const Rows& rows, Summary& to) {
  std::uint64_t row = ~std::uint64_t{0}, random = 0;
  const bool is_logical = method.op == ReduceOp::lxor;
  for_each(method, rows, [&](std::uint64_t number, std::size_t b, std::uint64_t x) {
    if (number != row) random = random_at(seed, row = number);
    to.words[b] ^=
        is_logical ? (x != 0 ? random : 0) : std::rotl(x, static_cast<int>(random >> 58));
  });
}

bool is_maximum(const Method& method) {
  return method.op == ReduceOp::max || method.op == ReduceOp::min;
}

void add_order(const Method& method, const Rows& rows, Summary& to) {
  const bool takes_most = is_maximum(method);
  for_each(method, rows, [&](std::uint64_t, std::size_t b, std::uint64_t x) {
    to.words[b] = takes_most ? std::max(to.words[b], x) : to.words[b] | x;
  });
}

void add(const Method& method, std::uint64_t seed, const Rows& rows, Summary& to) {
  switch (method.family) {
    case Family::floats:
      return add_floats(method, seed, rows, to);
    case Family::integers:
      return add_integers(method, seed, rows, to);
    case Family::bits:
      return add_bits(method, seed, rows, to);
    default:
      return add_order(method, rows, to);
  }
}

void write(const Method& method, const Summary& summary, std::size_t lanes, std::uint64_t* words) {
  for (std::size_t b = 0; b < lanes; ++b) {
    if (method.family != Family::floats) {
      words[b] = summary.words[b];
      continue;
    }
    words[2 * b] = std::bit_cast<std::uint64_t>(summary.sums[b]);
    words[2 * b + 1] = std::bit_cast<std::uint64_t>(std::sqrt(summary.squares[b]));
  }
}

Status no_check_error(const Call& call, std::string_view op, std::string_view why) {
  return error(
      Code::invalid_usage,
      "{} of {}, {}: there is no verification of {}, and ANYCCL_VERIFY or config->verify asks "
      "for it: {}",
      name(call.collective), name_of(call.dtype), op, op, why);
}

}  // namespace

std::size_t Method::lanes(std::size_t elements) const {
  return std::min(kRow, elements * per_element);
}

Result<Method> method_of(const Call& call, DType sum, DType output, const Operator* created,
                         int size) {
  Method method;
  if (!reduces(call.collective)) return method;
  method.op = created != nullptr ? ReduceOp::sum : ReduceOp{call.op};
  const bool adds = method.op == ReduceOp::sum || method.op == ReduceOp::avg;
  if (!adds && output == call.dtype) sum = output;  // what a wider type makes of it is exact
  const bool is_complex = sum == DType::complex64 || sum == DType::complex128;
  method.dtype = !is_complex ? sum : sum == DType::complex64 ? DType::f32 : DType::f64;
  method.bytes = bytes_of(method.dtype);
  method.per_element = is_complex ? 2 : 1;
  method.element_bytes = bytes_of(call.dtype);
  if (sum != call.dtype) method.widen = converter(call.dtype, sum);
  method.set = kSet * static_cast<std::size_t>(std::max(1, (size + 15) / 16));
  if (created != nullptr && created->function != nullptr)
    return no_check_error(call, "a function of the program", "nothing is known of it");
  if (call.dtype == DType::boolean) method.op = logical(method.op);
  if (!adds && (sum != call.dtype || output != sum))
    return no_check_error(call, "other operators than sums with a result of another type",
                          "the check compares elements of one type");
  if (!is_float(method.dtype) && output != sum)
    return no_check_error(call, "integers whose result is wider than their sum",
                          "nothing is known of the rest");
  switch (method.op) {
    case ReduceOp::prod:
      return no_check_error(call, "prod", "sums say nothing of products");
    case ReduceOp::avg:
      if (!is_float(method.dtype))
        return no_check_error(call, "avg of integers", "they are truncated; verify their sum");
      [[fallthrough]];
    case ReduceOp::sum:
      method.family = is_float(method.dtype) ? Family::floats : Family::integers;
      return method;
    case ReduceOp::lxor:
    case ReduceOp::bxor:
      method.family = Family::bits;
      return method;
    default:
      method.family = Family::order;
      return method;
  }
}

void summarize(const Method& method, std::uint64_t seed, const std::byte* memory,
               std::size_t elements, std::size_t most, std::uint64_t* words) {
  const std::size_t lanes = method.lanes(most), units = elements * method.per_element;
  const std::size_t portion = (method.widen != nullptr ? kWidenedAtOnce : kPortion) * kRow;
  const std::size_t unit = method.element_bytes / method.per_element;
  std::byte wide[kWidenedAtOnce * kRow * 8];
  for (std::size_t set = 0; set < method.sets(most); ++set) {
    Summary summary;
    const std::size_t end = std::min(units, (set + 1) * method.set);
    for (std::size_t first = set * method.set; first < end; first += portion) {
      const std::size_t count = std::min(end - first, portion);
      const std::byte* at = memory + first * unit;
      if (method.widen != nullptr) {
        method.widen(wide, at, count);
        at = wide;
      }
      add(method, seed, {at, count / kRow, count % kRow, first / kRow}, summary);
    }
    write(method, summary, lanes, words + set * lanes * method.words_per_lane());
  }
}

Method of_result(const Method& method, DType output) {
  Method result = method;
  if (result.per_element > 1 || method.family == Family::moved) return result;
  result.dtype = output;
  result.bytes = result.element_bytes = bytes_of(output);
  result.widen = nullptr;
  return result;
}

void join(const Method& method, std::uint64_t* words, const std::uint64_t* more,
          std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) switch (method.family) {
      case Family::floats:  // norms add up to one that is not smaller
        words[i] = std::bit_cast<std::uint64_t>(std::bit_cast<double>(words[i]) +
                                                std::bit_cast<double>(more[i]));
        break;
      case Family::integers:
        words[i] += more[i];
        break;
      case Family::bits:
        words[i] ^= more[i];
        break;
      default:
        words[i] = is_maximum(method) ? std::max(words[i], more[i]) : words[i] | more[i];
    }
}

std::size_t first_not_above(const Method& method, const std::byte* y, const std::byte* x,
                            std::size_t elements) {
  std::size_t first = elements;
  with_type_of(method.bytes, [&]<typename U>(U) {
    const Bits<U> bits(method);
    for (std::size_t i = 0; i < elements && first == elements; ++i) {
      const U result = bits.of(y + i * sizeof(U));
      if (bits.join(result, bits.of(x + i * sizeof(U))) != result) first = i;
    }
  });
  return first;
}

Hasher::Hasher(std::uint64_t seed) {
  for (std::size_t i = 0; i < kWords; ++i) keys_[i] = random_at(seed, i);
}

std::uint64_t Hasher::operator()(const std::byte* memory, std::size_t bytes) const {
  const auto nh = row_sums().hash;
  std::uint64_t sum = mix(keys_[0], bytes);
  for (std::size_t at = 0; at < bytes; at += 8 * kWords) {
    const std::size_t left = std::min(bytes - at, 8 * kWords);
    std::uint64_t part = nh(memory + at, left / 8, keys_);
    if (left % 8 != 0) {
      std::uint64_t last = 0;
      std::memcpy(&last, memory + at + left / 8 * 8, left % 8);
      part += nh(&last, 1, keys_ + left / 8);
    }
    sum = mix(sum, part);
  }
  return sum;
}

}  // namespace anyccl
