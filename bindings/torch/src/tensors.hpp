#pragma once
// Tensors as the library sees them: memory, a count and an element type.

#include <c10/util/SmallVector.h>

#include <map>

#include "anyccl/anyccl.h"
#include "operation.hpp"
#include "torch.hpp"

namespace anyccl::torch {

/// The form in which elements are sent. Types that the library does not have go as bytes.
struct Element {
  anycclDataType_t type;
  std::size_t units;  // of `type` in one element of torch
  std::size_t bytes;  // of one unit
  bool reducible;
};
/// A type that the library does not have goes as bytes, and cannot be reduced.
Element element_of(c10::ScalarType type);

/// Throws RuntimeError with "anyccl: NAME: TEXT".
[[noreturn]] void refuse(const char* name, const std::string& text);
/// A dense tensor, on the CPU or on a device whose memory the library may copy.
void check_tensor(const char* name, const at::Tensor& tensor);
/// All are such tensors, and of the type of `like`.
void check_tensors(const char* name, at::TensorList tensors, const c10::TensorOptions& like);
/// Returns the only tensor, after check_tensor(); refuses any other number of them.
const at::Tensor& check_single(const char* name, at::TensorList tensors);
/// Fails for an invalid operator, in the words of torch where it has some. Not for PREMUL_SUM.
anycclRedOp_t operator_of(const char* name, const c10d::ReduceOp& op, c10::ScalarType type);
/// The factor of a PREMUL_SUM, as one element of `type`.
at::Tensor factor_of(const char* name, const c10d::ReduceOp& op, c10::ScalarType type);

inline bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg() &&
         !tensor._is_zerotensor();
}

/// Memory of tensors for the calls of one job. Tensors that are not laid out as the library wants
/// are copied: before the calls (inputs), and after them (outputs, by copies()). So are tensors
/// that overlap what an earlier call of the job writes: every call reads the tensors as they were
/// before the job, and of two outputs that overlap, the later one wins.
class Memory {
 public:
  /// `earlier`: operations of the group; null where no order is promised.
  explicit Memory(OpenOperations* earlier) : earlier_(earlier) {}

  /// The tensors that come now are those of another call.
  void next_call();

  // Each waits first until no earlier operation of the group writes there. A tensor that is written
  // is noted for later calls of the job, and may not overlap itself.
  const void* input(const at::Tensor& tensor);
  void* output(const at::Tensor& tensor);
  void* input_and_output(const at::Tensor& tensor);  // read, and then written
  /// These go by way of a copy, also where none is needed.
  const void* copied_input(const at::Tensor& tensor);
  void* copied_output(const at::Tensor& tensor);

  /// Tensors as blocks of one buffer, wherever they are.
  struct Blocks {
    std::byte* base = nullptr;
    std::vector<std::size_t> counts, displs;  // in units
  };
  Blocks inputs(at::TensorList tensors);
  Blocks outputs(at::TensorList tensors);

  std::vector<at::Tensor>& temporaries() { return temporaries_; }
  std::vector<CopyBack>& copies() { return copies_; }

 private:
  /// Whether it can be used where it is: it is plain, and no earlier call of the job writes there.
  bool is_direct(const at::Tensor& tensor) const;
  void note_written(const at::Tensor& tensor);
  /// Waits for what earlier operations of the group still write there, see finish_before().
  void come_after(const at::Tensor& tensor, bool is_copied) const {
    if (earlier_ != nullptr) earlier_->finish_before(tensor, is_copied);
  }

  OpenOperations* const earlier_;
  std::vector<at::Tensor> temporaries_;
  std::vector<CopyBack> copies_;
  // Addresses that are written, from and to: by this call, and by earlier calls without overlaps.
  c10::SmallVector<std::pair<std::uintptr_t, std::uintptr_t>, 1> written_now_;
  std::map<std::uintptr_t, std::uintptr_t> written_before_;
};

/// Whether plain tensors' memory has bytes in common; false if one is empty.
bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes);

}  // namespace anyccl::torch
