#pragma once
// How a kernel passes small data on to those of the other ranks: each writes its own to lines that
// all of them read. A line has four bytes of data and the number of the exchange, and is written
// at once, as in NCCL's LL protocol: who sees the number has the data. The first line of a rank has
// the digest of its call.

#include "platform/device/cuda/kernels/reduce.hpp"

namespace anyccl::kernels {

ANYCCL_ON_DEVICE inline U64 line_of(U32 number, U32 data) {
  return static_cast<U64>(number) << 32 | data;
}

/// Word `w` of the input, whose address may be odd. Bytes beyond its end are 0.
ANYCCL_ON_DEVICE inline U32 word_of(const ExchangeArgs& args, U32 w) {
  const auto* const bytes = static_cast<const U8*>(args.input);
  U32 word = 0;
  for (U32 i = 0; i < 4; ++i)
    if (4 * w + i < args.bytes) word |= static_cast<U32>(bytes[4 * w + i]) << 8 * i;
  return word;
}

/// Writes the lines of this rank. `Memory` has load() and store() of a line, and is_over().
template <typename Memory>
ANYCCL_ON_DEVICE inline void publish(const ExchangeArgs& args, U32 first, U32 step) {
  U64* const lines = args.lines[args.me];
  for (U32 i = first; i <= args.words; i += step)
    Memory::store(lines + i, line_of(args.number, i == 0 ? args.digest : word_of(args, i - 1)));
}

/// Waits until line `i` of another rank is there. The first one of another call never is. False:
/// the host has ended the wait.
template <typename Memory>
ANYCCL_ON_DEVICE inline bool await(const ExchangeArgs& args, U32 rank, U32 i, U64* line) {
  constexpr U32 kLooks = 64;
  for (U32 looks = 1;; ++looks) {
    *line = Memory::load(args.lines[rank] + i);
    if (i == 0 ? *line == line_of(args.number, args.digest) : *line >> 32 == args.number)
      return true;
    if (looks % kLooks == 0 && Memory::is_over(args.stop)) return false;
  }
}

/// Takes the block of each rank for this one, when all threads have passed publish().
template <typename Memory>
ANYCCL_ON_DEVICE inline void take(const ExchangeArgs& args, U32 first, U32 step) {
  const U32 end = args.offset + args.block, begin = args.offset / 4;
  const U32 lines = 1 + (end + 3) / 4 - begin;  // of each rank, with its first one
  for (U32 i = first; i < args.sources * lines; i += step) {
    const U32 rank = i / lines, word = begin + i % lines - 1;
    const bool has_data = i % lines != 0;
    U64 line = 0;
    if (rank == args.me)
      line = has_data ? word_of(args, word) : 0;
    else if (!await<Memory>(args, rank, has_data ? 1 + word : 0, &line))
      return;
    U8* const to = static_cast<U8*>(args.to) + static_cast<U64>(rank) * args.block;
    for (U32 at = 4 * word; has_data && at < 4 * word + 4; ++at, line >>= 8)
      if (at >= args.offset && at < end) to[at - args.offset] = static_cast<U8>(line);
  }
}

ANYCCL_ON_DEVICE inline const void* source_of(const ExchangeArgs& args, U32 k) {
  return static_cast<const U8*>(args.to) + static_cast<U64>(k) * args.block;
}

}  // namespace anyccl::kernels

// Defines a function that reduces the blocks of an exchange, of one type, by the operator that its
// arguments name.
#define ANYCCL_REDUCE_BLOCKS_CASE(type, Type, op, Operator)                      \
  case anyccl::kernels::Op::op:                                                  \
    anyccl::kernels::reduce<Type, anyccl::kernels::Operator>(args, first, step); \
    break;
#define ANYCCL_REDUCE_BLOCKS(type)                                                             \
  ANYCCL_ON_DEVICE inline void reduce_blocks_##type(const anyccl::kernels::ExchangeArgs& args, \
                                                    anyccl::kernels::U64 first,                \
                                                    anyccl::kernels::U64 step) {               \
    switch (args.op) { ANYCCL_KERNELS_##type(ANYCCL_REDUCE_BLOCKS_CASE) default : break; }     \
  }
