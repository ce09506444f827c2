#include "platform/link/reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace anyccl::link {
namespace {

// Contexts that a peer may speak of before they are opened here.
constexpr std::size_t kMostUnopened = 4096;

// Notices of a context that no call has taken yet.
constexpr std::size_t kMostNotices = 16384;

// A frame that came twice was consumed twice.
constexpr char kTooMuchCredit[] = "that it has read more than it was sent";

// Payloads from this size are read straight into their place: reading the header alone first costs
// one more system call, which is cheaper than copying this much.
constexpr std::size_t kDirect = 8192;

/// Counts a frame of so many bytes that has come whole, and acknowledges what came if that is due.
void note_frame(Resend* resend, std::size_t bytes) {
  if (resend == nullptr) return;
  resend->note_came(bytes);
  if (resend->owes_acknowledgement()) resend->link.acknowledge();
}

}  // namespace

bool same_call(const FrameHeader& header, const Wanted& in) {
  return header.digest == in.digest;
}

bool same_size(const FrameHeader& header, const Wanted& in) {
  const bool sized = (header.flags & kSized) != 0;
  return header.bytes == in.bytes && sized == in.sized && (!sized || header.total == in.total);
}

// --- contexts ------------------------------------------------------------------------------------

Flow* Reader::flow_of(ContextKey key) {
  if (last_ != nullptr && last_->key == key) return last_;
  const auto found = flows_.find(key);
  if (found != flows_.end()) return last_ = &found->second;
  const auto unopened = std::count_if(flows_.begin(), flows_.end(), [](const auto& flow) {
    return flow.second.context == nullptr && !flow.second.closed;  // also those that have ended
  });
  if (static_cast<std::size_t>(unopened) >= kMostUnopened) return nullptr;
  return last_ = &flows_.try_emplace(key, key).first->second;
}

Flow& Reader::own_flow(ContextKey key) {
  return flows_.try_emplace(key, key).first->second;
}

void Reader::erase(ContextKey key) {
  if (last_ != nullptr && last_->key == key) last_ = nullptr;
  flows_.erase(key);
}

std::size_t Reader::count_present() const {
  return static_cast<std::size_t>(std::count_if(flows_.begin(), flows_.end(), [](const auto& flow) {
    return !flow.second.goodbye && (flow.second.context != nullptr || !flow.second.closed);
  }));
}

std::size_t Reader::count_users() const {
  return static_cast<std::size_t>(std::count_if(flows_.begin(), flows_.end(), [](const auto& flow) {
    return flow.second.context != nullptr && !flow.second.left;
  }));
}

void Reader::close(Flow& flow) {
  flow.closed = true;
  flow.notices.clear();
  if (in_frame_ && flow_ == &flow) {
    dropped_ = true;
    target_ = nullptr;
    buffer_ = {};
  }
}

/// Something has come for a context whose own thread may sleep.
void Reader::tell(Flow& flow) {
  if (flow.context != nullptr && flow.context != reads_for_) flow.context->note_delivered();
}

/// Bytes that are read already wake no thread of another context.
void Reader::note_unread() {
  unread_ = true;
  for (auto& [key, flow] : flows_) tell(flow);
}

void Reader::connect(int fd, SecureStream* secure) {
  fd_ = fd;
  secure_ = secure;
  if (staging_ == nullptr) staging_ = std::make_unique<Staging>();
}

void Reader::disconnect() {
  fd_ = -1;
  secure_ = nullptr;
  greeting_bytes_ = 0;
  begin_ = end_ = 0;
  unread_ = false;
  if (!std::exchange(in_frame_, false)) return;
  flow_->window.note_not_arrived(key_of(frame_), frame_.bytes);
  --next_number_;
  target_ = nullptr;
  buffer_ = {};
  dropped_ = false;
}

void Reader::give_up(const Status& problem) {
  for (auto& [key, flow] : flows_)
    if (flow.context != nullptr && !problem.ok()) flow.context->note(problem);
  ended_ = true;
  tell_all();
}

void Reader::tell_all() {
  reads_for_ = nullptr;
  for (auto& [key, flow] : flows_) tell(flow);
}

// --- reading -------------------------------------------------------------------------------------

bool Reader::read(Flow* mine, const Wanted* wanted, std::size_t most) {
  if (staging_ == nullptr) return false;
  reads_for_ = mine == nullptr ? nullptr : mine->context;
  std::size_t controls = kSome;
  for (std::size_t frames = 0; frames < most; ++frames) {
    unread_ = false;
    if (!in_frame_ && !next_header(wanted, controls)) return false;
    if (target_ == nullptr && !dropped_) choose_target(mine, wanted);
    if (!receive_payload()) return false;
    const bool is_wanted = wanted != nullptr && flow_ == mine && key_of(frame_) == wanted->key;
    if (finish_frame() && is_wanted) {
      if (holds_more()) note_unread();
      return true;
    }
  }
  if (holds_more()) note_unread();
  return false;
}

const FrameHeader* Reader::peek(Flow* mine, std::uint64_t message) {
  if (staging_ == nullptr) return nullptr;
  const Key key{message, 0, true};
  reads_for_ = mine->context;
  for (std::size_t controls = kSome;;) {
    unread_ = false;
    if (!in_frame_ && !next_header(nullptr, controls)) return nullptr;
    if (flow_ == mine && key_of(frame_) == key && target_ == nullptr && !dropped_) {
      note_unread();
      return &frame_;
    }
    if (target_ == nullptr && !dropped_) choose_target(mine, nullptr);
    if (!receive_payload()) return nullptr;
    const bool is_wanted = flow_ == mine && key_of(frame_) == key;
    if (finish_frame() && is_wanted) return &mine->arrivals.find(key)->header;
  }
}

/// False also when `controls` frames of control have come: nothing else bounds their number.
bool Reader::next_header(const Wanted* wanted, std::size_t& controls) {
  const bool direct = wanted != nullptr && wanted->bytes >= kDirect;
  for (;;) {
    while (staged() < head_bytes())
      if (!fill(direct ? head_bytes() : staging_->size())) return false;
    FrameHeader header;
    std::memcpy(&header, staging_->data() + begin_, sizeof header);
    if (const char* what = problem_of_head(header)) {
      damaged(what);
      return false;
    }
    if (header.type != kData) {
      // A call comes along with data whose place is known.
      const std::size_t most =
          direct && header.type == kCall ? header.bytes + head_bytes() : staging_->size();
      while (staged() < head_bytes() + header.bytes)
        if (!fill(most)) return false;
      if (!handle_control(header)) return false;
      if (--controls > 0) continue;
      note_unread();
      return false;
    }
    Flow* const flow = flow_of(header.context);
    const char* what = flow == nullptr   ? "frames of too many communicators"
                       : flow->is_over() ? "data after its goodbye"
                       : flow->closed    ? nullptr
                       : !flow->window.allows(key_of(header), header.bytes) ? "more than it may"
                       : !flow->window.take_credit(header.credit)           ? kTooMuchCredit
                                                                            : nullptr;
    if (what != nullptr) {
      malformed(what);
      return false;
    }
    begin_ += head_bytes();
    ++next_number_;
    frame_ = header;
    flow_ = flow;
    flow->window.note_arrived(key_of(header), header.bytes);
    if ((header.flags & kMessage) == 0) flow->newest = std::max(flow->newest, header.operation);
    in_frame_ = true;
    dropped_ = flow->closed;
    received_ = 0;
    return true;
  }
}

/// The head of a frame lies at the beginning of the staging buffer.
const char* Reader::problem_of_head(const FrameHeader& header) {
  if (seals_) {
    SealedHeader sealed;
    std::memcpy(&sealed, staging_->data() + begin_, sizeof sealed);
    if (const char* what = problem_of(sealed, next_number_)) return what;
    seal_ = sealed.seal;
  }
  return problem_of(header);
}

/// The frame lies whole in the staging buffer. False: nothing more is to be read.
bool Reader::handle_control(const FrameHeader& header) {
  const std::byte* payload = staging_->data() + begin_ + head_bytes();
  if (seals_ && !link::fits(seal_, payload, header.bytes)) {
    damaged(kDamaged);
    return false;
  }
  begin_ += head_bytes() + header.bytes;
  ++next_number_;
  note_frame(resend_, head_bytes() + header.bytes);
  if (header.type == kReceived) return take_acknowledgement(header);
  Flow* const flow = flow_of(header.context);
  if (flow == nullptr || flow->is_over()) {
    malformed(flow == nullptr ? "frames of too many communicators" : "more after its goodbye");
    return false;
  }
  if (!flow->window.take_credit(header.credit)) {
    malformed(kTooMuchCredit);
    return false;
  }
  switch (header.type) {
    case kCall: {
      CallRecord record;
      std::memcpy(&record, payload, sizeof record);
      flow->calls[record.sequence % kCallHistory] = record;
      break;
    }
    case kWant:
      flow->window.note_asked(key_of(header));
      break;
    case kCredit:
      break;
    case kNotice:
      if (!take_notice(header, payload, *flow)) return false;
      break;
    case kGoodbye:
      flow->goodbye = true;
      break;
    default:
      flow->aborted = true;
      if (flow->context != nullptr && !flow->closed)
        flow->context->note(received_abort(flow->peer, payload, header.bytes));
      else
        flow->last_words.assign(payload, payload + header.bytes);
  }
  tell(*flow);
  // Who leaves waits for that: see Channel::is_delivered().
  if (resend_ != nullptr && flow->is_over()) resend_->link.acknowledge();
  if (flow->closed && flow->context == nullptr && flow->is_over()) erase(flow->key);
  return true;
}

/// Takes the peer's word for how much of this end's frames it has received.
bool Reader::take_acknowledgement(const FrameHeader& header) {
  if (resend_ != nullptr && resend_->note_acknowledged(header.credit)) return true;
  malformed("that it has received what it was not sent");
  return false;
}

bool Reader::take_notice(const FrameHeader& header, const std::byte* payload, Flow& flow) {
  Notice notice{{payload, payload + header.bytes}, {}};
  if (header.number > 0) {
    if (descriptors_.empty()) return malformed("a notice without its descriptors"), false;
    notice.descriptors = std::move(descriptors_.front());
    descriptors_.pop_front();
  }
  if (flow.closed) return true;
  if (flow.notices.size() == kMostNotices) return malformed("notices without end"), false;
  flow.notices.push_back(std::move(notice));
  return true;
}

/// Where the payload of frame_ goes.
void Reader::choose_target(Flow* mine, const Wanted* wanted) {
  if (wanted != nullptr && flow_ == mine && key_of(frame_) == wanted->key &&
      wanted->into != nullptr && same_call(frame_, *wanted) && same_size(frame_, *wanted)) {
    target_ = wanted->into;
    return;
  }
  buffer_ = BufferPool::of_process().take(frame_.bytes);
  target_ = buffer_.data();
  if (target_ != nullptr) return;
  dropped_ = true;
  if (flow_->context != nullptr)
    flow_->context->note(error(Code::system_error,
                               "rank {} has no memory for {} bytes from rank {}",
                               index(flow_->context->me), frame_.bytes, index(flow_->peer)));
}

bool Reader::receive_payload() {
  const std::size_t bytes = frame_.bytes;
  const std::size_t here = std::min(bytes - received_, staged());
  if (here > 0) {
    if (!dropped_) std::memcpy(target_ + received_, staging_->data() + begin_, here);
    begin_ += here;
    received_ += here;
  }
  while (received_ < bytes) {
    const std::size_t left = bytes - received_;
    if (dropped_) {
      begin_ = end_ = 0;
      if (!fill(std::min(left, staging_->size()))) return false;
      received_ += staged();
      begin_ = end_ = 0;
      continue;
    }
    // The staging buffer is empty now. The next header comes along, which saves a call per frame.
    begin_ = end_ = 0;
    iovec parts[] = {{target_ + received_, left}, {staging_->data(), head_bytes()}};
    const ssize_t n = receive(parts, 2);
    if (!note_read(n)) return false;
    const auto got = static_cast<std::size_t>(n);
    received_ += std::min(got, left);
    end_ = got > left ? got - left : 0;
  }
  return true;
}

/// Checks the frame and adds it to the arrivals. Whether it is there now: not if it was damaged,
/// came twice, was dropped or is of no interest.
bool Reader::finish_frame() {
  if (seals_ && !dropped_ && !link::fits(seal_, target_, frame_.bytes))
    return damaged(kDamaged), false;
  in_frame_ = false;
  const std::byte* data = std::exchange(target_, nullptr);
  Arrival arrival{frame_, std::exchange(buffer_, Buffer{}), data};
  Context* const context = flow_->context;
  Flow& flow = *flow_;
  note_frame(resend_, head_bytes() + frame_.bytes);
  if (std::exchange(dropped_, false)) return flow.window.note_consumed(frame_.bytes), false;
  const Key key = key_of(frame_);
  if (context != nullptr && !key.is_message &&
      key.operation < context->oldest.load(std::memory_order_relaxed)) {
    flow.window.note_consumed(frame_.bytes);
    return BufferPool::of_process().give(std::move(arrival.buffer)), false;
  }
  if (!flow.arrivals.add(std::move(arrival))) return malformed("a publication twice"), false;
  if (context != nullptr) context->arrivals.fetch_add(1, std::memory_order_relaxed);
  tell(flow);
  return true;
}

}  // namespace anyccl::link
