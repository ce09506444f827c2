#include "runtime/process/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "base/per_process.hpp"
#include "framework/communicator/comm_report.hpp"
#include "framework/communicator/shutdown.hpp"
#include "framework/communicator/survivors.hpp"
#include "framework/device/issued_device_calls.hpp"
#include "runtime/links/on_demand.hpp"
#include "runtime/process/dump_signal.hpp"
#include "runtime/process/joined_comm.hpp"

namespace anyccl {
namespace {

/// How long exit() waits at most for what the threads of streams are doing.
constexpr auto kExitTime = std::chrono::seconds(1);
/// See ANYCCL_METRICS.
constexpr std::chrono::seconds kReportEvery{5};

}  // namespace

Process& Process::get() {
  return per_process<Process>();
}

void Process::add(const CommPtr& comm) {
  const std::lock_guard lock(mutex_);
  leave_at_exit();
  if (comms_.size() >= most_comms_) {
    std::erase_if(comms_, [](const auto& other) { return other.expired(); });
    most_comms_ = std::max<std::size_t>(16, 2 * comms_.size());
  }
  comms_.push_back(comm);
}

std::shared_ptr<HostStream> Process::make_stream() {
  const std::lock_guard lock(mutex_);
  leave_at_exit();
  auto stream = std::make_shared<HostStream>(++streams_made_);
  std::erase_if(streams_, [](const auto& other) { return other.expired(); });
  streams_.push_back(stream);
  return stream;
}

BackgroundProgress& Process::progress() {
  const std::lock_guard lock(mutex_);
  if (progress_ == nullptr)
    progress_ = new BackgroundProgress;  // never destroyed: its thread may outlive main()
  return *progress_;
}

void Process::report_in(const std::string& folder) {
  prepare_exit();
  if (metrics_.report_in(folder) && !reports_.exchange(true, std::memory_order_relaxed))
    progress().repeat(kReportEvery, [this] { metrics_.write(); });
}

std::string Process::call_elsewhere(const bootstrap::Hello& rank, std::string_view id) {
  std::vector<CommPtr> others;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);  // its holder may wait for the caller
    if (!lock) return "";
    for (const std::weak_ptr<Comm>& one : comms_)
      if (CommPtr comm = one.lock()) others.push_back(std::move(comm));
  }
  for (const CommPtr& comm : others) {
    if (comm->membership().id == id) continue;
    const std::optional<Rank> peer = only_rank_of(rank, JoinedComm::of(*comm).members());
    if (!peer) continue;
    if (const std::string call = Survivors(*comm).call_without_me(*peer); !call.empty())
      return fmt::format(", and has called {}, which this rank has not", call);
  }
  return "";
}

void Process::dump_at(int signal) {
  constexpr std::chrono::milliseconds kLook{200}, kPatience{500};
  if (dumps_.exchange(true, std::memory_order_relaxed) || !take_dump_signal(signal)) return;
  progress().repeat(kLook, [this, kPatience] {
    if (!dumps_were_asked_for()) return;
    for (const CommPtr& comm : snapshot().comms)
      CommReport(*comm).dump_on_signal(Deadline::in(kPatience));
  });
}

void Process::prepare_exit() {
  const std::lock_guard lock(mutex_);
  leave_at_exit();
}

/// With the lock.
void Process::leave_at_exit() {
  // Also of the parent: children inherit what it registered.
  static std::atomic<bool> at_exit{false};
  if (!at_exit.load(std::memory_order_relaxed))
    at_exit.store(std::atexit([] {
                    get().metrics_.write();  // before communicators are kept from answering
                    get().leave_all();
                  }) == 0,
                  std::memory_order_relaxed);
}

ProcessMetrics::Now Process::snapshot() {
  ProcessMetrics::Now now;
  {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Comm>& one : comms_)
      if (CommPtr comm = one.lock()) now.comms.push_back(std::move(comm));
  }
  std::set<std::shared_ptr<link::Link>> links;
  for (const CommPtr& comm : now.comms)
    for (auto& link : JoinedComm::of(*comm).links()) links.insert(std::move(link));
  now.links = links.size();
  return now;
}

/// So that peers know that we left and did not die, and get what is still on its way to them.
/// Work that streams have not done by then stays undone.
void Process::leave_all() {
  const std::lock_guard lock(mutex_);
  const Deadline deadline = Deadline::in(kExitTime);
  if (progress_ != nullptr) progress_->stop(deadline);
  IssuedDeviceCalls::of_process().stop(deadline);
  for (const std::weak_ptr<HostStream>& weak : streams_)
    if (const auto stream = weak.lock(); stream && stream->check().ok()) stream->stop(deadline);
  for (const std::weak_ptr<Comm>& one : comms_)
    if (const CommPtr comm = one.lock()) Shutdown(*comm).leave_for_exit(deadline);
  stop_connecting();
}

std::optional<std::string> metrics_text(Deadline deadline) {
  return Process::get().metrics().text(deadline);
}

}  // namespace anyccl
