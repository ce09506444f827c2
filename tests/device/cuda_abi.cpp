// Our declarations of the driver are those of cuda.h: values, sizes, and the parameters of every
// function up to the names of types. Compiled where cuda.h is found.

#include <cuda.h>

#include <type_traits>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::cuda {
namespace {

/// Our name of a type of theirs.
template <typename T>
struct Ours {
  using type = T;
};
#define ANYCCL_SAME(theirs, ours) \
  template <>                     \
  struct Ours<theirs> {           \
    using type = ours;            \
  };
ANYCCL_SAME(CUresult, Error)
ANYCCL_SAME(CUcontext, Context)
ANYCCL_SAME(CUcontext*, Context*)
ANYCCL_SAME(CUstream, Stream)
ANYCCL_SAME(CUstream*, Stream*)
ANYCCL_SAME(CUevent, Event)
ANYCCL_SAME(CUevent*, Event*)
ANYCCL_SAME(CUmodule, Module)
ANYCCL_SAME(CUmodule*, Module*)
ANYCCL_SAME(CUfunction, Function)
ANYCCL_SAME(CUfunction*, Function*)
ANYCCL_SAME(CUdevice_attribute, int)
ANYCCL_SAME(CUpointer_attribute, int)
ANYCCL_SAME(CUpointer_attribute*, int*)
ANYCCL_SAME(CUstreamCaptureMode, int)
ANYCCL_SAME(CUstreamCaptureStatus*, int*)
ANYCCL_SAME(CUgraph*, void**)
ANYCCL_SAME(CUdriverProcAddressQueryResult*, int*)
ANYCCL_SAME(CUipcMemHandle, IpcHandle)
ANYCCL_SAME(CUipcMemHandle*, IpcHandle*)

template <typename T>
struct Call;
template <typename Result, typename... Parameters>
struct Call<Result(Parameters...)> {
  using type = typename Ours<Result>::type(typename Ours<Parameters>::type...);
};

// cuda.h makes macros of the plain names; the names with a suffix are its functions.
#define ANYCCL_CHECK(name, parameters) \
  static_assert(std::is_same_v<Call<decltype(::name)>::type, Error parameters>, #name);
ANYCCL_CUDA_FUNCTIONS(ANYCCL_CHECK)
ANYCCL_MORE_CUDA_FUNCTIONS(ANYCCL_CHECK)

static_assert(sizeof(CUipcMemHandle) == sizeof(IpcHandle));
static_assert(sizeof(CUdeviceptr) == sizeof(Address));
static_assert(sizeof(CUdevice) == sizeof(Ordinal));
static_assert(sizeof(CUresult) == sizeof(Error));
static_assert(std::is_same_v<std::underlying_type_t<CUpointer_attribute>, unsigned> ||
              sizeof(CUpointer_attribute) == sizeof(int));
static_assert(std::is_same_v<CUhostFn, HostFunction>);

#define ANYCCL_VALUE(theirs, ours) \
  static_assert(static_cast<unsigned>(theirs) == static_cast<unsigned>(ours), #ours);
ANYCCL_VALUE(CUDA_SUCCESS, kSuccess)
ANYCCL_VALUE(CUDA_ERROR_INVALID_VALUE, kInvalidValue)
ANYCCL_VALUE(CUDA_ERROR_OUT_OF_MEMORY, kOutOfMemory)
ANYCCL_VALUE(CUDA_ERROR_NOT_INITIALIZED, kNotInitialized)
ANYCCL_VALUE(CUDA_ERROR_NO_DEVICE, kNoDevice)
ANYCCL_VALUE(CUDA_ERROR_INVALID_DEVICE, kInvalidDevice)
ANYCCL_VALUE(CUDA_ERROR_INVALID_IMAGE, kInvalidImage)
ANYCCL_VALUE(CUDA_ERROR_INVALID_CONTEXT, kInvalidContext)
ANYCCL_VALUE(CUDA_ERROR_INVALID_HANDLE, kInvalidHandle)
ANYCCL_VALUE(CUDA_ERROR_NOT_FOUND, kNotFound)
ANYCCL_VALUE(CUDA_ERROR_NOT_READY, kNotReady)
ANYCCL_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS, kIllegalAddress)
ANYCCL_VALUE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, kAlreadyRegistered)
ANYCCL_VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, kNotRegistered)
ANYCCL_VALUE(CUDA_ERROR_LAUNCH_FAILED, kLaunchFailed)
ANYCCL_VALUE(CUDA_ERROR_NOT_SUPPORTED, kNotSupported)
ANYCCL_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, kCaptureUnsupported)
ANYCCL_VALUE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, kCaptureImplicit)
ANYCCL_VALUE(CUDA_ERROR_ILLEGAL_STATE, 401)
ANYCCL_VALUE(CUDA_ERROR_NOT_PERMITTED, 800)
ANYCCL_VALUE(CUDA_ERROR_UNKNOWN, kUnknown)
ANYCCL_VALUE(CU_STREAM_NON_BLOCKING, kStreamNonBlocking)
ANYCCL_VALUE(CU_EVENT_DISABLE_TIMING, kEventDisableTiming)
ANYCCL_VALUE(CU_MEMHOSTREGISTER_PORTABLE, kRegisterPortable)
ANYCCL_VALUE(CU_MEMHOSTREGISTER_DEVICEMAP, kRegisterDeviceMap)
ANYCCL_VALUE(CU_MEMHOSTREGISTER_READ_ONLY, kRegisterReadOnly)
ANYCCL_VALUE(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, kIpcLazyPeerAccess)
ANYCCL_VALUE(CU_STREAM_WAIT_VALUE_GEQ, kWaitGeq)
ANYCCL_VALUE(CU_STREAM_WAIT_VALUE_EQ, kWaitEq)
ANYCCL_VALUE(CU_STREAM_WAIT_VALUE_AND, kWaitAnd)
ANYCCL_VALUE(CU_STREAM_WAIT_VALUE_NOR, kWaitNor)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kMultiprocessors)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, kCopyEngines)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, kUnifiedAddressing)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, kPciDomain)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, kPciBus)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, kPciDevice)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, kComputeMajor)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, kComputeMinor)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, kHostRegister)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, kReadOnlyRegister)
ANYCCL_VALUE(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, kStreamWords)
ANYCCL_VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, kMemoryType)
ANYCCL_VALUE(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, kDevicePointer)
ANYCCL_VALUE(CU_POINTER_ATTRIBUTE_BUFFER_ID, kBufferId)
ANYCCL_VALUE(CU_POINTER_ATTRIBUTE_IS_MANAGED, kIsManaged)
ANYCCL_VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, kDeviceOrdinal)
ANYCCL_VALUE(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, kRangeStart)
ANYCCL_VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE, kRangeSize)
ANYCCL_VALUE(CU_MEMORYTYPE_HOST, kTypeHost)
ANYCCL_VALUE(CU_MEMORYTYPE_DEVICE, kTypeDevice)

}  // namespace
}  // namespace anyccl::cuda
