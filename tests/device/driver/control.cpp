#include "control.hpp"

#include <algorithm>

#include "faults.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "streams.hpp"
#include "timing.hpp"

namespace simulated = anyccl::simulated;

namespace {

simulated::Place find_word(const void* word) {
  return simulated::find(reinterpret_cast<std::uintptr_t>(word), sizeof(std::uint32_t));
}

}  // namespace

int anyccl_sim_is_lost() {
  return simulated::is_lost() ? 1 : 0;
}
double anyccl_sim_time() {
  return simulated::host_time();
}

void anyccl_sim_reset() {
  simulated::forget_times();
  simulated::forget_stream_times();
  simulated::host_time() = 0;
}

void anyccl_sim_catch_up(double time) {
  simulated::host_time() = time < 0 ? 0 : std::max(simulated::host_time(), time);
}

void anyccl_sim_saw(const void* word, std::uint32_t value) {
  const simulated::Place place = find_word(word);
  if (place.kind != simulated::Place::Kind::host) return;
  double& now = simulated::host_time();
  now = std::max(now, simulated::stamped(place.word, value)) + simulated::settings().model.poll;
}

void anyccl_sim_wrote(const void* word, std::uint32_t value) {
  const simulated::Place place = find_word(word);
  if (place.kind == simulated::Place::Kind::host)
    simulated::stamp(place.word, value, simulated::host_time());
}
