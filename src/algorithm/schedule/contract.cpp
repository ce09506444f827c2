#include "algorithm/schedule/contract.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string>

namespace anyccl {
namespace {

enum class Holds : std::uint8_t {
  nothing,
  vector,  ///< All chunks of the one vector.
  block,   ///< This rank's block.
  blocks,  ///< Every rank's block.
  row,     ///< This rank's blocks, one for each rank.
  column,  ///< Every rank's block for this rank.
};

enum class Sizes : std::uint8_t {
  equal,  ///< All blocks have as many bytes.
  known,  ///< They differ, and every rank knows all of them.
  owner,  ///< Only the root and the rank that a block belongs to know how large it is.
  pair,   ///< Only the two ranks of a pair.
};

struct Definition {
  std::string_view name;
  Holds root_input, root_output, input, output;  ///< At the root, and at the others.
  Combine combine;
  bool rooted, everyone;
  Sizes sizes;
  bool has_bytes;
  Summands summands = Summands::all;
};

// A new collective is one row. By Collective; send and recv have no schedules.
// clang-format off
constexpr Definition kDefinitions[] = {
    //                   root_input       root_output      input            output           combine
    //                             rooted everyone  sizes         has_bytes, summands
    {"all_reduce",       Holds::vector,   Holds::vector,   Holds::vector,   Holds::vector,   Combine::sum,     false, true,     Sizes::equal, true},
    {"broadcast",        Holds::vector,   Holds::vector,   Holds::nothing,  Holds::vector,   Combine::none,    true,  false,    Sizes::equal, true},
    {"all_to_all_v",     Holds::row,      Holds::column,   Holds::row,      Holds::column,   Combine::none,    false, true,     Sizes::pair,  true},
    {"barrier",          Holds::vector,   Holds::vector,   Holds::vector,   Holds::vector,   Combine::gathers, false, true,     Sizes::equal, false},
    {"send",             Holds::nothing,  Holds::nothing,  Holds::nothing,  Holds::nothing,  Combine::none,    true,  false,    Sizes::equal, true},
    {"recv",             Holds::nothing,  Holds::nothing,  Holds::nothing,  Holds::nothing,  Combine::none,    true,  false,    Sizes::equal, true},
    {"reduce",           Holds::vector,   Holds::vector,   Holds::vector,   Holds::nothing,  Combine::sum,     true,  false,    Sizes::equal, true},
    {"reduce_scatter",   Holds::blocks,   Holds::block,    Holds::blocks,   Holds::block,    Combine::sum,     false, true,     Sizes::equal, true},
    {"all_gather",       Holds::block,    Holds::blocks,   Holds::block,    Holds::blocks,   Combine::none,    false, true,     Sizes::equal, true},
    {"gather",           Holds::block,    Holds::blocks,   Holds::block,    Holds::nothing,  Combine::none,    true,  false,    Sizes::equal, true},
    {"scatter",          Holds::blocks,   Holds::block,    Holds::nothing,  Holds::block,    Combine::none,    true,  false,    Sizes::equal, true},
    {"all_to_all",       Holds::row,      Holds::column,   Holds::row,      Holds::column,   Combine::none,    false, true,     Sizes::equal, true},
    {"all_gather_v",     Holds::block,    Holds::blocks,   Holds::block,    Holds::blocks,   Combine::none,    false, true,     Sizes::known, true},
    {"reduce_scatter_v", Holds::blocks,   Holds::block,    Holds::blocks,   Holds::block,    Combine::sum,     false, true,     Sizes::known, true},
    {"gather_v",         Holds::block,    Holds::blocks,   Holds::block,    Holds::nothing,  Combine::none,    true,  false,    Sizes::owner, true},
    {"scatter_v",        Holds::blocks,   Holds::block,    Holds::nothing,  Holds::block,    Combine::none,    true,  false,    Sizes::owner, true},
    {"scan",             Holds::vector,   Holds::vector,   Holds::vector,   Holds::vector,   Combine::sum,     false, false,    Sizes::equal, true, Summands::up_to},
    {"exscan",           Holds::vector,   Holds::nothing,  Holds::vector,   Holds::vector,   Combine::sum,     false, false,    Sizes::equal, true, Summands::before},  // "root": rank 0
};
// clang-format on

const Definition& definition(Collective collective) {
  assert(static_cast<std::size_t>(collective) < std::size(kDefinitions));
  return kDefinitions[static_cast<std::size_t>(collective)];
}

Holds holds(const Definition& d, bool at_root, Space side) {
  if (at_root) return side == Space::input ? d.root_input : d.root_output;
  return side == Space::input ? d.input : d.output;
}
Holds holds(const Shape& shape, Rank r, Space side) {
  return holds(definition(shape.collective), r == shape.root, side);
}

}  // namespace

Contract::Contract(const Shape& shape, std::uint32_t chunks_per_block)
    : shape_(shape),
      chunks_per_block_(chunks_per_block),
      n_(static_cast<std::uint32_t>(shape.size)) {
  if (!is_rooted(shape.collective)) shape_.root = Rank{0};
}

std::uint32_t Contract::chunks(Rank r, Space side) const {
  return blocks_held(shape_.collective, shape_.size, r == shape_.root, side) * chunks_per_block_;
}

Origin Contract::origin(Rank r, Space side, std::uint32_t chunk) const {
  switch (holds(shape_, r, side)) {
    case Holds::block:
      return uindex(r) * chunks_per_block_ + chunk;
    case Holds::row:
      return uindex(r) * n_ * chunks_per_block_ + chunk;
    case Holds::column:
      return (chunk / chunks_per_block_ * n_ + uindex(r)) * chunks_per_block_ +
             chunk % chunks_per_block_;
    default:
      return chunk;
  }
}

std::uint32_t Contract::place(Rank r, Space side, std::uint32_t chunk) const {
  const bool block = holds(shape_, r, side) == Holds::block;
  const Space other = side == Space::input ? Space::output : Space::input;
  return block && holds(shape_, r, other) == Holds::blocks ? uindex(r) * chunks_per_block_ + chunk
                                                           : chunk;
}

std::uint32_t Contract::origins() const {
  switch (definition(shape_.collective).root_input) {
    case Holds::row:
      return n_ * n_ * chunks_per_block_;
    case Holds::block:
    case Holds::blocks:
      return n_ * chunks_per_block_;
    default:
      return chunks_per_block_;
  }
}

Combine Contract::combine() const {
  return definition(shape_.collective).combine;
}

bool Contract::combines(Rank r, Rank from) const {
  switch (definition(shape_.collective).summands) {
    case Summands::up_to:
      return from <= r;
    case Summands::before:
      return from < r;
    default:
      return true;
  }
}

bool Contract::same_everywhere() const {
  return !is_prefix(shape_.collective);
}

Rank Contract::contributor(Origin origin) const {
  switch (definition(shape_.collective).input) {
    case Holds::row:
      return Rank(origin / chunks_per_block_ / n_);
    case Holds::block:
      return Rank(origin / chunks_per_block_);
    default:
      return shape_.root;
  }
}

bool Contract::has_bytes() const {
  return definition(shape_.collective).has_bytes;
}

bool Contract::equal_blocks() const {
  return has_equal_blocks(shape_.collective);
}

bool Contract::private_sizes() const {
  return !equal_blocks() && !has_known_sizes(shape_.collective);
}

bool Contract::pairs() const {
  return definition(shape_.collective).root_input == Holds::row;
}

bool Contract::knows_size(Rank r, Origin origin) const {
  const std::uint32_t block = origin / chunks_per_block_;
  switch (definition(shape_.collective).sizes) {
    case Sizes::owner:
      return r == shape_.root || block == uindex(r);
    case Sizes::pair:
      return block / n_ == uindex(r) || block % n_ == uindex(r);
    default:
      return true;
  }
}

std::uint32_t Contract::size_class(Origin origin) const {
  if (!has_bytes()) return 0;
  return equal_blocks() ? origin % chunks_per_block_ : origin;  // chunks of equal blocks may differ
}

bool Contract::everyone() const {
  return definition(shape_.collective).everyone;
}

bool is_scheduled(Collective collective) {
  return static_cast<std::size_t>(collective) < std::size(kDefinitions) &&
         collective != Collective::send && collective != Collective::recv;
}

bool is_rooted(Collective collective) {
  return definition(collective).rooted;
}

bool reduces(Collective collective) {
  return definition(collective).combine == Combine::sum;
}

bool is_prefix(Collective collective) {
  return definition(collective).summands != Summands::all;
}

std::uint32_t blocks_held(Collective collective, int size, bool at_root, Space side) {
  switch (holds(definition(collective), at_root, side)) {
    case Holds::nothing:
      return 0;
    case Holds::vector:
    case Holds::block:
      return 1;
    default:
      return static_cast<std::uint32_t>(size);
  }
}

bool has_equal_blocks(Collective collective) {
  return definition(collective).sizes == Sizes::equal;
}

bool has_known_sizes(Collective collective) {
  return definition(collective).sizes == Sizes::known;
}

bool has_blocks_apart(Collective collective, bool at_root, Space side) {
  const Holds held = holds(definition(collective), at_root, side);
  return !has_equal_blocks(collective) && held != Holds::nothing && held != Holds::block;
}

std::string_view name(Collective collective) {
  return definition(collective).name;
}

Collective v_form(Collective collective) {
  const std::string wanted = std::string(name(collective)) + "_v";
  const auto* const found = std::find_if(std::begin(kDefinitions), std::end(kDefinitions),
                                         [&](const Definition& d) { return d.name == wanted; });
  assert(found != std::end(kDefinitions));
  return static_cast<Collective>(found - std::begin(kDefinitions));
}

}  // namespace anyccl
