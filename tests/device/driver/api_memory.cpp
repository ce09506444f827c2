// Memory of devices, pinned memory, and memory of other processes.

#include <unistd.h>

#include <cstring>

#include "calls.hpp"
#include "contexts.hpp"
#include "machine.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "shared_state.hpp"

using namespace anyccl::cuda;
using namespace anyccl::simulated;

namespace {

/// An IpcHandle, as this driver writes it.
struct Handle {
  std::uint32_t magic;
  int device;
  int process;
  std::uint64_t extent, offset, bytes, machine;
};
static_assert(sizeof(Handle) <= sizeof(IpcHandle));
constexpr std::uint32_t kHandleMagic = 0x49504331;

/// Waits for the device, as the memory may be in use, and drops it.
Error drop(Address at, bool is_opened) {
  Block block;
  if (!find_block(at, block) || block.base != at || (block.opened > 0) != is_opened)
    return kInvalidValue;
  if (const Context context = context_of(block.device)) finish(context);
  return drop_block(block.base, is_opened);
}

template <typename Value>
void put(void* at, Value value) {
  std::memcpy(at, &value, sizeof value);
}

/// The driver knows this about an address; zeros, if it knows nothing.
struct Facts {
  unsigned type = 0;
  Address at = 0;
  unsigned long long id = 0;
  int device = 0;
  Address begin = 0;
  std::size_t bytes = 0;
};

Facts facts_of(Address at) {
  Block block;
  if (find_block(at, block))
    return {kTypeDevice, at, block.id, block.device, block.base, block.bytes};
  Pinned pinned;
  if (find_pinned(at, pinned)) return {kTypeHost, at, 0, 0, pinned.base, pinned.bytes};
  return {};
}

/// False if there is no such attribute.
bool write_attribute(void* value, int attribute, const Facts& facts) {
  switch (attribute) {
    case kMemoryType:
      put(value, facts.type);
      return true;
    case kDevicePointer:
      put(value, facts.at);
      return true;
    case kBufferId:
      put(value, facts.id);
      return true;
    case kIsManaged:
      put(value, 0U);
      return true;
    case kDeviceOrdinal:
      put(value, facts.device);
      return true;
    case kRangeStart:
      put(value, facts.begin);
      return true;
    case kRangeSize:
      put(value, facts.bytes);
      return true;
    default:
      return false;
  }
}

}  // namespace

Error cuMemAlloc_v2(Address* at, std::size_t bytes) {
  ANYCCL_SIMULATED_ENTER(context, kOutOfMemory);
  if (at == nullptr || bytes == 0) return kInvalidValue;
  std::uintptr_t base = 0;
  const Error error = allocate_block(current_context()->device, bytes, base);
  if (error == kSuccess) *at = base;
  return error;
}

Error cuMemFree_v2(Address at) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return at == 0 ? kSuccess : drop(at, false);
}

Error cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* all) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  if (free_bytes == nullptr || all == nullptr) return kInvalidValue;
  *free_bytes = free_memory(current_context()->device);
  *all = settings().device_bytes;
  return kSuccess;
}

Error cuMemGetAddressRange_v2(Address* base, std::size_t* bytes, Address at) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  Block block;
  if (!find_block(at, block)) return kNotFound;
  if (base != nullptr) *base = block.base;
  if (bytes != nullptr) *bytes = block.bytes;
  return kSuccess;
}

Error cuPointerGetAttribute(void* value, int attribute, Address at) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  const Facts facts = facts_of(at);
  const bool is_written =
      value != nullptr && facts.type != 0 && write_attribute(value, attribute, facts);
  return is_written ? kSuccess : kInvalidValue;
}

Error cuPointerGetAttributes(unsigned count, int* attributes, void** values, Address at) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  if (attributes == nullptr || values == nullptr) return kInvalidValue;
  const Facts facts = facts_of(at);
  for (unsigned i = 0; i < count; ++i)
    if (!write_attribute(values[i], attributes[i], facts)) return kInvalidValue;
  return kSuccess;
}

Error cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  ANYCCL_SIMULATED_ENTER(context, kOutOfMemory);
  return at == nullptr ? kInvalidValue : allocate_pinned(bytes, *at);
}

Error cuMemFreeHost(void* at) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  finish(current_context());
  return unpin(reinterpret_cast<std::uintptr_t>(at), true);
}

Error cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kOutOfMemory);
  const bool is_read_only = (flags & kRegisterReadOnly) != 0;
  if (is_read_only && !settings().read_only) return kNotSupported;
  constexpr double kPerPage = 60;
  host_time() += static_cast<double>(bytes) / 4096 * kPerPage;
  return pin(reinterpret_cast<std::uintptr_t>(at), bytes, is_read_only, false);
}

Error cuMemHostUnregister(void* at) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  finish(current_context());
  return unpin(reinterpret_cast<std::uintptr_t>(at), false);
}

Error cuMemHostGetDevicePointer_v2(Address* device_address, void* at, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (device_address == nullptr || flags != 0 || find(address, 1).kind != Place::Kind::host)
    return kInvalidValue;
  *device_address = address;
  return kSuccess;
}

Error cuIpcGetMemHandle(IpcHandle* handle, Address at) {
  ANYCCL_SIMULATED_ENTER(context, kOutOfMemory);
  if (!settings().ipc) return kNotSupported;
  Block block;
  if (handle == nullptr || !find_block(at, block) || block.opened > 0) return kInvalidValue;
  const Handle made{kHandleMagic, block.device,          getpid(), block.extent, block.offset,
                    block.bytes,  shared_state().machine};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &made, sizeof made);
  return kSuccess;
}

Error cuIpcOpenMemHandle_v2(Address* at, IpcHandle handle, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kOutOfMemory);
  if (!settings().ipc) return kNotSupported;
  Handle theirs;
  std::memcpy(&theirs, &handle, sizeof theirs);
  if (at == nullptr || flags > kIpcLazyPeerAccess) return kInvalidValue;
  if (theirs.magic != kHandleMagic || theirs.machine != shared_state().machine ||
      theirs.device < 0 || theirs.device >= settings().devices)
    return kInvalidHandle;
  if (theirs.process == getpid()) return kInvalidContext;
  if (!is_taken(theirs.device, theirs.extent)) return kInvalidHandle;
  Block block;
  block.bytes = theirs.bytes;
  block.device = theirs.device;
  block.offset = theirs.offset;
  block.extent = theirs.extent;
  std::uintptr_t base = 0;
  const Error error = open_block(block, base);
  if (error == kSuccess) *at = base;
  return error;
}

Error cuIpcCloseMemHandle(Address at) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return drop(at, true);
}
