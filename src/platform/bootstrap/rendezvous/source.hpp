#pragma once
// A source is a place where a rank that joins hears the answer: the root server, or in a large
// group perhaps the leader that the server names. The thread that joins makes one, and dials it.
// hello_frame() makes the hello that the rank sends to the root server or to the leader of its
// host.

#include <string>
#include <string_view>
#include <vector>

#include "platform/bootstrap/auth/dial.hpp"
#include "platform/bootstrap/rendezvous/frame.hpp"
#include "platform/bootstrap/rendezvous/relay_tree.hpp"

namespace anyccl::bootstrap {

/// Where the root server is, and what it asks for.
struct RendezvousAddress {
  std::vector<Endpoint> endpoints;
  Secret secret;
  Trust trust = Trust::secret;
  std::string_view advice;    ///< Ends the message when nobody answers at any of them.
  RelayTree tree = {};        ///< That of the root server.
  std::uint32_t meeting = 0;  ///< As in Greeting.
  bool is_here = false;       ///< In this process: if it listens no more, it is over.
};

/// Where a rank hears the answer.
struct Source {
  Dial::Target target;
  std::string name;
  std::string advice;
};

/// The root server, for the rank in `mine`. Errors: system_error.
Result<Source> root_source(const RendezvousAddress& rendezvous, const Hello& mine);
/// The leader `teller`. Errors: system_error.
Result<Source> teller_source(const RendezvousAddress& rendezvous, const Hello& mine,
                             const Hello& teller);

/// "rank 3 (...) could not reach the root server in time: ..."
Status could_not_reach(const Hello& mine, const Source& source, const Dial& dial);

/// What `mine` says to the root server, or to the leader of its host, at this moment. `deadline`:
/// how long it waits; `waited`: how long it took to get there.
HelloFrame hello_frame(const Hello& mine, Deadline deadline, std::chrono::milliseconds waited);

}  // namespace anyccl::bootstrap
