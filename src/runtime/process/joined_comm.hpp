#pragma once
// What the runtime knows of a communicator, and lies in it: those that are split, grown or shrunk
// from it begin with that.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/process/create.hpp"

namespace anyccl {

/// The rank of `process` among `members`, if it has one alone.
std::optional<Rank> only_rank_of(const bootstrap::Hello& process,
                                 const std::vector<bootstrap::Hello>& members);

/// The process around one communicator, and what the communicators that are made of it inherit.
class JoinedComm final : public CommHost {
 public:
  /// `transport` is the value of ANYCCL_TRANSPORT, `id` that of the communicator.
  JoinedComm(GroupPtr group, Rank me, const std::vector<PeerLink>& links, std::string transport,
             std::string id);
  /// What create_over() gave to `comm`.
  static const JoinedComm& of(const Comm& comm);

  const std::vector<bootstrap::Hello>& members() const { return group_->members; }
  Inheritance inheritance() const;
  /// Links that still live.
  std::vector<std::shared_ptr<link::Link>> links() const;

  /// Returns the pid of `rank`, or 0 if it is not known, as on another host.
  int process_of(Rank rank) const override;
  /// Names a call of another communicator of both that `rank` has made, and this rank has not;
  /// empty if none is known.
  std::string call_elsewhere(Rank rank) const override;
  void note_ended(const Membership& me, const SpentCalls& calls) const override;

 private:
  struct Link {
    Rank rank;
    std::weak_ptr<link::Link> link;  // the transports of the communicator keep it
    bool local, same_process;
  };

  const GroupPtr group_;
  const Rank me_;
  std::vector<Link> links_;
  const std::string transport_, id_;
};

}  // namespace anyccl
