// Configuration of communicators, and memory, in the C++ interface.

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
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
      auto waited_for =
          comm->split(0, 0);  // the default of this interface, whatever the parent has
      ASSERT_TRUE(waited_for.ok()) << waited_for.status().message();
      ASSERT_OK(wait(waited_for->barrier()));
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

TEST(CppCommunicator, shrinks_and_grows) {
  const auto id = std::make_shared<std::promise<UniqueId>>();
  std::shared_future<UniqueId> known = id->get_future().share();
  std::thread joins([known] {
    Communicator none;
    const UniqueId wanted = known.get();
    auto grown = none.grow(3, &wanted, Rank{2});
    ASSERT_TRUE(grown.ok()) << grown.status().message();
    ASSERT_OK(wait(grown->barrier()));
  });
  run_ranks(3, [&](Communicator& world) {
    if (world.rank() == Rank{1}) return void(wait(world.barrier()));
    auto pair = world.shrink({Rank{1}});
    ASSERT_TRUE(pair.ok()) << pair.status().message();
    EXPECT_EQ(pair->size(), 2);
    EXPECT_GT(*pair->memory_bytes(), 0U);
    Result<UniqueId> made = Status(Code::unsupported, "only the first rank has it");
    if (pair->rank() == Rank{0}) {
      made = pair->grow_id();
      ASSERT_TRUE(made.ok());
      id->set_value(*made);
    }
    auto grown = pair->grow(3, made.ok() ? &*made : nullptr);
    ASSERT_TRUE(grown.ok()) << grown.status().message();
    EXPECT_EQ(grown->rank(), pair->rank());
    ASSERT_OK(wait(grown->barrier()));
    EXPECT_REFUSED(world.shrink({Rank{3}}).status(), Code::invalid_argument, "3");
    ASSERT_OK(wait(world.barrier()));
  });
  joins.join();
}

TEST(CppCommunicator, is_revoked_on_all_ranks) {
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(comm.revoke());
    }
    EXPECT_REFUSED(wait(comm.barrier()), Code::aborted, "rank 0");
  });
}

TEST(CppCommunicator, has_any_field_of_a_configuration) {
  anycclConfig_t all = ANYCCL_CONFIG_INITIALIZER;
  all.magic = 7;
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  EXPECT_REFUSED((*comms)[0].split(0, 0, all).status(), Code::invalid_argument,
                 "ANYCCL_CONFIG_INITIALIZER");
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
