#include "simulate/devices/device_replay.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "framework/collective/tiling.hpp"
#include "framework/device/enqueuer.hpp"
#include "simulate/devices/command_log.hpp"

namespace anyccl::cli {
namespace {

using Command = CommandLog::Command;

/// Addresses that nobody reads: each rank has memory on its device, and shows the others some of
/// the host's.
constexpr std::uintptr_t kRank = std::uintptr_t{1} << 44, kOwn = kRank / 2, kPart = kOwn / 4;

std::byte* at(std::uint32_t rank, std::uintptr_t offset) {
  return reinterpret_cast<std::byte*>((rank + 1) * kRank + offset);
}

/// What the host does for a call before it puts anything into a queue: functions of the driver.
constexpr int kSmallCalls = 9;

/// The commands of one rank, the last ones of which are in the queue of the program.
class RankCommands {
 public:
  static Result<std::unique_ptr<RankCommands>> of(const Algorithm& algorithm, const Shape& shape,
                                                  std::uint32_t me, const DeviceCosts& costs,
                                                  std::size_t bytes) {
    std::unique_ptr<RankCommands> made(new RankCommands(me, costs));
    const std::vector<Publications*> route(static_cast<std::size_t>(shape.size), nullptr);
    ANYCCL_TRY(made->plan_, make_routed_plan(algorithm, shape, Rank{static_cast<int>(me)}, route,
                                             Wires::kSlots));
    made->prepare(bytes);
    ANYCCL_CHECK(made->put(shape.size));
    return made;
  }
  const std::vector<Command>& commands() const { return log_->commands(); }

 private:
  RankCommands(std::uint32_t me, const DeviceCosts& costs)
      : me_(me),
        log_(std::make_shared<CommandLog>(costs, reinterpret_cast<std::uintptr_t>(at(me, 0)),
                                          kOwn)) {}
  void prepare(std::size_t bytes);
  Status put(int ranks);

  const std::uint32_t me_;
  const std::shared_ptr<CommandLog> log_;
  std::unique_ptr<RoutedPlan> plan_;
  PreparedCall call_;
};

/// As PlanCache does for queues.
void RankCommands::prepare(std::size_t bytes) {
  const Contract& contract = plan_->plan.schedule.contract;
  const Tiling tiling = choose_tiling(*plan_,
                                      {.slots = Wires::kSlots,
                                       .ring_bytes = Wires::slots_bytes(),
                                       .chunks_per_block = contract.chunks_per_block(),
                                       .publication_bytes = Wires::kMostPublished},
                                      tile_in_queues(bytes));
  call_.routed = plan_.get();
  call_.geometry = Geometry::of_vector(contract, bytes, tiling.tile_bytes);
  call_.lanes = std::min(tiling.lanes, call_.geometry.tiles());
  call_.element = sizeof(float);
  call_.record.dtype = static_cast<std::uint8_t>(DType::f32);
  const std::uint32_t last = call_.geometry.tiles() - 1;
  bind(*plan_, call_.geometry, {}, last, call_.last);
  if (last > 0) bind(*plan_, call_.geometry, {}, 0, call_.full);
}

/// As DeviceQueues does.
Status RankCommands::put(int ranks) {
  std::vector<ShownMemory> shown;
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(ranks); ++r)
    shown.push_back({at(r, kOwn), true, at(r, kOwn + kPart)});
  ANYCCL_TRY(const auto wires,
             Wires::pin(log_, Rank{static_cast<int>(me_)}, std::move(shown), nullptr));
  QueueState state;
  state.numbers.resize(static_cast<std::size_t>(ranks));
  ANYCCL_TRY(const DeviceQueue program, log_->make_queue(false));
  ANYCCL_TRY(state.out, log_->make_queue(true));
  ANYCCL_TRY(state.in, log_->make_queue(true));
  ANYCCL_TRY(state.written, log_->make_moment());
  for (QueueState::Slot& slot : state.slots) {
    ANYCCL_TRY(slot.filled, log_->make_moment());
  }
  ANYCCL_TRY(const DeviceMoment before, log_->make_moment());
  ANYCCL_TRY(const DeviceMoment end, log_->make_moment());
  ANYCCL_CHECK(log_->record(program, before));
  ANYCCL_CHECK(log_->wait(state.out, before));
  ANYCCL_CHECK(log_->wait(state.in, before));
  ANYCCL_CHECK(log_->wait_word(state.in, wires->agreed(), 1));
  ANYCCL_CHECK(log_->record(state.in, end));  // its turn
  const Enqueuer::Pause pause = [](std::uint32_t) { return Status(); };
  ANYCCL_CHECK(Enqueuer(*log_, *wires, state, call_, Rank{static_cast<int>(me_)},
                        {at(me_, 0), at(me_, kPart), at(me_, 2 * kPart)}, pause)
                   .run());
  ANYCCL_CHECK(log_->record(state.out, before));
  ANYCCL_CHECK(log_->wait(state.in, before));
  ANYCCL_CHECK(log_->record(state.in, end));
  return log_->wait(program, end);
}

/// The devices of all ranks, as they do their commands.
class DeviceReplay {
 public:
  DeviceReplay(std::span<const std::unique_ptr<RankCommands>> ranks, const DeviceCosts& costs)
      : costs_(costs), devices_(ranks.size()) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      Machine& device = devices_[r];
      device.commands = ranks[r]->commands();
      device.places.resize(device.commands.size() + 1, -1);
      device.places[0] = 0;
      for (std::size_t i = 0; i < device.commands.size(); ++i) {
        device.queues[device.commands[i].queue].waiting.push_back(i);
        if (device.commands[i].kind == Command::write_word)
          written_.insert(device.commands[i].word);
      }
    }
  }

  Result<ReplayResult> run() {
    while (const auto next = earliest()) do_next(*next);
    ReplayResult result;
    for (const Machine& device : devices_) {
      for (const Queue& queue : device.queues)
        if (queue.next < queue.waiting.size())
          return error(Code::internal, "queues of devices wait for ever");
      result.done.push_back(device.queues[0].free);
      result.seconds = std::max(result.seconds, result.done.back());
    }
    return result;
  }

 private:
  struct Queue {
    std::vector<std::size_t> waiting;  // commands of its device
    std::size_t next = 0;
    double free = 0;
  };
  struct Machine {
    std::vector<Command> commands;
    std::vector<double> places;            // when they were come to; below 0: not yet
    Queue queues[3];                       // the first one is the program's
    double compute = 0, to = 0, from = 0;  // until when these engines are busy
  };
  struct Next {
    Machine* device;
    Queue* queue;
    double start;
  };

  /// When the next command of a queue can start; none: what it waits for has not happened.
  std::optional<double> start_of(const Machine& device, const Queue& queue) const {
    const std::size_t number = queue.waiting[queue.next];
    const Command& command = device.commands[number];
    const double put =
        kSmallCalls * costs_.small_call_s + static_cast<double>(number + 1) * costs_.call_s;
    const double start = std::max(put, queue.free);
    if (command.kind == Command::wait) {
      const double place = device.places[command.number];
      return place < 0 ? std::nullopt : std::optional(std::max(start, place));
    }
    if (command.kind != Command::wait_word || !written_.contains(command.word)) return start;
    const auto word = words_.find(command.word);
    if (word == words_.end()) return std::nullopt;
    const auto there = word->second.lower_bound(command.number);
    return there == word->second.end() ? std::nullopt
                                       : std::optional(std::max(start, there->second));
  }

  std::optional<Next> earliest() {
    std::optional<Next> first;
    for (Machine& device : devices_)
      for (Queue& queue : device.queues) {
        if (queue.next == queue.waiting.size()) continue;
        const auto start = start_of(device, queue);
        if (start && (!first || *start < first->start)) first = {&device, &queue, *start};
      }
    return first;
  }

  void do_next(const Next& next) {
    const Command& command = next.device->commands[next.queue->waiting[next.queue->next++]];
    double end = next.start;
    if (command.kind == Command::work) end = work(*next.device, command, next.start);
    if (command.kind == Command::wait_word || command.kind == Command::write_word)
      end += costs_.word_s;
    if (command.kind == Command::write_word) words_[command.word].emplace(command.number, end);
    if (command.kind == Command::record) next.device->places[command.number] = end;
    next.queue->free = end;
  }

  static double work(Machine& device, const Command& command, double start) {
    const double begin = start + command.begin_s;
    double end = begin;
    for (const auto& [engine, seconds] : {std::pair{&device.compute, command.compute_s},
                                          {&device.to, command.to_s},
                                          {&device.from, command.from_s}})
      if (seconds > 0) end = std::max(end, *engine = std::max(*engine, begin) + seconds);
    return end + command.after_s;
  }

  const DeviceCosts costs_;
  std::vector<Machine> devices_;
  std::set<const std::uint32_t*> written_;
  std::map<const std::uint32_t*, std::map<std::uint64_t, double>> words_;
};

}  // namespace

Result<ReplayResult> replay_on_devices(const Algorithm& algorithm, const Shape& shape,
                                       const DeviceCosts& costs, std::size_t bytes) {
  const bool can = has_equal_blocks(algorithm.collective) &&
                   algorithm.collective != Collective::barrier && shape.size > 1 &&
                   shape.size <= static_cast<int>(Device::kMostSources) && bytes > 0;
  if (!can)
    return error(Code::invalid_argument,
                 "queues of devices are for collectives of equal blocks that are not empty, on 2 "
                 "to {} ranks",
                 Device::kMostSources);
  if (!algorithm.supports(shape))
    return error(Code::invalid_argument, "{} needs {}, not {} ranks", id(algorithm),
                 algorithm.needs, shape.size);
  std::vector<std::unique_ptr<RankCommands>> ranks;
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(shape.size); ++r) {
    ANYCCL_TRY(auto commands, RankCommands::of(algorithm, shape, r, costs, bytes));
    ranks.push_back(std::move(commands));
  }
  return DeviceReplay(ranks, costs).run();
}

}  // namespace anyccl::cli
