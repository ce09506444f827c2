#pragma once
// The functions of the CUDA driver that are used here, in declarations of our own: nothing of CUDA
// is needed to build. tests/device/cuda_abi.cpp compares them with cuda.h where there is one.

#include <cstddef>
#include <cstdint>

namespace anyccl::cuda {

using Error = int;                     ///< CUresult
using Address = unsigned long long;    ///< CUdeviceptr
using Ordinal = int;                   ///< CUdevice
using Context = struct ContextTag*;    ///< CUcontext
using Stream = struct StreamTag*;      ///< CUstream
using Event = struct EventTag*;        ///< CUevent
using Module = struct ModuleTag*;      ///< CUmodule
using Function = struct FunctionTag*;  ///< CUfunction
using HostFunction = void (*)(void*);  ///< CUhostFn
struct IpcHandle {                     ///< CUipcMemHandle
  char reserved[64];
};

/// Values of CUresult.
enum : Error {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureImplicit = 906,
  kUnknown = 999,
};
/// Flags of streams, events and pinned memory, and the conditions of a wait for a word.
enum : unsigned {
  kStreamNonBlocking = 1,
  kEventDisableTiming = 2,
  kRegisterPortable = 1,
  kRegisterDeviceMap = 2,
  kRegisterReadOnly = 8,
  kIpcLazyPeerAccess = 1,
  kWaitGeq = 0,
  kWaitEq = 1,
  kWaitAnd = 2,
  kWaitNor = 3,
};
/// Values of CUdevice_attribute.
enum : int {
  kMultiprocessors = 16,
  kCopyEngines = 40,
  kUnifiedAddressing = 41,
  kPciDomain = 50,
  kPciBus = 33,
  kPciDevice = 34,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kHostRegister = 99,
  kReadOnlyRegister = 113,
  kStreamWords = 122,
};
/// Values of CUpointer_attribute, and of CUmemorytype.
enum : int {
  kMemoryType = 2,
  kDevicePointer = 3,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
};
enum : unsigned { kTypeHost = 1, kTypeDevice = 2 };

}  // namespace anyccl::cuda

// X(name as exported, parameters): those that the library calls. It is not loaded without them.
#define ANYCCL_CUDA_FUNCTIONS(X)                                                               \
  X(cuInit, (unsigned))                                                                        \
  X(cuGetErrorName, (anyccl::cuda::Error, const char**))                                       \
  X(cuGetErrorString, (anyccl::cuda::Error, const char**))                                     \
  X(cuDeviceGetCount, (int*))                                                                  \
  X(cuDeviceGet, (anyccl::cuda::Ordinal*, int))                                                \
  X(cuDeviceGetName, (char*, int, anyccl::cuda::Ordinal))                                      \
  X(cuDeviceGetAttribute, (int*, int, anyccl::cuda::Ordinal))                                  \
  X(cuDeviceCanAccessPeer, (int*, anyccl::cuda::Ordinal, anyccl::cuda::Ordinal))               \
  X(cuDevicePrimaryCtxRetain, (anyccl::cuda::Context*, anyccl::cuda::Ordinal))                 \
  X(cuDevicePrimaryCtxRelease_v2, (anyccl::cuda::Ordinal))                                     \
  X(cuCtxPushCurrent_v2, (anyccl::cuda::Context))                                              \
  X(cuCtxPopCurrent_v2, (anyccl::cuda::Context*))                                              \
  X(cuCtxGetCurrent, (anyccl::cuda::Context*))                                                 \
  X(cuCtxGetDevice, (anyccl::cuda::Ordinal*))                                                  \
  X(cuMemAlloc_v2, (anyccl::cuda::Address*, std::size_t))                                      \
  X(cuMemFree_v2, (anyccl::cuda::Address))                                                     \
  X(cuPointerGetAttributes, (unsigned, int*, void**, anyccl::cuda::Address))                   \
  X(cuMemHostRegister_v2, (void*, std::size_t, unsigned))                                      \
  X(cuMemHostUnregister, (void*))                                                              \
  X(cuMemcpyAsync,                                                                             \
    (anyccl::cuda::Address, anyccl::cuda::Address, std::size_t, anyccl::cuda::Stream))         \
  X(cuStreamCreateWithPriority, (anyccl::cuda::Stream*, unsigned, int))                        \
  X(cuStreamDestroy_v2, (anyccl::cuda::Stream))                                                \
  X(cuStreamWaitEvent, (anyccl::cuda::Stream, anyccl::cuda::Event, unsigned))                  \
  X(cuStreamWaitValue32_v2,                                                                    \
    (anyccl::cuda::Stream, anyccl::cuda::Address, std::uint32_t, unsigned))                    \
  X(cuStreamWriteValue32_v2,                                                                   \
    (anyccl::cuda::Stream, anyccl::cuda::Address, std::uint32_t, unsigned))                    \
  X(cuStreamIsCapturing, (anyccl::cuda::Stream, int*))                                         \
  X(cuLaunchHostFunc, (anyccl::cuda::Stream, anyccl::cuda::HostFunction, void*))               \
  X(cuEventCreate, (anyccl::cuda::Event*, unsigned))                                           \
  X(cuEventDestroy_v2, (anyccl::cuda::Event))                                                  \
  X(cuEventRecord, (anyccl::cuda::Event, anyccl::cuda::Stream))                                \
  X(cuEventQuery, (anyccl::cuda::Event))                                                       \
  X(cuModuleLoadData, (anyccl::cuda::Module*, const void*))                                    \
  X(cuModuleUnload, (anyccl::cuda::Module))                                                    \
  X(cuModuleGetFunction, (anyccl::cuda::Function*, anyccl::cuda::Module, const char*))         \
  X(cuLaunchKernel, (anyccl::cuda::Function, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     unsigned, unsigned, anyccl::cuda::Stream, void**, void**))                \
  X(cuIpcGetMemHandle, (anyccl::cuda::IpcHandle*, anyccl::cuda::Address))                      \
  X(cuIpcOpenMemHandle_v2, (anyccl::cuda::Address*, anyccl::cuda::IpcHandle, unsigned))        \
  X(cuIpcCloseMemHandle, (anyccl::cuda::Address))

// Those besides that a program which tests its own CUDA code with the simulated driver may call.
#define ANYCCL_MORE_CUDA_FUNCTIONS(X)                                                              \
  X(cuDriverGetVersion, (int*))                                                                    \
  X(cuCtxSetCurrent, (anyccl::cuda::Context))                                                      \
  X(cuCtxSynchronize, ())                                                                          \
  X(cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                                 \
  X(cuMemGetAddressRange_v2, (anyccl::cuda::Address*, std::size_t*, anyccl::cuda::Address))        \
  X(cuPointerGetAttribute, (void*, int, anyccl::cuda::Address))                                    \
  X(cuMemHostAlloc, (void**, std::size_t, unsigned))                                               \
  X(cuMemFreeHost, (void*))                                                                        \
  X(cuMemHostGetDevicePointer_v2, (anyccl::cuda::Address*, void*, unsigned))                       \
  X(cuMemcpyHtoDAsync_v2, (anyccl::cuda::Address, const void*, std::size_t, anyccl::cuda::Stream)) \
  X(cuMemcpyDtoHAsync_v2, (void*, anyccl::cuda::Address, std::size_t, anyccl::cuda::Stream))       \
  X(cuMemcpyDtoDAsync_v2,                                                                          \
    (anyccl::cuda::Address, anyccl::cuda::Address, std::size_t, anyccl::cuda::Stream))             \
  X(cuMemcpyPeerAsync, (anyccl::cuda::Address, anyccl::cuda::Context, anyccl::cuda::Address,       \
                        anyccl::cuda::Context, std::size_t, anyccl::cuda::Stream))                 \
  X(cuMemsetD8Async, (anyccl::cuda::Address, unsigned char, std::size_t, anyccl::cuda::Stream))    \
  X(cuStreamQuery, (anyccl::cuda::Stream))                                                         \
  X(cuStreamSynchronize, (anyccl::cuda::Stream))                                                   \
  X(cuStreamWaitValue64_v2,                                                                        \
    (anyccl::cuda::Stream, anyccl::cuda::Address, std::uint64_t, unsigned))                        \
  X(cuStreamWriteValue64_v2,                                                                       \
    (anyccl::cuda::Stream, anyccl::cuda::Address, std::uint64_t, unsigned))                        \
  X(cuStreamBeginCapture_v2, (anyccl::cuda::Stream, int))                                          \
  X(cuStreamEndCapture, (anyccl::cuda::Stream, void**))                                            \
  X(cuEventSynchronize, (anyccl::cuda::Event))                                                     \
  X(cuEventElapsedTime_v2, (float*, anyccl::cuda::Event, anyccl::cuda::Event))                     \
  X(cuGetProcAddress_v2, (const char*, void**, int, std::uint64_t, int*))
