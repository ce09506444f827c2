#pragma once
// Point-to-point messages: matching of sends and receives, as MPI has it.
//
// 1. Messages of a pair of ranks arrive in the order of their sends, and are numbered per pair.
// 2. A message goes to the receive that was posted first, of those whose source and tag it fits.
// 3. An unexpected message that blocks an expected one is buffered. Others stay with the transport,
//    which holds back their sender when its room is used up.
// 4. Short messages are eager: does_at_once() sends or receives them without a request object.
// 5. A message of a rank to itself meets its receive here; no transport sees it.
// 6. A synchronous message that meets its receive is answered first, by a message without contents,
//    which goes before all that have not started; until it has gone the message is kept. A rank
//    that waits for an answer keeps whatever comes before it. So reading never waits for an answer,
//    and no answer is stuck. See answers.cpp.
// 7. Puts and signals are messages that OneSided has a place for; no receive gets them.

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/fifo.hpp"
#include "framework/message/message_request.hpp"
#include "framework/message/one_sided.hpp"
#include "framework/message/probe.hpp"

namespace anyccl {

/// The sends and receives of one rank of a communicator, and which receive gets which message: the
/// one that was called first of those that fit its source and tag. Messages of a pair come in the
/// order of their sends; one that nobody wants yet, before one that somebody does, is kept in
/// memory.
///
/// Threads: the holder of the communicator's progress lock.
class MessageMatcher {
 public:
  /// `route[r]` reaches rank r; null: none does.
  MessageMatcher(Rank me, const std::vector<Messages*>& route);

  /// Does what needs no waiting and no keeping: a short message that can go, or that has come and
  /// is the next one wanted. False: nothing has happened; so it is for a call with wrong arguments.
  /// `poll_budget`: how often to look for what it receives, see Incoming.
  bool does_at_once(const Call& call, std::uint32_t poll_budget);
  /// Adds the request of a call that is right. It may be done already. `in_queues`: its data goes
  /// through queues of devices, see MessageRequest::set_in_queues().
  std::shared_ptr<MessageRequest> add(const Call& call, Gate gate,
                                      std::optional<AroundCall*> in_queues = std::nullopt);
  /// From now on advance() shows it what comes, until it is done and removed, or removed. What
  /// comes before what it looks for is kept in memory.
  void add(std::shared_ptr<Probe> probe);
  void remove(const std::shared_ptr<Probe>& probe);
  /// Nobody but the caller has it any more, and it is done: another call may get it.
  void recycle(std::shared_ptr<MessageRequest> request) {
    if (request.use_count() == 1) spare_.push_back(std::move(request));
  }
  /// Starts a put, signal or wait that is right. Null: it is done. `poll_budget`: how often a wait
  /// looks before it is one that waits like others.
  std::shared_ptr<Operation> start(const OneSidedCall& call, Gate gate, std::uint32_t poll_budget);
  OneSided& one_sided() { return one_sided_; }
  /// Goes on as far as possible without waiting; true if anything moved.
  bool advance();
  /// Whether a peer must act for something here. Messages to itself need none.
  bool waits_for_peers() const { return open_ > 0 && open_ > one_sided_.standing(); }
  /// Whether nothing is open but receives to which nothing has come: no peer may still read here.
  bool has_only_receives() const;
  /// What waits_for_peers() says, or peers may put something here: there is no time in which
  /// nothing can come.
  bool looks_at_peers() const { return open_ > 0; }
  /// Whether messages of this rank to itself will meet when a gate opens.
  bool will_meet_itself() const;

  /// Requests that may wait for a peer in vain: the first of each queue, and those that something
  /// waits for.
  std::vector<std::shared_ptr<Operation>> waiting() const;
  /// A rank whose message something waits for, or kAnySource if only receives of any source are
  /// waited for; none: no receive is.
  std::optional<Rank> awaited_sender() const;
  /// One whose own time limit is over, or null.
  std::shared_ptr<MessageRequest> late() const;
  /// Whether a receive or a probe waits for whoever sends.
  bool waits_for_anyone() const {
    return !from_anyone_.empty() ||
           std::any_of(probes_.begin(), probes_.end(), [](const auto& probe) {
             return probe->source() == kAnySource && !probe->done();
           });
  }
  /// The problem of a message that came, or ok.
  const Status& problem() const { return problem_.ok() ? one_sided_.problem() : problem_; }

  /// Completes everything with `why`.
  void end(const Status& why);
  /// Completes with `why` messages of this rank to itself and all waits for signals. The caller
  /// knows that nothing waits for peers.
  void end_own(const Status& why);

 private:
  using Queue = Fifo<std::shared_ptr<MessageRequest>>;
  /// A message that came before the receive that wants it.
  struct Early {
    std::shared_ptr<MessageRequest> request;  // into `bytes`
    std::unique_ptr<std::byte[]> bytes;
    bool answered = false;  // it is synchronous, and its receive has come
  };
  /// The messages that are open between this rank and another one.
  struct Exchange {
    Queue sends, receives;                     // these receives are not bound yet
    Queue unanswered;                          // synchronous sends that are sent
    std::uint64_t answered = 0;                // the message that was answered last
    std::shared_ptr<MessageRequest> arriving;  // what the message that is being read goes to
    Fifo<Early> early;
    bool lands = false;  // `arriving` is no receive's: it goes where OneSided says

    bool is_over() const {
      return sends.empty() && receives.empty() && unanswered.empty() && arriving == nullptr &&
             early.empty();
    }
  };
  struct Pair {
    std::uint64_t sent = 0, received = 0;  // messages
    std::unique_ptr<Exchange> open;        // null: nothing is
  };

  /// Whether a message from or to `other` needs a peer.
  bool needs_peer(Rank other) const {
    return other == kAnySource ? pairs_.size() > 1 : other != me_;
  }
  std::shared_ptr<MessageRequest> make(const Call& call, Gate gate);
  bool goes_at_once(MessageRequest& send, Pair& pair);
  /// Whether something may come from a rank with which nothing is open.
  bool looks_at_everyone() const {
    return !from_anyone_.empty() || !probes_.empty() || one_sided_.looks();
  }
  bool advance_with(Rank other);
  bool advance_send(MessageRequest& send, Pair& pair);
  /// What is open with the rank `other`, which has an Exchange from then on.
  Exchange& exchange(Rank other);
  void end_if_over(Rank other);
  static bool has_sends(const Pair& pair) {
    return pair.open != nullptr && !pair.open->sends.empty();
  }
  /// Whether nothing is before a receive that is called now: it may get the pair's next message.
  bool is_next(const Pair& pair) const {
    return (pair.open == nullptr || (pair.open->arriving == nullptr && pair.open->early.empty() &&
                                     pair.open->receives.empty())) &&
           from_anyone_.empty();
  }
  bool comes_at_once(const std::shared_ptr<MessageRequest>& receive, Pair& pair);
  bool meet_itself();
  bool advance_sends(Pair& pair);
  bool advance_receives(Rank from);
  bool advance_arriving(Rank from, bool& moved);
  bool deliver_early(Rank from);
  bool next_message(Rank from);
  /// Makes it what is arriving. If it cannot be kept, problem() says so instead.
  void keep_early(Rank from, const Envelope& envelope);
  static bool sends_synchronously(const Pair& pair);
  static bool has_kept_message(const Pair& pair, std::uint32_t tag);
  bool answer(Rank to, std::uint64_t message);
  bool answer_next(Rank from, const Envelope& envelope);
  bool has_answered(Rank from, Early& early);
  bool take_answer(Rank from, const Envelope& envelope);
  bool is_probed(Rank from) const;
  bool show(const MessageFacts& message);
  std::size_t count_receives(Rank from, std::uint32_t tag) const;
  bool show_kept(Rank from);
  bool show_own();
  bool show_next(Rank from, const Envelope& envelope);
  bool land(Rank from, const Envelope& envelope);
  std::shared_ptr<Operation> put(const OneSidedCall& call, Gate gate);
  std::shared_ptr<Operation> send(const Call& call, Gate gate);
  std::shared_ptr<Operation> wait_for(const OneSidedCall& call, Gate gate,
                                      std::uint32_t poll_budget);
  /// Completes `receive` with a message that is in memory here, kept or of this rank to itself, or
  /// with an error if types or counts differ.
  void copy_to_receive(const MessageRequest& early, MessageRequest& receive);
  struct Found {
    Queue* queue = nullptr;
    Queue::iterator at;
  };
  Found find_receive(Rank from, std::uint32_t tag);
  static std::shared_ptr<MessageRequest> take_receive(Found found);

  Rank me_;
  const std::vector<Messages*>& route_;
  std::vector<Pair> pairs_;
  std::vector<Rank> open_pairs_;  // those that have an Exchange; of a few it may be over
  std::vector<std::unique_ptr<Exchange>> spare_exchanges_;
  Queue from_anyone_;
  std::vector<std::shared_ptr<Probe>> probes_;
  std::vector<std::shared_ptr<MessageRequest>> spare_;
  std::uint64_t order_ = 0;
  std::size_t open_ = 0, turn_ = 0;
  OneSided one_sided_;
  Status problem_;
};

}  // namespace anyccl
