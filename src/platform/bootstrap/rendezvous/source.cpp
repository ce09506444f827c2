#include "platform/bootstrap/rendezvous/source.hpp"

#include <limits>

#include "base/error.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"

namespace anyccl::bootstrap {

Result<Source> root_source(const RendezvousAddress& rendezvous, const Hello& mine) {
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  Source source{{rendezvous.endpoints, mine.rank, kToRoot, rendezvous.trust,
                 own.missing_family(rendezvous.endpoints)},
                "the root server",
                std::string(rendezvous.advice)};
  source.target.meeting = rendezvous.meeting;
  return source;
}

Result<Source> teller_source(const RendezvousAddress& rendezvous, const Hello& mine,
                             const Hello& teller) {
  const Trust trust = rendezvous.trust;
  ANYCCL_TRY(const OwnNetwork own, OwnNetwork::find());
  std::vector<Address> addresses = addresses_of(teller);
  if (!same_network(mine, teller)) std::erase_if(addresses, is_loopback);
  std::vector<Endpoint> endpoints;
  if (trust != Trust::same_user) endpoints = own.endpoints_to(addresses);
  if (trust == Trust::same_user || same_host(mine, teller))
    endpoints.insert(endpoints.begin(), Endpoint{unix_name_of(teller), {}});
  return Source{{endpoints, mine.rank, kToRelay, trust, own.missing_family(endpoints)},
                describe(teller),
                "it passes on the root server's answer"};
}

Status could_not_reach(const Hello& mine, const Source& source, const Dial& dial) {
  return error(Code::timeout, "{} could not reach {} in time: {}; {}", describe(mine), source.name,
               dial.problems(), source.advice);
}

HelloFrame hello_frame(const Hello& mine, Deadline deadline, std::chrono::milliseconds waited) {
  HelloFrame frame;
  frame.hello = mine;
  frame.waited_ms = static_cast<std::uint32_t>(waited.count());
  frame.timeout_ms =
      deadline.is_never()
          ? kForever
          : static_cast<std::uint32_t>(deadline.poll_ms(std::numeric_limits<int>::max()));
  return frame;
}

}  // namespace anyccl::bootstrap
