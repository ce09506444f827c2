#pragma once
// Processes that see the same simulated devices.

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace anyccl::test {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// A file of devices, for processes with these settings.
class OneMachine {
 public:
  OneMachine() = default;
  ~OneMachine() { ::unlink(file_.c_str()); }
  OneMachine(const OneMachine&) = delete;
  OneMachine& operator=(const OneMachine&) = delete;
  Settings settings() const { return {{"SIMULATED_CUDA_STATE", file_}}; }

 private:
  const std::string file_ = "/dev/shm/anyccl-devices-of-test-" + std::to_string(::getpid());
};

}  // namespace anyccl::test
