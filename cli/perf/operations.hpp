#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "anyccl/anyccl.h"
#include "perf/types.hpp"

namespace anyccl::cli {

/// The call of one measurement.
struct Case {
  TypeName type;
  anycclRedOp_t redop = anycclSum;
  int root = 0;
  std::size_t count = 0;  ///< The call's argument.
  bool in_place = false;
  int rank = 0, ranks = 1;
};

/// The memory that a call reads and writes; in place they overlap.
struct Extents {
  std::span<std::byte> input;
  std::span<const std::byte> output;
};

/// A case with its buffers: the call sends `input` and writes its result to `output`.
class Exercise {
 public:
  virtual ~Exercise() = default;
  virtual Extents extents() const = 0;
  /// Writes this turn's input.
  virtual void prepare(std::uint32_t turn) = 0;
  /// The measured call.
  virtual anycclResult_t call() = 0;
  /// The number of elements of the output that do not follow from this turn's inputs.
  virtual std::size_t count_wrong(std::uint32_t turn) const = 0;
};

/// One operation that can be measured, as nccl-tests counts it.
struct Operation {
  std::string_view name;
  const char* call;  ///< The measured function, for messages.
  bool has_data, has_redop, has_root, in_place;
  bool is_collective;  ///< Otherwise no algorithm is chosen.
  /// Bytes that cross the bus per byte of the size column, over the slowest link.
  double (*bus_factor)(int ranks);
  /// The number of elements in each of `ranks` blocks, for about `elements` in the buffer.
  std::size_t (*count)(std::size_t elements, int ranks);
  /// Blocks of `count` elements in each buffer.
  int (*blocks)(int ranks);
  std::unique_ptr<Exercise> (*make)(const Case& c, void* input, void* output, anycclComm_t comm);
};

std::span<const Operation> operations();
/// Null if no operation has that name.
const Operation* find_operation(std::string_view name);

}  // namespace anyccl::cli
