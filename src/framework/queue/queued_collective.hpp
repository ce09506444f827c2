#pragma once
// A collective waits in this form for its turn. It is private to CollectiveQueue and to calls that
// are prepared once.

#include <memory>
#include <utility>
#include <vector>

#include "framework/call/call.hpp"
#include "framework/collective/execution.hpp"
#include "framework/membership/routes.hpp"
#include "framework/verification/verification.hpp"

namespace anyccl {

/// A collective that was issued without waiting: everything it needs is its own.
struct QueuedCollective {
  QueuedCollective(KeptCall call, Rank me, const Routes& routes)
      : kept(std::move(call)), execution(me, routes.publications_to, routes.publications) {}

  /// What is around it; null: nothing.
  AroundCall* around() const {
    if (meeting != nullptr) return meeting;
    if (fused != nullptr) return fused.get();
    if (verification == nullptr) return nullptr;
    return is_check ? &verification->around_check() : &verification->around_call();
  }

  KeptCall kept;
  std::shared_ptr<const PreparedCall> prepared;
  std::unique_ptr<FusedCall> fused;            // null: it is one call
  std::shared_ptr<Verification> verification;  // null: it is not verified
  AroundCall* meeting = nullptr;               // null: its data goes with it
  bool is_check = false;                       // it is what verifies
  bool is_extra = false;                       // and nobody waits for it
  std::shared_ptr<QueuedCollective>
      check;  // what the caller has and waits for in place of this one
  std::vector<std::byte> scratch;
  Position position;
  bool started = false;
  Execution execution;
};

}  // namespace anyccl
