#pragma once
// Runs test bodies on all ranks of a communicator: as threads of this process or as processes.

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace anyccl::test {

#define ASSERT_OK(...)                              \
  do {                                              \
    const ::anyccl::Status status_ = (__VA_ARGS__); \
    ASSERT_TRUE(status_.ok()) << status_.message(); \
  } while (false)
#define EXPECT_OK(...)                              \
  do {                                              \
    const ::anyccl::Status status_ = (__VA_ARGS__); \
    EXPECT_TRUE(status_.ok()) << status_.message(); \
  } while (false)

/// Sets environment variables until it goes out of scope. Only while no other thread runs.
class Environment {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  explicit Environment(const Variables& variables);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> before_;
  std::vector<std::string> unset_;
};

/// A call with `x` for both buffers, a sum where it reduces. `root`: or the peer of a message.
inline anycclCall_t call_of(anycclCollective_t collective, std::span<float> x, int root = 0) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = collective;
  call.sendbuff = call.recvbuff = x.data();
  call.count = x.size();
  call.datatype = anycclFloat32;
  call.op = anycclSum;
  call.root = root;
  return call;
}

using Body = std::function<void(Communicator&)>;

/// Every rank in a thread of its own. Fails the test if ranks are still busy after `seconds`.
void run_ranks(int ranks, const Body& body, int seconds = 60);

/// What became of one process.
struct Outcome {
  int exit_code = -1;  ///< -signal if it was killed.
  std::string output;  ///< What it passed to say().
};

/// Every rank in a forked process that joins through the environment; `variables` are added for
/// rank r by variables(r). The body's gtest failures make the exit code 1 and are in the output.
std::vector<Outcome> run_processes(
    int ranks, const Body& body,
    const std::function<std::vector<std::pair<std::string, std::string>>(int)>& variables = {},
    int seconds = 60);
/// Ends up in Outcome::output of this process.
void say(const std::string& text);
/// Called in a child of such a process, which would keep run_processes() waiting.
void close_report();

/// All exited with 0 and without failures.
void expect_all_passed(const std::vector<Outcome>& outcomes);

}  // namespace anyccl::test
