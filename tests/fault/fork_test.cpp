// A process forks in one thread while its other threads are in calls: the child ends, however it
// does, and hears that its parent's communicators are not its own.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

anycclComm_t inherited_comm = nullptr;

/// What a child may find locked.
class Busy {
 public:
  explicit Busy(Communicator& comm) {
    start([&comm] {
      std::vector<float> x(3000, 1.0F);
      static_cast<void>(wait(comm.all_reduce(view(x), view(x), ReduceOp::max)));
    });
    start([] {
      anycclComm_t own = nullptr;
      EXPECT_EQ(anycclCommInitAll(&own, 1, nullptr), anycclSuccess);
      EXPECT_EQ(anycclCommDestroy(own), anycclSuccess);
    });
    start([] {
      anycclStream_t stream = nullptr;
      EXPECT_EQ(anycclStreamCreate(&stream), anycclSuccess);
      EXPECT_EQ(anycclLaunchHostFunc(
                    stream, [](void*) {}, nullptr),
                anycclSuccess);
      EXPECT_EQ(anycclStreamDestroy(stream), anycclSuccess);
    });
    start([&comm] {  // errors are kept in the handle
      EXPECT_EQ(anycclCommCount(comm.handle(), nullptr), anycclInvalidArgument);
    });
    start([] {
      void* memory = nullptr;
      EXPECT_EQ(anycclMemAlloc(&memory, 100'000), anycclSuccess);
      EXPECT_EQ(anycclMemFree(memory), anycclSuccess);
    });
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  void start(std::function<void()> call) {
    threads_.emplace_back([this, call = std::move(call)] {
      while (!stop_) call();
    });
  }
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

bool says_fork(anycclResult_t result) {
  return result == anycclInvalidUsage &&
         std::strstr(anycclGetLastError(nullptr), "before fork") != nullptr;
}

/// Whether each call says so, and ends.
bool are_refused(anycclComm_t comm) {
  float x = 1;
  int count = 0;
  anycclComm_t part = nullptr;
  anycclResult_t state = anycclSuccess;
  return says_fork(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, comm, nullptr)) &&
         says_fork(anycclCommCount(comm, &count)) &&
         says_fork(anycclCommSplit(comm, 0, 0, &part, nullptr)) &&
         says_fork(anycclCommFinalize(comm)) &&
         anycclCommGetAsyncError(comm, &state) == anycclSuccess && state == anycclInvalidUsage &&
         std::strstr(anycclGetLastError(comm), "before fork") != nullptr;
}

void calls_at_exit() {
  const bool right = are_refused(inherited_comm) &&
                     anycclCommAbort(inherited_comm) == anycclSuccess &&
                     anycclCommDestroy(inherited_comm) == anycclSuccess;
  if (!right) ::_exit(7);
}

void by_exit() {
  std::exit(0);
}
void by_exit_with_calls() {
  std::atexit(calls_at_exit);
  std::exit(0);
}
void by_exit_with_a_communicator_of_its_own() {
  anycclComm_t own = nullptr;
  float x = 1;
  if (anycclCommInitAll(&own, 1, nullptr) != anycclSuccess) ::_exit(8);
  if (anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, own, nullptr) != anycclSuccess)
    ::_exit(9);
  std::exit(0);  // which is what leaves it
}
void by__exit() {
  ::_exit(are_refused(inherited_comm) ? 0 : 10);
}
void by_exec() {
  ::execl("/bin/true", "true", nullptr);
  ::_exit(11);
}
constexpr std::array<void (*)(), 5> kEnds = {
    by_exit, by_exit_with_calls, by_exit_with_a_communicator_of_its_own, by__exit, by_exec};

/// The status of a child of this process that ends so. One that hangs is killed.
int status_of_child(void (*end)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    close_report();
    ::alarm(30);
    end();
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

class Fork : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Fork, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST_P(Fork, while_calls_run_gives_children_that_end) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        inherited_comm = comm.handle();
        const int rounds = effort(4, 10, 200);
        {
          const Busy busy(comm);
          for (int i = 0; i < rounds; ++i)
            for (std::size_t end = 0; end < kEnds.size(); ++end)
              EXPECT_EQ(status_of_child(kEnds[end]), 0) << "round " << i << ", end " << end;
        }
        static_cast<void>(comm.abort());  // the other rank may be one call ahead
      },
      [](int rank) {
        return std::vector<std::pair<std::string, std::string>>{
            {"ANYCCL_TRANSPORT", GetParam()},
            {"ANYCCL_DEBUG", "INFO"},
            {"ANYCCL_DEBUG_FILE", "/dev/null"},
            {"ANYCCL_RECORD", rank == 0 ? "0" : "64"}};
      },
      120));
}

}  // namespace
}  // namespace anyccl::test
