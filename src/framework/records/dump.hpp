#pragma once
// A communicator makes a dump when it fails, when a wait takes long, and when it is asked for one.
// docs/observe/blame.md has the format.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/call/recorder.hpp"
#include "framework/membership/membership.hpp"
#include "framework/membership/routes.hpp"

namespace anyccl {

/// An operation that waits for peers.
struct OpenWait {
  std::uint64_t record = 0;    ///< Its number in the recorder; 0: it has none.
  std::uint64_t sequence = 0;  ///< A collective's; 0: it is none.
  std::string what;           ///< "a receive from rank 1 with tag 2", or the place in a collective.
  std::vector<Rank> awaited;  ///< Empty: any rank.
};

/// What one rank knows about its operations and its peers, for whoever looks for the cause of a
/// hang or a failure: `anyccl blame` compares those of all ranks. A copy, which is put into words
/// without the progress lock.
struct Dump {
  struct Peer {
    Rank rank;
    PeerState state;
    bool is_stopped;
    PeerCalls calls;
  };

  const Membership& me;        ///< Borrowed.
  std::string_view reason;     ///< "failure", "wait", "signal" or "call".
  std::uint64_t sequence = 0;  ///< The last collective that was called has it.
  std::vector<OpenWait> waits;
  Status failure;
  std::int64_t time_ns = 0;  ///< When it was made.
  std::vector<Peer> peers;
  RecordedCalls calls;
};

/// What is known of each peer now. The caller holds the progress lock.
std::vector<Dump::Peer> peers_of(const Membership& me, const Routes& routes);
/// JSON; docs/observe/blame.md has its fields. Several: those of a team, by thread.
std::string text_of(std::span<const Dump> dumps);

}  // namespace anyccl
