#pragma once
// Ranks as threads of this process, connected by a transport of the table.

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/links/transports.hpp"

namespace anyccl::test {

/// Ends the program if not: for where there is no test to fail yet.
void require(bool ok, const char* what);

using Ends = std::array<UniqueFd, 2>;
Ends connected_by_tcp();
Ends connected_on_one_host();

/// Fresh links over the sockets, with a context on each.
std::vector<link::PeerChannel> open_channels(const std::shared_ptr<link::Context>& context,
                                             std::vector<PeerSocket> sockets);

/// One transport per rank, each of which reaches all others.
std::vector<std::unique_ptr<Transport>> make_ranks(const TransportEntry& entry, int ranks);

/// How long a test waits for what must happen.
inline Deadline patience() {
  return Deadline::in(std::chrono::seconds(60));
}

/// `bytes` bytes that depend on `seed`.
std::vector<std::byte> pattern(std::size_t bytes, unsigned seed);
/// Whether data[0, expected.size()) is that.
bool equal(const std::byte* data, std::span<const std::byte> expected);

/// Publishes `out`, whose bytes are at `source`, as an executor would; waits for room.
void publish(Transport& t, Outgoing out, const std::vector<ReaderOf>& readers,
             const std::byte* source);
/// All of a publication of `bytes` bytes.
inline Incoming from(int rank, std::uint64_t operation, std::uint32_t number, std::size_t bytes) {
  return {.operation = operation,
          .number = number,
          .rank = static_cast<std::uint16_t>(rank),
          .bytes = bytes,
          .whole = bytes};
}
/// What poll() returns for `in`, waiting until it is there; null if check() or time says no.
const std::byte* await(Transport& t, const Incoming& in);
/// Calls t.check() until `done`, which must happen in time.
void wait_until(Transport& t, const std::function<bool()>& done);
/// The first Status of check() that is not ok.
Status wait_for_problem(Transport& t);

/// Sends and receives messages of one rank in the order in which they are given, as far as that
/// goes, until everything is done.
class MessageRunner {
 public:
  explicit MessageRunner(Transport& t) : t_(t) {}
  void send(int to, std::uint64_t message, std::uint32_t digest, std::span<const std::byte> bytes);
  void receive(int from, std::uint64_t message, std::uint32_t digest, std::span<std::byte> bytes);
  /// True if anything moved.
  bool advance();
  bool done() const { return sends_.empty() && receives_.empty(); }
  void run();

 private:
  struct Open {
    Fragment next;
    std::byte* memory;
    std::size_t moved = 0;
    bool begun = false, lent = false;
  };
  bool advance_send(Open& open);
  bool advance_receive(Open& open);

  Transport& t_;
  std::deque<Open> sends_, receives_;
};

}  // namespace anyccl::test
