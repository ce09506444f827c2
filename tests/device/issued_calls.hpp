#pragma once
// Calls as data with memory of a device, calls that are issued, and streams that do not go on.

#include "device/rank_on_device.hpp"

namespace anyccl::test {

inline anycclCall_t call_of(anycclCollective_t what, const void* in, void* out, std::size_t count,
                            anycclStream_t stream = nullptr, int peer = 0) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = what;
  call.sendbuff = in;
  call.recvbuff = out;
  call.count = count;
  call.datatype = anycclFloat32;
  call.op = anycclSum;
  call.root = peer;
  call.stream = stream;
  return call;
}

inline anycclCall_t sum_of(const RankOnDevice& rank, const void* in, void* out, std::size_t count) {
  return call_of(anycclCollAllReduce, in, out, count, rank.stream.handle());
}

inline anycclWork_t issue(const RankOnDevice& rank, const anycclCall_t& call) {
  anycclWork_t work = nullptr;
  EXPECT_EQ(anycclIssue(&call, rank.comm.handle(), &work), anycclSuccess) << rank.last_error();
  return work;
}

inline void expect_complete(const RankOnDevice& rank, anycclWork_t work) {
  EXPECT_EQ(anycclWorkWait(work), anycclSuccess) << rank.last_error();
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
}

inline bool is_done(anycclWork_t work) {
  int done = 0;
  EXPECT_EQ(anycclWorkTest(work, &done), anycclSuccess);
  return done != 0;
}

/// Whether it is done, with or without an error.
inline bool is_over(anycclWork_t work) {
  int done = 0;
  static_cast<void>(anycclWorkTest(work, &done));
  return done != 0;
}

/// Work of a queue that waits for the host.
class HeldUp {
 public:
  HeldUp(const RankOnDevice& rank, DeviceQueue queue) : rank_(rank), word_(*rank.device, 4096) {
    EXPECT_OK(rank.device->wait_word(queue, word_.word(), 1));
  }
  ~HeldUp() {
    go_on();
    rank_.device.await(rank_.queue);
  }
  void go_on() { __atomic_store_n(word_.word(), 1U, __ATOMIC_RELEASE); }

 private:
  const RankOnDevice& rank_;
  const Pinned word_;
};

/// So many floats that their copies take longer than what a test does meanwhile.
inline constexpr std::size_t kMany = 2 << 20;

}  // namespace anyccl::test
