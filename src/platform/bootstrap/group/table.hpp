#pragma once
// A table holds the hellos of a group as the root server sends them to everyone. They are nearly
// equal, so each is sent as its difference to an earlier one, which takes about 100 bytes. The
// root server encodes the table, and every rank that joins decodes it.

#include <cstddef>
#include <span>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/group/hello.hpp"
#include "platform/bootstrap/socket/secret.hpp"
#include "platform/bootstrap/socket/wire.hpp"

namespace anyccl::bootstrap {

// The format of a table:
//
//   entry  distance, runs, then so many runs
//   run    skip, length, then so many bytes
//
// `distance` leads back to the hello that this one is like: 1 is the one before; 0 stands for bytes
// that are all zero. `skip` bytes are equal, the next `length` replaced; what follows the last run
// is equal. Numbers are LEB128: 7 bits a byte, low ones first, the top bit says that another
// follows.

/// More than the entry of any hello takes: see encode_table().
inline constexpr std::size_t kMostEntryBytes = sizeof(Hello) + 16;

/// `hellos`: of all ranks, in order.
std::vector<std::byte> encode_table(std::span<const Hello> hellos);

/// The hellos of a group of `size` ranks, each of which check_hello() lets through and which is in
/// its place. Whatever `encoded` holds, nothing is read beyond it, and the memory taken is that of
/// `size` hellos at most.
///
/// Errors: remote_error when these are not that; invalid_argument as check_hello().
Result<std::vector<Hello>> decode_table(Bytes encoded, std::uint32_t size);

}  // namespace anyccl::bootstrap
