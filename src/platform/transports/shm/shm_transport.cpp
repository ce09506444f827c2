#include "platform/transports/shm/shm_transport.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/fences.hpp"
#include "base/futex.hpp"
#include "platform/transports/shm/mailbox.hpp"
#include "platform/transports/shm/publications.hpp"

namespace anyccl::shm {
namespace {

class ShmTransport final : public Transport {
 public:
  ShmTransport(Rank me, const Layout& layout, std::shared_ptr<Segment> mine,
               std::vector<Peer> peers, const TransportSetup& setup)
      : layout_(layout),
        segment_(std::move(mine)),
        out_(segment_->out()),
        in_(segment_->in()),
        peers_(me, layout_, segment_, std::move(peers), setup.config.shm_copy),
        publications_(me, layout_, *segment_, peers_),
        mailboxes_(me, layout_, *segment_, peers_, setup),
        fenced_(join_fences() && peers_.are_fenced()) {}

  ~ShmTransport() override {
    if (!segment_->is_inherited()) segment_->leave_to(peers_.readers());
  }
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  std::string_view name() const override { return segment_->shared ? "shm" : "loopback"; }
  std::span<const Rank> peers() const override { return peers_.ranks(); }
  Publications& publications() override { return publications_; }
  Messages& messages() override { return mailboxes_; }
  std::size_t memory_bytes() override {
    return sizeof(DoorbellPage) + publications_.bytes() + mailboxes_.bytes();
  }

  void when_grown(std::function<void()> function) override {
    publications_.when_grown(std::move(function));
  }
  GivenBack give_back() override { return publications_.give_back(); }

  Result<ShownMemory> show(std::size_t read_bytes, std::size_t written_bytes) override {
    return peers_.show(read_bytes, written_bytes);
  }
  ShownMemory shown_by(Rank peer) override { return peers_.shown_by(uindex(peer)); }

  Status check() override { return peers_.check(); }
  /// A peer that has failed rings after it has said so.
  Status glance() override {
    const std::uint32_t rung = doorbell().load(std::memory_order_acquire);
    return rung == std::exchange(glanced_, rung) ? Status() : peers_.check();
  }
  PeerState state(Rank peer) override { return peers_.of(uindex(peer)).state; }
  std::string how_ended(Rank peer) override { return peers_.of(uindex(peer)).channel->how_ended(); }
  bool call_of(Rank peer, std::uint64_t sequence, CallRecord& record) override {
    return publications_.call_of(peer, sequence, record);
  }

  PeerCalls calls_of(Rank peer) override { return publications_.calls_of(peer); }
  void show_receive(bool waits, Rank from) override {
    at<RankFlags>(out_, layout_.flags())
        .receives.store(waits ? receives_word(from) : 0, std::memory_order_relaxed);
  }

  // A publisher stores its word and then looks at `sleeping`; the sleeper stores `sleeping` and
  // then looks for the word. With a fence between the two on both sides at least one sees the
  // other.
  // Readers that post progress look at `progress_wanted` in the same way.
  void prepare_sleep(Alarm alarm) override {
    wants_progress_ = publications_.waits_for_readers();
    publications_.forget_waits();
    rung_ = doorbell().load(std::memory_order_acquire);
    at<RankFlags>(out_, layout_.flags())
        .sleeping.store(alarm == Alarm::own ? kOnDoorbell : kOnSockets, std::memory_order_seq_cst);
    if (wants_progress_) peers_.ask_for_progress();
    if (fenced_) fence_all();
  }
  void sleep(std::chrono::nanoseconds most, std::span<const pollfd> /*others*/) override {
    const auto limit = std::min<std::chrono::nanoseconds>(most, std::chrono::milliseconds(999));
    if (most.count() > 0) futex_wait(doorbell(), rung_, limit, FutexScope::shared);
    awake();
  }
  void append_alarms(std::vector<pollfd>& alarms) override {
    for (Peer& peer : peers_.all()) alarms.push_back(peer.channel->poll_entry());
  }
  /// Also takes in what has rung.
  void end_sleep() override {
    awake();
    static_cast<void>(peers_.check());  // who waits asks again
  }
  bool wakes_surely() const override {
    return fenced_ && (wants_progress_ || !publications_.waits_for_readers());
  }
  void wake() override { PeerTable::ring_doorbell(doorbell()); }

  void abort(const Status& why) override {
    ControlMessage message;
    message.kind = ControlMessage::abort;
    message.code = static_cast<int>(why.code());
    why.message().copy(message.text, sizeof message.text - 1);
    peers_.tell_all(message);
    peers_.end(why);
  }

  /// Says goodbye to every peer, and waits for none.
  void leave(Deadline /*deadline*/) override {
    at<RankFlags>(out_, layout_.flags()).left.store(1, std::memory_order_release);
    peers_.say_goodbye();
  }

 private:
  void awake() {
    at<RankFlags>(out_, layout_.flags()).sleeping.store(kAwake, std::memory_order_relaxed);
  }
  std::atomic<std::uint32_t>& doorbell() { return at<DoorbellPage>(in_, 0).doorbell; }

  const Layout layout_;
  std::shared_ptr<Segment> segment_;
  std::byte* out_;
  std::byte* in_;
  PeerTable peers_;
  ShmPublications publications_;
  Mailboxes mailboxes_;
  bool wants_progress_ = false;  // since prepare_sleep()
  const bool fenced_;            // all can be made to fence
  std::uint32_t rung_ = 0;       // the doorbell, when prepare_sleep() looked
  std::uint32_t glanced_ = 0;    // the same, of glance()
};

}  // namespace

Result<MadeTransport> make_shm_transport(std::vector<link::PeerChannel> peers,
                                         const TransportSetup& setup) {
  Layout layout;
  layout.ranks = setup.ranks;
  layout.banks = setup.banks;
  layout.slots = setup.slots;
  layout.slot_lines = static_cast<std::uint32_t>(setup.line_bytes / sizeof(Line) +
                                                 1);  // the word needs the rest of the last one
  layout.ring_bytes = setup.ring_bytes;
  const bool shared = std::any_of(peers.begin(), peers.end(),
                                  [](const link::PeerChannel& p) { return !p.same_process; });
  auto segment = make_segment(layout, shared, setup.context->key, heap_of(peers));
  if (!segment.ok()) {  // peers wait for it, and hear why in vain
    for (const link::PeerChannel& peer : peers) peer.channel->abort(segment.status());
    return error(segment.status().code(), "rank {}: {}", index(setup.me),
                 segment.status().message());
  }
  const std::shared_ptr<Segment> mine = *std::move(segment);
  ANYCCL_TRY(ConnectResult connected,
             connect_peers(setup.me, std::move(peers), mine, layout, setup.deadline));
  MadeTransport made;
  made.others = std::move(connected.others);
  if (!connected.reached.empty())
    made.transport =
        std::make_unique<ShmTransport>(setup.me, layout, mine, std::move(connected.reached), setup);
  return made;
}

}  // namespace anyccl::shm
