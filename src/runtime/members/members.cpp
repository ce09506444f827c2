#include "runtime/members/members.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace anyccl {

void Problem::set(const Status& status) {
  code = static_cast<std::int32_t>(status.code());
  text[status.message().copy(text, sizeof text - 1)] = 0;
}

Status Problem::of(std::string_view call, Rank rank) const {
  if (code == 0) return {};
  return error(Code::remote_error, "{}: rank {} cannot take part: {}", call, index(rank),
               printable({text, ::strnlen(text, sizeof text)}));
}

Status first_problem(std::string_view call, const std::vector<Member>& members) {
  for (const Member& member : members) ANYCCL_CHECK(member.card->problem.of(call, member.rank));
  return {};
}

Result<std::vector<Member>> members_without(std::span<const int> excluded, const Comm& parent) {
  const int size = parent.size();
  std::vector<bool> is_out(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < excluded.size(); ++i) {
    const int rank = excluded[i];
    if (rank < 0 || rank >= size)
      return error(Code::invalid_argument, "excludeRanksList[{}] is {}, which is not in 0..{}", i,
                   rank, size - 1);
    if (rank == index(parent.rank()))
      return error(Code::invalid_argument,
                   "excludeRanksList[{}] is {}, the calling rank: ranks that are left out do not "
                   "make the call",
                   i, rank);
    is_out[static_cast<std::size_t>(rank)] = true;
  }
  std::vector<Member> members;
  for (int r = 0; r < size; ++r)
    if (!is_out[static_cast<std::size_t>(r)]) members.push_back({Rank{r}, nullptr});
  return members;
}

CommSettings inherited(const CommSettings& parent, const CommSettings& own) {
  CommSettings all = parent;
  all.problem = own.problem;
  if (!own.algo.empty()) all.algo = own.algo;
  if (!own.proto.empty()) all.proto = own.proto;
  if (own.chunk_bytes != 0) all.chunk_bytes = own.chunk_bytes;
  if (own.buffer_bytes != 0) all.buffer_bytes = own.buffer_bytes;
  if (own.level >= 0) all.level = own.level;
  if (own.verify >= 0) all.verify = own.verify;
  if (own.verify_later >= 0) all.verify_later = own.verify_later;
  if (own.device_queues >= 0) all.device_queues = own.device_queues;
  if (own.time_limit) all.time_limit = own.time_limit;
  all.creation_limit = own.creation_limit;
  return all;
}

Result<InitContext> prepare(const Comm& parent, const Inheritance& inheritance,
                            const CommSettings& own) {
  return prepare_init_within((*inheritance.members)[uindex(parent.rank())], inheritance.transport,
                             inherited(parent.membership().settings, own));
}

Result<Part> part_of(const Inheritance& parent, const std::vector<Member>& members,
                     const bootstrap::Secret& secret, Rank me, const InitContext& init) {
  bootstrap::Group group;
  group.secret = secret;
  group.members.reserve(members.size());
  Part part;
  for (std::size_t i = 0; i < members.size(); ++i) {
    bootstrap::Hello hello = (*parent.members)[uindex(members[i].rank)];
    hello.settings = members[i].card->settings;
    ANYCCL_CHECK(bootstrap::check_hello(hello));
    if (i > 0) ANYCCL_CHECK(bootstrap::compare_settings(group.members.front(), hello));
    if (members[i].rank == me) part.me = Rank{static_cast<std::int32_t>(i)};
    hello.rank = static_cast<std::uint32_t>(i);
    hello.size = static_cast<std::uint32_t>(members.size());
    group.members.push_back(hello);
  }
  ANYCCL_CHECK(ring_bytes_of(init, static_cast<int>(members.size()), false).status());
  part.group = std::make_shared<const bootstrap::Group>(std::move(group));
  return part;
}

std::vector<PeerLink> links_within(const Inheritance& parent, const std::vector<Member>& members,
                                   Rank me) {
  std::vector<PeerLink> links;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].rank == me) continue;
    PeerLink link = parent.links[uindex(members[i].rank) - (members[i].rank > me ? 1 : 0)];
    link.rank = Rank{static_cast<std::int32_t>(i)};
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace anyccl
