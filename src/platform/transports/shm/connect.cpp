#include "platform/transports/shm/connect.hpp"

#include <sys/random.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/error.hpp"
#include "base/fences.hpp"
#include "base/log.hpp"
#include "base/per_process.hpp"

namespace anyccl::shm {
namespace {

/// What ranks of this process show each other, by its nonce: a rank that gives up may have freed it
/// before the other one looks.
class ShownHere {
 public:
  void add(const std::shared_ptr<Segment>& segment) {
    const std::lock_guard lock(mutex_);
    if (segments_.contains(segment->nonce)) return;  // it is shown to each peer
    std::erase_if(segments_, [](const auto& one) { return one.second.expired(); });
    segments_.emplace(segment->nonce, segment);
  }
  std::shared_ptr<Segment> find(std::uint64_t nonce) {
    const std::lock_guard lock(mutex_);
    const auto found = segments_.find(nonce);
    return found == segments_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Segment>> segments_;
};

/// `mapped`: the peer has the volume. As long as no answer has come that says so, it is shown
/// again.
Status show_segment(Peer& peer, const std::shared_ptr<Segment>& mine, const Layout& layout,
                    bool mapped) {
  ControlMessage message;
  message.kind = ControlMessage::segment;
  message.bytes = layout.bytes();
  message.position = mine->block.position;
  message.volume = mine->block.volume->number;
  message.bell = mine->block.bell;
  message.number = mine->nonce;
  if (peer.same_process)
    per_process<ShownHere>().add(mine);
  else
    message.address = reinterpret_cast<std::uint64_t>(&mine->nonce);
  if (peer.same_process || mapped) return send(*peer.channel, message);
  const Volume& volume = *mine->block.volume;
  return send(*peer.channel, message, {volume.out_fd.get(), volume.bells_fd.get()});
}

Result<std::shared_ptr<const PeerVolume>> map_volume(const Descriptors& fds, std::size_t bytes,
                                                     std::size_t bell_bytes) {
  auto volume = std::make_shared<PeerVolume>();
  ANYCCL_TRY(volume->out, map_peer(fds[0].get(), bytes, Access::read, "a peer's memory"));
  ANYCCL_TRY(volume->bells,
             map_peer(fds[1].get(), bell_bytes, Access::write, "a peer's doorbell page"));
  return std::shared_ptr<const PeerVolume>(std::move(volume));
}

/// The volume in which the peer shows a block.
Result<std::shared_ptr<const PeerVolume>> volume_of(const ControlMessage& message,
                                                    const Descriptors& fds, PairMemory& pair,
                                                    const Layout& layout) {
  if (message.volume == 0) return map_volume(fds, layout.bytes(), 4096);
  if (auto known = pair.volume(message.volume)) return known;
  if (!fds[0]) return error(Code::remote_error, "it has not shown volume {}", message.volume);
  ANYCCL_TRY(auto volume, map_volume(fds, Volume::kBytes, Volume::kBells * Volume::kBellBytes));
  return pair.add(message.volume, std::move(volume));
}

/// Maps what the peer shows; not ok: it cannot be mapped, which is no error but another way to go.
Status map_shown(Peer& peer, const ControlMessage& message, const Descriptors& fds,
                 const Layout& layout) {
  if (message.kind != ControlMessage::segment || message.bytes != layout.bytes())
    return error(Code::remote_error, "rank {} shows {} bytes instead of {}", index(peer.rank),
                 message.bytes, layout.bytes());
  if (peer.same_process) {
    peer.same = per_process<ShownHere>().find(message.number);
    if (peer.same == nullptr)
      return error(Code::remote_error, "rank {} has given up", index(peer.rank));
    peer.out = peer.same->out();
    peer.in = peer.same->in();
    return {};
  }
  ANYCCL_TRY(peer.volume, volume_of(message, fds, PairMemory::of(*peer.channel), layout));
  const Mapping &out = peer.volume->out, &bells = peer.volume->bells;
  const std::size_t bell = message.bell * Volume::kBellBytes;
  if (message.position % 4096 != 0 || message.position > out.size() - layout.bytes() ||
      bell > bells.size() - Volume::kBellBytes)
    return error(Code::remote_error, "rank {} shows memory at {} of {}", index(peer.rank),
                 message.position, out.size());
  peer.out = out.data() + message.position;
  peer.in = bells.data() + bell;
  return {};
}

/// Not ok: its private memory cannot be read here, which is no error either.
Status try_to_read(Peer& peer, const ControlMessage& message) {
  if (peer.same_process) return {};
  ANYCCL_TRY(auto process, peer.channel->link().open_process());
  CmaReader memory(std::move(process));
  std::uint64_t read = 0;
  ANYCCL_CHECK(memory.read(reinterpret_cast<std::byte*>(&read), message.address, sizeof read));
  if (read != message.number) return error(Code::remote_error, "it runs in another pid namespace");
  peer.memory = std::move(memory);
  return {};
}

/// Once in this process: the reason is mostly the same for all peers and communicators.
void report_copies(Rank me, const Peer& peer, const Status& why) {
  struct Report {
    std::atomic_flag is_made;
  };
  if (!log_enabled(LogSubsystem::shm)) return;
  // Relaxed: nothing else depends on it.
  if (per_process<Report>().is_made.test_and_set(std::memory_order_relaxed)) return;
  log(LogSubsystem::shm,
      "rank {}: large data of rank {}, and of others of which the same is true, is copied twice, "
      "not read where it is: {}",
      index(me), index(peer.rank), why.message());
}

/// Tells the peer what could be mapped and read of it. If it was mapped, tries here to read its
/// private memory, and keeps the reader in `peer`.
Status send_answer(Peer& peer, const ControlMessage& shown, bool mapped, Rank me) {
  ControlMessage answer;
  answer.kind = ControlMessage::mapped;
  answer.code = mapped ? 1 : 0;
  if (mapped) {
    const Status readable = try_to_read(peer, shown);
    if (!readable.ok()) report_copies(me, peer, readable);
    answer.number = readable.ok() ? 1 : 0;
  }
  return send(*peer.channel, answer);
}

/// Whether the two share memory. `volume`: in which ours lies.
bool take_answer(Peer& peer, const ControlMessage& answer, std::uint32_t volume) {
  peer.reads_us = answer.number == 1;
  if (answer.kind != ControlMessage::mapped || answer.code != 1 || peer.out == nullptr)
    return false;
  if (peer.same_process || volume == 0) return true;
  PairMemory& pair = PairMemory::of(*peer.channel);
  pair.set_private_reads({peer.memory, peer.reads_us});
  pair.set_shown(volume);
  return true;
}

/// `status` of talking to `peer`.
Status error_about(const Peer& peer, const Status& status) {
  if (status.ok()) return {};
  return error(status.code(), "cannot share memory with rank {}: {}", index(peer.rank),
               status.message());
}

}  // namespace

Segment::~Segment() {
  if (block.heap == nullptr || is_inherited()) return;
  const std::shared_ptr<SharedHeap> heap = block.heap;
  if (left_)
    heap->release(std::move(block), reads, std::move(readers_));
  else  // peers may look there for words that will never come
    static_cast<void>(give_back(0, block.bytes));
}

void Segment::leave_to(std::vector<BlockReader> peers) {
  // Pairs with the acquire in BlockReader::is_done().
  at<RankFlags>(out(), Layout().flags()).reads.store(0, std::memory_order_release);
  readers_ = std::move(peers);
  left_ = true;
}

Status Segment::populate(std::size_t offset, std::size_t bytes) {
  if (!shared) return {};
  return shm::populate(block.volume->out, block.position + offset, bytes);
}

bool Segment::give_back(std::size_t offset, std::size_t bytes) {
  returnable = returnable && shm::give_back(block.volume->out, block.position + offset, bytes);
  return returnable;
}

Result<std::shared_ptr<Segment>> make_segment(const Layout& layout, bool shared, std::uint64_t key,
                                              const std::shared_ptr<SharedHeap>& heap) {
  auto segment = std::make_shared<Segment>();
  segment->shared = shared;
  segment->reads = reads_word(key);
  if (::getrandom(&segment->nonce, sizeof segment->nonce, 0) != sizeof segment->nonce)
    return system_error(errno, "random bytes");
  const std::size_t bytes = layout.bytes();
  if (!shared) {
    ANYCCL_TRY(segment->block, make_private_block(bytes));
  } else if (heap != nullptr && bytes <= SharedHeap::kMost) {
    ANYCCL_TRY(segment->block, heap->allocate(bytes));
  } else {
    ANYCCL_TRY(segment->block, make_single_block(bytes));
  }
  segment->returnable = segment->block.volume->out.returned != SharedMemory::Returned::never;
  ANYCCL_CHECK(segment->populate(0, layout.slot(layout.first_slots())));
  ANYCCL_CHECK(segment->populate(layout.mailbox_progress(0),
                                 layout.fixed_bytes() - layout.mailbox_progress(0)));
  if (shared)
    ANYCCL_CHECK(shm::populate(segment->block.volume->bells,
                               segment->block.bell * Volume::kBellBytes, Volume::kBellBytes));
  auto& flags = at<RankFlags>(segment->out(), layout.flags());
  flags.fenced.store(join_fences() ? 1 : 0, std::memory_order_relaxed);
  flags.reads.store(segment->reads, std::memory_order_relaxed);  // shown by a message
  return segment;
}

std::shared_ptr<SharedHeap> heap_of(std::span<const link::PeerChannel> peers) {
  std::vector<PairMemory*> pairs;
  for (const link::PeerChannel& peer : peers)
    if (!peer.same_process) pairs.push_back(&PairMemory::of(*peer.channel));
  if (pairs.empty()) return nullptr;
  const std::shared_ptr<SharedHeap> first = pairs[0]->heap();
  const bool same = std::all_of(pairs.begin(), pairs.end(),
                                [&](const PairMemory* pair) { return pair->heap() == first; });
  if (!same) return nullptr;
  if (first != nullptr || !SharedHeap::is_affordable()) return first;
  const auto made = std::make_shared<SharedHeap>();
  bool kept = true;
  for (PairMemory* pair : pairs) kept &= pair->keep_first_heap(made);
  return kept ? made : nullptr;  // else the peers would look for its volumes in the other heap
}

Result<ConnectResult> connect_peers(Rank me, std::vector<link::PeerChannel> local,
                                    const std::shared_ptr<Segment>& mine, const Layout& layout,
                                    Deadline deadline) {
  const std::uint32_t volume = mine->block.volume->number;
  std::vector<Peer> peers(local.size());
  std::vector<bool> answers(local.size());  // Whether the two tell each other what they could map.
  for (std::size_t i = 0; i < local.size(); ++i) {
    peers[i].rank = local[i].rank;
    peers[i].same_process = local[i].same_process;
    peers[i].channel = std::move(local[i].channel);
    const bool mapped = !peers[i].same_process && volume != 0 &&
                        PairMemory::of(*peers[i].channel).has_shown(volume);
    answers[i] = !mapped;
    ANYCCL_CHECK(error_about(peers[i], show_segment(peers[i], mine, layout, mapped)));
  }
  ControlMessage message;
  Descriptors fds;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    Peer& peer = peers[i];
    ANYCCL_CHECK(error_about(peer, await(*peer.channel, message, fds, deadline)));
    answers[i] = answers[i] || fds[0];
    const Status taken = map_shown(peer, message, fds, layout);
    if (!taken.ok())
      log(LogSubsystem::shm, "rank {}: no shared memory with rank {}: {}", index(me),
          index(peer.rank), taken.message());
    if (answers[i])
      ANYCCL_CHECK(error_about(peer, send_answer(peer, message, taken.ok(), me)));
    else if (!taken.ok())
      return error_about(peer, taken);  // it counts on that
  }
  ConnectResult connected;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    Peer& peer = peers[i];
    bool reached = true;
    if (answers[i]) {
      ANYCCL_CHECK(error_about(peer, await(*peer.channel, message, fds, deadline)));
      reached = take_answer(peer, message, volume);
    } else {
      const auto [memory, reads_us] = PairMemory::of(*peer.channel).private_reads();
      peer.memory = memory;
      peer.reads_us = reads_us;
    }
    if (reached)
      connected.reached.push_back(std::move(peer));
    else
      connected.others.push_back({peer.rank, std::move(peer.channel), true, peer.same_process});
  }
  if (volume == 0) {  // nobody else is shown it
    mine->block.volume->out_fd = PrivateFd();
    mine->block.volume->bells_fd = PrivateFd();
  }
  return connected;
}

}  // namespace anyccl::shm
