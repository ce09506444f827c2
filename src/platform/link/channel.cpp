#include "platform/link/channel.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "platform/transport/message_digest.hpp"

namespace anyccl::link {

Channel::~Channel() {
  if (link_->generation_ != fork_generation()) return;  // the socket is the parent's
  // Without another communicator on the link, its end says the same.
  if (!ended_ && is_shared()) abort(error(Code::remote_error, "it gave the communicator up"));
  const std::lock_guard lock(link_->mutex_);
  link_->in_.close(flow_);
  flow_.context = nullptr;
  flow_.arrivals.clear();
  if (flow_.is_over()) link_->in_.erase(flow_.key);
}

bool Channel::is_shared() {
  const std::lock_guard lock(link_->mutex_);
  return link_->connector() != nullptr || link_->in_.count_users() > 1;
}

// --- sending -------------------------------------------------------------------------------------

bool Channel::send(FrameHeader header, const std::byte* payload) {
  const std::lock_guard lock(link_->mutex_);
  note_unread(header);
  if (ended_ || flow_.is_over()) return link_->out_.idle();
  header.context = flow_.key;
  header.credit = flow_.window.tell();
  if (header.type == kData) {
    flow_.window.note_sent(key_of(header), header.bytes);
    link_->owes_ = true;
  }
  link_->out_.send(header, payload);
  return link_->out_.idle();
}

/// A peer that has had its part of a collective has read all that was sent to it. With the lock.
void Channel::note_unread(const FrameHeader& header) {
  if (unread_ == 0 && header.type == kData && (header.flags & kMessage) == 0 && !ended_ &&
      (flow_.goodbye || link_->in_.ended() || link_->out_.broken()))
    unread_ = header.operation;
}

bool Channel::send_ahead(FrameHeader header, const std::byte* payload) {
  const std::lock_guard lock(link_->mutex_);
  if (ended_ || flow_.is_over()) return link_->out_.idle();
  header.context = flow_.key;
  header.credit = flow_.window.tell();
  link_->out_.send_ahead(header, payload);
  return link_->out_.idle();
}

bool Channel::flush() {
  const std::lock_guard lock(link_->mutex_);
  // A peer that has left may keep the connection open, but reads it no more.
  if (link_->connector() != nullptr) return link_->out_.flush() || is_over();
  if (link_->in_.count_present() == 0) link_->out_.discard();
  return link_->out_.flush();
}

Status Channel::send_notice(std::span<const std::byte> payload, std::span<const int> descriptors) {
  FrameHeader header;
  header.type = kNotice;
  header.bytes = static_cast<std::uint32_t>(payload.size());
  header.number = static_cast<std::uint32_t>(descriptors.size());
  const std::lock_guard lock(link_->mutex_);
  if (ended_ || flow_.is_over()) return {};
  header.context = flow_.key;
  if (link_->out_.send(header, payload.data(), descriptors)) return {};
  return error(Code::system_error,
               "this process has no descriptor left (`ulimit -n` limits their number)");
}

/// While a wait is long; with the lock.
void Channel::send_credit() {
  if (ended_ || flow_.is_over()) return;
  FrameHeader header;
  header.type = kCredit;
  header.context = flow_.key;
  header.credit = flow_.window.tell();
  link_->out_.send(header, nullptr);
}

// --- receiving -----------------------------------------------------------------------------------

const std::byte* Channel::poll(const Wanted& in) {
  const std::unique_lock lock(link_->mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {  // its holder takes in what comes for this context, too
    context_->miss();
    return nullptr;
  }
  const Arrival* arrival = flow_.arrivals.find(in.key);
  if (arrival == nullptr && link_->in_.read(&flow_, &in)) arrival = flow_.arrivals.find(in.key);
  if (arrival == nullptr) {
    note_wanted(in.key);
    return nullptr;
  }
  return fits(in, arrival->header) ? arrival->data : nullptr;
}

void Channel::consumed(const Key& key) {
  const std::lock_guard lock(link_->mutex_);
  flow_.drop(flow_.arrivals.remove(key));
  if (flow_.window.owes_credit()) send_credit();
}

bool Channel::peek(std::uint64_t message, FrameHeader& header) {
  const std::unique_lock lock(link_->mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    context_->miss();
    return false;
  }
  const Key key{message, 0, true};
  const Arrival* const arrival = flow_.arrivals.find(key);
  const FrameHeader* const found =
      arrival != nullptr ? &arrival->header : link_->in_.peek(&flow_, message);
  if (found == nullptr) return note_wanted(key), false;
  header = *found;
  return true;
}

bool Channel::next_notice(Notice& notice) {
  const std::lock_guard lock(link_->mutex_);
  link_->in_.read(&flow_, nullptr);
  link_->out_.flush();
  if (flow_.notices.empty()) return false;
  notice = std::move(flow_.notices.front());
  flow_.notices.pop_front();
  return true;
}

Status Channel::await_notice(Notice& notice, Deadline deadline) {
  // Another thread may take it in, and this one would not wake up.
  constexpr int kLongest = 1;  // ms
  for (;;) {
    if (next_notice(notice)) return {};
    if (is_gone()) {
      if (next_notice(notice)) return {};
      const Status why = context_->problem();
      return why.ok() ? error(Code::remote_error, "it went away") : why;
    }
    if (deadline.passed()) return error(Code::timeout, "it does not answer");
    pollfd wait = poll_entry();
    ::poll(&wait, 1, deadline.poll_ms(kLongest));
  }
}

void Channel::pump() {
  const std::lock_guard lock(link_->mutex_);
  link_->in_.read_some(&flow_);
  if (flow_.window.hides_credit()) send_credit();
  ask_for_wanted();
  link_->out_.flush();
}

/// For a frame that was polled for in vain: pump() asks the peer to send it, also beyond the
/// credit. Lanes take turns, so the last few are kept.
void Channel::note_wanted(const Key& key) {
  if (std::find(wanted_.begin(), wanted_.end(), key) != wanted_.end()) return;
  wanted_[next_wanted_++ % wanted_.size()] = key;
}

void Channel::ask_for_wanted() {
  for (const Key& key : wanted_) {
    if (key == Key{} || ended_ || flow_.is_over() || flow_.arrivals.find(key) != nullptr ||
        !flow_.window.should_ask(key))
      continue;
    FrameHeader header;
    header.type = kWant;
    header.flags = key.is_message ? kMessage : 0;
    header.context = flow_.key;
    header.operation = key.operation;
    header.number = key.number;
    header.credit = flow_.window.tell();
    link_->out_.send(header, nullptr);
  }
  wanted_ = {};
}

void Channel::forget_old() {
  const std::lock_guard lock(link_->mutex_);
  if (flow_.arrivals.empty()) return;
  const std::uint64_t oldest = context_->oldest.load(std::memory_order_relaxed);
  for (Arrival& old : flow_.arrivals.remove_before(oldest)) flow_.drop(std::move(old));
}

bool Channel::copy_call(std::uint64_t sequence, CallRecord& record) {
  const std::lock_guard lock(link_->mutex_);
  const CallRecord& theirs = flow_.calls[sequence % kCallHistory];
  if (theirs.sequence != sequence) return false;
  record = theirs;
  return true;
}

std::array<std::uint64_t, kCallHistory> Channel::call_sequences() {
  const std::lock_guard lock(link_->mutex_);
  std::array<std::uint64_t, kCallHistory> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = flow_.calls[i].sequence;
  return all;
}

std::uint64_t Channel::newest_call() {
  const std::lock_guard lock(link_->mutex_);
  std::uint64_t newest = flow_.newest;
  for (const CallRecord& record : flow_.calls) newest = std::max(newest, record.sequence);
  return newest;
}

bool Channel::has_left() {
  const std::lock_guard lock(link_->mutex_);
  return flow_.goodbye;
}

/// A socket that takes nothing more is the first sign that a peer is gone; what it said last is
/// read first.
bool Channel::is_dead() {
  const std::lock_guard lock(link_->mutex_);
  if (!link_->in_.ended() && link_->out_.broken())  // so what is there has an end
    do link_->in_.read(&flow_, nullptr);
    while (link_->in_.holds_unread() && !link_->in_.ended());
  return (link_->in_.ended() || link_->out_.broken()) && !flow_.is_over();
}

std::uint64_t Channel::unread() const {
  const std::lock_guard lock(link_->mutex_);
  return flow_.aborted ? 0 : unread_;
}

bool Channel::is_silent() {
  const std::lock_guard lock(link_->mutex_);
  return link_->is_silent();
}

std::string Channel::how_ended() const {
  const std::lock_guard lock(link_->mutex_);
  std::string known = link::how_ended(link_->fd());
  if (!known.empty() || !link_->in_.ended_in_a_frame()) return known;
  // The abort would have come behind this frame.
  return ", or aborted and exited before this rank read what it had sent";
}

void Channel::look_for_silence() {
  const std::lock_guard lock(link_->mutex_);
  link_->look_for_silence();
  // The peer notices by its number whether an earlier frame is missing, which both may wait for.
  if (link_->checksums_) send_credit();
}

bool Channel::is_gone() {
  if (is_dead()) return true;
  const std::lock_guard lock(link_->mutex_);
  return flow_.is_over();
}

std::size_t Channel::early_bytes() {
  const std::lock_guard lock(link_->mutex_);
  return flow_.arrivals.bytes();
}

/// Whether `header` announces what `in` wants; notes the problem if not.
bool Channel::fits(const Wanted& in, const FrameHeader& header) {
  const int peer = index(flow_.peer), me = index(context_->me);
  const auto size_of = [](bool sized, std::uint64_t total, std::size_t bytes) {
    return sized ? total : std::uint64_t{bytes};
  };
  const std::uint64_t sent = size_of((header.flags & kSized) != 0, header.total, header.bytes);
  const std::uint64_t expected = size_of(in.sized, in.total, in.bytes);
  if (!same_call(header, in)) {
    context_->note(
        in.key.is_message
            ? message_digest::other_type({peer, header.digest, sent}, {me, in.digest, expected})
            : error(Code::invalid_usage,
                    "rank {} is in a different call at operation {} than rank {}", peer,
                    in.key.operation, me),
        !in.key.is_message);
    return false;
  }
  if (same_size(header, in)) return true;
  context_->note(
      error(Code::invalid_usage,
            "rank {} sends {} bytes where rank {} expects {} ({} {}): the two must agree", peer,
            sent, me, expected, in.key.is_message ? "message" : "operation", in.key.operation));
  return false;
}

// --- sleep ---------------------------------------------------------------------------------------

pollfd Channel::poll_entry() {
  const std::lock_guard lock(link_->mutex_);
  const int wanted = (link_->in_.ended() ? 0 : POLLIN) | (link_->out_.idle() ? 0 : POLLOUT);
  // poll also reports the end of a stream that was not asked for, so such sockets are left out.
  return {wanted == 0 ? -1 : link_->fd(), static_cast<short>(wanted), 0};
}

bool Channel::holds_unread() {
  const std::lock_guard lock(link_->mutex_);
  return link_->in_.holds_unread();
}

void Channel::ring() {
  const std::lock_guard lock(link_->mutex_);
  send_credit();
}

// --- the end -------------------------------------------------------------------------------------

/// The last frame of this context. Also for a peer that has ended it: then it can forget it.
void Channel::send_last(FrameHeader last, const std::byte* payload) {
  const std::lock_guard lock(link_->mutex_);
  if (last.type == kGoodbye) flow_.left = true;
  if (std::exchange(ended_, true)) return;
  if (last.type == kAbort) link_->owes_ = true;
  last.context = flow_.key;
  link_->out_.send(last, payload);
  link_->in_.close(flow_);  // what has arrived may be read at this moment
}

void Channel::abort(const Status& why) {
  const std::vector<std::byte> payload = abort_payload(why);
  FrameHeader header;
  header.type = kAbort;
  header.bytes = static_cast<std::uint32_t>(payload.size());
  send_last(header, payload.data());
}

void Channel::say_goodbye() {
  FrameHeader header;
  header.type = kGoodbye;
  send_last(header, nullptr);
}

bool Channel::is_delivered(Delivered to) {
  const std::lock_guard lock(link_->mutex_);
  if (link_->connector() != nullptr && !link_->is_attached())
    return !link_->owes_ || link_->in_.ended();
  if (link_->is_silent()) return true;
  const bool is_flushed = link_->out_.flush();
  const Resend* const resend = link_->resend_.get();
  const auto is_in_kernel = [&] {
    if (!is_flushed || to == Delivered::own_kernel) return is_flushed;
    return (resend == nullptr ? link_->kind_->all_delivered(link_->fd()) : resend->is_settled());
  };
  if (link_->connector() != nullptr || !flow_.left) {
    link_->in_.read(&flow_, nullptr);
    return is_in_kernel() || is_over();
  }
  if (link_->has_users()) {
    link_->in_.read(&flow_, nullptr);
    return is_flushed || link_->in_.ended();
  }
  return link_->in_.drain() || is_in_kernel();
}

/// Nobody takes what this context sends. With the lock.
bool Channel::is_over() const {
  return flow_.is_over() || link_->in_.ended();
}

void Channel::close_last() {
  const std::lock_guard lock(link_->mutex_);
  link_->close_unless_used();
}

void Channel::close_if_stuck() {
  const std::lock_guard lock(link_->mutex_);
  if (link_->connector() == nullptr && link_->use_.claims == 0 && link_->in_.count_users() == 1 &&
      !link_->out_.idle() && !is_over())
    link_->out_.close();
}

}  // namespace anyccl::link
