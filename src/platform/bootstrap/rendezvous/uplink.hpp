#pragma once
// An uplink connects the leader of a host with the root server while it joins a large group, or
// with the leader that the server names. lead() makes one, and polls for it in the thread that
// joins. Hello and left frames go up, and place, table and failure frames come down (frame.hpp).

#include <poll.h>

#include <chrono>
#include <optional>
#include <vector>

#include "platform/bootstrap/rendezvous/frame_reader.hpp"
#include "platform/bootstrap/rendezvous/receiver.hpp"
#include "platform/bootstrap/rendezvous/source.hpp"

namespace anyccl::bootstrap {

/// A rank of a large group that joins.
struct Attendance {
  Hello mine;
  Deadline deadline;
  Deadline::Clock::time_point begun = Deadline::Clock::now();  ///< When it began to join.
  /// Why it has lost the leader that spoke for it, if it has: the root server was there, so a
  /// server that cannot be reached has gone.
  Status lost = {};
};

/// A leader's connection towards the root server, without waiting: it says hello to the server,
/// waits there or at the leader to which the server sends it, reports the ranks that it speaks for,
/// and gets the answer. If it cannot reach that leader, or loses its connection, it goes back to
/// the server once and reports all again. The caller polls.
class Uplink {
 public:
  /// `can_tell`: this rank can tell other leaders. `rendezvous` outlives it.
  Uplink(const RendezvousAddress& rendezvous, const Attendance& attendance, bool can_tell);

  /// The server may send other leaders to this rank.
  bool tells() const { return tells_; }
  /// Takes a report that is to go up.
  void take_report(const Report& report);

  void append_wanted(std::vector<pollfd>& entries) const;
  /// When to call progress() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// Goes on as far as possible. Absent: the answer has not come. Errors: as join().
  Result<std::optional<FinalReply>> progress();

 private:
  using Clock = Deadline::Clock;
  /// A hello that goes up, and when it came.
  struct Known {
    HelloFrame frame;
    Clock::time_point came;
  };

  /// As progress(), but does not go back to the server: a connection that is lost or cannot be made
  /// is an error.
  Result<std::optional<FinalReply>> step();
  /// Starts to dial the root server for the first time.
  Status begin();
  Status go_to_root(Visit visit, Deadline reach_by);
  Status go_to_place(const ReceivedFrame& frame);
  Status go_to_teller(const Hello& teller);
  /// Closes the present connection, drops what it had not sent, and begins to dial `source`.
  void go_to(Source source, Deadline reach_by);
  Status keep_dialing();
  /// Says hello to the root server. At another leader it begins to report all hellos, its own
  /// first.
  Status on_connected();
  void begin_reports(std::size_t hellos_known_there);
  /// Puts the new reports into the outbox if it is empty and the pause after the last ones is over.
  Status put_reports();
  Status put_hellos();
  void report_the_rest();
  bool forget_unsent(std::uint32_t rank);
  Status put(Frame kind, Bytes payload);

  const RendezvousAddress& rendezvous_;
  Hello mine_;
  bool can_tell_, tells_ = false;
  bool placed_ = false;  // the server has said where this rank hears the answer
  Deadline deadline_;
  Clock::time_point begun_;

  Visit visit_ = Visit::first;
  bool at_root_ = true;
  Source source_;
  Deadline reach_by_;
  std::optional<Dial> dial_;  // until it is connected
  Connection connection_;
  FrameReader in_;
  Outbox out_;
  // Why it has lost the leader that spoke for it, or is not where it was to hear the answer first.
  Status lost_;

  std::vector<Known> known_;                     // this rank's is the first
  std::vector<std::uint32_t> left_;              // ranks
  bool reports_ = false;                         // this connection takes reports, and ...
  std::size_t hellos_sent_ = 0, left_sent_ = 0;  // ... has had so many of each
  std::size_t hellos_ever_sent_ = 1;             // over any connection: its own goes first
  Deadline next_send_ = Deadline::in(std::chrono::nanoseconds(0));
};

}  // namespace anyccl::bootstrap
