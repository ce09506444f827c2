#pragma once
// A call that stands for several messages, as AllToAllw and exchanges between neighbours do,
// becomes a group.

#include <cstdint>
#include <span>

#include "c/handle.hpp"

namespace anyccl {

/// One of the messages that a call of the program stands for.
struct BlockMessage {
  Collective way;  ///< send or recv
  int peer;
  std::uint32_t tag;  ///< Below 65536; no message of the program itself has it.
  const void* at;     ///< What is sent, or where to receive.
  std::size_t count;
  anycclDataType_t datatype;
};

/// All of them, as a group; empty ones and those of ANYCCL_NO_RANK are left out.
anycclResult_t exchange(std::span<const BlockMessage> messages, anycclComm_t comm,
                        anycclStream_t stream);

}  // namespace anyccl
