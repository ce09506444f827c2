#pragma once
// The binary interface of DLPack 1.x, as https://dmlc.github.io/dlpack/latest/c_api.html gives it.

#include <cstdint>

namespace anyccl::python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCudaHost = 3, kRocmHost = 11 };
enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E5M2 = 12,
};
constexpr std::uint64_t kReadOnly = 1;

struct Device {
  std::int32_t type, id;
};
struct Type {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  Type dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: C order
  std::uint64_t byte_offset;
};
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace anyccl::python::dlpack
