#pragma once
// TLS 1.3 encrypts the connections between hosts if ANYCCL_TLS is set. The bootstrap makes a stream
// for each connection, with a key that only its two ends have; then the link reads and writes
// through the stream. A build without OpenSSL compiles without_tls.cpp in place of tls.cpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "anyccl/status.hpp"
#include "base/secure_stream.hpp"

namespace anyccl::tls {

/// A key of one connection, which its two ends share and nobody else knows.
using Key = std::array<std::byte, 32>;

enum class Side : std::uint8_t { client, server };

/// Records of up to 16 KiB that are encrypted with one key: with AES-GCM no more than 2^24.5 should
/// be (RFC 8446, 5.5).
inline constexpr std::uint32_t kRecordsPerKey = 1U << 22;

/// Ok, or why there is no TLS: this build has no OpenSSL. `code`: unsupported.
Status is_available();

/// One end of TLS 1.3 over a connection, before its handshake. Both ends prove by it that they have
/// `key`, and nothing else: there are no certificates. A Diffie-Hellman exchange goes into the keys
/// of the records, so that who comes to know `key` later cannot read what was recorded. There are
/// no tickets, no early data and no older versions.
///
/// Errors: as is_available(); system_error.
Result<std::unique_ptr<SecureStream>> make_stream(Side side, const Key& key,
                                                  std::uint32_t records_per_key = kRecordsPerKey);

}  // namespace anyccl::tls
