#include "platform/transport/shm/connect.hpp"

#include <sys/random.h>

#include "base/error.hpp"
#include "base/fences.hpp"
#include "base/log.hpp"

namespace anyccl::shm {
namespace {

Status show(Peer& peer, const std::shared_ptr<Segment>& mine, const Layout& layout) {
  ControlMessage message;
  message.kind = ControlMessage::segment;
  message.bytes = layout.bytes();
  if (peer.same_process)
    message.address = reinterpret_cast<std::uint64_t>(&mine);  // alive until its answer
  else
    message.address = reinterpret_cast<std::uint64_t>(&mine->nonce), message.number = mine->nonce;
  if (peer.same_process) return send(*peer.channel, message);
  return send(*peer.channel, message, {mine->out.fd.get(), mine->in.fd.get()});
}

/// Maps what the peer shows; not ok: it cannot be mapped, which is no error but another way to go.
Status take(Peer& peer, const ControlMessage& message, const Descriptors& fds,
            const Layout& layout) {
  if (message.kind != ControlMessage::segment || message.bytes != layout.bytes())
    return error(Code::remote_error, "rank {} shows {} bytes instead of {}", index(peer.rank),
                 message.bytes, layout.bytes());
  if (peer.same_process) {
    peer.same = *reinterpret_cast<const std::shared_ptr<Segment>*>(message.address);
    peer.out = peer.same->out.mapping.data();
    peer.in = peer.same->in.mapping.data();
    return {};
  }
  ANYCCL_TRY(peer.out_mapping,
             map_peer(fds[0].get(), layout.bytes(), Access::read, "a peer's memory"));
  ANYCCL_TRY(peer.in_mapping,
             map_peer(fds[1].get(), 4096, Access::write, "a peer's doorbell page"));
  peer.out = peer.out_mapping.data();
  peer.in = peer.in_mapping.data();
  return {};
}

/// Not ok: its private memory cannot be read here, which is no error either.
Status try_to_read(Peer& peer, const ControlMessage& message) {
  if (peer.same_process) return {};
  ANYCCL_TRY(auto process, peer.channel->link().process());
  CmaReader memory(std::move(process));
  std::uint64_t read = 0;
  ANYCCL_CHECK(memory.read(reinterpret_cast<std::byte*>(&read), message.address, sizeof read));
  if (read != message.number) return error(Code::remote_error, "it runs in another pid namespace");
  peer.memory = std::move(memory);
  return {};
}

/// `status` of talking to `peer`.
Status about(const Peer& peer, const Status& status) {
  if (status.ok()) return {};
  return error(status.code(), "cannot share memory with rank {}: {}", index(peer.rank),
               status.message());
}

}  // namespace

Result<std::shared_ptr<Segment>> make_segment(const Layout& layout, bool shared) {
  auto segment = std::make_shared<Segment>();
  segment->shared = shared;
  if (::getrandom(&segment->nonce, sizeof segment->nonce, 0) != sizeof segment->nonce)
    return system_error(errno, "random bytes");
  if (!shared) {
    ANYCCL_TRY(segment->out.mapping, create_private(layout.bytes(), "the communicator's memory"));
    segment->out.returned = SharedMemory::Returned::to_process;
    ANYCCL_TRY(segment->in.mapping, create_private(4096, "the communicator's doorbell page"));
  } else {
    ANYCCL_TRY(segment->out, create_returnable(layout.bytes(), "the communicator's memory"));
    ANYCCL_TRY(segment->in, create_shared(4096, true, "the communicator's doorbell page"));
    ANYCCL_CHECK(populate(segment->out, 0, layout.slot(layout.first_slots())));
    ANYCCL_CHECK(populate(segment->out, layout.mailbox_progress(0),
                          layout.fixed_bytes() - layout.mailbox_progress(0)));
    ANYCCL_CHECK(populate(segment->in, 0, 4096));
  }
  at<RankFlags>(segment->out.mapping.data(), layout.flags()).fenced = join_fences() ? 1 : 0;
  return segment;
}

Result<ConnectResult> connect_peers(Rank me, std::vector<fabric::PeerChannel> local,
                                    const std::shared_ptr<Segment>& mine, const Layout& layout,
                                    Deadline deadline) {
  std::vector<Peer> peers(local.size());
  for (std::size_t i = 0; i < local.size(); ++i) {
    peers[i].rank = local[i].rank;
    peers[i].same_process = local[i].same_process;
    peers[i].channel = std::move(local[i].channel);
    ANYCCL_CHECK(about(peers[i], show(peers[i], mine, layout)));
  }
  ControlMessage message;
  Descriptors fds;
  for (Peer& peer : peers) {
    ANYCCL_CHECK(about(peer, await(*peer.channel, message, fds, deadline)));
    const Status taken = take(peer, message, fds, layout);
    if (!taken.ok())
      log(LogSubsystem::shm, "rank {}: no shared memory with rank {}: {}", index(me),
          index(peer.rank), taken.message());
    ControlMessage answer;
    answer.kind = ControlMessage::mapped;
    answer.code = taken.ok() ? 1 : 0;
    if (taken.ok()) {
      const Status readable = try_to_read(peer, message);
      if (!readable.ok())
        log(LogSubsystem::shm, "rank {}: no direct reads from rank {}: {}", index(me),
            index(peer.rank), readable.message());
      answer.number = readable.ok() ? 1 : 0;
    }
    ANYCCL_CHECK(about(peer, send(*peer.channel, answer)));
  }
  ConnectResult connected;
  for (Peer& peer : peers) {
    ANYCCL_CHECK(about(peer, await(*peer.channel, message, fds, deadline)));
    peer.reads_us = message.number == 1;
    if (message.kind == ControlMessage::mapped && message.code == 1 && peer.out != nullptr)
      connected.reached.push_back(std::move(peer));
    else
      connected.others.push_back({peer.rank, std::move(peer.channel), true, peer.same_process});
  }
  mine->out.fd.reset();
  mine->in.fd.reset();
  return connected;
}

}  // namespace anyccl::shm
