#include "platform/transports/shm/peers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/futex.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"

namespace anyccl::shm {
namespace {

/// As the peer says, if that is an error.
Status received_abort(const ControlMessage& message) {
  const auto code = static_cast<Code>(message.code);
  const bool is_error = code > Code::ok && code <= Code::aborted && code != Code::in_progress;
  return Status(is_error ? code : Code::remote_error, printable(message.text));
}

}  // namespace

PeerTable::PeerTable(Rank me, const Layout& layout, std::shared_ptr<Segment> mine,
                     std::vector<Peer> peers, ShmCopy copy)
    : me_(me),
      layout_(layout),
      peers_(std::move(peers)),
      of_rank_(layout.ranks, 0),
      copy_(copy),
      windows_(peers_, at<RankFlags>(mine->out(), layout_.flags()).notices),
      progress_wanted_(&at<DoorbellPage>(mine->in(), 0).progress_wanted) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    of_rank_[uindex(peers_[i].rank)] = i;
    ranks_.push_back(peers_[i].rank);
  }
}

void PeerTable::ring_doorbell(std::atomic<std::uint32_t>& doorbell) {
  // Pairs with the acquire in ShmTransport::sleep().
  doorbell.fetch_add(1, std::memory_order_release);
  futex_wake(doorbell, 1, FutexScope::shared);
}

void PeerTable::wake(Peer& peer, std::uint32_t asleep) {
  if (asleep == kOnSockets)
    peer.channel->ring();
  else
    ring_doorbell(at<DoorbellPage>(peer.in, 0).doorbell);
}

bool PeerTable::are_fenced() const {
  return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return at<RankFlags>(peer.out, layout_.flags()).fenced.load(std::memory_order_relaxed) != 0;
  });
}

std::vector<BlockReader> PeerTable::readers() const {
  std::vector<BlockReader> readers;
  for (const Peer& peer : peers_) {
    if (peer.same_process) continue;  // keeps the block itself
    auto process = peer.channel->link().open_process();
    readers.push_back({peer.volume, &at<RankFlags>(peer.out, layout_.flags()).reads,
                       process.ok() ? *std::move(process) : nullptr});
  }
  return readers;
}

std::optional<Descriptor> PeerTable::lend(std::span<const std::byte> memory, std::uint64_t total,
                                          std::span<const ReaderOf> readers, ReadsFrom from) {
  if (copy_ != ShmCopy::cma)
    if (const auto window = Arena::of_process().find(memory.data(), memory.size()))
      if (const auto number = windows_.share_window(*window))
        return Descriptor{Descriptor::window, *number, window->position, memory.size(), total};
  if (copy_ == ShmCopy::window) return {};
  if (copy_ == ShmCopy::cma) from = {0, 0};
  bool foreign = false;
  for (const ReaderOf& reader : readers) {
    const Peer& peer = of(reader.rank);
    if (memory.size() < (peer.same_process ? from.thread : from.process)) return {};
    if (!peer.same_process && !peer.reads_us) return {};
    foreign = foreign || !peer.same_process;
  }
  if (foreign && !CmaReader::is_readable(memory.data(), memory.size())) return {};
  return Descriptor{Descriptor::memory, 0, reinterpret_cast<std::uint64_t>(memory.data()),
                    memory.size(), total};
}

bool PeerTable::reads_by_cma() const {
  return copy_ == ShmCopy::cma && std::any_of(peers_.begin(), peers_.end(), [](const Peer& p) {
           return static_cast<bool>(p.memory);
         });
}

const std::byte* PeerTable::follow(Peer& peer, const Descriptor& d, const Wanted& want,
                                   std::span<const std::byte> staged) {
  const int from = index(peer.rank);
  if (want.sized && d.total != want.total)
    return problem(error(Code::invalid_usage,
                         "rank {} sends {} bytes to rank {}, which expects {} bytes from it", from,
                         d.total, index(me_), want.total));
  if (d.bytes != want.whole)
    return problem(error(Code::invalid_usage, "rank {} publishes {} bytes where rank {} expects {}",
                         from, d.bytes, index(me_), want.whole));
  if (d.kind == Descriptor::memory) return fetch(peer, d.position + want.offset, want);
  const std::byte* base = staged.data();
  std::size_t size = staged.size();
  if (d.kind == Descriptor::window) {
    auto window = peer.windows.find(d.number);
    if (window == peer.windows.end()) {  // its announcement was sent first
      pump(peer);
      window = peer.windows.find(d.number);
      if (window == peer.windows.end()) return nullptr;
    }
    base = window->second.base;
    size = window->second.bytes;
  }
  if (d.position > size || d.bytes > size - d.position)
    return problem(error(Code::remote_error, "rank {} published {} bytes at {} of {}", from,
                         d.bytes, d.position, size));
  return base + d.position + want.offset;
}

/// Reads the wanted part of the private memory of a peer into `want.into`, which it returns; of a
/// thread of this process it returns the place itself. Null: the peer has ended, or a problem.
const std::byte* PeerTable::fetch(Peer& peer, std::uint64_t address, const Wanted& want) {
  if (peer.same_process) return reinterpret_cast<const std::byte*>(address);
  if (!peer.memory || want.into == nullptr)
    return problem(error(Code::remote_error, "rank {} publishes memory that cannot be read here",
                         index(peer.rank)));
  const Status read = peer.memory.read(want.into, address, want.bytes);
  if (read.ok()) return want.into;
  if (read.code() == Code::remote_error) return nullptr;  // its socket tells that it has ended
  pump(peer);  // who gave up has said why, and then its memory may be gone
  return problem(error(read.code(), "rank {}: {}", index(peer.rank), read.message()));
}

Result<ShownMemory> PeerTable::show(std::size_t read_bytes, std::size_t written_bytes) {
  ANYCCL_TRY(shown_, Shown::make(read_bytes, written_bytes));
  for (Peer& peer : peers_) ANYCCL_CHECK(Shown::tell(shown_, *peer.channel, peer.same_process));
  return shown_->memory();
}

ShownMemory PeerTable::shown_by(std::uint32_t rank) {
  const auto& shown = of(rank).shown;
  const bool is_there = shown != nullptr && shown_ != nullptr && shown->is_as_large_as(*shown_);
  return is_there ? shown->memory() : ShownMemory();
}

std::nullptr_t PeerTable::problem(Status status) {
  if (problem_.ok()) problem_ = std::move(status);
  return nullptr;
}

std::nullptr_t PeerTable::own_problem(const Status& status) {
  return problem(error(status.code(), "rank {}: {}", index(me_), status.message()));
}

Status PeerTable::check() {
  for (Peer& peer : peers_) pump(peer);
  // Messages say more than the ends of links do.
  if (problem_.ok() && !peers_.empty()) problem_ = peers_[0].channel->context().problem();
  return problem_;
}

/// So that windows that nobody reads any more are unmapped.
void PeerTable::read_notices() {
  for (Peer& peer : peers_) {
    const std::uint32_t now =
        at<RankFlags>(peer.out, layout_.flags()).notices.load(std::memory_order_acquire);
    if (now != std::exchange(peer.notices, now)) pump(peer);
  }
}

void PeerTable::unmap_closed() {
  for (Peer& peer : peers_) peer.closed_windows.clear();
  has_closed_ = false;
}

void PeerTable::tell_all(const ControlMessage& message) {
  for (Peer& peer : peers_) {
    if (Status sent = send(*peer.channel, message); !sent.ok())  // best effort
      log(LogLevel::trace, "rank {} to rank {}: {}", index(me_), index(peer.rank), sent.message());
    ring_doorbell(at<DoorbellPage>(peer.in, 0).doorbell);
  }
}

void PeerTable::end(const Status& why) {
  for (Peer& peer : peers_) peer.channel->abort(why);
}

void PeerTable::say_goodbye() {
  for (Peer& peer : peers_) {
    peer.channel->say_goodbye();
    ring_doorbell(at<DoorbellPage>(peer.in, 0).doorbell);
  }
}

void PeerTable::pump(Peer& peer) {
  if (peer.state == PeerState::dead) return;
  // What it said last is read after its end was seen.
  const bool dead = peer.channel->is_dead(), left = peer.channel->has_left();
  ControlMessage message;
  Descriptors fds;
  while (receive(*peer.channel, message, fds)) {
    if (message.kind == ControlMessage::abort) problem(received_abort(message));
    if (message.kind == ControlMessage::window || message.kind == ControlMessage::no_window)
      if (Status taken = take_notice(peer, message, fds[0]); !taken.ok()) problem(std::move(taken));
    if (message.kind == ControlMessage::shown)
      if (auto shown = Shown::take(message, fds, peer.same_process); shown.ok())
        peer.shown = *std::move(shown);  // else this rank asks in vain, and says so
  }
  has_closed_ = has_closed_ || !peer.closed_windows.empty();
  if (has_closed_ && !reads_) unmap_closed();
  if (peer.state != PeerState::present || !(dead || left)) return;
  const auto& flags = at<RankFlags>(peer.out, layout_.flags());
  peer.state =
      left || flags.left.load(std::memory_order_acquire) != 0 ? PeerState::left : PeerState::dead;
}

}  // namespace anyccl::shm
