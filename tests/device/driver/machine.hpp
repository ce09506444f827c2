#pragma once
// The machine that processes share: the memory of its devices is a file, of which each process
// allocates extents. Memory of a process that has died is taken back.

#include <cstddef>
#include <cstdint>

namespace anyccl::simulated {

struct Extent {
  std::size_t offset = 0;  ///< In the file.
  std::uint64_t id = 0;    ///< Never used twice; 0: there was not enough memory.
};

/// The file's descriptor.
int memory_file();
Extent take_memory(int device, std::size_t bytes);
void give_memory(int device, const Extent& extent, std::size_t bytes);
/// Whether memory is still allocated, by a process that is there.
bool is_taken(int device, std::uint64_t id);
std::size_t free_memory(int device);

}  // namespace anyccl::simulated
