#pragma once
// Some ranks of a communicator send each other messages, while the others make no call.

#include <algorithm>
#include <chrono>
#include <span>

#include "base/deadline.hpp"
#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// Messages between some ranks of a communicator, while the other ranks make no call.
class Correspondence {
 public:
  Correspondence(Comm& parent, const Deadline& deadline) : parent_(parent), deadline_(deadline) {}

  template <typename T>
  Status send(Rank to, std::span<T> data) {
    return run(Collective::send, to, std::as_writable_bytes(data));
  }
  template <typename T>
  Status receive(Rank from, std::span<T> data) {
    return run(Collective::recv, from, std::as_writable_bytes(data));
  }

 private:
  Status run(Collective way, Rank peer, std::span<std::byte> bytes) {
    Call call;
    call.collective = way;
    call.dtype = DType::u8;
    call.root = peer;
    call.tag = kShrinkTag;
    call.count = bytes.size();
    if (way == Collective::send)
      call.input = bytes.data();
    else
      call.output = bytes.data();
    call.timeout = deadline_.operation_limit();
    return parent_.run(call);
  }

  Comm& parent_;
  Deadline deadline_;
};

}  // namespace anyccl
