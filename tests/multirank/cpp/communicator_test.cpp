// Configuration of communicators, and memory, in the C++ interface.

#include <algorithm>
#include <chrono>
#include <thread>

#include "multirank/cpp/expect.hpp"
#include "support/sealed_file.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;

TEST(CppCommunicator, is_created_and_split_without_waiting) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  CommunicatorConfig config;
  config.name = "in the background";
  config.blocking = false;
  const auto until_ready = [](Communicator& comm) {
    for (auto ready = comm.ready(); ready.ok() && !*ready; ready = comm.ready())
      std::this_thread::yield();
    EXPECT_OK(comm.ready().status());
  };
  std::vector<std::thread> threads;
  for (const int rank : {0, 1})
    threads.emplace_back([&, rank] {
      auto comm = Communicator::from_unique_id(*id, Rank{rank}, 2, config);
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      until_ready(*comm);
      auto part = comm->split(0, -rank, config);
      ASSERT_TRUE(part.ok()) << part.status().message();
      until_ready(*part);
      EXPECT_EQ(part->rank(), Rank{1 - rank});
      ASSERT_OK(wait(part->barrier()));
      EXPECT_FALSE(part->last_plan().empty());
      ASSERT_OK(part->finalize());
      until_ready(*part);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(CppCommunicator, may_be_moved_and_keeps_its_time_limit) {
  run_ranks(2, [](Communicator& comm) {
    auto part = comm.split(0, 0);
    ASSERT_TRUE(part.ok());
    part->set_timeout(20ms);
    Communicator moved = *std::move(part);
    EXPECT_EQ(part->handle(), nullptr);
    if (comm.rank() == Rank{0}) {
      EXPECT_EQ(wait(moved.barrier()).code(), Code::timeout);
    }
    ASSERT_OK(wait(comm.barrier()));  // its peer is there until then
  });
}

TEST(CppMemory, is_read_by_peers_and_serves_containers) {
  run_ranks(2, [](Communicator& comm) {
    auto buffer = Buffer<float>::create(100000);
    ASSERT_TRUE(buffer.ok()) << buffer.status().message();
    std::fill(buffer->begin(), buffer->end(), 1.0F);
    std::vector<float, Allocator<float>> x(buffer->size());
    ASSERT_OK(wait(comm.all_reduce(view(*buffer), view(x), ReduceOp::sum)));
    ASSERT_OK(wait(comm.all_reduce(x, *buffer, ReduceOp::max)));
    EXPECT_EQ((*buffer)[99999], 2.0F);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 64, 0U);
    const Buffer<float> moved = *std::move(buffer);
    EXPECT_EQ(moved.size(), 100000U);
    EXPECT_EQ(buffer->size(), 0U);
  });
}

TEST(CppMemory, of_the_program_is_registered_as_long_as_its_object_lives) {
  const SealedFile file(8192);
  const std::span<std::byte> all(file.at, file.bytes);
  {
    auto first = MemoryRegistration::create(all, file.fd);
    ASSERT_TRUE(first.ok()) << first.status().message();
    const MemoryRegistration moved = *std::move(first);
    EXPECT_REFUSED(MemoryRegistration::create(all.subspan(4096), file.fd, 4096).status(),
                   Code::invalid_argument, "registered already");
  }
  EXPECT_OK(MemoryRegistration::create(all, file.fd).status());
  EXPECT_REFUSED(MemoryRegistration::create(all, file.fd, 4096).status(), Code::invalid_argument,
                 "has 8192 bytes instead of 12288");
}

TEST(CppMemory, that_is_not_there_is_an_error) {
  constexpr std::size_t kAll = ~std::size_t{0};
  EXPECT_REFUSED(Buffer<double>::create(kAll).status(), Code::invalid_argument, "overflows");
  EXPECT_FALSE(Buffer<char>::create(kAll / 2).ok());
  EXPECT_THROW(static_cast<void>(Allocator<double>().allocate(kAll)), std::bad_alloc);
}

}  // namespace
}  // namespace anyccl::test
