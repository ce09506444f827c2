// Comm: windows, and what is put into them.

#include <new>
#include <utility>

#include "base/error.hpp"
#include "framework/communicator/call_sequence.hpp"

namespace anyccl {
namespace {

/// Calls of the library itself, of a block of bytes for each rank.
Call exchange_of(Collective what, std::size_t bytes, const void* in, void* out) {
  Call call;
  call.collective = what;
  call.dtype = DType::u8;
  call.count = bytes;
  call.input = static_cast<const std::byte*>(in);
  call.output = static_cast<std::byte*>(out);
  return call;
}

OtherKind kind_of(const OneSidedCall& call) {
  using What = OneSidedCall::What;
  return call.what == What::put      ? OtherKind::put
         : call.what == What::signal ? OtherKind::signal
                                     : OtherKind::signal_wait;
}

/// What the recorder wants to know.
Call described(const OneSidedCall& call) {
  Call what;
  what.dtype = call.dtype;
  what.count = call.count;
  what.root = call.peer;
  if (call.what == OneSidedCall::What::wait)
    what.root = call.awaited.size() == 1 ? Rank{call.awaited[0].peer} : kAnySource;
  return what;
}

/// The error of all ranks where this one has no memory for `call`.
Status without_memory(const std::string& me, const OneSidedCall& call) {
  if (call.what == OneSidedCall::What::wait)
    return error(Code::system_error, "{} has no memory for a call: wait_signal", me);
  return error(Code::system_error, "{} has no memory for a call: {} to rank {}", me,
               call.what == OneSidedCall::What::put ? "put_signal" : "signal", index(call.peer));
}

}  // namespace

/// Null if it is done at once. The caller holds the progress lock.
std::shared_ptr<Operation> Comm::start(const OneSidedCall& call, Gate gate,
                                       std::uint32_t poll_budget) {
  const std::uint64_t number = recorder_.add(
      described(call), gate == Gate::open ? RecordState::running : RecordState::issued,
      {.position = static_cast<std::uint32_t>(call.signal),
       .other = kind_of(call),
       .stream = gate.stream});
  std::shared_ptr<Operation> operation = messages_.start(call, gate, poll_budget);
  if (operation == nullptr || operation->done())
    recorder_.end(number, operation == nullptr || operation->status().ok());
  else
    operation->record_in(recorder_, number);
  return operation;
}

Result<std::uint32_t> Comm::register_window(std::byte* at, std::size_t bytes,
                                            const Status& problem) {
  ANYCCL_TRY(const auto sequence, CallSequence::begin(*this));
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();
  // Before the ranks meet: a peer that goes on first may put at once.
  const std::uint32_t window = messages_.one_sided().open_window(at, problem.ok() ? bytes : 0);
  listens_ = true;
  progress_lock.unlock();
  Status status = agree_on_window(window, bytes, problem);
  if (status.ok()) return window;
  static_cast<void>(close_window(window));
  return status;
}

Status Comm::agree_on_window(std::uint32_t window, std::size_t bytes, const Status& problem) {
  struct Card {
    std::uint64_t bytes;
    std::uint32_t window;
    std::int32_t problem;
  };
  std::vector<Card> cards(static_cast<std::size_t>(me_.size));
  Card& mine = cards[uindex(me_.rank)];
  mine = {bytes, window, static_cast<std::int32_t>(problem.code())};
  const Status exchanged =
      run(exchange_of(Collective::all_gather, sizeof(Card), &mine, cards.data()));
  ANYCCL_CHECK(problem);
  ANYCCL_CHECK(exchanged);
  std::vector<std::size_t> sizes;
  for (std::size_t r = 0; r < cards.size(); ++r) {
    if (cards[r].problem != 0)
      return error(Code::remote_error, "registering a window failed on rank {}: it says why", r);
    if (cards[r].window != window)
      return error(Code::invalid_usage,
                   "rank {} registers its window {} of this communicator, but rank {} its window "
                   "{}",
                   index(me_.rank), window, r, cards[r].window);
    sizes.push_back(cards[r].bytes);
  }
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();
  messages_.one_sided().set_sizes(window, std::move(sizes));
  return {};
}

/// Puts that peers made before their own call are counted, and waited for.
Status Comm::deregister_window(std::uint32_t window) {
  ANYCCL_TRY(const auto sequence, CallSequence::begin(*this));
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();  // and nothing lands any more
  OneSided& one_sided = messages_.one_sided();
  one_sided.begin_closing(window);
  const std::vector<std::uint64_t> sent = one_sided.sent();
  progress_lock.unlock();
  std::vector<std::uint64_t> coming(sent.size());
  Status status =
      run(exchange_of(Collective::all_to_all, sizeof coming[0], sent.data(), coming.data()));
  if (status.ok()) {
    loop_.lock(progress_lock);
    const std::shared_ptr<ArrivalWait> landed = one_sided.wait_for_landed(coming);
    one_sided.add(landed);
    status = loop_.wait(progress_lock, *landed);
    progress_lock.unlock();
  }
  const Status closed = close_window(window);
  return status.ok() ? closed : status;
}

Status Comm::close_window(std::uint32_t window) {
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  OneSided& one_sided = messages_.one_sided();
  Status status = one_sided.close_window(window);
  if (!status.ok()) fail(status);  // the memory is the caller's again
  listens_ = one_sided.has_windows();
  return status;
}

Status Comm::run(const OneSidedCall& call) {
  if (forked()) return failure();
  std::shared_ptr<Comm> alive;  // longer than the lock, if another thread aborts it meanwhile
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();
  ANYCCL_CHECK(messages_.one_sided().check(call));
  try {
    const auto operation = start(call, Gate::open, poll_budget());
    if (call.what == OneSidedCall::What::wait) loop_.ring();  // it has looked for others, too
    if (operation == nullptr) return {};
    alive = weak_from_this().lock();
    note_wait(*operation);
    return loop_.wait(progress_lock, *operation);
  } catch (const std::bad_alloc&) {
    if (alive == nullptr) alive = weak_from_this().lock();  // before the lock is given back
    if (progress_lock.owns_lock()) progress_lock.unlock();
    abort(without_memory(me_.names[uindex(me_.rank)], call));
    return failure();
  }
}

Result<std::shared_ptr<Operation>> Comm::issue(const OneSidedCall& call, Gate gate) try {
  if (forked()) return failure();
  ProgressLock progress_lock = loop_.progress_lock();
  loop_.lock(progress_lock);
  if (failure_.happened()) return failure();
  ANYCCL_CHECK(messages_.one_sided().check(call));
  std::shared_ptr<Operation> operation = start(call, gate, 1);
  if (operation == nullptr) {
    operation = std::make_shared<ArrivalWait>();
    operation->complete({});
  }
  if (gate == Gate::open)
    advance();
  else
    gated_.store(true, std::memory_order_relaxed);
  return operation;
} catch (const std::bad_alloc&) {
  abort(without_memory(me_.names[uindex(me_.rank)], call));
  return failure();
}

}  // namespace anyccl
