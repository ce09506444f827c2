#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>

#include "faults.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "streams.hpp"
#include "timing.hpp"
#include "work.hpp"

namespace anyccl::simulated {
namespace {

constexpr unsigned kLooksBeforeSleeping = 20;
constexpr std::chrono::microseconds kBetweenLooks{20};

template <typename Word>
bool is_through(Word now, Word value, unsigned condition) {
  switch (condition) {
    case cuda::kWaitEq:
      return now == value;
    case cuda::kWaitAnd:
      return (now & value) != 0;
    case cuda::kWaitNor:
      return static_cast<Word>(~(now | value)) != 0;
    default:
      return static_cast<std::make_signed_t<Word>>(now - value) >= 0;  // cyclically
  }
}

/// A lost device waits no longer.
template <typename Word>
void watch(const Word* word, Word value, unsigned condition) {
  for (unsigned looks = 0; !is_lost(); ++looks) {
    // Pairs with the release of whoever writes the word: write_word(), or the host.
    if (is_through(__atomic_load_n(word, __ATOMIC_ACQUIRE), value, condition)) return;
    if (looks < kLooksBeforeSleeping)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kBetweenLooks);
  }
}

template <typename Word>
cuda::Error find_word(cuda::Address at, bool writes, Place& place) {
  if (!settings().memops) return cuda::kNotSupported;
  place = find(at, sizeof(Word));
  const bool is_right =
      place.kind != Place::Kind::none && at % sizeof(Word) == 0 && !(writes && place.read_only);
  return is_right ? cuda::kSuccess : cuda::kInvalidValue;
}

}  // namespace

template <typename Word>
cuda::Error wait_for_word(cuda::Stream stream, cuda::Address at, Word value, unsigned flags) {
  Place place;
  if (const cuda::Error error = find_word<Word>(at, false, place); error != cuda::kSuccess)
    return error;
  if (flags > cuda::kWaitNor) return cuda::kInvalidValue;
  return push(stream, [=](double start) {
    watch(reinterpret_cast<const Word*>(place.at), value, flags);
    const double written = stamped(place.word, static_cast<std::uint32_t>(value));
    return std::max(start, written) + settings().model.memop;
  });
}

template <typename Word>
cuda::Error write_word(cuda::Stream stream, cuda::Address at, Word value, unsigned flags) {
  Place place;
  if (const cuda::Error error = find_word<Word>(at, true, place); error != cuda::kSuccess)
    return error;
  if (flags > 1) return cuda::kInvalidValue;
  return push(stream, [=](double start) {
    dither();
    const double end = start + settings().model.memop;
    stamp(place.word, static_cast<std::uint32_t>(value), end);
    // Pairs with the acquire of watch(), or of the host that looks at the word.
    __atomic_store_n(reinterpret_cast<Word*>(place.at), value, __ATOMIC_RELEASE);
    return end;
  });
}

template cuda::Error wait_for_word(cuda::Stream, cuda::Address, std::uint32_t, unsigned);
template cuda::Error wait_for_word(cuda::Stream, cuda::Address, std::uint64_t, unsigned);
template cuda::Error write_word(cuda::Stream, cuda::Address, std::uint32_t, unsigned);
template cuda::Error write_word(cuda::Stream, cuda::Address, std::uint64_t, unsigned);

}  // namespace anyccl::simulated
