// The C interface: memory that peers read in place.

#include "base/error.hpp"
#include "c/handle.hpp"
#include "runtime/links/transports.hpp"

using namespace anyccl;

anycclResult_t anycclMemAlloc(void** ptr, size_t size) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(ptr, "ptr"));
    ANYCCL_TRY(*ptr, allocate_shared(size));
    return {};
  });
}

anycclResult_t anycclMemFree(void* ptr) {
  return guarded(nullptr, [&]() -> Status { return free_shared(ptr); });
}

anycclResult_t anycclMemRegister(void* ptr, size_t size, int fd, size_t offset) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(ptr, "ptr"));
    return register_shared(ptr, size, fd, offset);
  });
}

anycclResult_t anycclMemDeregister(void* ptr) {
  return guarded(nullptr, [&]() -> Status { return deregister_shared(ptr); });
}

anycclResult_t anycclCommRegister(anycclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(buff, "buff"));
    ANYCCL_CHECK(need(handle, "handle"));
    if (size == 0) return error(Code::invalid_argument, "size is 0");
    const std::lock_guard lock(comm->mutex);
    ++comm->registered[buff];
    *handle = buff;
    return {};
  });
}

anycclResult_t anycclCommDeregister(anycclComm_t comm, void* handle) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    const std::unique_lock lock(comm->mutex);
    const auto found = comm->registered.find(handle);
    if (found == comm->registered.end())
      return error(Code::invalid_argument, "handle {} is not registered with this communicator",
                   handle);
    if (--found->second == 0) comm->registered.erase(found);
    return {};
  });
}
