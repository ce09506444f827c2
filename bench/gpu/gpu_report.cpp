// Prints what a GPU and its driver can do and what they take, as far as calls on memory of devices
// need it: which memory can be pinned, how fast copies are, what calls of the driver cost, and what
// kernels and an AllReduce of two ranks take.
//   gpu_report [DEVICE]      default: device 0

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "anyccl/anyccl.hpp"
#include "base/deadline.hpp"
#include "base/types.hpp"
#include "micro/must.hpp"
#include "platform/device/devices.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

double microseconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// The median of so many times, after one that does not count.
double median_us(int times, const std::function<void()>& work) {
  work();
  std::vector<double> all;
  for (int i = 0; i < times; ++i) all.push_back(microseconds_of(work));
  std::nth_element(all.begin(), all.begin() + times / 2, all.end());
  return all[static_cast<std::size_t>(times / 2)];
}

/// Pages of a memfd, writable or not.
void* map_pages(std::size_t bytes, int rights) {
  const int fd = memfd_create("gpu_report", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) std::abort();
  void* const at = mmap(nullptr, bytes, rights, MAP_SHARED | MAP_POPULATE, fd, 0);
  close(fd);
  if (at == MAP_FAILED) std::abort();
  return at;
}

/// A device with a queue, a moment, and memory on both sides.
class Bench {
 public:
  static constexpr std::size_t kBytes = 32 * kMiB;

  explicit Bench(Device& device)
      : device_(device),
        in_(must(device.make_queue(true))),
        out_(must(device.make_queue(true))),
        moment_(must(device.make_moment())),
        on_device_(must(device.allocate(2 * kBytes))),
        host_(map_pages(2 * kBytes, PROT_READ | PROT_WRITE)) {
    must(device.pin(host_, 2 * kBytes, false));
  }

  void print_pinning() const {
    fmt::print("\npinning 32 MiB of a memfd\n");
    void* const pages = map_pages(kBytes, PROT_READ | PROT_WRITE);
    const double us = microseconds_of([&] { must(device_.pin(pages, kBytes, false)); });
    fmt::print("  writable                          {:.0f} us for each MiB\n", us / 32);
    must(device_.unpin(pages));
    void* const read_only = map_pages(kBytes, PROT_READ);
    for (const bool flag : {true, false}) {
      const Status pinned = device_.pin(read_only, kBytes, flag);
      fmt::print("  read-only, {} the flag for it   {}\n", flag ? "with   " : "without",
                 pinned.ok() ? "works" : pinned.message());
      if (pinned.ok()) must(device_.unpin(read_only));
    }
  }

  void print_copies() {
    const auto rate = [](double us) { return static_cast<double>(kBytes) / us / 1e3; };
    fmt::print("\ncopies of 32 MiB, GB/s\n");
    fmt::print("  to the device        {:8.2f}\n", rate(median_us(10, [&] { copy_in(); })));
    fmt::print("  from the device      {:8.2f}\n", rate(median_us(10, [&] { copy_out(); })));
    link_ = rate(median_us(10, [&] {
      must(device_.copy(in_, on_device_, host_, kBytes));
      copy_out();
      await(in_);
    }));
    fmt::print("  both, each way       {:8.2f}\n", link_);
  }

  void print_calls() {
    auto* const word = static_cast<std::uint32_t*>(host_);
    fmt::print("\ncalls of the driver, ns in the calling thread\n");
    const auto line = [&](const char* name, const std::function<void()>& call) {
      constexpr int kCalls = 500;
      const double us = median_us(5, [&] {
        for (int i = 0; i < kCalls; ++i) call();
      });
      await(in_);
      fmt::print("  {:<22}{:8.0f}\n", name, us * 1000 / kCalls);
      return us / kCalls;
    };
    const double facts =
        line("facts of an address", [&] { static_cast<void>(device_.facts(on_device_)); });
    const double copy =
        line("copy of 8 bytes", [&] { must(device_.copy(in_, on_device_, host_, 8)); });
    line("record a moment", [&] { must(device_.record(in_, moment_)); });
    line("wait for a moment", [&] { must(device_.wait(in_, moment_)); });
    if (device_.abilities().writes_words)
      line("write a word", [&] { must(device_.write_word(in_, word, 1)); });
    if (device_.abilities().waits_for_words)
      line("wait for a word", [&] { must(device_.wait_word(in_, word, 1)); });
    fmt::print("\nfor a file of anyccl simulate --devices, which has its own for the rest:\n");
    fmt::print(
        R"(  {{"format": "anyccl.devices/1", "link_GBps": {:.2f}, "call_us": {:.2f}, "small_call_us": {:.2f}}})"
        "\n",
        link_, copy, facts);
  }

  /// Kernels in two queues of this device, each of which waits for what the other one writes.
  void print_exchanges() {
    fmt::print("\nkernels of two queues that exchange data, us\n");
    if (!device_.abilities().reduces) return fmt::print("  this library was built without them\n");
    for (const std::size_t bytes : {std::size_t{8}, DeviceExchange::kMostBytes}) {
      const double us = median_us(100, [&] { exchange(bytes); });
      if (*stop() != 0) return fmt::print("  they do not run at once\n");
      fmt::print("  {:>4} bytes            {:8.1f}\n", bytes, us);
    }
  }

  /// The driver compiles the kernels of a type when one is first needed, and may keep the result.
  void print_kernels() {
    fmt::print("\nkernels that reduce two vectors of 16 MiB\n");
    if (!device_.abilities().reduces) return fmt::print("  this library was built without them\n");
    for (const DType type : {DType::f32, DType::bf16, DType::u8}) {
      const double first = microseconds_of([&] { reduce(type, 1); });
      const double us = median_us(10, [&] { reduce(type, kBytes / 2); });
      fmt::print("  {:<5} the first call {:8.0f} us, {:8.2f} GB/s of each vector\n", name_of(type),
                 first, static_cast<double>(kBytes) / 2 / us / 1e3);
    }
  }

 private:
  /// Adds the halves of the first part of the memory, into the second one.
  void reduce(DType type, std::size_t bytes) {
    const auto* const x = static_cast<const std::byte*>(on_device_);
    const void* const halves[] = {x, x + kBytes / 2};
    must(device_.reduce(in_, {type, ReduceOp::sum}, static_cast<std::byte*>(on_device_) + kBytes,
                        halves, std::max<std::size_t>(1, bytes / bytes_of(type))));
    await(in_);
  }
  /// Both sets of a rank's lines, in turn. No copy writes there.
  std::uint64_t* lines(std::uint32_t rank) const {
    constexpr std::size_t kApart = 65536;
    return static_cast<std::uint64_t*>(host_) +
           (rank * 2 + exchanges_ % 2) * kApart / sizeof(std::uint64_t);
  }
  std::uint32_t* stop() const {
    return reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(host_) + kMiB);
  }
  void exchange(std::size_t bytes) {
    ++exchanges_;
    auto* const memory = static_cast<std::byte*>(on_device_);
    for (const std::uint32_t me : {0U, 1U}) {
      DeviceExchange one;
      one.what = {DType::f32, ReduceOp::sum};
      one.ranks = 2;
      one.me = me;
      for (const std::uint32_t rank : {0U, 1U}) one.lines[rank] = lines(rank);
      one.number = exchanges_;
      one.stop = stop();
      one.input = memory + me * kMiB;
      one.bytes = one.block = bytes;
      one.blocks = memory + (2 + me) * kMiB;
      one.result = memory + (4 + me) * kMiB;
      must(device_.exchange(me == 0 ? in_ : out_, one));
    }
    const Deadline patience = Deadline::in(std::chrono::seconds(1));
    for (const DeviceQueue queue : {in_, out_}) {
      must(device_.record(queue, moment_));
      while (!must(device_.is_past(moment_))) {
        if (patience.passed()) __atomic_store_n(stop(), 1U, __ATOMIC_RELAXED);
        std::this_thread::yield();
      }
    }
  }
  void copy_in() {
    must(device_.copy(in_, on_device_, host_, kBytes));
    await(in_);
  }
  void copy_out() {
    must(device_.copy(out_, static_cast<std::byte*>(host_) + kBytes,
                      static_cast<std::byte*>(on_device_) + kBytes, kBytes));
    await(out_);
  }
  void await(DeviceQueue queue) {
    must(device_.record(queue, moment_));
    while (!must(device_.is_past(moment_))) std::this_thread::yield();
  }

  Device& device_;
  DeviceQueue in_, out_;
  DeviceMoment moment_;
  double link_ = 0;  // GB/s of copies, each way at once
  void* on_device_;
  void* host_;
  std::uint32_t exchanges_ = 0;
};

/// Of `bytes` in the memory of the device, and in the host's; the slower rank, us.
double all_reduce_us(std::vector<Communicator>& comms, Device& device, std::size_t bytes,
                     bool on_device) {
  std::vector<double> us(comms.size());
  std::vector<std::jthread> ranks;
  for (std::size_t r = 0; r < comms.size(); ++r)
    ranks.emplace_back([&, r] {
      const auto scope = must(DeviceScope::enter(device));
      void* const x = on_device ? must(device.allocate(bytes)) : std::calloc(1, bytes);
      us[r] = median_us(bytes > kMiB ? 10 : 100, [&] {
        if (anycclAllReduce(x, x, bytes / 4, anycclFloat32, anycclMax, comms[r].handle(),
                            nullptr) != anycclSuccess) {
          fmt::print(stderr, "gpu_report: {}\n", anycclGetLastError(comms[r].handle()));
          std::exit(1);
        }
      });
      if (on_device)
        must(device.release(x));
      else
        std::free(x);
    });
  ranks.clear();
  return *std::max_element(us.begin(), us.end());
}

/// Whether calls of the ranks are in queues of the device from now on.
bool use_queues(std::vector<Communicator>& comms) {
  std::vector<anycclResult_t> results(comms.size());
  std::vector<std::jthread> ranks;
  for (std::size_t r = 0; r < comms.size(); ++r)
    ranks.emplace_back([&, r] { results[r] = anycclCommUseDeviceQueues(comms[r].handle()); });
  ranks.clear();
  if (results[0] == anycclSuccess) return true;
  fmt::print("\nno queues: {}\n", anycclGetLastError(comms[0].handle()));
  return false;
}

void print_all_reduce(Device& device) {
  std::vector<Communicator> comms = must(Communicator::init_all(2));
  for (Communicator& comm : comms)
    if (anycclCommSetDevice(comm.handle(), device.number()) != anycclSuccess) std::exit(1);
  constexpr std::size_t kSizes[] = {8, 4096, 65536, kMiB, 16 * kMiB, 64 * kMiB};
  std::vector<double> on_host, by_copies, in_queues;
  for (const std::size_t bytes : kSizes) {
    on_host.push_back(all_reduce_us(comms, device, bytes, false));
    by_copies.push_back(all_reduce_us(comms, device, bytes, true));
  }
  const bool has_queues = use_queues(comms);
  for (const std::size_t bytes : kSizes)
    in_queues.push_back(has_queues ? all_reduce_us(comms, device, bytes, true) : 0);
  fmt::print("\nAllReduce of 2 ranks on this device, us     by copies   in queues   on the host\n");
  for (std::size_t i = 0; i < std::size(kSizes); ++i)
    fmt::print("  {:>10} bytes                      {:12.1f}{:>12}{:14.1f}\n", kSizes[i],
               by_copies[i], has_queues ? fmt::format("{:.1f}", in_queues[i]) : "none", on_host[i]);
}

int report(int number) {
  std::string why;
  for (const std::string& line : describe_devices(why)) fmt::print("{}\n", line);
  const auto device = open_device(number);
  if (!device.ok()) {
    fmt::print(stderr, "gpu_report: {}\n", device.status().message());
    return 1;
  }
  const auto scope = must(DeviceScope::enter(**device));
  Bench bench(**device);
  bench.print_pinning();
  bench.print_copies();
  bench.print_calls();
  bench.print_exchanges();
  bench.print_kernels();
  print_all_reduce(**device);
  return 0;
}

}  // namespace
}  // namespace anyccl

int main(int argc, char** argv) {
  return anyccl::report(argc > 1 ? std::atoi(argv[1]) : 0);
}
