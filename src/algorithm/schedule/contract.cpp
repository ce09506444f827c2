#include "algorithm/schedule/contract.hpp"

#include <cassert>
#include <iterator>

namespace anyccl {
namespace {

enum class Holds : std::uint8_t {
  nothing,
  vector,  ///< All chunks of the one vector.
  row,     ///< This rank's blocks, one for each rank.
  column,  ///< Every rank's block for this rank.
};

struct Definition {
  std::string_view name;
  Holds root_input, root_output, input, output;  ///< At the root, and at the others.
  Combine combine;
  bool rooted, everyone, pair_sizes, has_bytes;
};

// A new collective is one row. By Collective.
// clang-format off
constexpr Definition kDefinitions[] = {
    //                root_input      root_output     input           output          combine          rooted everyone pair_sizes has_bytes
    {"all_reduce",   Holds::vector,  Holds::vector,  Holds::vector,  Holds::vector,  Combine::sum,     false, true,  false, true},
    {"broadcast",    Holds::vector,  Holds::vector,  Holds::nothing, Holds::vector,  Combine::none,    true,  false, false, true},
    {"all_to_all_v", Holds::row,     Holds::column,  Holds::row,     Holds::column,  Combine::none,    false, true,  true,  true},
    {"barrier",      Holds::vector,  Holds::vector,  Holds::vector,  Holds::vector,  Combine::gathers, false, true,  false, false},
};
// clang-format on

const Definition& definition(Collective collective) {
  assert(is_scheduled(collective));
  return kDefinitions[static_cast<std::size_t>(collective)];
}

Holds holds(const Shape& shape, Rank r, Space side) {
  const Definition& d = definition(shape.collective);
  if (r == shape.root) return side == Space::input ? d.root_input : d.root_output;
  return side == Space::input ? d.input : d.output;
}

}  // namespace

Contract::Contract(const Shape& shape, std::uint32_t parts)
    : shape_(shape), parts_(parts), n_(static_cast<std::uint32_t>(shape.size)) {}

std::uint32_t Contract::chunks(Rank r, Space side) const {
  switch (holds(shape_, r, side)) {
    case Holds::nothing:
      return 0;
    case Holds::vector:
      return parts_;
    case Holds::row:
    case Holds::column:
      return n_ * parts_;
  }
  return 0;
}

Origin Contract::origin(Rank r, Space side, std::uint32_t chunk) const {
  switch (holds(shape_, r, side)) {
    case Holds::row:
      return uindex(r) * n_ * parts_ + chunk;
    case Holds::column:
      return (chunk / parts_ * n_ + uindex(r)) * parts_ + chunk % parts_;
    default:
      return chunk;
  }
}

std::uint32_t Contract::origins() const {
  return holds(shape_, shape_.root, Space::input) == Holds::row ? n_ * n_ * parts_ : parts_;
}

Combine Contract::combine() const {
  return definition(shape_.collective).combine;
}

Rank Contract::contributor(Origin origin) const {
  const bool row = holds(shape_, shape_.root, Space::input) == Holds::row;
  return row ? Rank(origin / parts_ / n_) : shape_.root;
}

bool Contract::has_bytes() const {
  return definition(shape_.collective).has_bytes;
}

bool Contract::pair_sizes() const {
  return definition(shape_.collective).pair_sizes;
}

bool Contract::knows_size(Rank r, Origin origin) const {
  const std::uint32_t block = origin / parts_;
  return !pair_sizes() || block / n_ == uindex(r) || block % n_ == uindex(r);
}

std::uint32_t Contract::size_class(Origin origin) const {
  return has_bytes() ? origin : 0;
}

bool Contract::everyone() const {
  return definition(shape_.collective).everyone;
}

bool is_scheduled(Collective collective) {
  return static_cast<std::size_t>(collective) < std::size(kDefinitions);
}

bool is_rooted(Collective collective) {
  return is_scheduled(collective) && definition(collective).rooted;
}

std::string_view name(Collective collective) {
  if (is_scheduled(collective)) return definition(collective).name;
  return collective == Collective::send ? "send" : "recv";
}

}  // namespace anyccl
