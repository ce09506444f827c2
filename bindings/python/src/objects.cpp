// Objects between all ranks: bytes of any length, of which the receivers know nothing before.
//
// In the first round go blocks of one size, in which small payloads travel whole, in the second one
// the rests of longer ones. Both are one sequence of the communicator: calls of other threads
// come before or after. When a signal ends the wait, a thread of its own goes on with the rounds,
// as other ranks count on this one.

#include "objects.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

namespace anyccl::python {
namespace {

constexpr std::size_t kBlock = 512;

struct Head {
  std::uint64_t longest;  // bytes of the longest payload that its sender has
  std::uint64_t size;     // of this one
  std::uint64_t failed;   // 1: it is the text of an error
};
constexpr std::size_t kInline = kBlock - sizeof(Head);

std::size_t rest_of(std::size_t size) {
  return size > kInline ? size - kInline : 0;
}

/// Blocks of one buffer, one after the other.
struct Blocks {
  void add(std::size_t count) {
    displs.push_back(sum);
    counts.push_back(count);
    sum += count;
  }
  std::vector<std::size_t> counts, displs;
  std::size_t sum = 0;
};

class Rounds {
 public:
  Rounds(anycclComm_t handle, Communicator& c, anycclCollective_t what,
         std::vector<nb::bytes> payloads, bool failed, int root);

  /// Goes on for about `ms`; true: all is over. Without the interpreter lock.
  bool go_on(unsigned ms);
  /// From now on another thread goes on.
  void hand_over() {
    if (has_sequence_) static_cast<void>(anycclSequenceHandOver(handle_));
  }
  /// In another thread, until all is over.
  void go_on_alone();
  /// Nobody waits for this rank any more.
  bool give_up(const char* why);
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  const Outcome& outcome() const { return outcome_; }
  nb::list results() const;

 private:
  bool gathers() const { return what_ == anycclCollAllGather || what_ == anycclCollGather; }
  bool receives_rests() const { return what_ != anycclCollGather || is_root_; }
  Head head_of(std::size_t block) const;
  void write_blocks(bool failed);
  void prepare_first();
  bool prepare_second();
  void scatter_rests();
  bool end(Outcome outcome);

  const anycclComm_t handle_;
  const anycclCollective_t what_;
  const int size_;
  const bool is_root_;
  const std::vector<nb::bytes> payloads_;
  std::vector<char> sent_, received_;  // blocks of the first round
  Blocks sending_, coming_;            // rests
  std::vector<char> rests_to_send_, rests_;
  const char* own_rest_ = nullptr;
  anycclCall_t call_{};
  anycclWork_t work_ = nullptr;
  bool has_sequence_ = false, is_second_ = false;
  Outcome outcome_;
  std::atomic<bool> is_over_{false};
};

Rounds::Rounds(anycclComm_t handle, Communicator& c, anycclCollective_t what,
               std::vector<nb::bytes> payloads, bool failed, int root)
    : handle_(handle),
      what_(what),
      size_(c.size()),
      is_root_(c.rank() == root),
      payloads_(std::move(payloads)) {
  call_.size = sizeof call_;
  call_.datatype = anycclUint8;
  call_.root = root;
  call_.timeout_ms = c.timeout() ? milliseconds(c.timeout()) : 0;
  write_blocks(failed);
  prepare_first();
}

void Rounds::write_blocks(bool failed) {
  std::size_t longest = 0;
  for (const nb::bytes& payload : payloads_) longest = std::max(longest, payload.size());
  sent_.resize(kBlock * payloads_.size());
  for (std::size_t i = 0; i < payloads_.size(); ++i) {
    const std::size_t size = payloads_[i].size(), here = std::min(kInline, size);
    const Head head{longest, failed ? here : size, failed ? 1U : 0U};
    std::memcpy(sent_.data() + i * kBlock, &head, sizeof head);
    std::memcpy(sent_.data() + i * kBlock + sizeof head, payloads_[i].c_str(), here);
    sending_.add(size - here);
  }
  if (payloads_.size() == 1) own_rest_ = payloads_[0].c_str() + payloads_[0].size() - sending_.sum;
}

Head Rounds::head_of(std::size_t block) const {
  Head head;
  std::memcpy(&head, received_.data() + block * kBlock, sizeof head);
  return head;
}

void Rounds::prepare_first() {
  // All ranks take the blocks of a gather, too, as all are to hear of an error.
  call_.collective = gathers() ? anycclCollAllGather : what_;
  received_.resize(kBlock * static_cast<std::size_t>(gathers() ? size_ : 1));
  call_.sendbuff = sent_.data();
  call_.recvbuff = received_.data();
  call_.count = kBlock;
}

/// False: nothing is left to exchange.
bool Rounds::prepare_second() {
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < received_.size() / kBlock; ++i) {
    const Head head = head_of(i);
    if (head.failed != 0) return false;
    longest = std::max(longest, head.longest);
    coming_.add(rest_of(head.size));
  }
  if (longest <= kInline) return false;
  const bool is_own = what_ == anycclCollBroadcast && is_root_;  // nothing comes to the root
  if (receives_rests() && !is_own) rests_.resize(coming_.sum);
  call_.sendbuff = own_rest_;
  call_.recvbuff = is_own ? const_cast<char*>(own_rest_) : rests_.data();
  call_.recvcounts = coming_.counts.data(), call_.rdispls = coming_.displs.data();
  call_.count = gathers() ? sending_.sum : coming_.sum;
  if (what_ == anycclCollScatter && is_root_) scatter_rests();
  if (what_ == anycclCollAllGather) call_.collective = anycclCollAllGatherv;
  if (what_ == anycclCollGather) call_.collective = anycclCollGatherv;
  if (what_ == anycclCollScatter) call_.collective = anycclCollScatterv;
  return true;
}

void Rounds::scatter_rests() {
  for (const nb::bytes& payload : payloads_)
    rests_to_send_.insert(rests_to_send_.end(), payload.c_str() + std::min(kInline, payload.size()),
                          payload.c_str() + payload.size());
  call_.sendbuff = rests_to_send_.data();
  call_.sendcounts = sending_.counts.data(), call_.sdispls = sending_.displs.data();
}

bool Rounds::go_on(unsigned ms) try {
  if (!has_sequence_) {
    const anycclResult_t begun = anycclSequenceBegin(handle_, ms);
    if (begun == anycclInProgress) return false;
    if (begun != anycclSuccess) return end(outcome_of(begun));
    has_sequence_ = true;
  }
  const anycclResult_t code =
      work_ == nullptr ? anycclRunFor(&call_, handle_, ms, &work_) : anycclWorkWaitFor(work_, ms);
  if (code == anycclInProgress) return false;
  static_cast<void>(anycclWorkFree(std::exchange(work_, nullptr)));
  if (code != anycclSuccess || is_second_ || !prepare_second()) return end(outcome_of(code));
  is_second_ = true;
  return go_on(ms);
} catch (const std::bad_alloc&) {
  return give_up("there is no memory for the objects of other ranks");
}

bool Rounds::give_up(const char* why) {
  static_cast<void>(anycclCommRevoke(handle_, ANYCCL_REVOKE_DEFAULT));
  return end({anycclSystemError, why});
}

bool Rounds::end(Outcome outcome) {
  outcome_ = std::move(outcome);
  if (has_sequence_) static_cast<void>(anycclSequenceEnd(handle_));
  is_over_.store(true, std::memory_order_release);
  return true;
}

void Rounds::go_on_alone() {
  constexpr unsigned kLong = 1000;
  if (has_sequence_) static_cast<void>(anycclSequenceTake(handle_));
  while (!go_on(kLong)) {
  }
}

nb::list Rounds::results() const {
  nb::list all;
  for (std::size_t i = 0; i < received_.size() / kBlock; ++i) {
    const Head head = head_of(i);
    const std::size_t rest = is_second_ && receives_rests() ? coming_.counts[i] : 0;
    const std::size_t here = std::min<std::size_t>(kInline, head.size);
    nb::object bytes =
        nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(here + rest)));
    if (!bytes.is_valid()) throw nb::python_error();
    char* const to = PyBytes_AS_STRING(bytes.ptr());
    std::memcpy(to, received_.data() + i * kBlock + sizeof head, here);
    const char* const from = rests_.empty() ? own_rest_ : rests_.data();
    if (rest > 0) std::memcpy(to + here, from + coming_.displs[i], rest);
    all.append(nb::make_tuple(head.failed != 0, bytes));
  }
  return all;
}

/// Rounds that a signal has interrupted.
struct Interrupted {
  CommunicatorPtr comm;
  std::shared_ptr<Rounds> rounds;
};
/// Until they are over; with the interpreter lock, as they have objects.
std::vector<Interrupted>& all_interrupted() {
  static auto* const all = new std::vector<Interrupted>;  // to the end of the process
  return *all;
}

void finish_in_background(Communicator& c, const std::shared_ptr<Rounds>& rounds) {
  rounds->hand_over();
  all_interrupted().push_back({c.shared_from_this(), rounds});
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for threads of the program
  try {
    std::thread([alone = rounds.get()] { alone->go_on_alone(); }).detach();
  } catch (const std::system_error&) {
    rounds->give_up("there is no thread for the rest of an exchange of objects");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// "TypeError: cannot pickle this".
std::string text_of(const nb::python_error& error) {
  std::string text = nb::cast<std::string>(error.type().attr("__name__"));
  const nb::object words = nb::steal(PyObject_Str(error.value().ptr()));
  const char* const utf8 = words.is_valid() ? PyUnicode_AsUTF8(words.ptr()) : nullptr;
  PyErr_Clear();
  return utf8 == nullptr ? text : text + ": " + utf8;
}

}  // namespace

nb::list exchange_payloads(Communicator& c, anycclCollective_t what, const nb::callable& pickle,
                           int root) {
  std::vector<nb::bytes> payloads;
  std::optional<nb::python_error> error;
  try {
    for (const nb::handle one : nb::list(pickle())) payloads.push_back(nb::cast<nb::bytes>(one));
  } catch (nb::python_error& e) {  // whatever the object's own __reduce__ raises, and interrupts
    const std::string text = text_of(e);
    const bool is_for_all = what == anycclCollScatter && c.rank() == root;
    payloads.assign(is_for_all ? static_cast<std::size_t>(c.size()) : 1,
                    nb::bytes(text.data(), text.size()));
    error.emplace(std::move(e));
  }
  std::erase_if(all_interrupted(), [](const auto& one) { return one.rounds->is_over(); });
  const Communicator::Call turn(c);
  const auto rounds =
      std::make_shared<Rounds>(turn.handle, c, what, std::move(payloads), error.has_value(), root);
  try {
    wait_in_slices(std::nullopt, [&](unsigned ms) { return rounds->go_on(ms); });
  } catch (...) {
    finish_in_background(c, rounds);
    throw;
  }
  if (error) throw std::move(*error);
  raise_unless_ok(rounds->outcome());
  return rounds->results();
}

void wait_for_interrupted(const Communicator& c) {
  const std::vector<Interrupted> all = all_interrupted();
  for (const Interrupted& one : all)
    if (one.comm.get() == &c)
      wait_in_slices(std::nullopt, [&](unsigned) {
        if (!one.rounds->is_over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return one.rounds->is_over();
      });
}

}  // namespace anyccl::python
