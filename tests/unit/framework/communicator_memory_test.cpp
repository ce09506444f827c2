// The heap memory of a communicator by itself: what each of many groups, and each of many ranks,
// costs.

#include <gtest/gtest.h>

#include <memory>

#include "framework/communicator/communicator.hpp"
#include "support/counted_heap.hpp"
#include "unit/framework/played_peers.hpp"

namespace anyccl::test {
namespace {

Status reduce(Comm& comm, std::size_t count = 1) {
  std::vector<float> x(count, 1.0F);
  Call call;
  call.count = count;
  call.input = call.output = reinterpret_cast<std::byte*>(x.data());
  return comm.run(call);
}

/// Of a communicator of so many ranks that has done one AllReduce.
std::size_t bytes_of_one(int size) {
  EXPECT_TRUE(reduce(*std::make_shared<Comm>(rank_0_of(2))).ok());  // what a process makes once
  Membership m = rank_0_of(size);
  const std::size_t before = heap_bytes;
  const auto comm = std::make_shared<Comm>(std::move(m));
  EXPECT_TRUE(reduce(*comm).ok());
  return heap_bytes - before;
}

constexpr std::size_t kKiB = 1024;

TEST(CommunicatorMemory, of_8_ranks_is_less_than_16_kib) {
  EXPECT_LT(bytes_of_one(8), 16 * kKiB);
}

TEST(CommunicatorMemory, of_1024_ranks_is_less_than_256_bytes_per_rank) {
  EXPECT_LT(bytes_of_one(1024), 1024 * 256);
}

/// Planning looks at the schedules of all ranks, and the heap of a process does not shrink again.
TEST(CommunicatorMemory, of_1024_ranks_is_planned_within_1_mib) {
  const auto comm = std::make_shared<Comm>(rank_0_of(1024));
  const std::size_t before = heap_bytes;
  heap_peak = before;
  std::vector<float> x(1024, 1.0F);
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast,
                                      Collective::all_gather, Collective::barrier}) {
    Call call;
    call.collective = collective;
    call.count = 1;
    call.input = call.output = reinterpret_cast<std::byte*>(x.data());
    ASSERT_TRUE(comm->run(call).ok());
  }
  EXPECT_LT(heap_peak - before, 1024 * kKiB);
}

TEST(CommunicatorMemory, is_given_back) {
  bytes_of_one(8);
  const std::size_t before = heap_bytes;
  bytes_of_one(8);
  EXPECT_EQ(heap_bytes, before);
}

TEST(CommunicatorMemory, does_not_grow_with_calls_that_are_repeated) {
  const auto comm = std::make_shared<Comm>(rank_0_of(8));
  for (std::size_t count = 1; count <= 8; ++count) ASSERT_TRUE(reduce(*comm, count).ok());
  const std::size_t before = heap_bytes;
  for (int i = 0; i < 100; ++i)
    for (std::size_t count = 1; count <= 8; ++count) ASSERT_TRUE(reduce(*comm, count).ok());
  EXPECT_EQ(heap_bytes, before);
}

}  // namespace
}  // namespace anyccl::test
