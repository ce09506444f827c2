#include "framework/collective/stages.hpp"

namespace anyccl {

void InputStage::plan(ScratchLayout& layout, std::size_t input_bytes) {
  if (is_empty()) return;
  bytes = begins.empty() ? input_bytes : begins.back() * element;
  at = layout.add(bytes);
  if (folds()) room_at = layout.add(folding.room());
}

const std::byte* InputStage::run(const Call& call, const Operator* op, std::byte* scratch,
                                 std::vector<const void*>& addresses) const {
  std::byte* const made = scratch + at;
  const std::size_t count = bytes / element;
  if (folds()) {
    folding.run(made, call.input, count, scratch + room_at, addresses);
  } else if (convert != nullptr) {
    convert(made, call.input, count);
  } else if (begins.empty()) {
    anyccl::multiply(made, call.input, count, element, op->factor(), multiply);
  } else {
    for (std::size_t r = 0; r + 1 < begins.size(); ++r)
      anyccl::multiply(made + begins[r] * element, call.input + call.send_displs[r] * element,
                       call.send_counts[r], element, op->factor(), multiply);
  }
  return made;
}

}  // namespace anyccl
