#include "framework/communicator/windows.hpp"

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

}  // namespace

Result<std::uint32_t> WindowRegistry::add(std::byte* at, std::size_t bytes, const Status& problem) {
  ANYCCL_TRY(const auto sequence, CallSequence::begin(comm_));
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (comm_.failure_.happened()) return comm_.failure();
  // Before the ranks meet: a peer that goes on first may put at once.
  const std::uint32_t window =
      comm_.messages_.one_sided().open_window(at, problem.ok() ? bytes : 0);
  comm_.listens_ = true;
  progress_lock.unlock();
  Status status = agree(window, bytes, problem);
  if (status.ok()) return window;
  static_cast<void>(close(window));
  return status;
}

Status WindowRegistry::agree(std::uint32_t window, std::size_t bytes, const Status& problem) {
  struct Card {
    std::uint64_t bytes;
    std::uint32_t window;
    std::int32_t problem;
  };
  std::vector<Card> cards(static_cast<std::size_t>(comm_.me_.size));
  Card& mine = cards[uindex(comm_.me_.rank)];
  mine = {bytes, window, static_cast<std::int32_t>(problem.code())};
  const Status exchanged =
      comm_.run(exchange_of(Collective::all_gather, sizeof(Card), &mine, cards.data()));
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
                   index(comm_.me_.rank), window, r, cards[r].window);
    sizes.push_back(cards[r].bytes);
  }
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (comm_.failure_.happened()) return comm_.failure();
  comm_.messages_.one_sided().set_sizes(window, std::move(sizes));
  return {};
}

/// Puts that peers made before their own call are counted, and waited for.
Status WindowRegistry::remove(std::uint32_t window) {
  ANYCCL_TRY(const auto sequence, CallSequence::begin(comm_));
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (comm_.failure_.happened()) return comm_.failure();  // and nothing lands any more
  OneSided& one_sided = comm_.messages_.one_sided();
  one_sided.begin_closing(window);
  const std::vector<std::uint64_t> sent = one_sided.sent();
  progress_lock.unlock();
  std::vector<std::uint64_t> coming(sent.size());
  Status status =
      comm_.run(exchange_of(Collective::all_to_all, sizeof coming[0], sent.data(), coming.data()));
  if (status.ok()) {
    comm_.loop_.lock(progress_lock);
    const std::shared_ptr<ArrivalWait> landed = one_sided.wait_for_landed(coming);
    one_sided.add(landed);
    status = comm_.loop_.wait(progress_lock, *landed);
    progress_lock.unlock();
  }
  const Status closed = close(window);
  return status.ok() ? closed : status;
}

Status WindowRegistry::close(std::uint32_t window) {
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  OneSided& one_sided = comm_.messages_.one_sided();
  Status status = one_sided.close_window(window);
  if (!status.ok()) comm_.fail(status);  // the memory is the caller's again
  comm_.listens_ = one_sided.has_windows();
  return status;
}

}  // namespace anyccl
