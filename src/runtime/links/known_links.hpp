#pragma once
// Processes that meet again, in a communicator that no other one was made from, use the links that
// they have: a second connection would cost descriptors and time.

#include <array>
#include <memory>
#include <vector>

#include "platform/bootstrap/mesh/connect.hpp"
#include "platform/bootstrap/rendezvous/join.hpp"
#include "runtime/links/transports.hpp"

namespace anyccl {

/// The name of a link, the same at both ends.
struct LinkIdentity {
  Rank rank{};                          ///< The peer, in the group for which it was made.
  std::array<std::byte, 32> session{};  ///< That only its two ends know.
};
/// From now on this process finds the links when it meets the peers again. `identities`: as
/// `links`. Returns what the communicator keeps until it has opened the links: those of other
/// threads may use them, and end, before that.
std::vector<std::shared_ptr<void>> remember_links(const std::vector<bootstrap::Hello>& members,
                                                  const std::vector<PeerLink>& links,
                                                  const std::vector<LinkIdentity>& identities);

/// The links to members of a group that both processes know of.
///
/// The higher rank of a pair proves over a link that it knows the group's secret, and the lower one
/// answers with its own proof, so a process that claims to be a member is none of it. The lower
/// rank looks for that again and again: it may come to know a link later than the other, if the
/// communicator for which it was made is being created at the same time. A process with several
/// ranks in the group makes fresh links.
class LinksOfGroup final : public bootstrap::Acquaintances {
 public:
  /// `group`: borrowed. `later`: peers that are left out, by rank; empty: none. `encrypts`: only
  /// links that are encrypted, or only others; within a host any. Errors: system_error.
  static Result<std::unique_ptr<LinksOfGroup>> find(const bootstrap::Group& group, Rank me,
                                                    bool force_network,
                                                    const std::vector<bool>& later = {},
                                                    bool encrypts = false);
  ~LinksOfGroup() override;

  Status advance() override;
  bool has(Rank peer) const override;
  bool tries(Rank peer) const override;
  void append_wanted(std::vector<pollfd>& entries) const override;
  /// Those found, by rank. They stay open as long as this object lives.
  std::vector<PeerLink> found() const;

 private:
  class Reunion;
  LinksOfGroup() = default;

  std::vector<std::unique_ptr<Reunion>> reunions_;  // by rank; null where there can be none
};

}  // namespace anyccl
