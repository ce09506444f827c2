#include "framework/communicator/survivors.hpp"

#include "base/error.hpp"

namespace anyccl {

std::uint64_t Survivors::completed() {
  if (comm_.forked()) return 0;
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  return completed_here();
}

std::uint64_t Survivors::completed_here() const {
  return comm_.failure_.happened() ? comm_.completed_ : comm_.queue_.count_completed();
}

Status Survivors::absence(std::span<const Rank> wanted) {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  if (comm_.failure_.happened()) return comm_.failure();
  Diagnosis& diagnosis = comm_.diagnosis_;
  Status bad = diagnosis.reported(), absent;
  if (bad.ok()) absent = diagnosis.absence(wanted);
  if (!absent.ok()) bad = diagnosis.reported();
  if (!bad.ok()) comm_.fail(bad);
  return bad.ok() ? absent : comm_.failure();
}

bool Survivors::has_left(Rank peer) {
  Transport* const transport = comm_.routes_.to[uindex(peer)];
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  if (comm_.forked() || transport == nullptr || !progress_lock.try_lock()) return false;
  static_cast<void>(transport->check());
  return transport->state(peer) == PeerState::left;
}

std::string Survivors::call_without_me(Rank peer) {
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  if (comm_.forked() || !progress_lock.try_lock()) return "";
  Diagnosis& diagnosis = comm_.diagnosis_;
  static_cast<void>(diagnosis.poll_control());
  const std::string call = diagnosis.report().call_after(peer, comm_.sequence());
  return call.empty() ? "" : fmt::format("{}, of {}", call, comm_.me_.label);
}

}  // namespace anyccl
