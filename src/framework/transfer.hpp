#pragma once

#include "framework/call.hpp"
#include "framework/task.hpp"

namespace anyccl {

/// One send or receive on its way: a message of a pair, piece by piece.
class Transfer final : public Task {
 public:
  /// `message`: number of this message between the two ranks, in this direction, from 1.
  Transfer(const Call& call, Transport& transport, std::uint64_t message);
  bool advance() override;
  void awaited(std::vector<Rank>& ranks) const override { ranks.push_back(call_.root); }

 private:
  bool send_piece();
  bool receive_piece();

  Call call_;
  Transport& transport_;
  std::uint64_t message_;
  std::size_t total_, done_ = 0;
  std::uint32_t pieces_ = 0;
};

/// A message of a rank to itself: complete when both sides are there.
class SelfTransfer final : public Task {
 public:
  bool advance() override { return false; }
  void awaited(std::vector<Rank>&) const override {}
};

}  // namespace anyccl
