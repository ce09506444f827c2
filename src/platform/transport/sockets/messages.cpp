#include "platform/transport/sockets/messages.hpp"

#include "platform/reduce/copy.hpp"

namespace anyccl::sockets {

Messages::Sent SocketMessages::send(const Fragment& out, const std::byte* source) {
  if (connections_.state(out.peer) != PeerState::present) return Sent::busy;  // it would go nowhere
  const ReaderOf reader{.rank = static_cast<std::uint16_t>(out.peer), .bytes = out.bytes};
  if (!connections_.has_room({&reader, 1})) return Sent::busy;
  connections_.send(connections_.peer(reader.rank), header_of(out), source);
  return Sent::copied;
}

bool SocketMessages::settled(Rank reader) {
  return connections_.state(reader) != PeerState::dead && connections_.settled();
}

bool SocketMessages::peek(Rank from, std::uint64_t message, Envelope& envelope) {
  connections_.flush();
  return connections_.peer(uindex(from)).in.peek(message, envelope);
}

bool SocketMessages::receive(const Fragment& in, std::size_t /*offset*/, std::byte* into) {
  connections_.flush();
  const Key key{in.message, in.number, true};
  Inbox& inbox = connections_.peer(uindex(in.peer)).in;
  const std::byte* const data = inbox.poll({key, in.digest, true, in.bytes, in.total, into});
  if (data == nullptr) return false;
  connections_.moved();
  if (data != into) copy_bytes(into, data, in.bytes);
  inbox.consumed(key);
  return true;
}

}  // namespace anyccl::sockets
