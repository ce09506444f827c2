// Compiled without sanitizers, as is timing.cpp. While the lock is held, nothing calls templates of
// the standard library: the linker could take those from a file that has sanitizers.

#include "machine.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "faults.hpp"
#include "settings.hpp"
#include "shared_state.hpp"

namespace anyccl::simulated {
namespace {

constexpr std::uint32_t kMagic = 0x414d4953;
constexpr unsigned kTriesBeforeALook = 256;

int file = -1;

std::size_t begin_of(int device) {
  return kHeaderBytes + static_cast<std::size_t>(device) * settings().device_bytes;
}
std::uint64_t pages_of(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes;
}

/// A process that has died but whose parent has not asked for it is dead, too.
bool is_alive(std::uint32_t process) {
  if (process == static_cast<std::uint32_t>(getpid())) return true;
  char text[512];
  std::snprintf(text, sizeof text, "/proc/%u/stat", process);
  const int stat = open(text, O_RDONLY | O_CLOEXEC);
  if (stat < 0) return errno != ENOENT && errno != ESRCH;
  const ssize_t got = read(stat, text, sizeof text - 1);
  close(stat);
  if (got <= 0) return false;
  text[got] = 0;
  const char* const name_end = std::strrchr(text, ')');
  return name_end == nullptr || (name_end[1] == ' ' && name_end[2] != 'Z' && name_end[2] != 'X');
}

[[noreturn]] void refuse_state(const char* why) {
  refuse("SIMULATED_CUDA_STATE=" + settings().state + ": " + why);
}

SharedState* open_state() {
  const Settings& set = settings();
  file = set.state.empty() ? memfd_create("anyccl-simulated", MFD_CLOEXEC)
                           : open(set.state.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct stat facts = {};
  if (file < 0 || flock(file, LOCK_EX) != 0 || fstat(file, &facts) != 0)
    refuse_state(std::strerror(errno));
  const auto bytes = static_cast<off_t>(begin_of(set.devices));
  if (facts.st_size == 0 && ftruncate(file, bytes) != 0) refuse_state(std::strerror(errno));
  if (facts.st_size != 0 && facts.st_size != bytes)
    refuse_state(
        "is another file, or one of other devices (SIMULATED_CUDA_DEVICES, "
        "SIMULATED_CUDA_DEVICE_MB)");
  void* const at = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) refuse_state(std::strerror(errno));
  auto* const state = static_cast<SharedState*>(at);
  const auto devices = static_cast<std::uint64_t>(set.devices);
  if (state->magic == 0) {
    state->devices = devices;
    state->device_bytes = set.device_bytes;
    if (getentropy(&state->machine, sizeof state->machine) != 0) refuse_state(std::strerror(errno));
    state->magic = kMagic;
  }
  if (state->magic != kMagic) refuse_state("is the file of something else");
  if (state->devices != devices || state->device_bytes != set.device_bytes)
    refuse_state("is one of other devices (SIMULATED_CUDA_DEVICES, SIMULATED_CUDA_DEVICE_MB)");
  flock(file, LOCK_UN);
  return state;
}

/// The page behind which no extent of the device overlaps `pages` pages; `all`, if there is none.
std::uint64_t find_gap(const SharedExtent* extents, std::uint64_t pages, std::uint64_t all) {
  std::uint64_t first = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t i = 0; i < kExtents; ++i) {
      const SharedExtent& one = extents[i];
      if (one.owner == 0 || one.first >= first + pages || first >= one.first + one.pages) continue;
      first = one.first + one.pages;
      moved = true;
    }
  }
  return first + pages <= all ? first : all;
}

void take_back_from_the_dead(SharedExtent* extents) {
  std::uint32_t living = 0;  // the last one that was looked at
  for (std::uint32_t i = 0; i < kExtents; ++i) {
    const std::uint32_t owner = extents[i].owner;
    if (owner == 0 || owner == living) continue;
    if (is_alive(owner))
      living = owner;
    else
      __atomic_store_n(&extents[i].owner, 0, __ATOMIC_RELEASE);
  }
}

}  // namespace

SharedState& shared_state() {
  static SharedState* const state = open_state();
  return *state;
}

SharedLock::SharedLock() {
  std::uint32_t* const lock = &shared_state().holder;
  const auto me = static_cast<std::uint32_t>(getpid());
  for (unsigned tries = 1;; ++tries) {
    std::uint32_t holder = 0;  // Pairs with the release of the destructor, in any process.
    if (__atomic_compare_exchange_n(lock, &holder, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      break;
    if (tries % kTriesBeforeALook == 0 && !is_alive(holder) &&
        __atomic_compare_exchange_n(lock, &holder, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      break;
    sched_yield();
  }
  if (strikes("killed")) kill(getpid(), SIGKILL);
}

SharedLock::~SharedLock() {
  __atomic_store_n(&shared_state().holder, 0, __ATOMIC_RELEASE);
}

int memory_file() {
  shared_state();
  return file;
}

Extent take_memory(int device, std::size_t bytes) {
  SharedState& state = shared_state();
  SharedExtent* const extents = state.extents[device];
  const std::uint64_t pages = pages_of(bytes), all = settings().device_bytes / kPageBytes;
  if (pages > all) return {};
  const SharedLock lock;
  for (const bool is_second_try : {false, true}) {
    if (is_second_try) take_back_from_the_dead(extents);
    std::uint32_t slot = 0;
    while (slot < kExtents && extents[slot].owner != 0) ++slot;
    const std::uint64_t first = slot < kExtents ? find_gap(extents, pages, all) : all;
    if (first == all) continue;
    SharedExtent& taken = extents[slot];
    taken.first = first;
    taken.pages = pages;
    taken.id = ++state.ids;
    __atomic_store_n(&taken.owner, static_cast<std::uint32_t>(getpid()), __ATOMIC_RELEASE);
    return {begin_of(device) + first * kPageBytes, taken.id};
  }
  return {};
}

void give_memory(int device, const Extent& extent, std::size_t bytes) {
  const SharedLock lock;
  SharedExtent* const extents = shared_state().extents[device];
  for (std::uint32_t i = 0; i < kExtents; ++i) {
    if (extents[i].owner == 0 || extents[i].id != extent.id) continue;
    // The system gets the pages back. A file system that cannot do that keeps them.
    static_cast<void>(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(extent.offset),
                                static_cast<off_t>(pages_of(bytes) * kPageBytes)));
    __atomic_store_n(&extents[i].owner, 0, __ATOMIC_RELEASE);
  }
}

bool is_taken(int device, std::uint64_t id) {
  const SharedLock lock;
  const SharedExtent* const extents = shared_state().extents[device];
  for (std::uint32_t i = 0; i < kExtents; ++i)
    if (extents[i].owner != 0 && extents[i].id == id) return is_alive(extents[i].owner);
  return false;
}

std::size_t free_memory(int device) {
  const SharedLock lock;
  SharedExtent* const extents = shared_state().extents[device];
  take_back_from_the_dead(extents);
  std::uint64_t pages = settings().device_bytes / kPageBytes;
  for (std::uint32_t i = 0; i < kExtents; ++i)
    if (extents[i].owner != 0) pages -= extents[i].pages;
  return pages * kPageBytes;
}

}  // namespace anyccl::simulated
