#include "soak/episode.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>

#include "soak/step.hpp"

namespace anyccl::soak {
namespace {

using Finding = RankReport::Finding;

constexpr std::size_t kSlots = 4;  // For communicators; the first is of all ranks.

/// A communicator of this rank.
struct Member {
  Communicator comm;
  std::optional<CallConfigs> configs;
  int group = 0;  // The color by which it was split.
};

class Player {
 public:
  Player(const Episode& episode, RankReport& report)
      : episode_(episode), report_(report), random_(episode.seed) {}

  void play() {
    Result<Communicator> world = Communicator::from_env();
    if (!world.ok()) return judge(world.status());
    me_ = index(world->rank());
    slots_[0] = Member{*std::move(world), CallConfigs(random_), 0};
    Status status;
    for (int step = 0; status.ok() && step < episode_.steps; ++step) {
      report_.step.store(step, std::memory_order_relaxed);
      if (me_ == episode_.victim && step == episode_.killed_at) die_soon();
      status = play_step(step);
    }
    if (killer_.joinable()) killer_.join();
    if (status.ok()) {  // All come here, so what only some have seen yet shows now.
      in_ = &slots_[0];
      status = wait(slots_[0]->comm.barrier());
    }
    judge(status);
    end(status.ok());
  }

 private:
  Status play_step(int step) {
    const std::uint64_t seed = random_();
    std::optional<Member>& slot = slots_[seed % kSlots];
    if (&slot != &slots_[0] && (!was_split_[seed % kSlots] || (seed >> 8) % 32 == 0)) {
      was_split_[seed % kSlots] = true;
      return split(slot, seed);
    }
    if (!slot) return {};
    in_ = &slot;
    Random random(seed + static_cast<std::uint64_t>(slot->group));
    const StepOutcome outcome = run_step(slot->comm, std::move(random), *slot->configs, step);
    report_.calls.fetch_add(outcome.calls, std::memory_order_relaxed);
    if (!outcome.wrong.empty())
      accuse(Finding::wrong_result, "step " + std::to_string(step) + ", " + outcome.wrong);
    return outcome.status;
  }

  /// Collective over all ranks; those of one color come into one communicator.
  Status split(std::optional<Member>& slot, std::uint64_t seed) {
    const auto mine = static_cast<std::uint64_t>(me_);
    const int color = static_cast<int>(mix(seed + mine) % 3);
    const int key = static_cast<int>(mix(seed + 100 + mine) % 5);
    const bool is_outside = color == 2;
    slot.reset();
    in_ = &slots_[0];
    Random random(seed);
    CallConfigs configs(random);
    Result<Communicator> made =
        slots_[0]->comm.split(is_outside ? ANYCCL_SPLIT_NOCOLOR : color, key);
    if (!made.ok()) return made.status();
    if (!is_outside) slot = Member{*std::move(made), std::move(configs), color};
    return {};
  }

  /// At some moment of what this rank does next.
  void die_soon() {
    const std::chrono::microseconds after(mix(episode_.seed) % 3000);
    killer_ = std::thread([after] {
      std::this_thread::sleep_for(after);  // the fault: a death at a moment that nobody chose
      ::raise(SIGKILL);
    });
  }

  bool may_fail() const { return episode_.victim >= 0 || episode_.breaks_links(); }

  /// Of what ended the steps, or of their end: an error is right that says which rank broke, or
  /// which one has given up because of that.
  void judge(const Status& status) {
    if (status.ok()) return;
    report_.has_failed.store(true, std::memory_order_relaxed);
    const std::string text(status.message());
    const bool is_for_all = in_ == &slots_[0], broke = status.code() == Code::remote_error;
    const std::string named = broke && is_for_all && !episode_.breaks_links()
                                  ? "rank " + std::to_string(episode_.victim)
                                  : "rank ";
    const bool is_late = episode_.loses_frames() && status.code() == Code::timeout;
    if (!may_fail() || (!broke && !is_late && status.code() != Code::aborted) ||
        text.find(named) == std::string::npos)
      accuse(Finding::wrong_error, text);
  }

  void end(bool is_right) {
    for (std::optional<Member>& slot : slots_) {
      if (!slot) continue;
      if (!is_right) static_cast<void>(slot->comm.revoke());  // Others may wait in it.
      const bool aborts = !is_right && random_() % 2 == 0;
      const Status status = aborts ? slot->comm.abort() : slot->comm.destroy();
      if (is_right) judge(status);  // One that has failed says so once more.
    }
  }

  void accuse(Finding finding, const std::string& what) {
    if (report_.finding != Finding::right) return;
    report_.finding = finding;
    std::strncpy(report_.text, what.c_str(), sizeof report_.text - 1);
  }

  const Episode& episode_;
  RankReport& report_;
  Random random_;
  int me_ = 0;
  std::optional<Member> slots_[kSlots];
  const std::optional<Member>* in_ = nullptr;  // Where it was last.
  bool was_split_[kSlots] = {true};
  std::thread killer_;
};

/// A lost frame shows by the next one, of which connections that only serve shared memory have few.
std::string draw_chaos(Random& random, bool has_frames) {
  constexpr std::string_view kMixes[] = {"",
                                         "delay=0.01:200us,partial=0.2,reorder=0.05",
                                         "delay=0.002:2ms",
                                         "slow=50M,partial=0.05",
                                         "cut=2e-7,partial=0.1",
                                         "corrupt=2e-7,delay=0.005:100us",
                                         "drop=1e-4",
                                         "duplicate=1e-4,reorder=0.02"};
  const std::string_view drawn = kMixes[below(random, std::size(kMixes))];
  return std::string(drawn.starts_with("drop") && !has_frames ? "" : drawn);
}

}  // namespace

Episode Episode::draw(std::uint64_t seed, const Options& options) {
  constexpr const char* kTransports[] = {"shm", "tcp", "unix"};
  Random random(seed);
  Episode e;
  e.seed = seed;
  // Each is drawn, whatever is chosen, so that the others do not depend on it.
  e.transport = kTransports[below(random, std::size(kTransports))];
  if (!options.transport.empty()) e.transport = options.transport;
  e.chaos = draw_chaos(random, e.transport != "shm");
  if (options.chaos != kDrawn) e.chaos = options.chaos;
  e.checksums = below(random, 2) == 0 || e.has_any({"corrupt", "drop", "duplicate"});
  e.ranks = 2 + static_cast<int>(below(random, 4));
  if (options.ranks != 0) e.ranks = options.ranks;
  e.steps = 50 + static_cast<int>(below(random, 400));
  e.killed_at = static_cast<int>(random() % static_cast<std::uint64_t>(e.steps));
  const auto victim = static_cast<int>(below(random, static_cast<std::size_t>(e.ranks)));
  const bool kills = below(random, 4) == 0;
  if (kills && options.kills) e.victim = victim;
  e.reconnects = below(random, 2) == 0 && e.transport == "tcp";
  return e;
}

bool Episode::has_any(std::initializer_list<std::string_view> faults) const {
  return std::any_of(faults.begin(), faults.end(), [&](std::string_view fault) {
    return chaos.find(std::string(fault) + "=") != std::string::npos;
  });
}

bool Episode::breaks_links() const {
  return has_any({"drop", "duplicate"}) || (has_any({"cut", "corrupt"}) && !reconnects);
}

Environment Episode::variables() const {
  Environment all{
      {"ANYCCL_TRANSPORT", transport},
      {"ANYCCL_CHAOS", "seed=" + std::to_string(seed) + (chaos.empty() ? "" : "," + chaos)},
      {"ANYCCL_CHECKSUM", checksums ? "1" : "0"},
      {"ANYCCL_RECONNECT", reconnects ? "60" : "0"},
      {"ANYCCL_TUNER_TABLE", "none"},
      {"ANYCCL_DEBUG", "NONE"}};
  if (loses_frames()) all.emplace_back("ANYCCL_OP_TIMEOUT", "20");
  return all;
}

void run_rank(const Episode& episode, RankReport& report) {
  Player(episode, report).play();
}

}  // namespace anyccl::soak
