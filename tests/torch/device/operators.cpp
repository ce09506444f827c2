// Operators of "simulated". What moves or fills memory is queued in the current stream. Everything
// else is computed by the host, on a copy of its input as the stream leaves it, and its result is
// queued: so work that does not come after the stream sees older bytes.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_cpu_dispatch.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/unfold_cpu_dispatch.h>
#include <ATen/ops/view_as_complex_cpu_dispatch.h>
#include <ATen/ops/view_as_real_cpu_dispatch.h>
#include <ATen/ops/view_cpu_dispatch.h>
#include <torch/library.h>

#include "allocator.hpp"
#include "driver.hpp"
#include "runtime.hpp"

namespace anyccl::simulated_device {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> type,
                 std::optional<c10::Layout>, std::optional<c10::Device> device, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_generic(size, &allocator(), kKeys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<c10::ScalarType> type, std::optional<c10::Layout>,
                         std::optional<c10::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_strided_generic(size, stride, &allocator(), kKeys,
                                           c10::dtype_or_default(type));
}

const at::Tensor& resize_tensor(const at::Tensor& self, c10::IntArrayRef size,
                                std::optional<c10::MemoryFormat> format) {
  at::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (format) impl->empty_tensor_restride(*format);
  const auto elements = static_cast<std::size_t>(self.storage_offset() + self.numel());
  if (elements * self.itemsize() > self.storage().nbytes())
    resize(self.storage(), elements * self.itemsize());
  return self;
}

/// A tensor of the host with the bytes that `tensor` spans, of its form.
at::Tensor image_of(const at::Tensor& tensor) {
  std::int64_t elements = tensor.numel() == 0 ? 0 : 1;
  if (elements > 0)
    for (std::int64_t d = 0; d < tensor.dim(); ++d)
      elements += (tensor.size(d) - 1) * tensor.stride(d);
  const at::Tensor bytes = at::empty({elements}, tensor.options().device(at::kCPU));
  download(tensor.device().index(), bytes.data_ptr(), tensor.const_data_ptr(), bytes.nbytes());
  at::Tensor image = bytes.as_strided(tensor.sizes(), tensor.strides());
  if (tensor.is_conj()) image = image.conj();
  if (tensor.is_neg()) image = image._neg_view();
  return image;
}

/// Queues the elements of `from`, which is the host's, into those of `to`, and touches nothing that
/// lies between these.
void write(const at::Tensor& to, at::Tensor from) {
  if (to.numel() == 0) return;
  if (to.is_conj()) from = from.conj();
  if (to.is_neg()) from = from._neg_view();
  const at::Tensor dense = from.expand(to.sizes()).to(to.scalar_type()).contiguous();
  const at::Tensor plain = dense.resolve_conj().resolve_neg();
  const Upload upload(to.device().index(), plain.const_data_ptr(), plain.nbytes());
  auto* const memory = static_cast<std::byte*>(to.mutable_data_ptr());
  if (to.is_contiguous()) return upload.copy(memory, 0, plain.nbytes());
  const std::int64_t rank = to.dim();
  const bool has_rows = to.stride(rank - 1) == 1;
  const std::int64_t row = has_rows ? to.size(rank - 1) : 1;
  const std::size_t row_bytes = static_cast<std::size_t>(row) * to.itemsize();
  for (std::int64_t number = 0; number < to.numel() / row; ++number) {
    std::int64_t rest = number * row, place = 0;
    for (std::int64_t d = rank - 1; d >= 0; rest /= to.size(d--))
      place += rest % to.size(d) * to.stride(d);
    upload.copy(memory + static_cast<std::size_t>(place) * to.itemsize(),
                static_cast<std::size_t>(number) * row_bytes, row_bytes);
  }
}

bool is_moved_at_once(const at::Tensor& from, const at::Tensor& to) {
  return from.device() == to.device() && from.scalar_type() == to.scalar_type() &&
         from.sizes() == to.sizes() && from.is_contiguous() && to.is_contiguous() &&
         from.is_conj() == to.is_conj() && from.is_neg() == to.is_neg();
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (to.is_cpu()) {
    const_cast<at::Tensor&>(to).copy_(image_of(from));
  } else if (from.is_cpu()) {
    write(to, from);
  } else if (is_moved_at_once(from, to)) {
    const c10::DeviceGuard guard(to.device());
    allocator().copy_data(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
  } else {
    write(to, image_of(from));
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) resize_tensor(to, from.sizes(), std::nullopt);
  return copy_from(from, to, false);
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  write(self, at::full({}, value, self.options().device(at::kCPU)));
  return self;
}

at::Tensor& zero(at::Tensor& self) {
  return fill(self, 0);
}

at::Scalar scalar_of(const at::Tensor& self) {
  return image_of(self).item();
}

void record(at::Tensor& self, c10::Stream stream) {
  record_stream(self.storage().data_ptr(), stream);
}

void compute_by_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

using Offset = std::optional<std::int64_t>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("resize_", &resize_tensor);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("fill_.Scalar", &fill);
  m.impl("zero_", &zero);
  m.impl("_local_scalar_dense", &scalar_of);
  m.impl("record_stream", &record);
  // Views need no memory: the CPU's are right.
  m.impl("view",
         [](const at::Tensor& self, c10::IntArrayRef size) { return at::cpu::view(self, size); });
  m.impl("_reshape_alias",
         [](const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
           return at::cpu::_reshape_alias(self, size, stride);
         });
  m.impl("as_strided",
         [](const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, Offset offset) {
           return at::cpu::as_strided(self, size, stride, offset);
         });
  m.impl("unfold", [](const at::Tensor& self, std::int64_t dimension, std::int64_t size,
                      std::int64_t step) { return at::cpu::unfold(self, dimension, size, step); });
  m.impl("view_as_real", [](const at::Tensor& self) { return at::cpu::view_as_real(self); });
  m.impl("view_as_complex", [](const at::Tensor& self) { return at::cpu::view_as_complex(self); });
  m.impl("set_.source_Storage_storage_offset",
         [](at::Tensor& self, at::Storage source, std::int64_t offset, c10::IntArrayRef size,
            c10::IntArrayRef stride) -> at::Tensor& {
           return at::cpu::set_(self, std::move(source), offset, size, stride);
         });
  m.impl("set_.source_Storage", [](at::Tensor& self, at::Storage source) -> at::Tensor& {
    return at::cpu::set_(self, std::move(source));
  });
  m.impl("set_.source_Tensor", [](at::Tensor& self, const at::Tensor& source) -> at::Tensor& {
    return at::cpu::set_(self, source);
  });
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_by_the_host>());
}

}  // namespace
}  // namespace anyccl::simulated_device
