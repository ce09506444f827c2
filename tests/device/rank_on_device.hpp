#pragma once
// Ranks that have a device each, as threads, and their vectors there.

#include <functional>
#include <string>
#include <vector>

#include "device/device_memory.hpp"

namespace anyccl::test {

using Floats = std::vector<float>;

inline std::span<const std::byte> bytes_of_floats(const Floats& x) {
  return std::as_bytes(std::span(x));
}
inline Floats floats_on(const OnDevice& memory) {
  const std::vector<std::byte> bytes = memory.bytes();
  Floats x(bytes.size() / sizeof(float));
  std::memcpy(x.data(), bytes.data(), bytes.size());
  return x;
}

/// A rank with its device, a queue of the program on it, and that as a stream.
struct RankOnDevice {
  explicit RankOnDevice(Communicator& c)
      : comm(c),
        device(device_of(c)),
        queue(*device->make_queue(false)),
        stream(*Stream::wrap(device->number(), queue)) {}
  ~RankOnDevice() { EXPECT_OK(device->drop_queue(queue)); }
  RankOnDevice(const RankOnDevice&) = delete;
  RankOnDevice& operator=(const RankOnDevice&) = delete;
  OnDevice put(const Floats& x) const { return {device, bytes_of_floats(x)}; }
  anycclResult_t all_reduce(const void* in, void* out, std::size_t count) const {
    return anycclAllReduce(in, out, count, anycclFloat32, anycclSum, comm.handle(),
                           stream.handle());
  }
  std::string last_error() const { return anycclGetLastError(comm.handle()); }

  Communicator& comm;
  CurrentDevice device;
  DeviceQueue queue;
  Stream stream;
};

inline void on_devices(int ranks, const std::function<void(RankOnDevice&)>& body) {
  const CurrentDevice current(0);
  run_ranks(ranks, [&](Communicator& comm) {
    RankOnDevice rank(comm);
    body(rank);
  });
}

#define EXPECT_REFUSED(code, words, ...)                                                           \
  do {                                                                                             \
    EXPECT_EQ(__VA_ARGS__, code);                                                                  \
    EXPECT_NE(std::string(rank.last_error()).find(words), std::string::npos) << rank.last_error(); \
  } while (false)

}  // namespace anyccl::test
