#pragma once
// An algorithm says what each rank does in a collective of any shape that it supports. Each file of
// the catalog has some. The tuner chooses among all_algorithms(), and plans are made of what they
// build.

#include <bit>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "algorithm/schedule/schedule.hpp"

namespace anyccl {

/// The cost that an algorithm promises. The conformance suite holds it to that.
struct Cost {
  std::uint32_t rounds = 0;     ///< Publications on the longest dependent path.
  std::uint32_t sent = 0;       ///< Chunks that peers read from the busiest rank ...
  std::uint32_t of = 1;         ///< ... when its vector, or its row of blocks, has this many.
  std::uint32_t roundings = 0;  ///< Those of the worst result.
  bool operator==(const Cost&) const = default;
};

/// The order of the additions of one element; a later one is a stronger promise.
enum class Order : std::uint8_t {
  position,   ///< It may depend on where in the vector the element lies, or on the root.
  placement,  ///< One for all elements and roots, but it may depend on which ranks share a host.
  tree,  ///< The aligned tree over the ranks (docs/adr/0056), for types that steps do not round.
  tree_in_one_step,  ///< The tree for all types: nothing is rounded inside of it.
};
std::string_view name(Order order);

/// Further properties of an algorithm.
enum Trait : unsigned {
  kVForm = 1,  ///< It also is one for the v-form, whose blocks differ in size.
};

/// One that a file describes and not code: algorithm/loaded.
class LoadedAlgorithm;

/// A pure function of an algorithm: code, or code with data that outlives it.
template <typename Value, typename... Arguments>
class Rule {
 public:
  template <std::convertible_to<Value (*)(Arguments...)> Code>
  constexpr Rule(Code code) : code_(code) {}  // implicit: the catalog names functions
  constexpr Rule(const void* data, Value (*code)(const void* data, Arguments...))
      : data_(data), code_with_data_(code) {}
  Value operator()(Arguments... arguments) const {
    return data_ == nullptr ? code_(arguments...) : code_with_data_(data_, arguments...);
  }

 private:
  Value (*code_)(Arguments...) = nullptr;
  const void* data_ = nullptr;
  Value (*code_with_data_)(const void*, Arguments...) = nullptr;
};

inline Order by_position(const Shape&) {
  return Order::position;
}
inline Order by_placement(const Shape&) {
  return Order::placement;
}
inline Order the_tree(const Shape&) {
  return Order::tree;
}
inline Order the_tree_in_one_step(const Shape&) {
  return Order::tree_in_one_step;
}

/// An algorithm is a pure function from a shape and a rank to what that rank does.
struct Algorithm {
  std::string_view name;  ///< Within its collective: "ring".
  Collective collective;
  Rule<bool, const Shape&> supports;
  Cost (*cost)(const Shape&);  ///< Null if it has no closed form: count the schedule.
  Rule<Schedule, const Shape&, Rank> build;
  /// What it promises of a shape that it supports; it may do better. The conformance suite holds it
  /// to that. Where nothing is summed it says nothing.
  Rule<Order, const Shape&> order = by_position;
  unsigned traits = 0;          ///< Trait.
  std::string_view needs = {};  ///< What supports() asks for, if that is not any shape, for people.
  const LoadedAlgorithm* loaded = nullptr;  ///< Where it comes from; null: the catalog.
};

/// "all_reduce/ring"
std::string id(const Algorithm& algorithm);

/// Every algorithm compiled in, in the order of catalog/CMakeLists.txt, each followed by its
/// v-form, and then those that were loaded. Any thread; what it returned stays as it is.
std::span<const Algorithm* const> all_algorithms();
/// Adds one that lives for ever and that find_algorithm() does not find. One thread at a time.
void add_algorithm(const Algorithm& algorithm);
/// Null if there is none of that name for that collective.
const Algorithm* find_algorithm(Collective collective, std::string_view name);

/// The schedules of all ranks, in rank order.
std::vector<Schedule> build_all(const Algorithm& algorithm, const Shape& shape);

// Words of the algorithms themselves.
inline bool any_shape(const Shape&) {
  return true;
}
inline bool power_of_two(const Shape& s) {
  return std::has_single_bit(static_cast<unsigned>(s.size));
}
inline constexpr std::string_view kPowerOfTwo = "a power of two";
inline std::uint32_t ceil_log2(int n) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(n - 1)));
}
/// The rank at position r of a circle of n.
inline Rank wrap(int r, int n) {
  return Rank{(r % n + n) % n};
}

}  // namespace anyccl
