#include "platform/transports/chaos/chaos_transport.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"

namespace anyccl {
namespace {

/// The publications and fragments that are left to a communicator. Under its progress lock.
struct Life {
  std::uint64_t left;
  void must_go_on() const {
    if (left <= 1) ::raise(SIGKILL);
  }
};

/// What is late over one transport. Under the progress lock.
class Delays {
 public:
  explicit Delays(const ChaosPlan& plan, Rank me)
      : probability_(plan.delay), time_(plan.delay_time), seed_(mix(plan.seed, uindex(me))) {}

  /// Whether what has this name is not to be sent, or seen, yet. It is asked for until it is.
  bool hold_back(std::uint64_t name) {
    if (probability_ <= 0) return false;
    const std::uint64_t drawn = mix(mix(seed_, name), kSalt);
    if (static_cast<double>(drawn >> 11) * 0x1p-53 >= probability_) return false;
    const Clock::time_point now = Clock::now();
    if (due_.size() >= kMostKnown)
      std::erase_if(due_, [&](const auto& one) { return one.second + kForgotten < now; });
    const Clock::time_point due = due_.try_emplace(name, now + time_).first->second;
    last_due_ = std::max(last_due_, due);
    return now < due;
  }
  /// Nothing will wake this rank for it.
  bool are_running() const { return Clock::now() < last_due_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kSalt = 0x5DEECE66D;
  static constexpr std::size_t kMostKnown = 4096;
  /// Nobody asks for it any more.
  static constexpr auto kForgotten = std::chrono::seconds(10);

  const double probability_;
  const std::chrono::nanoseconds time_;
  const std::uint64_t seed_;
  std::unordered_map<std::uint64_t, Clock::time_point> due_;  // By name.
  Clock::time_point last_due_{};
};

enum Direction : std::uint64_t { kIn = 1, kOut = 2 };

std::uint64_t name_of(const Outgoing& out) {
  return mix(mix(kOut, out.operation), out.number);
}
std::uint64_t name_of(const Incoming& in) {
  return mix(mix(mix(kIn, in.operation), in.number), in.rank);
}
/// Names a fragment of a message; those of a lent message have offsets.
std::uint64_t name_of(Direction way, const Fragment& part, std::size_t offset) {
  return mix(mix(mix(mix(~std::uint64_t{way}, uindex(part.peer)), part.message), part.number),
             offset);
}

class ChaosPublications final : public Publications {
 public:
  ChaosPublications(Publications& inner, Life& life, Delays& delays)
      : Publications(inner.abilities()), inner_(inner), life_(life), delays_(delays) {}

  void announce(const CallRecord& call) override { inner_.announce(call); }
  void announce_first(const CallRecord& call) override { inner_.announce_first(call); }
  bool would_take(std::size_t bytes, const std::byte* memory, bool lendable) const override {
    return inner_.would_take(bytes, memory, lendable);
  }
  Offered offer(const Outgoing& out, const std::byte* source, bool lendable) override {
    if (delays_.hold_back(name_of(out))) return Offered::busy;
    life_.must_go_on();
    const Offered offered = inner_.offer(out, source, lendable);
    if (offered == Offered::copied || offered == Offered::lent) --life_.left;
    return offered;
  }
  std::byte* reserve(const Outgoing& out) override {
    return delays_.hold_back(name_of(out)) ? nullptr : inner_.reserve(out);
  }
  void publish(const Outgoing& out) override {
    life_.must_go_on();
    inner_.publish(out);
    --life_.left;
  }
  const std::byte* poll(const Incoming& in) override {
    return delays_.hold_back(name_of(in)) ? nullptr : inner_.poll(in);
  }
  void consumed(const Incoming& in) override { inner_.consumed(in); }
  void post(std::uint64_t operation, std::uint32_t lane, std::uint32_t tick) override {
    inner_.post(operation, lane, tick);
  }
  bool finished(std::uint64_t operation, bool everyone) override {
    return inner_.finished(operation, everyone);
  }
  bool settled() override { return inner_.settled(); }
  bool is_behind(Rank peer) override { return inner_.is_behind(peer); }

 private:
  Publications& inner_;
  Life& life_;
  Delays& delays_;
};

class ChaosMessages final : public Messages {
 public:
  ChaosMessages(Messages& inner, Life& life, Delays& delays)
      : inner_(inner), life_(life), delays_(delays) {}

  std::size_t fragment_bytes() const override { return inner_.fragment_bytes(); }
  Sent send(const Fragment& out, const std::byte* source) override {
    if (delays_.hold_back(name_of(kOut, out, 0))) return Sent::busy;
    life_.must_go_on();
    const Sent sent = inner_.send(out, source);
    if (sent != Sent::busy) --life_.left;
    return sent;
  }
  bool settled(Rank reader) override { return inner_.settled(reader); }
  bool peek(Rank from, std::uint64_t message, Envelope& envelope) override {
    return inner_.peek(from, message, envelope);
  }
  bool receive(const Fragment& in, std::size_t offset, std::byte* into) override {
    return !delays_.hold_back(name_of(kIn, in, offset)) && inner_.receive(in, offset, into);
  }

 private:
  Messages& inner_;
  Life& life_;
  Delays& delays_;
};

class ChaosTransport final : public Transport {
 public:
  ChaosTransport(std::unique_ptr<Transport> inner, std::shared_ptr<Life> life, Delays delays)
      : inner_(std::move(inner)),
        life_(std::move(life)),
        delays_(std::move(delays)),
        publications_(inner_->publications(), *life_, delays_),
        messages_(inner_->messages(), *life_, delays_) {}

  std::string_view name() const override { return inner_->name(); }
  std::span<const Rank> peers() const override { return inner_->peers(); }
  Publications& publications() override { return publications_; }
  Messages& messages() override { return messages_; }
  std::size_t memory_bytes() override { return inner_->memory_bytes(); }
  GivenBack give_back() override { return inner_->give_back(); }
  void when_grown(std::function<void()> function) override {
    inner_->when_grown(std::move(function));
  }
  Result<ShownMemory> show(std::size_t read_bytes, std::size_t written_bytes) override {
    return inner_->show(read_bytes, written_bytes);
  }
  ShownMemory shown_by(Rank peer) override { return inner_->shown_by(peer); }
  Status check() override { return inner_->check(); }
  bool is_vague() const override { return inner_->is_vague(); }
  /// What is late may be what a peer gave before it went.
  PeerState state(Rank peer) override {
    return delays_.are_running() ? PeerState::present : inner_->state(peer);
  }
  std::string how_ended(Rank peer) override { return inner_->how_ended(peer); }
  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return inner_->call_of(peer, sequence, record);
  }
  Status glance() override { return inner_->glance(); }
  bool known_call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return inner_->known_call_of(peer, sequence, record);
  }
  std::uint64_t unread_by(Rank peer) const override { return inner_->unread_by(peer); }
  PeerCalls calls_of(Rank peer) override { return inner_->calls_of(peer); }
  void show_receive(bool waits, Rank from) override { inner_->show_receive(waits, from); }
  void expect(Rank peer) override { inner_->expect(peer); }
  void prepare_sleep(Alarm alarm) override { inner_->prepare_sleep(alarm); }
  void append_alarms(std::vector<pollfd>& alarms) override { inner_->append_alarms(alarms); }
  /// Sleeps for a millisecond at most while something is late, as nothing wakes this rank for it.
  void sleep(std::chrono::nanoseconds most, std::span<const pollfd> others) override {
    inner_->sleep(delays_.are_running() ? std::min<std::chrono::nanoseconds>(most, kNap) : most,
                  others);
  }
  void end_sleep() override { inner_->end_sleep(); }
  bool wakes_surely() const override { return !delays_.are_running() && inner_->wakes_surely(); }
  void wake() override { inner_->wake(); }
  void abort(const Status& why) override { inner_->abort(why); }
  void deliver_abort() override { inner_->deliver_abort(); }
  void leave(Deadline deadline) override { inner_->leave(deadline); }

 private:
  static constexpr auto kNap = std::chrono::milliseconds(1);

  const std::unique_ptr<Transport> inner_;
  const std::shared_ptr<Life> life_;
  Delays delays_;
  ChaosPublications publications_;
  ChaosMessages messages_;
};

}  // namespace

void add_chaos(std::vector<std::unique_ptr<Transport>>& transports, const ChaosPlan& plan,
               Rank me) {
  constexpr std::uint64_t kLong = ~std::uint64_t{0};
  const auto life = std::make_shared<Life>(Life{plan.die == 0 ? kLong : plan.die});
  for (auto& transport : transports) {
    ChaosPlan delays = plan;
    if (!transport->publications().abilities().has_slots)
      delays.delay = 0;  // its connections have some
    if (plan.die > 0 || delays.delay > 0)
      transport = std::make_unique<ChaosTransport>(std::move(transport), life, Delays(delays, me));
  }
}

}  // namespace anyccl
