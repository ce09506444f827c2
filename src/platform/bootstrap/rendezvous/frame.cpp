#include "platform/bootstrap/rendezvous/frame.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace anyccl::bootstrap {
namespace {

Result<Mac> mac_of(const Mac& session, std::uint32_t kind, const Digest& payload) {
  return hmac(session, "frame", {bytes_of(kind), bytes_of(payload.bytes), payload.hash});
}

bool is_failure(std::uint32_t code) {
  return code > static_cast<std::uint32_t>(Code::ok) &&
         code <= static_cast<std::uint32_t>(Code::aborted) &&
         code != static_cast<std::uint32_t>(Code::in_progress);
}

}  // namespace

Result<Digest> digest_of(Bytes payload) {
  Digest digest{static_cast<std::uint32_t>(payload.size()), {}};
  ANYCCL_TRY(digest.hash, hmac(Secret().bytes(), "payload", {payload}));  // a hash: no key
  return digest;
}

Result<FrameHeader> seal(const Mac& session, Frame kind, const Digest& payload) {
  FrameHeader header;
  header.kind = static_cast<std::uint32_t>(kind);
  header.bytes = payload.bytes;
  ANYCCL_TRY(header.mac, mac_of(session, header.kind, payload));
  return header;
}

Result<FrameHeader> seal(const Mac& session, Frame kind, Bytes payload) {
  ANYCCL_TRY(const Digest digest, digest_of(payload));
  return seal(session, kind, digest);
}

Result<bool> is_sealed(const Mac& session, const FrameHeader& header, Bytes payload) {
  ANYCCL_TRY(const Digest digest, digest_of(payload));
  return is_sealed(session, header, digest);
}

Result<bool> is_sealed(const Mac& session, const FrameHeader& header, const Digest& payload) {
  ANYCCL_TRY(const Mac expected, mac_of(session, header.kind, payload));
  return header.bytes == payload.bytes && same_mac(expected, header.mac);
}

std::vector<std::byte> failure_payload(const Status& why) {
  const FailureHead head{static_cast<std::uint32_t>(why.code())};
  const std::string_view text = why.message().substr(0, kFailureText);
  std::vector<std::byte> payload;
  for (const Bytes part : {Bytes(bytes_of(head)), Bytes(std::as_bytes(std::span(text)))})
    payload.insert(payload.end(), part.begin(), part.end());
  return payload;
}

Status read_failure(Bytes payload) {
  const Status unreadable(Code::remote_error,
                          "the root server failed without a reason that can be read");
  if (payload.size() < sizeof(FailureHead) || payload.size() > sizeof(FailureHead) + kFailureText)
    return unreadable;
  const auto head = read_as<FailureHead>(payload);
  if (!is_failure(head.code)) return unreadable;
  const Bytes text = payload.subspan(sizeof head);
  return Status(static_cast<Code>(head.code),
                printable({reinterpret_cast<const char*>(text.data()), text.size()}));
}

}  // namespace anyccl::bootstrap
