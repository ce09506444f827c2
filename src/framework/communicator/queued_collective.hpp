#pragma once

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// A collective that was issued without waiting: everything it needs is its own.
struct Comm::Queued final : public Operation {
  Queued(KeptCall call, Rank me, const Routes& routes)
      : kept(std::move(call)), execution(me, routes.publications_to, routes.publications) {}
  bool advance() override { return execution.advance(); }
  void awaited(std::vector<Rank>& ranks) const override { execution.awaited(ranks); }

  KeptCall kept;
  std::shared_ptr<const PreparedCall> prepared;
  std::unique_ptr<FusedCall> fused;  // null: it is one call
  std::vector<std::byte> scratch;
  Position position;
  bool started = false;
  Execution execution;
};

}  // namespace anyccl
