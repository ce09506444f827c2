#pragma once
// A collective waits in this form for its turn. It is private to Comm: only its sources include it.

#include "framework/communicator/communicator.hpp"
#include "framework/verification/verification.hpp"

namespace anyccl {

/// A collective that was issued without waiting: everything it needs is its own.
struct Comm::Queued final : public Operation {
  Queued(KeptCall call, Rank me, const Routes& routes)
      : kept(std::move(call)), execution(me, routes.publications_to, routes.publications) {}
  bool advance() override { return execution.advance(); }
  void awaited(std::vector<Rank>& ranks) const override { execution.awaited(ranks); }

  /// What is around it; null: nothing.
  AroundCall* around() const {
    if (fused != nullptr) return fused.get();
    if (verification == nullptr) return nullptr;
    return is_check ? &verification->around_check() : &verification->around_call();
  }

  KeptCall kept;
  std::shared_ptr<const PreparedCall> prepared;
  std::unique_ptr<FusedCall> fused;            // null: it is one call
  std::shared_ptr<Verification> verification;  // null: it is not verified
  bool is_check = false;                       // it is what verifies
  bool is_extra = false;                       // and nobody waits for it
  std::shared_ptr<Queued> check;  // what the caller has and waits for in place of this one
  std::vector<std::byte> scratch;
  Position position;
  bool started = false;
  Execution execution;
};

}  // namespace anyccl
