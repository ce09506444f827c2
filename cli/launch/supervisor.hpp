#pragma once

#include <optional>
#include <vector>

#include "base/deadline.hpp"
#include "launch/child.hpp"
#include "launch/job.hpp"
#include "launch/lines.hpp"
#include "launch/signals.hpp"

namespace anyccl::cli {

/// Supervises the started ranks of a job: rank r is the r-th child that was added.
class Supervisor {
 public:
  Supervisor(const Job& job, SignalQueue& signals) : job_(job), signals_(signals) {}

  void add(Child child);
  /// Passes output and signals on until all ranks have ended; returns the job's exit code.
  int wait_for_all();
  /// Kills and reaps all that still run.
  void kill_all();

 private:
  struct Stream {
    UniqueFd from;
    int to = -1;
    LinePrefixer lines;
  };
  struct Member {
    Child child;
    std::vector<Stream> streams;
    bool running = true;
  };
  struct Ended {
    int rank = 0;
    Ending ending;
  };

  bool any_running() const;
  int poll_ms() const;
  void wait_for_event() const;
  void handle_signals();
  void pass_on(const signalfd_siginfo& signal);
  void collect_ended();
  std::optional<Ended> reap(int rank);
  void report_failures(const std::vector<Ended>& ended);
  void stop_others();
  void begin_grace(int signal, std::chrono::seconds grace);
  void kill_after_grace();
  void send(int signal, const Member& member) const;
  void send_all(int signal) const;
  void forward_output();
  static void drain(Stream& stream);
  static void close_output(Member& member);

  const Job& job_;
  SignalQueue& signals_;
  std::vector<Member> members_;
  std::optional<Ended> first_failure_;
  bool interrupted_ = false;  ///< A SIGINT was passed on; the next one kills.
  bool user_stops_ = false;   ///< Some signal was passed on: the ranks end because of it.
  Deadline kill_at_;          ///< When the grace is over.
  std::string grace_text_;    ///< "5 s of SIGTERM"
};

}  // namespace anyccl::cli
