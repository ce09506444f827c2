#include "support/ranks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include "launch/rendezvous.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

/// Of ranks that take at most so many seconds on a busy machine.
std::chrono::steady_clock::time_point end_of(int& seconds) {
  seconds = effort(3 * seconds, seconds, seconds);
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

}  // namespace

Environment::Environment(const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) {
    const char* before = std::getenv(name.c_str());
    if (before != nullptr)
      before_.emplace_back(name, before);
    else
      unset_.push_back(name);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}
Environment::~Environment() {
  for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  for (const std::string& name : unset_) ::unsetenv(name.c_str());
}

void run_ranks(int ranks, const Body& body, int seconds) {
  auto comms = Communicator::init_all(ranks);
  ASSERT_TRUE(comms.ok()) << comms.status().message();
  std::vector<std::future<void>> running;
  for (Communicator& comm : *comms)
    running.push_back(std::async(std::launch::async, [&body, &comm] { body(comm); }));
  const auto deadline = end_of(seconds);
  for (std::size_t r = 0; r < running.size(); ++r)
    if (running[r].wait_until(deadline) != std::future_status::ready) {
      std::fprintf(stderr, "rank %zu is still busy after %d s\n", r, seconds);
      std::abort();  // a hanging thread cannot be ended, and nothing after it would mean anything
    }
}

namespace {

int report_fd = -1;

/// Sends gtest's failures to the parent.
class Reporter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      say(std::string("FAILED ") + result.file_name() + ":" + std::to_string(result.line_number()) +
          " " + result.message() + "\n");
  }
};

[[noreturn]] void child(const Body& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Reporter);
  auto comm = Communicator::from_env();
  if (!comm.ok()) {
    say("FAILED to join: " + std::string(comm.status().message()) + "\n");
    std::_Exit(3);
  }
  body(*comm);
  EXPECT_OK(comm->destroy());
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

void say(const std::string& text) {
  if (::write(report_fd, text.data(), text.size()) < 0) std::_Exit(4);
}

void close_report() {
  ::close(report_fd);
}

std::vector<Outcome> run_processes(
    int ranks, const Body& body,
    const std::function<std::vector<std::pair<std::string, std::string>>(int)>& variables,
    int seconds) {
  struct Child {
    pid_t pid;
    int fd;
  };
  std::vector<Child> children;
  const Result<cli::PortPair> ports = cli::free_port_pair();
  const std::string port = std::to_string(ports->first);
  for (int r = 0; r < ranks; ++r) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    const pid_t pid = ::fork();
    if (pid == 0) {
      report_fd = ends[1];
      for (const Child& other : children) ::close(other.fd);
      ::setenv("RANK", std::to_string(r).c_str(), 1);
      ::setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::setenv("MASTER_PORT", port.c_str(), 1);
      ::setenv("ANYCCL_SECRET", "00112233445566778899aabbccddeeff", 1);
      if (variables)
        for (const auto& [name, value] : variables(r)) ::setenv(name.c_str(), value.c_str(), 1);
      child(body);
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  std::vector<Outcome> outcomes(children.size());
  const auto deadline = end_of(seconds);
  for (std::size_t r = 0; r < children.size(); ++r) {
    char buffer[4096];
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                            deadline - std::chrono::steady_clock::now())
                            .count();
      pollfd wait{children[r].fd, POLLIN, 0};
      if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) {
        outcomes[r].output += "FAILED: still busy after " + std::to_string(seconds) + " s\n";
        ::kill(children[r].pid, SIGKILL);
        break;
      }
      const ssize_t n = ::read(children[r].fd, buffer, sizeof buffer);
      if (n <= 0) break;
      outcomes[r].output.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(children[r].fd);
    int status = 0;
    ::waitpid(children[r].pid, &status, 0);
    outcomes[r].exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  return outcomes;
}

void expect_all_passed(const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, 0) << "rank " << r << ": " << outcomes[r].output;
}

}  // namespace anyccl::test
