#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/hello.hpp"
#include "platform/bootstrap/secret.hpp"
#include "platform/bootstrap/wire.hpp"

namespace anyccl::bootstrap {

// The messages between a member and the root server after the handshake: the member sends one
// hello, the server one reply. Each is a header and its payload, under the session's key. In a large
// group the reply may be the rank that tells the member instead (see RelayTree), to which it sends news
// of itself, and of the ranks that it tells in turn.

enum class Frame : std::uint32_t {
  hello = 1,    ///< HelloFrame
  table = 2,    ///< GroupHead, then encode_table() of all ranks' hellos
  failure = 3,  ///< FailureHead, then text
  sender = 4,   ///< The Hello of the rank that tells the member.
  later = 5,    ///< Nothing: that rank has not joined, and the member is to come again.
  news = 6,     ///< News, upwards
};

struct FrameHeader {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;  ///< Of the payload.
  Mac mac{};
};

/// Why a member says hello.
enum class Visit : std::uint32_t {
  first,
  again,         ///< It was told to come later.
  cannot_reach,  ///< It cannot reach the rank that is to tell it.
};

struct HelloFrame {
  Hello hello;
  std::uint32_t timeout_ms = 0;  ///< How long the member is going to wait.
  std::uint32_t waited_ms = 0;   ///< How long it took to get here.
  std::uint32_t tells = 0;       ///< 1: it can tell other ranks.
  std::uint32_t visit = 0;       ///< A Visit.
};

struct GroupHead {
  std::array<std::byte, 16>
      salt{};  ///< Makes the group's secret different from every other group's.
};

struct FailureHead {
  std::uint32_t code = 0;
};

/// About a rank that another one tells, from which it goes up to the root server.
struct News {
  std::uint32_t rank = 0;
  std::uint32_t left = 0;  ///< 1: its connection broke; 0: it is there, and waits.
};

inline constexpr std::uint32_t kForever = 0xffffffff;
inline constexpr std::size_t kFailureText = 4096;

/// What a seal covers of a payload. That of one which goes to many is made once.
struct Digest {
  std::uint32_t bytes = 0;
  Mac hash{};
};
Result<Digest> digest_of(Bytes payload);

Result<FrameHeader> seal(const Mac& session, Frame kind, const Digest& payload);
Result<FrameHeader> seal(const Mac& session, Frame kind, Bytes payload);
/// Whether header and payload come from the other end of the session.
Result<bool> is_sealed(const Mac& session, const FrameHeader& header, Bytes payload);

std::vector<std::byte> failure_payload(const Status& why);
/// The error that a failure frame carries.
Status read_failure(Bytes payload);

}  // namespace anyccl::bootstrap
