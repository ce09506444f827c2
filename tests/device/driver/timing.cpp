// Compiled without sanitizers: see machine.cpp.

#include "timing.hpp"

#include "shared_state.hpp"

namespace anyccl::simulated {
namespace {

double later(double a, double b) {
  return a < b ? b : a;
}

/// Words lie in a table with open addressing; null if there is no room near its place.
WordTimes* find_word(std::uint64_t word, bool make) {
  SharedState& state = shared_state();
  std::size_t place = (word * 0x9e3779b97f4a7c15U) >> 50;
  for (int looks = 0; looks < 64; ++looks, ++place) {
    WordTimes& one = state.words[place % kWords];
    if (one.word == 0 && make) one.word = word;
    if (one.word == word) return &one;
    if (one.word == 0) return nullptr;
  }
  return nullptr;
}

/// The earliest gap is lost. Loops, as memmove() would be seen by a sanitizer.
void forget_first(EngineTimes& engine) {
  engine.floor = engine.busy[0].end;
  --engine.count;
  for (std::uint32_t i = 0; i < engine.count; ++i) engine.busy[i] = engine.busy[i + 1];
}

}  // namespace

double reserve(int device, Engine which, double ready, double duration) {
  const SharedLock lock;
  EngineTimes& engine = shared_state().engines[device][static_cast<int>(which)];
  double begin = later(ready, engine.floor);
  std::uint32_t at = 0;
  for (; at < engine.count && engine.busy[at].begin < begin + duration; ++at)
    begin = later(begin, engine.busy[at].end);
  const double end = begin + duration;
  if (at > 0 && engine.busy[at - 1].end >= begin) {  // an interval grows
    engine.busy[at - 1].end = end;
    return end;
  }
  if (engine.count == kIntervals) {
    forget_first(engine);
    if (at > 0) --at;
  }
  for (std::uint32_t i = engine.count; i > at; --i) engine.busy[i] = engine.busy[i - 1];
  engine.busy[at] = {begin, end};
  ++engine.count;
  return end;
}

void stamp(std::uint64_t word, std::uint32_t value, double time) {
  if (word == 0) return;  // it is none that the driver knows
  const SharedLock lock;
  WordTimes* const one = find_word(word, true);
  if (one == nullptr) return;
  one->value[one->next % kWrites] = value;
  one->time[one->next % kWrites] = time;
  ++one->next;
}

double stamped(std::uint64_t word, std::uint32_t value) {
  if (word == 0) return 0;
  const SharedLock lock;
  const WordTimes* const one = find_word(word, false);
  double first = 0;
  for (std::uint32_t back = 1; one != nullptr && back <= kWrites && back <= one->next; ++back) {
    const std::uint32_t i = (one->next - back) % kWrites;
    if (static_cast<std::int32_t>(one->value[i] - value) < 0) break;
    first = one->time[i];
  }
  return first;
}

void forget_times() {
  const SharedLock lock;
  SharedState& state = shared_state();
  for (auto& device : state.engines)
    for (EngineTimes& engine : device) engine.count = 0, engine.floor = 0;
  for (WordTimes& one : state.words) one.word = 0, one.next = 0;
}

}  // namespace anyccl::simulated
