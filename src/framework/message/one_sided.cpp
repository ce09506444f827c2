#include "framework/message/one_sided.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "framework/message/message_request.hpp"
#include "platform/reduce/copy.hpp"

namespace anyccl {
namespace {

constexpr std::uint64_t kPutDigest = message_digest::of(kPutTag, DType::u8),
                        kPutBytesDigest = message_digest::of(kPutBytesTag, DType::u8);
constexpr std::uint32_t kLandedKind = 0x77696e64;  // any constant: see Operation::kind()

/// Whether [offset, offset + bytes) is in [0, size).
bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

/// Whether the bytes of a put come behind its header, which came in a message of this many bytes.
bool follows(const PutHeader& put, std::size_t message) {
  return put.bytes > 0 && message == sizeof put;
}

}  // namespace

class OneSided::OwnPut final : public Operation {
 public:
  OwnPut(const PutHeader& put, const std::byte* input) : put_(put), input_(input) {}
  bool advance() override { return false; }
  void awaited(std::vector<Rank>&) const override {}
  const PutHeader& put() const { return put_; }
  const std::byte* input() const { return input_; }

 private:
  PutHeader put_;
  const std::byte* input_;
};

OneSided::OneSided(Rank me, int size, std::size_t& open) : me_(me), size_(size), open_(open) {}

OneSided::~OneSided() = default;

// --- windows ------------------------------------------------------------------------------------

std::uint32_t OneSided::open_window(std::byte* at, std::size_t bytes) {
  if (windows_.empty()) ++open_;
  windows_[++last_window_] = Window{at, bytes, {}};
  return last_window_;
}

void OneSided::set_sizes(std::uint32_t window, std::vector<std::size_t> sizes) {
  windows_.at(window).sizes = std::move(sizes);
}

void OneSided::begin_closing(std::uint32_t window) {
  windows_.at(window).closing = true;
  ++closing_;
}

Status OneSided::close_window(std::uint32_t window) {
  const auto found = windows_.find(window);
  if (found == windows_.end()) return {};  // the communicator has failed meanwhile
  if (found->second.closing) --closing_;
  windows_.erase(found);
  if (windows_.empty()) --open_;
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (is_followed(Rank{static_cast<std::int32_t>(r)}) && peers_[r].incoming->put.window == window)
      return error(Code::remote_error,
                   "rank {} is still putting into window {}, which rank {} deregisters", r, window,
                   index(me_));
  return {};
}

void OneSided::close_all() {
  if (!windows_.empty()) --open_;
  windows_.clear();
  closing_ = 0;
}

// --- calls --------------------------------------------------------------------------------------

Status OneSided::check_peer(const char* where, Rank peer, int signal, int context) const {
  if (index(peer) < 0 || index(peer) >= size_)
    return error(Code::invalid_argument, "{}peer {} is not a rank of this communicator of {}",
                 where, index(peer), size_);
  if (signal < 0 || signal >= kSignals)
    return error(Code::invalid_argument, "{}sigIdx {} is not in 0..{}", where, signal,
                 kSignals - 1);
  if (context < 0 || context >= kContexts)
    return error(Code::invalid_argument, "{}ctx {} is not in 0..{}", where, context, kContexts - 1);
  return {};
}

Status OneSided::check_wait(const OneSidedCall& call) const {
  for (std::size_t i = 0; i < call.awaited.size(); ++i) {
    const anycclWaitSignalDesc_t& one = call.awaited[i];
    if (one.opCnt >= 0 && check_peer("", Rank{one.peer}, one.sigIdx, one.ctx).ok()) continue;
    const std::string where = fmt::format("signalDescs[{}]: ", i);
    ANYCCL_CHECK(check_peer(where.c_str(), Rank{one.peer}, one.sigIdx, one.ctx));
    return error(Code::invalid_argument, "{}opCnt {} is negative", where, one.opCnt);
  }
  return {};
}

Status OneSided::check_put(const OneSidedCall& call) const {
  const std::size_t element = bytes_of(call.dtype);
  if (element == 0)
    return error(Code::invalid_argument, "datatype {} does not exist",
                 static_cast<int>(call.dtype));
  if (call.count > (std::size_t{1} << 62) / element)
    return error(Code::invalid_argument, "count {} of {} is negative or overflows", call.count,
                 name_of(call.dtype));
  if (call.count > 0 && call.input == nullptr)
    return error(Code::invalid_argument, "localbuff is NULL and count is {}", call.count);
  const auto found = windows_.find(call.window);
  if (found == windows_.end() || found->second.closing)
    return error(Code::invalid_usage, "peerWin is deregistered");
  const std::vector<std::size_t>& sizes = found->second.sizes;
  const std::size_t size = sizes.empty() ? 0 : sizes[uindex(call.peer)];
  if (!fits(call.offset, call.bytes(), size))
    return error(Code::invalid_argument,
                 "peerWinOffset {} and {} bytes (count {} of {}) end beyond the window of rank {}, "
                 "which has {} bytes",
                 call.offset, call.bytes(), call.count, name_of(call.dtype), index(call.peer),
                 size);
  return {};
}

Status OneSided::check(const OneSidedCall& call) const {
  if (call.what == OneSidedCall::What::wait) return check_wait(call);
  ANYCCL_CHECK(check_peer("", call.peer, call.signal, call.context));
  if (call.flags != 0) return error(Code::invalid_argument, "flags is {} instead of 0", call.flags);
  return call.what == OneSidedCall::What::put ? check_put(call) : Status();
}

std::shared_ptr<Operation> OneSided::put_to_itself(const OneSidedCall& call, Gate gate) {
  const PutHeader put = header_of(call);
  if (gate == Gate::open && own_.empty()) {
    do_put_to_itself(put, call.input);
    return nullptr;
  }
  own_.push_back(std::make_shared<OwnPut>(put, call.input));
  own_.back()->set(gate);
  ++open_;
  return own_.back();
}

std::vector<std::uint64_t> OneSided::sent() const {
  std::vector<std::uint64_t> sent(static_cast<std::size_t>(size_));
  for (std::size_t r = 0; r < peers_.size(); ++r) sent[r] = peers_[r].sent;
  return sent;
}

void OneSided::do_put_to_itself(const PutHeader& put, const std::byte* input) {
  if (put.bytes > 0) std::memmove(windows_.at(put.window).at + put.offset, input, put.bytes);
  count_arrival(me_, put);
}

std::shared_ptr<ArrivalWait> OneSided::take_signals(std::span<const anycclWaitSignalDesc_t> signals,
                                                    Gate gate) {
  auto wait = std::exchange(spare_, nullptr);
  if (wait == nullptr) wait = std::make_shared<ArrivalWait>();
  std::uint32_t kind = kLandedKind + static_cast<std::uint32_t>(signals.size());
  if (!signals.empty())
    kind ^= static_cast<std::uint32_t>(signals[0].peer) << 16 ^
            static_cast<std::uint32_t>(signals[0].sigIdx) << 8 ^
            static_cast<std::uint32_t>(signals[0].ctx);
  wait->begin(gate, kind);
  for (const anycclWaitSignalDesc_t& one : signals) {
    Signal& wanted = signal(Rank{one.peer}, one.ctx, one.sigIdx);
    wanted.taken += static_cast<std::uint64_t>(one.opCnt);
    wait->add({Rank{one.peer}, &wanted.arrived, wanted.taken});
  }
  return wait;
}

std::shared_ptr<ArrivalWait> OneSided::wait_for_landed(const std::vector<std::uint64_t>& counts) {
  const auto wait = std::make_shared<ArrivalWait>();
  wait->begin(Gate::open, kLandedKind);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const Rank from{static_cast<std::int32_t>(r)};
    wait->add({from, &peer_of(from).landed, counts[r]});
  }
  return wait;
}

bool OneSided::needs_peer(const ArrivalWait& wait) const {
  return std::any_of(wait.left().begin(), wait.left().end(),
                     [&](const ArrivalWait::Count& count) { return count.from != me_; });
}

void OneSided::add(const std::shared_ptr<ArrivalWait>& wait) {
  const bool counted = needs_peer(*wait);
  if (counted) ++open_;
  waits_.push_back({wait, counted});
}

OneSided::Signal& OneSided::signal(Rank from, int context, int index) {
  if (signals_.empty()) signals_.resize(static_cast<std::size_t>(size_) * kContexts);
  auto& of_context = signals_[uindex(from) * kContexts + static_cast<std::size_t>(context)];
  if (of_context == nullptr) of_context = std::make_unique<Signals>();
  return (*of_context)[static_cast<std::size_t>(index)];
}

// --- what arrives -------------------------------------------------------------------------------

bool OneSided::must_clear_way(Rank from) const {
  if (closing_ > 0) return true;
  const auto is_from = [&](const ArrivalWait::Count& count) { return count.from == from; };
  return std::any_of(waits_.begin(), waits_.end(), [&](const Waiting& one) {
    return one.wait->is_open() &&
           std::any_of(one.wait->left().begin(), one.wait->left().end(), is_from);
  });
}

void OneSided::note_problem(Status why) {
  if (!problem_.ok()) return;
  problem_ = std::move(why);
  ++open_;  // there is something to say
}

Status OneSided::no_window(Rank from, const PutHeader& put) const {
  return error(Code::invalid_usage, "rank {} puts into window {} of rank {}, which has none",
               index(from), put.window, index(me_));
}

Status OneSided::check_followed(Rank from, const Envelope& envelope) const {
  const PutHeader& put = peers_[uindex(from)].incoming->put;
  if (!windows_.contains(put.window)) return no_window(from, put);
  if (envelope.digest == kPutBytesDigest && envelope.total == put.bytes) return {};
  return error(Code::invalid_usage,
               "rank {} puts {} bytes into window {} of rank {}, but sends something else ({} "
               "bytes)",
               index(from), put.bytes, put.window, index(me_), envelope.total);
}

std::span<std::byte> OneSided::place_of_next(Rank from, const Envelope& envelope) {
  if (!problem_.ok()) return {};
  auto& slot = peer_of(from).incoming;
  if (slot == nullptr) slot = std::make_unique<Incoming>();
  if (slot->is_followed) {
    Status bad = check_followed(from, envelope);
    if (bad.ok()) return {windows_.at(slot->put.window).at + slot->put.offset, slot->put.bytes};
    note_problem(std::move(bad));
    return {};
  }
  if (envelope.digest != kPutDigest || envelope.total < sizeof(PutHeader) ||
      envelope.total > kMostPutMessage || envelope.lent) {
    note_problem(error(Code::invalid_usage,
                       "rank {} sends rank {} a put without a header ({} bytes)", index(from),
                       index(me_), envelope.total));
    return {};
  }
  slot->bytes = envelope.total;
  return std::span(slot->message).first(slot->bytes);
}

/// `message`: bytes of the message with the header.
Status OneSided::check_arrived(Rank from, const PutHeader& put, std::size_t message) const {
  const std::size_t with_header = follows(put, message) ? 0 : put.bytes;
  const bool is_signal = put.window == 0 && put.offset == 0 && put.bytes == 0;
  if (put.signal >= kSignals || put.context >= kContexts || message != sizeof put + with_header ||
      (put.window == 0 && !is_signal))
    return error(Code::invalid_usage,
                 "rank {} sends rank {} a put with a wrong header: signal {}, context {}, window "
                 "{}, {} bytes at {}, in a message of {} bytes",
                 index(from), index(me_), put.signal, put.context, put.window, put.bytes,
                 put.offset, message);
  if (is_signal) return {};
  const auto window = windows_.find(put.window);
  if (window == windows_.end()) return no_window(from, put);
  if (!fits(put.offset, put.bytes, window->second.bytes))
    return error(Code::invalid_usage,
                 "rank {} puts {} bytes at offset {} into window {} of rank {}, which has {} bytes",
                 index(from), put.bytes, put.offset, put.window, index(me_), window->second.bytes);
  return {};
}

void OneSided::landed(Rank from) {
  Incoming& in = *peers_[uindex(from)].incoming;
  if (std::exchange(in.is_followed, false)) return count_arrival(from, in.put);
  std::memcpy(&in.put, in.message.data(), sizeof in.put);
  if (Status bad = check_arrived(from, in.put, in.bytes); !bad.ok())
    return note_problem(std::move(bad));
  in.is_followed = follows(in.put, in.bytes);
  if (in.is_followed) return;
  if (in.put.bytes > 0)  // else it is a signal, which needs no window
    copy_bytes(windows_.at(in.put.window).at + in.put.offset, in.message.data() + sizeof(PutHeader),
               in.put.bytes);
  count_arrival(from, in.put);
}

void OneSided::count_arrival(Rank from, const PutHeader& put) {
  ++signal(from, put.context, put.signal).arrived;
  ++peer_of(from).landed;
}

bool OneSided::advance_all() {
  bool moved = false;
  for (; !own_.empty() && own_.front()->is_open(); own_.pop_front(), --open_, moved = true) {
    do_put_to_itself(own_.front()->put(), own_.front()->input());
    own_.front()->complete({});
  }
  for (const Waiting& one : waits_) moved = one.wait->advance() || moved;
  std::erase_if(waits_, [&](const Waiting& one) {
    if (one.wait->done() && one.counted) --open_;
    return one.wait->done();
  });
  return moved;
}

void OneSided::append_waiting(std::vector<std::shared_ptr<Operation>>& operations) const {
  for (const Waiting& one : waits_)
    if (one.wait->is_open()) operations.push_back(one.wait);
}

void OneSided::end(const Status& why) {
  for (const auto& put : own_) put->complete(why);
  for (const Waiting& one : waits_) one.wait->complete(why);
  own_.clear();
  waits_.clear();
  windows_.clear();
  for (Peer& peer : peers_) peer.incoming = nullptr;
}

void OneSided::end_own(const Status& why) {
  for (const Waiting& one : waits_) one.wait->complete(why);
  waits_.clear();
}

}  // namespace anyccl
