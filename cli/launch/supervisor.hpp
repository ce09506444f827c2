#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "launch/child.hpp"
#include "launch/guard.hpp"
#include "launch/job.hpp"
#include "launch/output.hpp"
#include "launch/signals.hpp"

namespace anyccl::cli {

/// Supervises the started processes of a job: its ranks, or one process for each of its hosts.
class Supervisor {
 public:
  Supervisor(const Job& job, SignalQueue& signals, Guard guard)
      : job_(job), signals_(signals), guard_(std::move(guard)) {}

  /// For ChildSetup: what kills the children that are left if this process is killed.
  const Guard& guard() const { return guard_; }
  /// `title` names the child in messages; its lines of output begin with `rank`, if there is one.
  /// A child with a control socket gets signals through it, as single bytes.
  void add(Child child, std::string title, std::optional<int> rank);
  /// Takes signals for all from `control`, as HostPart::control has them; -1: from nowhere.
  void obey(int control) { control_ = control; }
  /// Passes output and signals on until all ranks have ended; returns the job's exit code.
  int wait_for_all();
  /// Kills and reaps all that still run.
  void kill_all();

 private:
  struct Stream {
    UniqueFd from;
    Output* to;
    std::unique_ptr<LinePrefixer> lines;
    Deadline show_at = {};  ///< A line without an end is shown then.
  };
  struct Member {
    Child child;
    std::string title;
    std::vector<Stream> streams;
    bool running = true;
  };
  struct Ended {
    std::size_t member = 0;
    Ending ending;
  };

  bool any_running() const;
  int poll_ms() const;
  void wait_for_event() const;
  void handle_signals();
  void handle_control();
  void pass_on(const signalfd_siginfo& signal);
  void collect_ended();
  std::optional<Ended> reap(std::size_t index);
  void report_failures(const std::vector<Ended>& ended);
  void stop_others();
  void begin_grace(int signal, std::chrono::seconds grace);
  void kill_after_grace();
  void kill_ranks();
  static void signal_process(int signal, const Member& member);
  void send(int signal, const Member& member) const;
  void send_all(int signal) const;
  void forward_output();
  void finish_output();
  static bool read_some(Stream& stream);
  static void close_output(Member& member);
  template <typename... T>
  void say(fmt::format_string<T...> format, T&&... arguments);

  const Job& job_;
  SignalQueue& signals_;
  Guard guard_;
  Output out_{STDOUT_FILENO}, err_{STDERR_FILENO};
  Output& errors_ = is_same_file(STDOUT_FILENO, STDERR_FILENO) ? out_ : err_;
  std::vector<Member> members_;
  std::optional<Ended> first_failure_;
  bool interrupted_ = false;  ///< A SIGINT was passed on; the next one kills.
  bool user_stops_ = false;   ///< Some signal was passed on: the ranks end because of it.
  bool told_ = false;         ///< So said the control socket; then its other end reports.
  int control_ = -1;
  Deadline kill_at_;        ///< When the grace is over.
  Deadline give_up_at_;     ///< When children with a control socket must have ended.
  std::string grace_text_;  ///< "5 s of SIGTERM"
};

}  // namespace anyccl::cli
