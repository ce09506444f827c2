#include "framework/waiting/wait_policy.hpp"

#include <algorithm>
#include <cstdlib>

namespace anyccl {
namespace {

using namespace std::chrono_literals;
using Duration = Cadence::Duration;
using How = WaitStep::How;
constexpr Duration kSpin = 200us;  // then others may have the core
constexpr Duration kAwake = 2ms;   // then sleep: a wake-up costs tens of microseconds
constexpr Duration kThriftSpin = 20us;
constexpr std::uint32_t kFewest = 4;  // waits that tell when the next one ends
constexpr Duration kShortest = 1ms;   // of a wait that is worth a timed sleep
constexpr Duration kMargin = 10us;    // of what is expected, on both sides
constexpr int kWindowPart = 12;       // of a wait that may be spun away around its expected end

std::atomic<Duration::rep> oversleep{Duration(50us).count()};

}  // namespace

void Cadence::restart(std::uint32_t kind) {
  kind_.store(kind, std::memory_order_relaxed);
  waits_.store(0, std::memory_order_relaxed);
  different_.store(false, std::memory_order_relaxed);
}

/// A wait that is quite different, such as that for a checkpoint, is not taken for a change of
/// pace; two in a row are.
void Cadence::learn(Duration wait) {
  std::uint32_t waits = waits_.load(std::memory_order_relaxed);
  Duration::rep mean = mean_.load(std::memory_order_relaxed);
  Duration::rep deviation = deviation_.load(std::memory_order_relaxed);
  const bool different = waits == kFewest && (wait.count() > 2 * mean || wait.count() < mean / 2);
  if (different && !different_.exchange(true, std::memory_order_relaxed)) return;
  different_.store(false, std::memory_order_relaxed);
  if (different) waits = 0;
  const Duration::rep error = wait.count() - mean;
  mean = waits == 0 ? wait.count() : mean + error / 8;
  deviation = waits == 0 ? 0 : deviation + (std::abs(error) - deviation) / 4;
  mean_.store(mean, std::memory_order_relaxed);
  deviation_.store(deviation, std::memory_order_relaxed);
  waits_.store(std::min(waits + 1, kFewest), std::memory_order_relaxed);
}

WaitStep Cadence::step(Duration waited, Duration late) const {
  const Duration mean(mean_.load(std::memory_order_relaxed));
  const Duration deviation(deviation_.load(std::memory_order_relaxed));
  const Duration window = 2 * kMargin + 6 * deviation + late / 2;
  const bool regular =
      waits_.load(std::memory_order_relaxed) == kFewest && window <= mean / kWindowPart;
  if (regular && mean > kShortest) {
    const Duration from = mean - kMargin - 3 * deviation - late;
    if (waited < from) return {How::sleep, from - waited};
    if (waited < mean + kMargin + 3 * deviation) return {How::spin};
    return {How::sleep};
  }
  return {mean > kAwake || waited > kAwake ? How::sleep : How::yield};
}

WaitStep WaitPolicy::step(std::uint32_t kind, Duration waited) const {
  if (mode_ == WaitMode::thrift) return {waited > kThriftSpin ? How::sleep : How::spin};
  if (waited <= kSpin) return {How::spin};
  if (mode_ == WaitMode::latency) return {How::yield};
  const Cadence& cadence = cadences_[place_of(kind)];
  if (kind == 0 || cadence.kind_.load(std::memory_order_relaxed) != kind)
    return {waited > kAwake ? How::sleep : How::yield};
  return cadence.step(waited, Duration(oversleep.load(std::memory_order_relaxed)));
}

void WaitPolicy::learn(std::uint32_t kind, Duration wait, bool slept) {
  if (slept) wait -= Duration(oversleep.load(std::memory_order_relaxed));
  if (kind == 0 || wait <= kSpin) return;
  Cadence& cadence = cadences_[place_of(kind)];
  if (cadence.kind_.load(std::memory_order_relaxed) != kind) cadence.restart(kind);
  cadence.learn(wait);
}

void WaitPolicy::note_oversleep(Duration late) {
  const Duration::rep known = oversleep.load(std::memory_order_relaxed);
  const Duration::rep error = late.count() - known;
  oversleep.store(known + error / (error > 0 ? 4 : 16), std::memory_order_relaxed);
}

}  // namespace anyccl
