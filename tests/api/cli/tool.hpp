#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {

/// The built `anyccl`, started as its own process with its output piped here.
class Tool {
 public:
  /// Starts `anyccl arguments...`.
  explicit Tool(std::vector<std::string> arguments);
  Tool(Tool&&) = delete;
  Tool& operator=(Tool&&) = delete;
  ~Tool();  ///< Kills it if it still runs.

  /// Waits until the standard output or error holds `text` `times` times; false after ten seconds
  /// or at the end of the output.
  bool says(const std::string& text, int times = 1);
  void signal(int number) const;
  /// Writes `text` to its standard input, which ends when finish() is called.
  void send(const std::string& text) const;
  /// Waits for the end; returns the exit code, 128 + signal, or -1 if it does not end in 120 s.
  int finish();

  pid_t pid() const { return pid_; }
  const std::string& out() const { return out_; }  ///< What was read so far.
  const std::string& err() const { return err_; }

 private:
  bool read_some(const Deadline& deadline);
  pid_t pid_ = -1;
  UniqueFd to_in_, from_out_, from_err_;
  std::string out_, err_;
};

/// `anyccl run arguments... -- sh -c script`
std::vector<std::string> run_script(std::vector<std::string> arguments, const std::string& script);

}  // namespace anyccl::cli
