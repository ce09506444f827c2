#include "platform/transport/sockets/publications.hpp"

#include <utility>

namespace anyccl::sockets {
namespace {

Key key_of(const Incoming& in) {
  return {in.operation, in.number, false};
}

}  // namespace

Publications::Offered SocketPublications::offer(const Outgoing& out, const std::byte* source,
                                                bool) {
  for (const ReaderOf& reader : out.readers)
    if (reader.bytes > kMaxFrame) return Offered::refused;
  if (!connections_.has_room(out.readers)) return Offered::busy;
  send(out, source);
  return Offered::copied;
}

std::byte* SocketPublications::reserve(const Outgoing& out) {
  if (!connections_.has_room(out.readers)) return nullptr;
  if (result_.capacity() < out.bytes || !result_) {
    connections_.pool().give(std::move(result_));
    result_ = connections_.pool().take(out.bytes);
  }
  return result_.data();
}

void SocketPublications::send(const Outgoing& out, const std::byte* source) {
  for (const ReaderOf& reader : out.readers)
    connections_.send(connections_.peer(reader.rank), header_of(out, reader),
                      source + reader.offset);
}

const std::byte* SocketPublications::poll(const Incoming& in) {
  connections_.flush();
  const std::byte* const data = connections_.peer(in.rank).in.poll(
      {key_of(in), in.digest, in.sized, in.bytes, in.total, in.into});
  if (data != nullptr) connections_.moved();
  return data;
}

void SocketPublications::consumed(const Incoming& in) {
  connections_.peer(in.rank).in.consumed(key_of(in));
}

bool SocketPublications::finished(std::uint64_t operation, bool) {
  if (operation > kCallHistory) connections_.forget_before(operation - kCallHistory);
  return settled();
}

}  // namespace anyccl::sockets
