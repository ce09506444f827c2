#include "simulate/replay.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "simulate/cores.hpp"
#include "simulate/event_queue.hpp"
#include "simulate/flows.hpp"
#include "simulate/step_costs.hpp"

namespace anyccl::cli {

namespace {

/// Events this close, in seconds, happen together: far below any latency, far above rounding.
constexpr double kTogether = 1e-12;

class Replay {
 public:
  Replay(const RankPrograms& programs, const Network& network, const Machine& machine, double bytes,
         const std::vector<std::uint32_t>& place, std::uint32_t ranks_per_host, ReplayLog* log)
      : programs_(programs),
        costs_(machine, programs.ranks(), ranks_per_host, bytes),
        cores_(costs_.hosts(), costs_.cores()),
        chunk_bytes_(programs.chunks_per_block() == 0 ? 0 : bytes / programs.chunks_per_block()),
        place_(place),
        log_(log),
        flows_(network, machine, queue_),
        rank_at_(network.ends()),
        ranks_(programs.ranks()) {
    result_.done.resize(ranks_.size());
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      rank_at_[place[r]] = r;
      ranks_[r].first_balance = balance_.size();
      balance_.resize(balance_.size() + programs.senders(r).size());
    }
  }

  Result<ReplayResult> run() && {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) wake(r);
    std::vector<Event> events;
    while (!queue_.empty()) {
      const double end = queue_.next() + kTogether;
      do {
        now_ = queue_.take(events);
        for (const Event& event : events) handle(event);
      } while (!queue_.empty() && queue_.next() <= end);
      flows_.update_rates(now_);
    }
    ANYCCL_CHECK(all_done());
    result_.seconds = *std::max_element(result_.done.begin(), result_.done.end());
    result_.link_bytes = flows_.carried();
    return std::move(result_);
  }

 private:
  struct RankState {
    std::uint32_t step = 0;
    std::uint32_t missing = 0;  ///< Messages that its receive still waits for.
    bool waits = false;         ///< In the receive that is its step.
    double since = 0;           ///< When it began to wait or compute.
    std::size_t first_balance = 0;
  };

  void handle(const Event& event) {
    if (event.kind == EventKind::rank_is_free) return step_done(event.subject);
    if (event.kind == EventKind::rank_has_core) return advance(event.subject);
    Flows::Message message;
    if (flows_.handle(now_, event, message)) arrive(message);
  }

  void arrive(const Flows::Message& message) {
    const std::uint32_t from = rank_at_[message.from], to = rank_at_[message.to];
    if (log_ != nullptr) log_->messages[message.tag].end = now_;
    ++result_.messages;
    const auto senders = programs_.senders(to);
    const auto sender =
        std::lower_bound(senders.begin(), senders.end(), programs_.distance(to, from));
    RankState& rank = ranks_[to];
    const auto number = static_cast<std::size_t>(sender - senders.begin());
    if (++balance_[rank.first_balance + number] > 0) return;  // for a later receive
    if (--rank.missing == 0) wake(to);
  }

  void step_done(std::uint32_t r) {
    RankState& rank = ranks_[r];
    if (log_ != nullptr && !programs_.steps(r)[rank.step].sends)
      log_->additions.push_back({{rank.since, now_}, r, rank.step});
    ++rank.step;
    advance(r);
  }

  /// The rank can go on, as soon as it has a core.
  void wake(std::uint32_t r) {
    if (costs_.cores() == 0) return advance(r);
    if (cores_.take(costs_.host(r), r)) run_on_core(r);
  }
  void run_on_core(std::uint32_t r) {
    queue_.push(now_ + costs_.hand_over_s(), {EventKind::rank_has_core, r});
  }
  void leave_core(std::uint32_t r) {
    if (costs_.cores() == 0) return;
    if (const auto next = cores_.give_back(costs_.host(r))) run_on_core(*next);
  }

  /// Takes the steps of a rank until one takes time.
  void advance(std::uint32_t r) {
    RankState& rank = ranks_[r];
    const auto steps = programs_.steps(r);
    for (; rank.step < steps.size(); ++rank.step) {
      const ProgramStep& step = steps[rank.step];
      if (!step.sends) {
        if (!rank.waits) expect(r, step);
        if (rank.missing > 0) return leave_core(r);
        stop_waiting(r);
      }
      const double cost = step.sends ? send(r, step) : work_s(r, step);
      if (cost == 0) continue;
      rank.since = now_;
      return queue_.push(now_ + cost, {EventKind::rank_is_free, r});
    }
    result_.done[r] = now_;
    leave_core(r);
  }

  /// Returns how long the rank is busy.
  double send(std::uint32_t r, const ProgramStep& step) {
    const double bytes = chunk_bytes_ * step.chunks;
    double leaves = now_;
    bool is_first = true;  // inside the host
    for (const std::uint32_t distance : programs_.peers_of(r, step)) {
      const std::uint32_t to = programs_.rank_after(r, distance);
      const bool inside = costs_.inside(r, to);
      const StepCosts::Departure departure = costs_.departure(inside, is_first, bytes);
      is_first = is_first && !inside;
      leaves += departure.busy_s;
      std::uint32_t tag = 0;
      if (log_ != nullptr) {
        tag = static_cast<std::uint32_t>(log_->messages.size());
        log_->messages.push_back({{leaves, leaves}, r, to, bytes});
      }
      const Flows::Message message = {place_[r], place_[to], tag};
      if (departure.by_network)
        flows_.send(leaves, message, bytes, departure.latency_s, departure.most_bytes_per_s);
      else
        flows_.deliver(leaves + departure.latency_s, message);
      leaves += departure.after_s;
    }
    return leaves - now_;
  }

  double work_s(std::uint32_t r, const ProgramStep& step) const {
    std::uint32_t inside = 0;
    const auto senders = programs_.senders(r);
    for (const std::uint32_t sender :
         costs_.calibrated() ? programs_.peers_of(r, step) : std::span<const std::uint32_t>())
      if (costs_.inside(r, programs_.rank_after(r, senders[sender]))) ++inside;
    return costs_.work_s(inside, step.peers - inside, step.additions, chunk_bytes_ * step.chunks);
  }

  /// Takes the messages that are there; the balance of a sender whose message is not is negative.
  void expect(std::uint32_t r, const ProgramStep& step) {
    RankState& rank = ranks_[r];
    rank.waits = true;
    rank.since = now_;
    for (const std::uint32_t sender : programs_.peers_of(r, step))
      if (--balance_[rank.first_balance + sender] < 0) ++rank.missing;
  }

  /// Ends the wait of a rank, which is logged if it took time.
  void stop_waiting(std::uint32_t r) {
    RankState& rank = ranks_[r];
    rank.waits = false;
    if (log_ != nullptr && now_ > rank.since)
      log_->waits.push_back({{rank.since, now_}, r, rank.step});
  }

  /// Errors: internal, naming a rank that waits for ever.
  Status all_done() const {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].step < programs_.steps(r).size())
        return error(Code::internal, "rank {} waits for ever for {} messages in step {}", r,
                     ranks_[r].missing, ranks_[r].step);
    return {};
  }

  const RankPrograms& programs_;
  const StepCosts costs_;
  Cores cores_;
  const double chunk_bytes_;
  const std::vector<std::uint32_t>& place_;
  ReplayLog* const log_;
  EventQueue queue_;
  Flows flows_;
  std::vector<std::uint32_t> rank_at_;  ///< By end.
  std::vector<RankState> ranks_;
  /// For each rank and each of its senders: messages that arrived, less those that were expected.
  std::vector<std::int32_t> balance_;
  double now_ = 0;
  ReplayResult result_;
};

}  // namespace

Result<ReplayResult> replay(const RankPrograms& programs, const Network& network,
                            const Machine& machine, double bytes,
                            const std::vector<std::uint32_t>& place, std::uint32_t ranks_per_host,
                            ReplayLog* log) {
  return Replay(programs, network, machine, bytes, place, ranks_per_host, log).run();
}

}  // namespace anyccl::cli
