#pragma once
// Shared memory is a sealed memfd that processes map. These functions create such memory, map that
// of a peer, back its pages with memory, and give pages back to the system. Each file is sealed
// against shrinking, so that a peer cannot make an access fault. The rest of the shm transport
// calls them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::shm {

/// A mapping that unmaps itself.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* at, std::size_t bytes) : at_(static_cast<std::byte*>(at)), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept;
  /// Swaps the two: `other` unmaps later what this one had.
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  std::byte* data() const { return at_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

enum class Access { read, write };

/// Memory that other processes can map: a sealed memfd, and its mapping here.
struct SharedMemory {
  UniqueFd fd;
  Mapping mapping;
  /// How give_back() does it: not at all, to a file, or to memory of this process alone.
  enum class Returned : std::uint8_t { never, to_file, to_process } returned = Returned::never;
};

/// `writable_by_peers`: else peers can map it for reading only, whatever they try. Its size can
/// never change, so no peer can make an access fault. Pages exist once populate() has returned ok.
Result<SharedMemory> create_shared(std::size_t bytes, bool writable_by_peers, const char* what);

/// Memory that give_back() takes: peers get a descriptor for reading only, in place of the seal,
/// which would forbid give_back() too. Where that cannot be had (without /proc), it has the seal,
/// and give_back() refuses it.
Result<SharedMemory> create_returnable(std::size_t bytes, const char* what);

/// Gives the pages that lie in [offset, offset + bytes) back to the system; they read as zeros
/// then, here and at peers, until populate(). Nobody may read or write them meanwhile. False: the
/// system refuses.
bool give_back(const SharedMemory& memory, std::size_t offset, std::size_t bytes);

/// A cgroup that is full has its processes killed, without an error that could be returned: this
/// one comes first. It takes 0.1 ms. It may be wrong at once, if neighbours take memory too.
/// Errors: system_error.
Status expect_left(std::size_t bytes);
/// What is smaller is taken without asking.
inline constexpr std::size_t kWorthALook = std::size_t{1} << 20;

/// Backs the pages of [offset, offset + bytes) with memory, or says that there is none (rather than
/// a SIGBUS later).
Status populate(const SharedMemory& memory, std::size_t offset, std::size_t bytes);

/// Maps what a peer created. Refuses what the peer could still shrink or is smaller than `bytes`.
Result<Mapping> map_peer(int fd, std::size_t bytes, Access access, const char* what);

/// Zeroed private memory, for ranks that are threads of one process.
Result<Mapping> create_private(std::size_t bytes, const char* what);

}  // namespace anyccl::shm
