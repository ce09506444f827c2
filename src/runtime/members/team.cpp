#include "runtime/members/team.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "framework/communicator/call_sequence.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {
namespace {

/// Whether all ranks want as many threads, and none has a problem.
Status agree_on(int threads, const Status& problem, Comm& comm) {
  struct Card {
    std::int32_t threads, problem;
  };
  std::vector<Card> cards(static_cast<std::size_t>(comm.size()));
  Card& mine = cards[uindex(comm.rank())];
  mine = {threads, static_cast<std::int32_t>(problem.code())};
  Call call;
  call.collective = Collective::all_gather;
  call.dtype = DType::u8;
  call.count = sizeof(Card);
  call.input = reinterpret_cast<std::byte*>(&mine);
  call.output = reinterpret_cast<std::byte*>(cards.data());
  const Status exchanged = comm.run(call);
  ANYCCL_CHECK(problem);
  ANYCCL_CHECK(exchanged);
  for (std::size_t r = 0; r < cards.size(); ++r) {
    if (cards[r].problem != 0)
      return error(Code::remote_error, "anycclCommParts failed on rank {}: it says why", r);
    if (cards[r].threads != threads)
      return error(Code::invalid_usage,
                   "anycclCommParts: rank {} asks for {} threads, but rank {} for {}",
                   index(comm.rank()), threads, r, cards[r].threads);
  }
  return {};
}

}  // namespace

Status grow(Team& team, int threads) {
  Comm& comm = team.first();
  constexpr int kMost = 1024;
  constexpr std::size_t kLeastRing = 512 * 1024;
  ANYCCL_TRY(const auto sequence, CallSequence::begin(comm));
  Status problem;
  if (threads < 1 || threads > kMost)
    problem = error(Code::invalid_argument, "threads {} is not in 1..{}", threads, kMost);
  ANYCCL_CHECK(agree_on(threads, problem, comm));
  // Together they use about as much memory as one communicator, if they are few.
  const std::size_t ring =
      std::max(kLeastRing, comm.membership().ring_bytes / static_cast<std::size_t>(threads));
  while (team.size() < threads) {
    const Result<CommPtr> member = split(comm, 0, index(comm.rank()), ring);
    ANYCCL_CHECK(agree_on(threads, member.status(), comm));
    team.add(*member);
  }
  return {};
}

}  // namespace anyccl
