#include "framework/communicator/meetings.hpp"

#include <new>
#include <utility>

#include "base/error.hpp"

namespace anyccl {
namespace {

/// In records of calls: the data goes through queues of devices.
constexpr std::uint64_t kInQueues = 0x71756575;

constexpr std::size_t kMostText = 240;
/// How ranks tell each other a status.
struct Card {
  std::int32_t code = 0;
  char text[kMostText + 4] = {};  // ends with a zero
};

}  // namespace

Result<ShownMemory> Meetings::show_mine(std::size_t read_bytes, std::size_t written_bytes) {
  const std::vector<Transport*>& transports = comm_.routes_.transports;
  if (transports.size() > 1)
    return error(Code::unsupported, "not all ranks are on one host, sharing memory");
  if (transports.empty())
    return error(Code::unsupported, "a communicator of one rank needs no queues");
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  return transports.front()->show(read_bytes, written_bytes);
}

/// After all have shown theirs, which is therefore here, or on its way in a socket of this host.
Result<Meetings::AllShown> Meetings::find_all(const ShownMemory& mine) {
  AllShown all(static_cast<std::size_t>(comm_.me_.size));
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  Transport& transport = *comm_.routes_.transports.front();
  ANYCCL_CHECK(transport.check());
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Rank rank{static_cast<int>(r)};
    all[r] = rank == comm_.me_.rank ? mine : transport.shown_by(rank);
    if (all[r].read == nullptr)
      return error(Code::remote_error, "the memory of rank {} cannot be mapped here", r);
  }
  return all;
}

Status Meetings::exchange(std::span<const std::byte> mine, std::byte* all) {
  Call call;
  call.collective = Collective::all_gather;
  call.dtype = DType::u8;
  call.count = mine.size();
  call.input = mine.data();
  call.output = all;
  call.timeout = limit_;
  return comm_.run(call);
}

/// Exchanges what came of something with all ranks.
Status Meetings::tell_all(const Status& mine) {
  std::vector<Card> cards(static_cast<std::size_t>(comm_.me_.size));
  Card card;
  card.code = static_cast<std::int32_t>(mine.code());
  mine.message().copy(card.text, kMostText);
  ANYCCL_CHECK(
      exchange(std::as_bytes(std::span(&card, 1)), reinterpret_cast<std::byte*>(cards.data())));
  for (std::size_t r = 0; r < cards.size(); ++r)
    if (cards[r].code != 0)
      return error(static_cast<Code>(cards[r].code), "rank {}: {}", r, cards[r].text);
  return {};
}

Status Meetings::show(std::size_t read_bytes, std::size_t written_bytes, Status problem,
                      const Use& use) {
  const auto mine =
      problem.ok() ? show_mine(read_bytes, written_bytes) : Result<ShownMemory>(std::move(problem));
  ANYCCL_CHECK(tell_all(mine.status()));
  const auto all = find_all(*mine);
  return tell_all(all.ok() ? use(*all) : all.status());
}

Status Meetings::await_turn(const Call& call, const Deadline& until) {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  return comm_.await_turn(progress_lock, call.timeout, until);
}

Result<std::shared_ptr<Operation>> Meetings::issue(const Call& call, const PreparedCall& data,
                                                   AroundCall& around) try {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (comm_.loop_.order().is_kept_by_other())
    return Status(Code::in_progress, "another thread is in a sequence of calls");
  if (comm_.failure_.happened()) return comm_.failure();
  comm_.loop_.note_limit(call.timeout);
  ANYCCL_TRY(auto operation, comm_.queue_.add_meeting(call, data, kInQueues, around));
  comm_.go_on(Gate::open);
  return operation;
} catch (const std::bad_alloc&) {
  return comm_.fail_without_memory(call);
}

Result<std::shared_ptr<Operation>> Meetings::issue(const Call& message, AroundCall* around) try {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  ANYCCL_CHECK(comm_.ready(message));
  comm_.loop_.note_limit(message.timeout);
  std::shared_ptr<Operation> operation = comm_.add_message(message, Gate::open, around);
  comm_.go_on(Gate::open);
  return operation;
} catch (const std::bad_alloc&) {
  return comm_.fail_without_memory(message);
}

void Meetings::check_deaths() {
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (comm_.failure_.happened()) return;
  for (Transport* const transport : comm_.routes_.transports) {
    static_cast<void>(transport->check());
    for (const Rank peer : transport->peers())
      if (transport->state(peer) == PeerState::dead)
        return comm_.fail(
            error(Code::remote_error, "{} died while {} waits for it in queues of devices{}",
                  comm_.me_.names[uindex(peer)], comm_.me_.names[uindex(comm_.me_.rank)],
                  transport->how_ended(peer)));
  }
}

void Meetings::check(Operation& operation, bool begins) {
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (comm_.failure_.happened()) return;
  if (begins) operation.limit(operation.time_limit());
  Status bad = comm_.check_stalled(operation, nullptr);
  // What a peer has done before it was seen to be gone can be seen by now.
  if (bad.code() == Code::remote_error) bad = comm_.check_stalled(operation, nullptr);
  if (!bad.ok()) comm_.fail(bad);
}

}  // namespace anyccl
