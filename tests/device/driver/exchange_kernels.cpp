// The kernels of the library that exchange small data, compiled for this driver.

#include <chrono>
#include <thread>

#include "kernel.hpp"
#include "platform/device/cuda/kernels/exchange.hpp"

namespace anyccl::kernels {
namespace {

/// Lines as a device has them: nothing else is ordered by what they say.
struct HostMemory {
  static U64 load(const U64* line) {
    thread_local const U64* last = nullptr;
    thread_local unsigned looks = 0;  // at the same line
    looks = line == last ? looks + 1 : 0;
    last = line;
    if (looks > kLooksBeforeSleeping) std::this_thread::sleep_for(std::chrono::microseconds(20));
    return __atomic_load_n(line, __ATOMIC_RELAXED);
  }
  static constexpr unsigned kLooksBeforeSleeping =
      20;  // as waits for words do, so that other ranks get the core
  static void store(U64* line, U64 value) { __atomic_store_n(line, value, __ATOMIC_RELAXED); }
  static bool is_over(const U32* stop) {
    return __atomic_load_n(stop, __ATOMIC_RELAXED) != 0 || anyccl_sim_is_lost() != 0;
  }
};

/// The number of the exchange in the first line of a rank.
const U32* number_in(const U64* line) {
  return reinterpret_cast<const U32*>(line) + 1;
}

/// Puts the addresses as the driver has them into the arguments. False: one is none of a device's.
bool place(ExchangeArgs& args) {
  const unsigned long long lines = args.words + 1, taken = 3 + args.block / 4;
  for (U32 rank = 0; rank < args.sources; ++rank) {
    const bool is_mine = rank == args.me;
    const U32 begin = is_mine ? 0 : args.offset / 4;
    U64* const first = ANYCCL_PLACE(U64, args.lines[rank], sizeof(U64), is_mine ? 1 : 0);
    if (first == nullptr ||
        ANYCCL_PLACE(U64, args.lines[rank] + begin, (is_mine ? lines : taken) * sizeof(U64),
                     is_mine ? 1 : 0) == nullptr)
      return false;
    args.lines[rank] = first;
  }
  args.stop = ANYCCL_PLACE(const U32, args.stop, sizeof(U32), 0);
  args.input = ANYCCL_PLACE(const void, args.input, args.bytes, 0);
  args.to = ANYCCL_PLACE(void, args.to, args.sources* args.block, 1);
  if (args.count > 0) args.dst = ANYCCL_PLACE(void, args.dst, args.block, 1);
  return args.stop != nullptr && args.input != nullptr && args.to != nullptr &&
         (args.count == 0 || args.dst != nullptr);
}

using ReduceBlocks = void (*)(const ExchangeArgs&, U64, U64);

template <ReduceBlocks kReduceBlocks>
void exchange(ExchangeArgs args) {
  ExchangeArgs given = args;
  if (!place(args)) return;
  anyccl_sim_kernel_wrote(number_in(given.lines[given.me]), args.number);
  publish<HostMemory>(args, 0, 1);
  take<HostMemory>(args, 0, 1);
  for (U32 rank = 0; rank < args.sources; ++rank)
    if (rank != args.me) anyccl_sim_kernel_saw(number_in(given.lines[rank]), args.number);
  kReduceBlocks(args, 0, 1);
}

}  // namespace
}  // namespace anyccl::kernels

#define ANYCCL_EXCHANGE(type)                                          \
  ANYCCL_REDUCE_BLOCKS(type)                                           \
  ANYCCL_KERNEL(anyccl_exchange_##type, anyccl::kernels::ExchangeArgs, \
                anyccl::kernels::exchange<reduce_blocks_##type>)

ANYCCL_EXCHANGE(i8)
ANYCCL_EXCHANGE(u8)
ANYCCL_EXCHANGE(i32)
ANYCCL_EXCHANGE(u32)
ANYCCL_EXCHANGE(i64)
ANYCCL_EXCHANGE(u64)
ANYCCL_EXCHANGE(f16)
ANYCCL_EXCHANGE(f32)
ANYCCL_EXCHANGE(f64)
ANYCCL_EXCHANGE(bf16)
ANYCCL_EXCHANGE(f8e4m3)
ANYCCL_EXCHANGE(f8e5m2)
ANYCCL_EXCHANGE(i16)
ANYCCL_EXCHANGE(u16)
ANYCCL_EXCHANGE(bool)
ANYCCL_EXCHANGE(complex64)
ANYCCL_EXCHANGE(complex128)
