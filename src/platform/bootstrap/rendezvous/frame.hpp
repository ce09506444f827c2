#pragma once
// Frames are the messages after the handshake: a header of 40 bytes, with a MAC under the session's
// key, and a payload. Hellos go up, and the answer comes down. In a small group each member says
// hello to the root server, which answers. In a large one (RelayTree) the leaders of hosts do: the
// server tells a leader where it hears the answer, and there the leader sends the hellos of all
// ranks that it speaks for, its own among them, and tells which of them have left.

#include <cstdint>
#include <string>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/group/hello.hpp"
#include "platform/bootstrap/socket/secret.hpp"
#include "platform/bootstrap/socket/wire.hpp"

namespace anyccl::bootstrap {

enum class Frame : std::uint32_t {
  hello = 1,    ///< HelloFrames: one to the root server first, then kMostHellos at most.
  table = 2,    ///< GroupHead, then encode_table() of all ranks' hellos
  failure = 3,  ///< FailureHead, then text
  place = 4,  ///< Place, then the Hello of the leader that tells this one, unless the server does.
  left = 5,   ///< Left
};

struct FrameHeader {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;  ///< The payload's length.
  Mac mac{};
};

/// Why a member says hello.
enum class Visit : std::uint32_t {
  first,
  again,  ///< It has lost its connection, or cannot reach the leader that is to tell it.
};

struct HelloFrame {
  Hello hello;
  std::uint32_t timeout_ms = 0;  ///< How long the member is going to wait, or kForever.
  std::uint32_t waited_ms = 0;   ///< How long it took to get here.
  std::uint32_t tells = 0;       ///< 1: it can tell other leaders.
  std::uint32_t visit = 0;       ///< A Visit.
};

struct GroupHead {
  std::array<std::byte, 16>
      salt{};  ///< Makes the group's secret different from every other group's.
};

struct FailureHead {
  std::uint32_t code = 0;
};

/// The place of a leader among the leaders.
struct Place {
  std::uint32_t tells = 0;  ///< 1: others may be sent to it.
};

/// A rank whose connection broke while it waited.
struct Left {
  std::uint32_t rank = 0;
};

inline constexpr std::uint32_t kForever = 0xffffffff;
inline constexpr std::size_t kFailureText = 4096;
/// In one frame: 64 KiB or so.
inline constexpr std::size_t kMostHellos = 64;

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
Result<bool> is_sealed(const Mac& session, const FrameHeader& header, const Digest& payload);

std::vector<std::byte> failure_payload(const Status& why);
/// The error that a failure frame carries.
Status read_failure(Bytes payload);

}  // namespace anyccl::bootstrap
