// A thread of the library that gets no memory does not end the program.

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "base/deadline.hpp"
#include "framework/communicator/background_progress.hpp"
#include "support/ranks.hpp"
#include "unit/framework/fake_peers.hpp"

namespace anyccl::test {
namespace {

/// Threads of this name get no memory. Null: all do.
std::atomic<const char*> without_memory{nullptr};

bool is_thread(const char* name) {
  char own[16] = {};
  return ::pthread_getname_np(::pthread_self(), own, sizeof own) == 0 &&
         std::strcmp(own, name) == 0;
}

}  // namespace
}  // namespace anyccl::test

// Not inlined: the compiler would see a malloc() that ends in a delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  const char* const name = anyccl::test::without_memory.load();
  void* const memory = name != nullptr && anyccl::test::is_thread(name)
                           ? nullptr
                           : std::malloc(std::max(bytes, std::size_t{1}));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace anyccl::test {
namespace {

constexpr const char* kBackground = "anyccl-progress";

/// Waits until `done`.
template <typename Condition>
void expect_soon(const Condition& done) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  while (!done() && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(done());
}

/// A peer that never publishes; a look at it takes memory, maybe.
class SilentPeer final : public FakePeers {
 public:
  explicit SilentPeer(bool takes_memory) : FakePeers(0, {Rank{1}}), takes_memory_(takes_memory) {}
  PeerState state(Rank) override { return PeerState::present; }

 private:
  bool has_published(std::uint32_t) override {
    if (takes_memory_ && is_thread(kBackground)) throw std::bad_alloc();
    return false;
  }
  const bool takes_memory_;
};

/// A communicator in whose AllReduce rank 0 waits for rank 1.
class WaitingComm {
 public:
  explicit WaitingComm(bool takes_memory) {
    Membership m;
    m.size = 2;
    m.near_of.assign(2, 0);
    m.transports.push_back(std::make_unique<SilentPeer>(takes_memory));
    comm = std::make_shared<Comm>(std::move(m));
    Call call;
    call.collective = Collective::all_reduce;
    call.count = 1;
    call.input = call.output = reinterpret_cast<std::byte*>(&number_);
    EXPECT_OK(comm->issue(call).status());
  }
  std::shared_ptr<Comm> comm;

 private:
  float number_ = 1;
};

/// Never destroyed, as its thread is never joined.
BackgroundProgress& new_background() {
  static auto* const all = new std::vector<BackgroundProgress*>;
  all->push_back(new BackgroundProgress(std::chrono::seconds(60)));
  return *all->back();
}

TEST(ThreadMemory, that_is_short_in_the_background_fails_the_communicator_that_needs_it) {
  const WaitingComm waiting(true);
  BackgroundProgress& background = new_background();
  ASSERT_OK(background.add(waiting.comm));
  expect_soon([&] { return !waiting.comm->failure().ok(); });
  const std::string text(waiting.comm->failure().message());
  EXPECT_NE(text.find("rank 0 has no memory for operations in the background"), std::string::npos)
      << text;
  background.forget(*waiting.comm);
  background.stop(Deadline::in(std::chrono::seconds(30)));
}

TEST(ThreadMemory, that_is_short_in_the_background_leaves_it_going) {
  const WaitingComm waiting(false);
  BackgroundProgress& background = new_background();
  std::atomic<int> chores{0};
  background.repeat(std::chrono::milliseconds(1), [&chores] {
    without_memory = kBackground;
    ++chores;
    std::vector<int> some(1);
    EXPECT_EQ(some[0], 1) << "there was memory";
  });
  ASSERT_OK(background.add(waiting.comm));
  expect_soon([&] { return chores >= 3; });
  EXPECT_OK(waiting.comm->failure());
  background.forget(*waiting.comm);
  background.stop(Deadline::in(std::chrono::seconds(30)));
  without_memory = nullptr;
}

TEST(ThreadMemory, that_is_short_at_the_root_of_a_start_is_an_error_of_all_ranks) {
  const std::vector<Outcome> ranks = run_processes(
      2, [](Communicator&) {},
      [](int rank) {
        if (rank == 0) without_memory = "anyccl-root";
        return Environment::Variables{{"ANYCCL_TIMEOUT", "3"}};
      });
  for (const Outcome& rank : ranks) EXPECT_EQ(rank.exit_code, 3) << rank.output;
}

TEST(ThreadMemory, that_is_short_where_ranks_connect_on_demand_is_an_error_of_all_ranks) {
  const std::vector<Outcome> ranks = run_processes(
      3,
      [](Communicator& comm) {
        const Status status = wait(comm.barrier());
        EXPECT_FALSE(status.ok());
        say(std::string(status.message()));
      },
      [](int rank) {
        if (rank == 1) without_memory = "anyccl-connect";
        return Environment::Variables{
            {"ANYCCL_TRANSPORT", "tcp"}, {"ANYCCL_CONNECT_ALL", "0"}, {"ANYCCL_TIMEOUT", "20"}};
      });
  for (const Outcome& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.output;
  EXPECT_NE(ranks[1].output.find("has no memory to connect with other ranks"), std::string::npos)
      << ranks[1].output;
}

}  // namespace
}  // namespace anyccl::test
