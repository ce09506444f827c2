#pragma once
// Tests in a process of their own, with an environment.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace anyccl::test {

/// The end of a child, and its stderr.
struct Ending {
  int exit_status = -1;
  int signal = 0;
  std::string errors;
};

/// Each with the part of its name that follows SIMULATED_CUDA_.
using SimulatorSettings = std::vector<std::pair<std::string, std::string>>;

/// A process that runs a function. Its exit status is 0, or 1 if an expectation failed.
class Child {
 public:
  Child(const SimulatorSettings& settings, const std::function<void()>& body) {
    EXPECT_EQ(::pipe2(errors_.data(), O_CLOEXEC), 0);
    std::fflush(stdout);
    process_ = ::fork();
    EXPECT_GE(process_, 0);
    if (process_ == 0) run(settings, body);
    ::close(errors_[1]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }
  /// Waits until it has ended, but leaves it a zombie.
  void await() const {
    siginfo_t facts = {};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(process_), &facts, WEXITED | WNOWAIT), 0);
  }
  /// Waits until it has ended.
  const Ending& end() {
    if (process_ <= 0) return ending_;
    std::array<char, 512> part;
    for (ssize_t got = 0; (got = ::read(errors_[0], part.data(), part.size())) > 0;)
      ending_.errors.append(part.data(), static_cast<std::size_t>(got));
    ::close(errors_[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(process_, &status, 0), process_);
    if (WIFEXITED(status)) ending_.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ending_.signal = WTERMSIG(status);
    process_ = -1;
    return ending_;
  }

 private:
  [[noreturn]] void run(const SimulatorSettings& settings, const std::function<void()>& body) {
    ::dup2(errors_[1], STDERR_FILENO);
    for (const auto& [name, value] : settings)
      ::setenv(("SIMULATED_CUDA_" + name).c_str(), value.c_str(), 1);
    ::alarm(180);  // only a hang reaches it
    body();
    std::fflush(stdout);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  std::array<int, 2> errors_{};
  pid_t process_ = -1;
  Ending ending_;
};

/// The ending of a child that runs the function.
inline Ending in_child(const SimulatorSettings& settings, const std::function<void()>& body) {
  return Child(settings, body).end();
}

/// The facts of the function hold in a child.
inline void expect_in_child(const SimulatorSettings& settings, const std::function<void()>& body) {
  const Ending ending = in_child(settings, body);
  EXPECT_EQ(ending.exit_status, 0) << "signal " << ending.signal << "\n" << ending.errors;
}

}  // namespace anyccl::test
