#pragma once
// Memory that devices can use in this process. A block of a device has addresses without access
// rights, which programs get, and a second mapping, which only the engines use.

#include <cstddef>
#include <cstdint>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::simulated {

/// Memory of a device: allocated here, or opened by a handle of another process.
struct Block {
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
  int device = 0;
  std::size_t offset = 0;     ///< In the file of the machine.
  std::uint64_t extent = 0;   ///< Its id there.
  std::byte* view = nullptr;  ///< The second mapping.
  std::uint64_t id = 0;       ///< In this process.
  unsigned opened = 0;        ///< How often, by a handle; 0: it was allocated here.
};

/// Memory of the host whose pages stay where they are.
struct Pinned {
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
  bool read_only = false;
  bool owned = false;      ///< The driver has allocated it.
  std::uint64_t word = 0;  ///< The name of the first word in all processes.
};

/// Where engines find memory that programs name by an address.
struct Place {
  enum class Kind { none, device, host };
  Kind kind = Kind::none;
  std::byte* at = nullptr;
  int device = -1;
  bool read_only = false;
  std::uint64_t word = 0;  ///< Its name for stamp().
};

/// Kind none, unless all bytes lie in one block or in one pinned range.
Place find(std::uintptr_t at, std::size_t bytes);
/// The block or the pinned range with this address, copied; false if there is none.
bool find_block(std::uintptr_t at, Block& found);
bool find_pinned(std::uintptr_t at, Pinned& found);

cuda::Error allocate_block(int device, std::size_t bytes, std::uintptr_t& base);
/// Memory of another process; a handle that is open already gives the same address again.
cuda::Error open_block(const Block& theirs, std::uintptr_t& base);
/// Frees or closes a block. Nothing may use it any more.
cuda::Error drop_block(std::uintptr_t base, bool is_opened);

cuda::Error allocate_pinned(std::size_t bytes, void*& at);
cuda::Error pin(std::uintptr_t at, std::size_t bytes, bool read_only, bool owned);
/// Forgets a range that pin() knows, and gives it back if the driver has allocated it.
cuda::Error unpin(std::uintptr_t at, bool owned);

}  // namespace anyccl::simulated
