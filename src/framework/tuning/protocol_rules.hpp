#pragma once
// The protocols of shared memory are defined here, and chosen by what the user says about them.

#include <array>
#include <span>

#include "framework/tuning/choice_rules.hpp"

namespace anyccl {

/// Where bytes lie that one rank makes readable for others in shared memory. Not a format: all
/// three are one release store of one word. Sockets have no such places; there LL and LL128 only
/// mean that a vector travels in pieces that would fit.
enum class Protocol : std::uint8_t {
  ll,      ///< In the cache line of their word.
  ll128,   ///< In the slot of their word, several lines.
  simple,  ///< In the staging ring, or where the caller has them; the slot says where.
};
/// As users write them, in this order.
inline constexpr std::array<std::string_view, 3> kProtocolNames{"LL", "LL128", "Simple"};
inline std::string_view name_of(Protocol protocol) {
  return kProtocolNames[static_cast<std::size_t>(protocol)];
}

/// The protocols that a call may have. Of those, what is published decides by its size.
class Protocols {
 public:
  static constexpr Protocols all() { return Protocols(7); }
  static constexpr Protocols only(Protocol protocol) { return Protocols(bit(protocol)); }
  constexpr bool has(Protocol protocol) const { return (bits_ & bit(protocol)) != 0; }
  constexpr bool none() const { return bits_ == 0; }
  constexpr Protocols without(Protocols others) const {
    return Protocols(static_cast<std::uint8_t>(bits_ & ~others.bits_));
  }
  constexpr void add(Protocol protocol) { bits_ |= bit(protocol); }
  constexpr bool operator==(const Protocols&) const = default;
  constexpr Protocols() = default;

 private:
  explicit constexpr Protocols(std::uint8_t bits) : bits_(bits) {}
  static constexpr std::uint8_t bit(Protocol protocol) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(protocol));
  }
  std::uint8_t bits_ = 0;
};

/// What a user says about the choice of protocols, as ANYCCL_PROTO does, by ChoiceRules.
///
/// "LL": that for all collectives. "all_reduce:LL128@-8K,Simple@8K-;broadcast:^LL": for all_reduce
/// LL128 below 8 KiB and Simple from there on; for broadcast anything but LL. The first choice that
/// fits decides.
class ProtocolRules {
 public:
  /// As ChoiceRules::parse().
  static Result<ProtocolRules> parse(std::string_view text,
                                     std::string_view setting = "ANYCCL_PROTO");

  /// The first that is named for such calls and is `allowed`.
  std::optional<Protocol> wanted(Collective collective, std::size_t bytes,
                                 Protocols allowed = Protocols::all()) const;
  Protocols excluded(Collective collective, std::size_t bytes) const;
  /// What a rule says that names neither a collective nor sizes: such a rule is for messages, too.
  std::optional<Protocol> of_messages() const;
  std::string_view setting() const { return rules_.setting(); }

 private:
  ChoiceRules rules_;
};

struct ProtocolChoice {
  Protocols allowed = Protocols::all();
  std::string_view rule = {};  ///< The setting that names it; empty: by size.
};
/// By rules of which the first counts most. Later ones cannot ask for a choice that an earlier one
/// excludes.
/// Errors: unsupported, naming the settings, when nothing is left.
Result<ProtocolChoice> choose_protocols(Collective collective, std::size_t bytes,
                                        std::span<const ProtocolRules* const> rules);

}  // namespace anyccl
