#pragma once
// Calls whose sum or result has another type than their input, and what the definition says of
// them.

#include "../unit/reduce/reference.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {

inline constexpr int kUnset = ANYCCL_CONFIG_UNDEF_INT;

inline Bits converted(DType from, DType to, Bits bits) {
  if (from == to) return bits;
  if (!is_float(from)) return cut(to, whole(from, bits));
  const double x = from == DType::f64 ? std::bit_cast<double>(bits) : value(format_of(from), bits);
  return to == DType::f64 ? encoded(format_of(to), x) : nearest(format_of(to), x);
}

inline Memory converted(DType from, DType to, const Memory& memory) {
  if (from == to) return memory;
  const std::size_t count = memory.size() / bytes_of(from);
  Memory result(count * bytes_of(to));
  for (std::size_t i = 0; i < count; ++i) {
    const Bits bits = converted(from, to, bits_at(memory, bytes_of(from), i));
    std::memcpy(result.data() + i * bytes_of(to), &bits, bytes_of(to));
  }
  return result;
}

/// By the aligned tree, in the type of the sum.
inline Memory definition(const std::vector<Memory>& inputs, DType input, DType sum, DType output,
                         ReduceOp op) {
  std::vector<Memory> wide;
  for (const Memory& one : inputs) wide.push_back(converted(input, sum, one));
  Memory result = reduced(sum, op == ReduceOp::avg ? ReduceOp::sum : op, wide);
  const std::size_t element = bytes_of(sum);
  for (std::size_t i = 0; op == ReduceOp::avg && i < result.size() / element; ++i) {
    const Bits bits =
        divided(sum, bits_at(result, element, i), static_cast<std::uint32_t>(inputs.size()));
    std::memcpy(result.data() + i * element, &bits, element);
  }
  return converted(sum, output, result);
}

/// Of a call. kUnset: as it is.
struct Types {
  DType input;
  int output = kUnset, accumulate = kUnset;

  DType result() const { return type_or(output, input); }
  DType sum() const {
    return type_or(accumulate, bytes_of(result()) > bytes_of(input) ? result() : input);
  }

 private:
  static DType type_or(int type, DType other) {
    return type == kUnset ? other : static_cast<DType>(type);
  }
};

/// A configuration with these types.
inline anycclCollConfig_t configuration(const Types& types) {
  anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
  config.outputType = types.output;
  config.accumulateType = types.accumulate;
  return config;
}

/// By rank 0, where there is a root. `count`: of the result.
inline anycclResult_t run_sum(Communicator& comm, anycclCollective_t kind, DType input,
                              const void* in, void* out, std::size_t count, ReduceOp op,
                              const anycclCollConfig_t& config) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = kind;
  call.sendbuff = in;
  call.recvbuff = out;
  call.count = count;
  call.datatype = static_cast<anycclDataType_t>(input);
  call.op = static_cast<anycclRedOp_t>(op);
  call.config = &config;
  return anycclRun(&call, comm.handle());
}

/// The last error has these words.
inline void expect_said(Communicator& comm, const std::vector<const char*>& words) {
  const std::string said = anycclGetLastError(comm.handle());
  for (const char* word : words)
    EXPECT_NE(said.find(word), std::string::npos) << word << ": " << said;
}

/// Elements [first, first + count).
inline Memory part_of(const Memory& memory, DType type, std::size_t first, std::size_t count) {
  const Memory::value_type* const at = memory.data() + first * bytes_of(type);
  return Memory(at, at + count * bytes_of(type));
}

}  // namespace anyccl::test
