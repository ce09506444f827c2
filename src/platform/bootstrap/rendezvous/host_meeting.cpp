#include "platform/bootstrap/rendezvous/host_meeting.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

/// How long a rank waits for the leader of its host to let it in. One that runs does so in less
/// than a millisecond, or some milliseconds where many ranks start on each core; a process that has
/// taken the name and says nothing may cost no more than what a leader costs that cannot be
/// reached.
constexpr milliseconds kMeetTime{1000};
/// Between a leader's end, or its bind() and its listen(), and the next attempt.
constexpr milliseconds kPause{1};

Result<Connection> call_leader(const RendezvousAddress& rendezvous, const Hello& mine,
                               const std::string& name, Deadline deadline) {
  Dial dial(rendezvous.secret, {{Endpoint{name, {}}}, mine.rank, kToRelay, rendezvous.trust});
  return wait_for_connection(dial, deadline, true);
}

/// Returns the unix name of the place, or its port: it is the same for all ranks of a host, whereas
/// rank 0 may go to fewer addresses.
std::string place_of(const RendezvousAddress& rendezvous) {
  if (rendezvous.endpoints.empty()) return "";
  const Endpoint& first = rendezvous.endpoints.front();
  return first.local() ? first.unix_name : std::to_string(first.address.port);
}

}  // namespace

Result<std::string> name_of_meeting(const RendezvousAddress& rendezvous, const Hello& mine) {
  const std::string place = place_of(rendezvous);
  ANYCCL_TRY(const Mac mac,
             hmac(rendezvous.secret.bytes(), "leader of a host",
                  {bytes_of(mine.uid), mine.boot_id, mine.host_id, bytes_of(mine.network_namespace),
                   std::as_bytes(std::span(place))}));
  std::array<std::byte, Secret::kBytes> name{};
  std::copy_n(mac.begin(), name.size(), name.begin());
  return "anyccl.host." + Secret(name).hex();
}

Result<HostPlace> meet_on_host(const RendezvousAddress& rendezvous, const Hello& mine,
                               Deadline deadline) {
  ANYCCL_TRY(const std::string name, name_of_meeting(rendezvous, mine));
  const Deadline give_up = std::min(deadline, Deadline::in(kMeetTime));
  for (;;) {
    Result<UniqueFd> listener = listen_unix(name);
    if (listener.ok()) return HostPlace{*std::move(listener), {}};
    if (listener.status().code() != Code::invalid_usage) return HostPlace();
    Result<Connection> leader = call_leader(rendezvous, mine, name, give_up);
    if (leader.ok()) return HostPlace{{}, *std::move(leader)};
    const bool may_change =
        leader.status().code() == Code::timeout || leader.status().code() == Code::remote_error;
    if (!may_change || give_up.passed()) {
      log(LogSubsystem::net, "{} joins without the other ranks of its host: {}", describe(mine),
          leader.status().message());
      return HostPlace();
    }
    ::poll(nullptr, 0, static_cast<int>(kPause.count()));
  }
}

Result<bool> has_silent_leader(const RendezvousAddress& rendezvous, const Hello& mine,
                               Deadline deadline) {
  ANYCCL_TRY(const std::string name, name_of_meeting(rendezvous, mine));
  const Deadline give_up = std::min(deadline, Deadline::in(kMeetTime));
  return call_leader(rendezvous, mine, name, give_up).status().code() == Code::timeout;
}

}  // namespace anyccl::bootstrap
