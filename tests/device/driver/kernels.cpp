#include "kernels.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "contexts.hpp"
#include "control.hpp"
#include "faults.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "streams.hpp"
#include "timing.hpp"

struct anyccl::cuda::FunctionTag {
  std::string name;
  std::size_t bytes = 0;
  void (*run)(const void*, unsigned, unsigned) = nullptr;
};

namespace anyccl::simulated {
namespace {

constexpr unsigned kMostBlocks = 4;                   // more make no other order
constexpr double kLastRead = 1200, kLastWrite = 600;  // over the link, until it has arrived
constexpr double kPostedWrite = 700, kRoundTrip = 1300;

/// The kernel of this thread has used so many bytes so far.
struct Used {
  std::size_t device = 0, in = 0, out = 0;
  bool is_illegal = false;
  double now = 0;
};
thread_local Used used;

void* open_library() {
  const std::string& path = settings().kernels;
  if (path.empty()) return RTLD_DEFAULT;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse("SIMULATED_CUDA_KERNELS=" + path + ": " + dlerror());
  return library;
}

/// The driver itself, which has the kernels of anyccl.
void* open_this_library() {
  Dl_info here;
  dladdr(reinterpret_cast<const void*>(&open_library), &here);
  return dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

/// The time when all that the kernel has used has passed its engine. Each block says what all of
/// them use together.
double end_of(int device, double begin, unsigned blocks) {
  const Model& model = settings().model;
  const auto takes = [&](std::size_t bytes, double rate) {
    return static_cast<double>(bytes) / blocks / rate;
  };
  double end =
      reserve(device, Engine::compute, std::max(begin, used.now), takes(used.device, model.device));
  if (used.in > 0)
    end = std::max(end, reserve(device, Engine::in, begin, takes(used.in, model.link)) + kLastRead);
  if (used.out > 0)
    end = std::max(end,
                   reserve(device, Engine::out, begin, takes(used.out, model.link)) + kLastWrite);
  return end;
}

std::uint64_t name_of(const void* word) {
  return find(reinterpret_cast<std::uintptr_t>(word), sizeof(std::uint32_t)).word;
}

}  // namespace

cuda::Function find_kernel(const std::string& name) {
  static void *const library = open_library(), *const own = open_this_library();
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::string, std::unique_ptr<cuda::FunctionTag>>;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return found->second.get();
  void* const from = dlsym(library, ("sim_run_" + name).c_str()) != nullptr ? library : own;
  auto* const run = reinterpret_cast<void (*)(const void*, unsigned, unsigned)>(
      dlsym(from, ("sim_run_" + name).c_str()));
  const auto* const bytes =
      static_cast<const std::size_t*>(dlsym(from, ("sim_bytes_" + name).c_str()));
  if (run == nullptr || bytes == nullptr) return nullptr;
  auto made = std::make_unique<cuda::FunctionTag>(cuda::FunctionTag{name, *bytes, run});
  return (known[name] = std::move(made)).get();
}

cuda::Error launch(cuda::Function kernel, unsigned blocks, cuda::Stream handle, const void* args) {
  cuda::Stream stream = nullptr;
  if (const cuda::Error error = resolve(handle, stream); error != cuda::kSuccess) return error;
  const auto* const bytes = static_cast<const std::byte*>(args);
  const auto copied = std::make_shared<std::vector<std::byte>>(bytes, bytes + kernel->bytes);
  const unsigned run_blocks = std::min(blocks, kMostBlocks);
  return push(stream, [=, device = stream->context->device](double start) {
    const double begin = start + settings().model.launch;
    used = {};
    used.now = begin;
    dither();
    const auto order = is_chaotic() ? static_cast<unsigned>(random_bits() % kMostBlocks) : 0;
    kernel->run(copied->data(), run_blocks, order);
    if (!used.is_illegal) return end_of(device, begin, run_blocks);
    std::fprintf(stderr, "simulated driver: device %d is lost: illegal address in %s\n", device,
                 kernel->name.c_str());
    lose_device();
    return start;
  });
}

}  // namespace anyccl::simulated

namespace simulated = anyccl::simulated;

void* anyccl_sim_place(const void* address, std::size_t bytes, int writes) {
  simulated::Used& used = simulated::used;
  const simulated::Place place = simulated::find(reinterpret_cast<std::uintptr_t>(address), bytes);
  if (place.kind == simulated::Place::Kind::none || (writes != 0 && place.read_only)) {
    used.is_illegal = true;
    return nullptr;
  }
  const bool is_device = place.kind == simulated::Place::Kind::device;
  (is_device ? used.device : writes != 0 ? used.out : used.in) += bytes;
  return place.at;
}

void anyccl_sim_kernel_wrote(const void* word, std::uint32_t value) {
  const simulated::Used& used = simulated::used;
  const double moving = static_cast<double>(used.out) / simulated::settings().model.link;
  simulated::stamp(simulated::name_of(word), value, used.now + simulated::kPostedWrite + moving);
}

void anyccl_sim_kernel_saw(const void* word, std::uint32_t value) {
  // A look takes a round trip, and comes half of one too late on average.
  double& now = simulated::used.now;
  const double written = simulated::stamped(simulated::name_of(word), value);
  now = std::max(now, written + simulated::kRoundTrip / 2) + simulated::kRoundTrip;
}
