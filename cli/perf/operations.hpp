#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "anyccl/anyccl.h"
#include "perf/types.hpp"

namespace anyccl::cli {

/// What one measurement calls.
struct Case {
  TypeName type;
  anycclRedOp_t redop = anycclSum;
  int root = 0;
  std::size_t count = 0;  ///< What the call gets as its count.
  bool in_place = false;
  int rank = 0, ranks = 1;
};

/// What a call reads and writes; in place they overlap.
struct Extents {
  std::span<std::byte> input;
  std::span<const std::byte> output;
};

/// A case with its buffers: `input` is what the call sends, `output` where its result comes.
class Exercise {
 public:
  virtual ~Exercise() = default;
  virtual Extents extents() const = 0;
  /// Writes this turn's input.
  virtual void prepare(std::uint32_t turn) = 0;
  /// The measured call.
  virtual anycclResult_t call() = 0;
  /// How many elements of the output are not what this turn's inputs must give.
  virtual std::size_t wrong(std::uint32_t turn) const = 0;
};

/// One operation that can be measured, as nccl-tests counts it.
struct Operation {
  std::string_view name;
  const char* call;  ///< The measured function, for messages.
  bool has_data, has_redop, has_root, in_place;
  bool is_collective;  ///< Otherwise no algorithm is chosen.
  /// Bytes that cross the bus per byte of the size column, over the slowest link.
  double (*bus_factor)(int ranks);
  /// How many elements each of `ranks` blocks has, for about `elements` in the buffer.
  std::size_t (*count)(std::size_t elements, int ranks);
  /// Blocks of `count` elements in each buffer.
  int (*blocks)(int ranks);
  std::unique_ptr<Exercise> (*make)(const Case& c, void* input, void* output, anycclComm_t comm);
};

std::span<const Operation> operations();
/// Null if there is none of that name.
const Operation* find_operation(std::string_view name);

}  // namespace anyccl::cli
