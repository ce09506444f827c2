#pragma once
// What one rank tells others of a vector, so that they can check a result of it: sums with random
// weights or weights, maxima, or a hash. docs/adr/0060 says what follows from it.

#include <cstddef>
#include <cstdint>

#include "framework/call/call.hpp"
#include "framework/call/operators.hpp"
#include "platform/reduce/convert.hpp"

namespace anyccl {

/// How a result follows from contributions, as far as its check goes.
enum class Family : std::uint8_t {
  moved,     ///< It is one of them: hashes.
  floats,    ///< Their sum, rounded: sums with random weights, and what they may be off.
  integers,  ///< Their sum, modulo a power of two: sums with odd random weights.
  bits,      ///< Exclusive or: the same of what is rotated by random numbers of bits.
  order,     ///< A maximum, a minimum, and, or: the same of all elements of a lane.
};

/// Elements go to 64 lanes, one after the other; those of a set have one summary for each lane.
struct Method {
  Family family = Family::moved;
  DType dtype = DType::u8;  ///< What goes to the lanes; of complex numbers the parts do.
  ReduceOp op = ReduceOp::sum;
  std::size_t bytes = 1, per_element = 1;  ///< The size of each, and how many an element has.
  std::size_t set = 0;                     ///< So much of it is in a set; a multiple of 64.
  ConvertFn widen = nullptr;  ///< Makes `dtype` of the elements of a contribution; null: they are,
  std::size_t element_bytes = 1;  ///< and have so many bytes each.

  std::size_t words_per_lane() const { return family == Family::floats ? 2 : 1; }
  std::size_t sets(std::size_t elements) const { return (elements * per_element + set - 1) / set; }
  /// How many lanes each set has; fewer in small vectors.
  std::size_t lanes(std::size_t elements) const;
  /// The words that summarize a vector of so many elements.
  std::size_t words(std::size_t elements) const {
    return family == Family::moved ? 0 : sets(elements) * lanes(elements) * words_per_lane();
  }
};

/// How contributions to calls like this on `size` ranks are summarized. `sum`, `output`: see
/// ElementTypes. `created`: its operator, if a program has created it. Errors: invalid_usage, where
/// there is no check for the operator.
Result<Method> method_of(const Call& call, DType sum, DType output, const Operator* created,
                         int size);
/// How results of this type are summarized, where contributions are by `method`.
Method of_result(const Method& method, DType output);
/// Joins two vectors' summaries, of `count` words each: `words` becomes that of all elements of
/// both.
void join(const Method& method, std::uint64_t* words, const std::uint64_t* more, std::size_t count);

/// Writes method.words(most) words: the summary of `elements` of them, at most `most`, at `memory`.
/// Of a lane of floats: the sum and the root of the sum of squares, as f64.
void summarize(const Method& method, std::uint64_t seed, const std::byte* memory,
               std::size_t elements, std::size_t most, std::uint64_t* words);

/// Finds, for Family::order, the first element of `y` that does not dominate that of `x`, as the
/// result of both does; `elements`, if all do.
std::size_t first_not_above(const Method& method, const std::byte* y, const std::byte* x,
                            std::size_t elements);

/// Hashes of memories, with 64 bits: two that differ have the same with a probability of 2^-32,
/// whatever they are, as long as nobody knows the seed.
class Hasher {
 public:
  explicit Hasher(std::uint64_t seed);
  std::uint64_t operator()(const std::byte* memory, std::size_t bytes) const;

 private:
  static constexpr std::size_t kWords = 128;
  std::uint64_t keys_[kWords];
};

/// A number that looks random, of a seed and a place.
constexpr std::uint64_t random_at(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t z = seed + (place + 1) * 0x9E3779B97F4A7C15ULL;  // splitmix64
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
  return z ^ z >> 31;
}

}  // namespace anyccl
