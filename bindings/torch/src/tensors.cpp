#include "tensors.hpp"

#include <ATen/MemoryOverlap.h>

#include "devices.hpp"

namespace anyccl::torch {
namespace {

at::Tensor dense_copy(const at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  at::Tensor copy = at::empty(tensor.sizes(), tensor.options().memory_format(std::nullopt));
  copy.copy_(tensor);
  return copy;
}

at::Tensor dense_like(const at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return at::empty(tensor.sizes(), tensor.options().memory_format(std::nullopt));
}

/// Places `memory[i]` of `counts[i]` units relative to the lowest one; false if a distance is not a
/// whole number of units or if two overlap and are written.
bool lay_out(const std::vector<std::byte*>& memory, const std::vector<std::size_t>& counts,
             std::size_t unit, bool written, Memory::Blocks& blocks) {
  std::byte* base = nullptr;
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (counts[i] > 0 && (base == nullptr || memory[i] < base)) base = memory[i];
  blocks.base = base;
  blocks.counts = counts;
  blocks.displs.assign(memory.size(), 0);
  std::vector<std::pair<std::size_t, std::size_t>> extents;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto distance = static_cast<std::size_t>(memory[i] - base);
    if (distance % unit != 0) return false;
    blocks.displs[i] = distance / unit;
    if (written) extents.emplace_back(blocks.displs[i], blocks.displs[i] + counts[i]);
  }
  if (!std::is_sorted(extents.begin(), extents.end())) std::sort(extents.begin(), extents.end());
  for (std::size_t i = 1; i < extents.size(); ++i)
    if (extents[i].first < extents[i - 1].second) return false;
  return true;
}

/// Whether these addresses may be blocks of one buffer: on a device that is one allocation, and a
/// storage lies in one.
bool is_one_memory(at::TensorList tensors, const std::vector<std::byte*>& memory) {
  if (tensors[0].is_cpu()) return true;
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (memory[i] != tensors[i].const_data_ptr() || !tensors[i].is_alias_of(tensors[0]))
      return false;
  return true;
}

/// Returns the number of elements of each tensor, in units of Element.
std::vector<std::size_t> counts_of(at::TensorList tensors) {
  std::vector<std::size_t> counts;
  counts.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors)
    counts.push_back(static_cast<std::size_t>(tensor.numel()) *
                     element_of(tensor.scalar_type()).units);
  return counts;
}

/// One buffer for all `tensors`, and views of it in their shapes.
std::vector<at::Tensor> one_buffer(at::TensorList tensors, Memory::Blocks& blocks) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  std::int64_t total = 0;
  for (const at::Tensor& tensor : tensors) total += tensor.numel();
  const at::Tensor flat = at::empty({total}, tensors[0].options().memory_format(std::nullopt));
  blocks.base = static_cast<std::byte*>(flat.mutable_data_ptr());
  blocks.counts = counts_of(tensors);
  blocks.displs.clear();
  std::vector<at::Tensor> views;
  std::int64_t begin = 0;
  std::size_t displ = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    views.push_back(flat.narrow(0, begin, tensors[i].numel()).view(tensors[i].sizes()));
    begin += tensors[i].numel();
    blocks.displs.push_back(displ);
    displ += blocks.counts[i];
  }
  return views;
}

/// The addresses of a plain tensor; of another one, those of its whole storage.
std::pair<std::uintptr_t, std::uintptr_t> addresses_of(const at::Tensor& tensor) {
  if (is_plain(tensor)) {
    const auto from = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
    return {from, from + tensor.nbytes()};
  }
  const auto from = reinterpret_cast<std::uintptr_t>(tensor.storage().data());
  return {from, from + tensor.storage().nbytes()};
}

/// A tensor of the memory that `tensor` has now, whatever a program sets it to later.
at::Tensor memory_of(const at::Tensor& tensor) {
  return tensor.detach();
}

}  // namespace

Element element_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return {anycclFloat32, 1, 4, true};
    case c10::ScalarType::Double:
      return {anycclFloat64, 1, 8, true};
    case c10::ScalarType::Half:
      return {anycclFloat16, 1, 2, true};
    case c10::ScalarType::BFloat16:
      return {anycclBfloat16, 1, 2, true};
    case c10::ScalarType::Long:
      return {anycclInt64, 1, 8, true};
    case c10::ScalarType::Int:
      return {anycclInt32, 1, 4, true};
    case c10::ScalarType::Short:
      return {anycclInt16, 1, 2, true};
    case c10::ScalarType::Char:
      return {anycclInt8, 1, 1, true};
    case c10::ScalarType::Byte:
      return {anycclUint8, 1, 1, true};
    case c10::ScalarType::UInt16:
      return {anycclUint16, 1, 2, true};
    case c10::ScalarType::UInt32:
      return {anycclUint32, 1, 4, true};
    case c10::ScalarType::UInt64:
      return {anycclUint64, 1, 8, true};
    case c10::ScalarType::Bool:
      return {anycclBool, 1, 1, true};
    case c10::ScalarType::ComplexFloat:
      return {anycclComplexFloat, 1, 8, true};
    case c10::ScalarType::ComplexDouble:
      return {anycclComplexDouble, 1, 16, true};
    case c10::ScalarType::Float8_e4m3fn:
      return {anycclFloat8e4m3, 1, 1, true};
    case c10::ScalarType::Float8_e5m2:
      return {anycclFloat8e5m2, 1, 1, true};
    default:
      return {anycclUint8, c10::elementSize(type), 1, false};
  }
}

void refuse(const char* name, const std::string& text) {
  C10_THROW_ERROR(Error, std::string("anyccl: ") + name + ": " + text);
}

namespace {

/// Whether the storage has what the tensor needs; of one with strides, anything at all.
bool has_memory(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || tensor._is_zerotensor()) return true;
  const std::size_t bytes = tensor.storage().nbytes();
  if (!tensor.is_contiguous()) return bytes > 0;
  const auto end = static_cast<std::size_t>(tensor.storage_offset() + tensor.numel());
  return end * tensor.itemsize() <= bytes;
}

}  // namespace

void check_tensor(const char* name, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(name, "a tensor is undefined");
  if (!tensor.is_cpu() && !may_be_copied(tensor.device().type()))
    refuse(name, "the tensor is on " + tensor.device().str() +
                     "; this backend is for tensors of the CPU and of CUDA devices. With others, "
                     "use for example backend=\"cpu:anyccl,xpu:xccl\"");
  if (tensor.layout() != c10::kStrided)
    refuse(name, "unsupported layout " + c10d::toString(tensor.layout()));
  if (!has_memory(tensor))
    refuse(name, "the tensor has " + std::to_string(tensor.numel()) +
                     " elements and a storage of " + std::to_string(tensor.storage().nbytes()) +
                     " bytes: was its memory freed, as by untyped_storage().resize_()?");
}

void check_tensors(const char* name, at::TensorList tensors, const c10::TensorOptions& like) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_tensor(name, tensors[i]);
    if (tensors[i].dtype() != like.dtype())
      c10d::assertTypeMatch([&](const std::string& text) { refuse(name, text); }, like, tensors, i);
  }
}

const at::Tensor& check_single(const char* name, at::TensorList tensors) {
  if (tensors.empty()) refuse(name, "requires non-empty tensor list");
  if (tensors.size() != 1) refuse(name, "requires a single-element tensor list");
  check_tensor(name, tensors[0]);
  return tensors[0];
}

anycclRedOp_t operator_of(const char* name, const c10d::ReduceOp& op, c10::ScalarType type) {
  const auto text_of_type = [&] { return std::string(c10::toString(type)); };
  if (!element_of(type).reducible)
    refuse(name, "tensors of type " + text_of_type() + " can be sent, but not reduced");
  const auto refuse_operator = [&](const char* text) {
    refuse(name, std::string("ReduceOp.") + text + " is not supported for tensors of type " +
                     text_of_type());
  };
  const bool complex = c10::isComplexType(type), integral = c10::isIntegralType(type, true);
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return anycclSum;
    case c10d::ReduceOp::PRODUCT:
      return anycclProd;
    case c10d::ReduceOp::AVG:
      if (type == c10::ScalarType::Bool) refuse_operator("AVG");
      return anycclAvg;
    case c10d::ReduceOp::MIN:
      if (complex) refuse(name, "all_reduce does not support MIN on complex tensors");
      return anycclMin;
    case c10d::ReduceOp::MAX:
      if (complex) refuse(name, "all_reduce does not support MAX on complex tensors");
      return anycclMax;
    case c10d::ReduceOp::BAND:
      if (!integral) refuse(name, "Cannot use ReduceOp.BAND with non-integral dtype");
      return anycclBand;
    case c10d::ReduceOp::BOR:
      if (!integral) refuse(name, "Cannot use ReduceOp.BOR with non-integral dtype");
      return anycclBor;
    case c10d::ReduceOp::BXOR:
      if (!integral) refuse(name, "Cannot use ReduceOp.BXOR with non-integral dtype");
      return anycclBxor;
    default:
      refuse(name, "Unhandled ReduceOp");
  }
}

at::Tensor factor_of(const char* name, const c10d::ReduceOp& op, c10::ScalarType type) {
  if (!element_of(type).reducible || type == c10::ScalarType::Bool)
    refuse(name, std::string("ReduceOp.PREMUL_SUM is not supported for tensors of type ") +
                     c10::toString(type));
  const auto* const supplement =
      dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  if (supplement == nullptr) refuse(name, "ReduceOp.PREMUL_SUM comes without a factor");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor given = supplement->tensor_factor.defined()
                               ? supplement->tensor_factor.detach().cpu().reshape({1})
                               : at::full({1}, supplement->double_factor, at::kDouble);
  const at::Tensor factor = given.to(type);
  if (c10::isIntegralType(type, false) && !factor.to(at::kDouble).equal(given.to(at::kDouble)))
    refuse(name, std::string("the factor of PREMUL_SUM is not a ") + c10::toString(type));
  return factor;
}

void Memory::next_call() {
  for (auto [from, to] : written_now_) {
    auto at = written_before_.upper_bound(to);  // all that touch it become one with it
    while (at != written_before_.begin()) {
      const auto before = std::prev(at);
      if (before->second < from) break;
      from = std::min(from, before->first);
      to = std::max(to, before->second);
      at = written_before_.erase(before);
    }
    written_before_[from] = to;
  }
  written_now_.clear();
}

bool Memory::is_direct(const at::Tensor& tensor) const {
  if (!is_plain(tensor)) return false;
  if (written_before_.empty()) return true;
  const auto [from, to] = addresses_of(tensor);
  const auto after = written_before_.lower_bound(to);
  return after == written_before_.begin() || std::prev(after)->second <= from;
}

void Memory::note_written(const at::Tensor& tensor) {
  if (tensor.nbytes() > 0) written_now_.push_back(addresses_of(tensor));
}

const void* Memory::input(const at::Tensor& tensor) {
  if (!is_direct(tensor)) return copied_input(tensor);
  come_after(tensor, false);
  return tensor.const_data_ptr();
}

const void* Memory::copied_input(const at::Tensor& tensor) {
  come_after(tensor, true);
  return temporaries_.emplace_back(dense_copy(tensor)).const_data_ptr();
}

void* Memory::output(const at::Tensor& tensor) {
  note_written(tensor);
  come_after(tensor, false);
  return is_direct(tensor) ? tensor.mutable_data_ptr() : copied_output(tensor);
}

void* Memory::copied_output(const at::Tensor& tensor) {
  at::assert_no_internal_overlap(tensor);
  const at::Tensor dense = dense_like(tensor);
  copies_.push_back({memory_of(tensor), dense});
  return dense.mutable_data_ptr();
}

void* Memory::input_and_output(const at::Tensor& tensor) {
  note_written(tensor);
  const bool direct = is_direct(tensor);
  come_after(tensor, !direct);
  if (direct) return tensor.mutable_data_ptr();
  at::assert_no_internal_overlap(tensor);
  const at::Tensor dense = dense_copy(tensor);
  copies_.push_back({memory_of(tensor), dense});
  return dense.mutable_data_ptr();
}

Memory::Blocks Memory::inputs(at::TensorList tensors) {
  Blocks blocks;
  std::vector<std::byte*> memory;
  memory.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors)
    memory.push_back(static_cast<std::byte*>(const_cast<void*>(input(tensor))));
  const std::size_t unit = element_of(tensors[0].scalar_type()).bytes;
  if (is_one_memory(tensors, memory) && lay_out(memory, counts_of(tensors), unit, false, blocks))
    return blocks;
  const std::vector<at::Tensor> views = one_buffer(tensors, blocks);
  for (const at::Tensor& tensor : tensors) come_after(tensor, true);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (std::size_t i = 0; i < tensors.size(); ++i)  // in the current stream, as the call is
    temporaries_.push_back(views[i].copy_(tensors[i]));
  return blocks;
}

Memory::Blocks Memory::outputs(at::TensorList tensors) {
  Blocks blocks;
  std::vector<std::byte*> memory;
  memory.reserve(tensors.size());
  const std::size_t copies_before = copies_.size();
  for (const at::Tensor& tensor : tensors)
    memory.push_back(static_cast<std::byte*>(output(tensor)));
  const std::size_t unit = element_of(tensors[0].scalar_type()).bytes;
  if (is_one_memory(tensors, memory) && lay_out(memory, counts_of(tensors), unit, true, blocks))
    return blocks;
  copies_.resize(copies_before);
  const std::vector<at::Tensor> views = one_buffer(tensors, blocks);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    copies_.push_back({memory_of(tensors[i]), views[i]});
  return blocks;
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a);
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && begin_a < begin_b + b_bytes && begin_b < begin_a + a_bytes;
}

}  // namespace anyccl::torch
