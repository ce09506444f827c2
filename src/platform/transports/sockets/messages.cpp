#include "platform/transports/sockets/messages.hpp"

#include "platform/reduce/copy.hpp"

namespace anyccl::sockets {
namespace {

link::Key key_of(const Fragment& fragment) {
  return {fragment.message, fragment.number, true};
}

link::FrameHeader header_of(const Fragment& out) {
  link::FrameHeader header;
  header.flags = link::kMessage | link::kSized;
  header.bytes = static_cast<std::uint32_t>(out.bytes);
  header.operation = out.message;
  header.number = out.number;
  header.digest = out.digest;
  header.total = out.total;
  return header;
}

}  // namespace

Messages::Sent SocketMessages::send(const Fragment& out, const std::byte* source) {
  if (connections_.state(out.peer) != PeerState::present) return Sent::busy;  // it would go nowhere
  const ReaderOf reader{.rank = static_cast<std::uint16_t>(out.peer), .bytes = out.bytes};
  if (!connections_.has_room(key_of(out), {&reader, 1})) return Sent::busy;
  connections_.send(reader.rank, header_of(out), source);
  return Sent::copied;
}

bool SocketMessages::settled(Rank reader) {
  const PeerState state = connections_.state(reader);
  return (state == PeerState::present || state == PeerState::left) && connections_.settled();
}

bool SocketMessages::peek(Rank from, std::uint64_t message, Envelope& envelope) {
  connections_.flush();
  link::FrameHeader header;
  // A receive from any rank looks at all of them: no reason to connect to each.
  link::Channel* const channel = connections_.opened(from);
  if (channel == nullptr || !channel->peek(message, header)) return false;
  envelope = {header.digest, header.total};
  return true;
}

bool SocketMessages::receive(const Fragment& in, std::size_t /*offset*/, std::byte* into) {
  connections_.flush();
  link::Channel& channel = connections_.channel(uindex(in.peer));
  const std::byte* const data =
      channel.poll({key_of(in), in.digest, true, in.bytes, in.total, into});
  if (data == nullptr) return false;
  connections_.moved();
  if (data != into) copy_bytes(into, data, in.bytes);
  channel.consumed(key_of(in));
  return true;
}

}  // namespace anyccl::sockets
