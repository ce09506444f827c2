#include "payload_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace anyccl::bindings {

PayloadExchange::PayloadExchange(const Settings& settings, std::vector<std::string_view> payloads,
                                 bool failed)
    : settings_(settings), payloads_(std::move(payloads)) {
  call_.size = sizeof call_;
  call_.datatype = anycclUint8;
  call_.root = settings.root;
  call_.timeout_ms = settings.timeout_ms;
  prepare_first(failed);
}

PayloadExchange::~PayloadExchange() {
  if (work_ != nullptr) static_cast<void>(anycclWorkFree(work_));
}

void PayloadExchange::prepare_first(bool failed) {
  std::size_t longest = 0;
  for (const std::string_view payload : payloads_) longest = std::max(longest, payload.size());
  sent_.resize(kBlock * payloads_.size());
  for (std::size_t i = 0; i < payloads_.size(); ++i) {
    const std::string_view payload =
        payloads_[i].substr(0, failed ? kInline : std::string_view::npos);
    const Head head{longest, payload.size(), failed ? 1U : 0U};
    char* const block = sent_.data() + i * kBlock;
    std::memcpy(block, &head, sizeof head);
    if (later(payload.size()) == 0) payload.copy(block + sizeof head, payload.size());
  }
  // All ranks take the blocks of a gather, too, as all are to hear of an error.
  call_.collective = gathers() ? anycclCollAllGather : settings_.what;
  received_.resize(kBlock * static_cast<std::size_t>(gathers() ? settings_.size : 1));
  const bool is_source = settings_.what == anycclCollBroadcast && is_root();
  if (is_source) received_ = sent_;
  call_.sendbuff = is_source ? received_.data() : sent_.data();
  call_.recvbuff = received_.data();
  call_.count = kBlock;
}

PayloadExchange::Head PayloadExchange::head_of(std::size_t block) const {
  Head head;
  std::memcpy(&head, received_.data() + block * kBlock, sizeof head);
  return head;
}

std::ptrdiff_t PayloadExchange::own_part() const {
  if (gathers()) return settings_.rank;
  return is_root() ? 0 : -1;
}

PayloadExchange::Blocks PayloadExchange::blocks_of(const std::vector<std::string_view>& parts) {
  Blocks blocks;
  for (const std::string_view part : parts)
    if (!part.empty() && (blocks.base == nullptr || std::less<>()(part.data(), blocks.base)))
      blocks.base = part.data();
  for (const std::string_view part : parts) {
    blocks.counts.push_back(part.size());
    blocks.displs.push_back(part.empty() ? 0
                                         : reinterpret_cast<std::uintptr_t>(part.data()) -
                                               reinterpret_cast<std::uintptr_t>(blocks.base));
  }
  return blocks;
}

/// Prepares the round of the long payloads. False: there are none, or an error has come.
bool PayloadExchange::prepare_second() {
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < arrived(); ++i) {
    if (is_error(i)) return false;
    longest = std::max(longest, head_of(i).longest);
  }
  if (later(longest) == 0) return false;
  receive_second();
  send_second();
  if (settings_.what == anycclCollAllGather) call_.collective = anycclCollAllGatherv;
  if (settings_.what == anycclCollGather) call_.collective = anycclCollGatherv;
  if (settings_.what == anycclCollScatter) call_.collective = anycclCollScatterv;
  return true;
}

/// Makes room for the long payloads that come; this rank's own stays where it is.
void PayloadExchange::receive_second() {
  coming_.resize(arrived());
  if (settings_.what == anycclCollGather && !is_root()) return;
  std::size_t sum = 0;
  const auto size_of = [this](std::size_t i) { return later(head_of(i).size); };
  for (std::size_t i = 0; i < arrived(); ++i)
    if (static_cast<std::ptrdiff_t>(i) != own_part()) sum += size_of(i);
  memory_.resize(sum);
  const char* next = memory_.data();
  for (std::size_t i = 0; i < arrived(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) == own_part()) {
      const std::size_t mine = payloads_.size() == 1 ? 0 : static_cast<std::size_t>(settings_.rank);
      coming_[i] = payloads_[mine].substr(0, size_of(i));
    } else {
      coming_[i] = {next, size_of(i)};
      next += size_of(i);
    }
  }
  receives_ = blocks_of(coming_);
  call_.recvbuff = const_cast<char*>(receives_.base);
  call_.recvcounts = receives_.counts.data(), call_.rdispls = receives_.displs.data();
  call_.count = coming_[0].size();
}

/// Sets up the call to send this rank's long payloads from where they are.
void PayloadExchange::send_second() {
  std::vector<std::string_view> parts;
  for (const std::string_view payload : payloads_)
    parts.push_back(payload.substr(0, later(payload.size())));
  sends_ = blocks_of(parts);
  call_.sendbuff = sends_.base;
  if (gathers()) call_.count = parts[0].size();
  if (settings_.what != anycclCollScatter || !is_root()) return;
  call_.sendcounts = sends_.counts.data(), call_.sdispls = sends_.displs.data();
}

bool PayloadExchange::go_on(anycclComm_t comm, unsigned ms) {
  if (comm == nullptr) {
    if (work_ != nullptr && anycclWorkWaitFor(work_, ms) == anycclInProgress) return false;
    return end(nullptr, anycclAborted, "the communicator has ended");
  }
  if (!has_sequence_) {
    const anycclResult_t begun = anycclSequenceBegin(comm, ms);
    if (begun == anycclInProgress)
      return turn_.is_over(comm, settings_.timeout_ms, ms) &&
             end(comm, anycclTimeout, SequenceLimit::kText);
    if (begun != anycclSuccess) return end(comm, begun, anycclGetLastError(nullptr));
    has_sequence_ = true;
  }
  const anycclResult_t result =
      work_ == nullptr ? anycclRunFor(&call_, comm, ms, &work_) : anycclWorkWaitFor(work_, ms);
  if (result == anycclInProgress) return false;
  if (result != anycclSuccess) return end(comm, result, anycclGetLastError(nullptr));
  static_cast<void>(anycclWorkFree(std::exchange(work_, nullptr)));
  if (is_second_ || !prepare_second()) return end(comm, anycclSuccess, "");
  is_second_ = true;
  return go_on(comm, ms);
}

void PayloadExchange::hand_over(anycclComm_t comm) const {
  if (has_sequence_) static_cast<void>(anycclSequenceHandOver(comm));
}

void PayloadExchange::take(anycclComm_t comm) const {
  if (has_sequence_) static_cast<void>(anycclSequenceTake(comm));
}

void PayloadExchange::give_up(anycclComm_t comm, const char* why) {
  static_cast<void>(anycclCommRevoke(comm, ANYCCL_REVOKE_DEFAULT));
  end(comm, anycclSystemError, why);
}

/// Keeps the result, and ends the sequence of `comm`, which is null where it has ended. Returns
/// true.
bool PayloadExchange::end(anycclComm_t comm, anycclResult_t result, const char* message) {
  result_ = result;
  message_ = result == anycclSuccess || *message != '\0' ? message : anycclGetErrorString(result);
  if (has_sequence_ && comm != nullptr) static_cast<void>(anycclSequenceEnd(comm));
  is_over_.store(true, std::memory_order_release);
  return true;
}

std::string_view PayloadExchange::payload(std::size_t i) const {
  const Head head = head_of(i);
  if (later(head.size) == 0) return {received_.data() + i * kBlock + sizeof head, head.size};
  return coming_.empty() ? std::string_view() : coming_[i];
}

std::string PayloadExchange::text(std::size_t i) const {
  std::string shown;
  for (const char c : payload(i)) {
    const auto byte = static_cast<unsigned char>(c);
    // Those of Latin-1 are two bytes of UTF-8.
    const bool is_second = !shown.empty() && shown.back() == '\xc2' && byte >= 0x80 && byte < 0xa0;
    if (is_second) shown.pop_back();
    shown += byte < 0x20 || byte == 0x7f || is_second ? '?' : c;
  }
  return shown;
}

}  // namespace anyccl::bindings
