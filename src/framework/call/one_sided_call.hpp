#pragma once
// The arguments of a put, signal or wait for signals go through the framework as a OneSidedCall.
// OneSided checks them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace anyccl {

/// Signals are counted per peer, context and index.
inline constexpr int kSignals = ANYCCL_NUM_SIGNALS, kContexts = ANYCCL_NUM_CONTEXTS;

/// The arguments of a one-sided operation, as the caller gave them.
struct OneSidedCall {
  enum class What : std::uint8_t { put, signal, wait };

  What what = What::signal;
  DType dtype = DType::u8;
  Rank peer{0};
  int signal = 0, context = 0;
  unsigned flags = 0;
  // A put:
  std::uint32_t window = 0;  ///< Its number.
  std::size_t offset = 0;    ///< Bytes, in the window of the peer.
  std::size_t count = 0;
  const std::byte* input = nullptr;
  /// A wait.
  std::span<const anycclWaitSignalDesc_t> awaited;

  /// The bytes of a put whose arguments are right.
  std::size_t bytes() const { return count * bytes_of(dtype); }
};

/// A call whose array is its own.
class KeptOneSidedCall {
 public:
  explicit KeptOneSidedCall(const OneSidedCall& call)
      : call_(call), awaited_(call.awaited.begin(), call.awaited.end()) {
    call_.awaited = awaited_;
  }
  KeptOneSidedCall(const KeptOneSidedCall&) = delete;
  KeptOneSidedCall& operator=(const KeptOneSidedCall&) = delete;
  const OneSidedCall& call() const { return call_; }

 private:
  OneSidedCall call_;
  std::vector<anycclWaitSignalDesc_t> awaited_;
};

}  // namespace anyccl
