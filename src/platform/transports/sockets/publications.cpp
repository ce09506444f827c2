#include "platform/transports/sockets/publications.hpp"

#include <utility>

namespace anyccl::sockets {
namespace {

link::Key key_of(const Incoming& in) {
  return {in.operation, in.number, false};
}

link::Key key_of(const Outgoing& out) {
  return {out.operation, out.number, false};
}

/// The header for `reader`'s part of `out`.
link::FrameHeader header_of(const Outgoing& out, const ReaderOf& reader) {
  link::FrameHeader header;
  header.flags = out.sized ? link::kSized : 0;
  header.bytes = static_cast<std::uint32_t>(reader.bytes);
  header.operation = out.operation;
  header.number = out.number;
  header.digest = out.digest;
  header.total = out.sized ? out.total : 0;
  return header;
}

}  // namespace

Publications::Offered SocketPublications::offer(const Outgoing& out, const std::byte* source,
                                                bool) {
  for (const ReaderOf& reader : out.readers)
    if (reader.bytes > link::kMaxFrame) return Offered::refused;
  if (!connections_.has_room(key_of(out), out.readers)) return Offered::busy;
  send(out, source);
  return Offered::copied;
}

std::byte* SocketPublications::reserve(const Outgoing& out) {
  if (!connections_.has_room(key_of(out), out.readers)) return nullptr;
  if (result_.capacity() < out.bytes || !result_) {
    link::BufferPool& pool = link::BufferPool::of_process();
    pool.give(std::move(result_));
    result_ = pool.take(out.bytes);
  }
  return result_.data();
}

void SocketPublications::send(const Outgoing& out, const std::byte* source) {
  for (const ReaderOf& reader : out.readers)
    connections_.send(reader.rank, header_of(out, reader), source + reader.offset);
}

const std::byte* SocketPublications::poll(const Incoming& in) {
  connections_.flush();
  const std::byte* const data = connections_.channel(in.rank).poll(
      {key_of(in), in.digest, in.sized, in.bytes, in.total, in.into});
  if (data != nullptr) connections_.moved();
  return data;
}

void SocketPublications::consumed(const Incoming& in) {
  connections_.channel(in.rank).consumed(key_of(in));
}

bool SocketPublications::finished(std::uint64_t operation, bool) {
  if (operation > kCallHistory) connections_.forget_before(operation - kCallHistory);
  return settled();
}

}  // namespace anyccl::sockets
