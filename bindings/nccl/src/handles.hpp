#pragma once
// Handles and identifiers: NCCL's are anyccl's under other types.

#include <bit>

#include "anyccl/anyccl.h"
#include "nccl.h"

namespace anyccl::nccl {

inline anycclComm_t to_anyccl(ncclComm_t comm) {
  return reinterpret_cast<anycclComm_t>(comm);
}
/// The place of a handle, which anyccl may fill at the end of a group.
inline anycclComm_t* to_anyccl(ncclComm_t* comm) {
  return reinterpret_cast<anycclComm_t*>(comm);
}
inline anycclWindow_t to_anyccl(ncclWindow_t window) {
  return reinterpret_cast<anycclWindow_t>(window);
}
inline anycclWindow_t* to_anyccl(ncclWindow_t* window) {
  return reinterpret_cast<anycclWindow_t*>(window);
}
inline anycclUniqueId to_anyccl(const ncclUniqueId& id) {
  return std::bit_cast<anycclUniqueId>(id);
}
/// The bytes of identifiers in the memory of the caller.
inline anycclUniqueId* to_anyccl(ncclUniqueId* ids) {
  return reinterpret_cast<anycclUniqueId*>(ids);
}
inline const anycclUniqueId* to_anyccl(const ncclUniqueId* id) {
  return reinterpret_cast<const anycclUniqueId*>(id);
}

}  // namespace anyccl::nccl
