// Devices, contexts and errors.

#include <cstdio>

#include "calls.hpp"
#include "contexts.hpp"
#include "faults.hpp"
#include "settings.hpp"

using namespace anyccl::cuda;
using namespace anyccl::simulated;

namespace {

constexpr int kVersion = 13000;
constexpr int kSameHostPointer =
    91;  // a device knows pinned memory by the address that the host has

struct ErrorName {
  Error error;
  const char* name;
  const char* text;
};
constexpr ErrorName kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kIllegalState, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {kNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorName* find_error(Error error) {
  for (const ErrorName& one : kErrors)
    if (one.error == error) return &one;
  return nullptr;
}

bool is_device(Ordinal device) {
  return device >= 0 && device < settings().devices;
}

}  // namespace

Error cuInit(unsigned flags) {
  ANYCCL_SIMULATED_ENTER(nothing, kNoDevice);
  if (flags != 0) return kInvalidValue;
  if (settings().devices == 0) return kNoDevice;
  initialise();
  return kSuccess;
}

Error cuDriverGetVersion(int* version) {
  ANYCCL_SIMULATED_ENTER(nothing, kUnknown);
  if (version == nullptr) return kInvalidValue;
  *version = kVersion;
  return kSuccess;
}

Error cuGetErrorName(Error error, const char** name) {
  ANYCCL_SIMULATED_ENTER(nothing, kInvalidValue);
  const ErrorName* const found = find_error(error);
  if (name == nullptr) return kInvalidValue;
  *name = found == nullptr ? nullptr : found->name;
  return found == nullptr ? kInvalidValue : kSuccess;
}

Error cuGetErrorString(Error error, const char** text) {
  ANYCCL_SIMULATED_ENTER(nothing, kInvalidValue);
  const ErrorName* const found = find_error(error);
  if (text == nullptr) return kInvalidValue;
  *text = found == nullptr ? nullptr : found->text;
  return found == nullptr ? kInvalidValue : kSuccess;
}

Error cuDeviceGetCount(int* count) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (count == nullptr) return kInvalidValue;
  *count = settings().devices;
  return kSuccess;
}

Error cuDeviceGet(Ordinal* device, int number) {
  ANYCCL_SIMULATED_ENTER(driver, kInvalidDevice);
  if (device == nullptr) return kInvalidValue;
  if (!is_device(number)) return kInvalidDevice;
  *device = number;
  return kSuccess;
}

Error cuDeviceGetName(char* name, int length, Ordinal device) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (name == nullptr || length <= 0) return kInvalidValue;
  if (!is_device(device)) return kInvalidDevice;
  std::snprintf(name, static_cast<std::size_t>(length), "simulated device %d", device);
  return kSuccess;
}

Error cuDeviceGetAttribute(int* value, int attribute, Ordinal device) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (value == nullptr) return kInvalidValue;
  if (!is_device(device)) return kInvalidDevice;
  switch (attribute) {
    case kCopyEngines:
      *value = 2;
      break;
    case kStreamWords:
      *value = settings().memops ? 1 : 0;
      break;
    case kReadOnlyRegister:
      *value = settings().read_only ? 1 : 0;
      break;
    case kUnifiedAddressing:
    case kHostRegister:
    case kSameHostPointer:
      *value = 1;
      break;
    case kComputeMajor:
      *value = 9;
      break;
    case kMultiprocessors:
      *value = 4;
      break;
    case kPciBus:
      *value = device + 1;
      break;
    default:
      *value = 0;
  }
  return kSuccess;
}

Error cuDeviceCanAccessPeer(int* can, Ordinal device, Ordinal peer) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (can == nullptr) return kInvalidValue;
  if (!is_device(device) || !is_device(peer)) return kInvalidDevice;
  *can = settings().p2p && device != peer ? 1 : 0;
  return kSuccess;
}

Error cuDevicePrimaryCtxRetain(Context* context, Ordinal device) {
  ANYCCL_SIMULATED_ENTER(driver, kOutOfMemory);
  if (context == nullptr) return kInvalidValue;
  if (!is_device(device)) return kInvalidDevice;
  *context = retain_context(device);
  return kSuccess;
}

Error cuDevicePrimaryCtxRelease_v2(Ordinal device) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  return is_device(device) ? release_context(device) : kInvalidDevice;
}

Error cuCtxPushCurrent_v2(Context context) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (!is_context(context)) return kInvalidContext;
  context_stack().push_back(context);
  return kSuccess;
}

Error cuCtxPopCurrent_v2(Context* context) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (context_stack().empty()) return kInvalidContext;
  if (context != nullptr) *context = context_stack().back();
  context_stack().pop_back();
  return kSuccess;
}

Error cuCtxSetCurrent(Context context) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (context != nullptr && !is_context(context)) return kInvalidContext;
  if (!context_stack().empty()) context_stack().pop_back();
  if (context != nullptr) context_stack().push_back(context);
  return kSuccess;
}

Error cuCtxGetCurrent(Context* context) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  if (context == nullptr) return kInvalidValue;
  *context = current_context();
  return kSuccess;
}

Error cuCtxGetDevice(Ordinal* device) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  if (device == nullptr) return kInvalidValue;
  *device = current_context()->device;
  return kSuccess;
}

Error cuCtxSynchronize() {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  finish(current_context());
  host_time() += settings().model.sync;
  return is_lost() ? kLaunchFailed : kSuccess;
}
