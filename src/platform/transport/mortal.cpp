#include "platform/transport/mortal.hpp"

#include <csignal>

namespace anyccl {
namespace {

/// The publications and fragments that are left to a communicator. Under its progress lock.
struct Life {
  std::uint64_t left;
  void must_go_on() const {
    if (left <= 1) ::raise(SIGKILL);
  }
};

class MortalPublications final : public Publications {
 public:
  MortalPublications(Publications& inner, Life& life)
      : Publications(inner.abilities()), inner_(inner), life_(life) {}

  void announce(const CallRecord& call) override { inner_.announce(call); }
  bool would_take(std::size_t bytes, const std::byte* memory, bool lendable) const override {
    return inner_.would_take(bytes, memory, lendable);
  }
  Offered offer(const Outgoing& out, const std::byte* source, bool lendable) override {
    life_.must_go_on();
    const Offered offered = inner_.offer(out, source, lendable);
    if (offered == Offered::copied || offered == Offered::lent) --life_.left;
    return offered;
  }
  std::byte* reserve(const Outgoing& out) override { return inner_.reserve(out); }
  void publish(const Outgoing& out) override {
    life_.must_go_on();
    inner_.publish(out);
    --life_.left;
  }
  const std::byte* poll(const Incoming& in) override { return inner_.poll(in); }
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
};

class MortalMessages final : public Messages {
 public:
  MortalMessages(Messages& inner, Life& life) : inner_(inner), life_(life) {}

  std::size_t fragment_bytes() const override { return inner_.fragment_bytes(); }
  Sent send(const Fragment& out, const std::byte* source) override {
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
    return inner_.receive(in, offset, into);
  }

 private:
  Messages& inner_;
  Life& life_;
};

class MortalTransport final : public Transport {
 public:
  MortalTransport(std::unique_ptr<Transport> inner, std::shared_ptr<Life> life)
      : inner_(std::move(inner)),
        life_(std::move(life)),
        publications_(inner_->publications(), *life_),
        messages_(inner_->messages(), *life_) {}

  std::string_view name() const override { return inner_->name(); }
  std::span<const Rank> peers() const override { return inner_->peers(); }
  Publications& publications() override { return publications_; }
  Messages& messages() override { return messages_; }
  std::size_t memory_bytes() override { return inner_->memory_bytes(); }
  GivenBack give_back() override { return inner_->give_back(); }
  void when_grown(std::function<void()> function) override {
    inner_->when_grown(std::move(function));
  }
  Status check() override { return inner_->check(); }
  bool is_vague() const override { return inner_->is_vague(); }
  PeerState state(Rank peer) override { return inner_->state(peer); }
  std::string how_ended(Rank peer) override { return inner_->how_ended(peer); }
  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return inner_->call_of(peer, sequence, record);
  }
  PeerCalls calls_of(Rank peer) override { return inner_->calls_of(peer); }
  void show_receive(bool waits, Rank from) override { inner_->show_receive(waits, from); }
  void expect(Rank peer) override { inner_->expect(peer); }
  void prepare_sleep(Alarm alarm) override { inner_->prepare_sleep(alarm); }
  void append_alarms(std::vector<pollfd>& alarms) override { inner_->append_alarms(alarms); }
  void sleep(std::chrono::nanoseconds most, std::span<const pollfd> others) override {
    inner_->sleep(most, others);
  }
  void end_sleep() override { inner_->end_sleep(); }
  bool wakes_surely() const override { return inner_->wakes_surely(); }
  void wake() override { inner_->wake(); }
  void abort(const Status& why) override { inner_->abort(why); }
  void deliver_abort() override { inner_->deliver_abort(); }
  void leave(Deadline deadline) override { inner_->leave(deadline); }

 private:
  const std::unique_ptr<Transport> inner_;
  const std::shared_ptr<Life> life_;
  MortalPublications publications_;
  MortalMessages messages_;
};

}  // namespace

void make_mortal(std::vector<std::unique_ptr<Transport>>& transports, std::uint64_t dies_at) {
  const auto life = std::make_shared<Life>(Life{dies_at});
  for (auto& transport : transports)
    transport = std::make_unique<MortalTransport>(std::move(transport), life);
}

}  // namespace anyccl
