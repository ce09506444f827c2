#include "simulate/programs.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"

namespace anyccl::cli {

namespace {

/// What a run of a minute and some gigabytes can replay.
constexpr std::uint64_t kMostMessages = 200'000'000;

std::uint64_t messages_sent(const Schedule& schedule) {
  std::uint64_t sent = 0;
  for (const Step& step : schedule.steps) {
    if (step.op != Op::send) continue;
    for (const Rank peer : step.peers) sent += peer == schedule.rank ? 0U : 1U;
  }
  return sent;
}

Status too_many(const Algorithm& algorithm, int ranks, std::uint64_t messages) {
  return error(Code::invalid_argument,
               "{} on {} ranks sends about {} million messages; at most {} million are simulated",
               id(algorithm), ranks, messages / 1'000'000, kMostMessages / 1'000'000);
}

}  // namespace

/// Appends one rank's program, or finds that another rank has the same.
class ProgramWriter {
 public:
  explicit ProgramWriter(RankPrograms& to) : to_(to) {}

  /// Gives the next rank its program: that of an earlier rank if it is the same, or else a new one.
  void add(const Schedule& schedule, std::uint32_t ranks) {
    me_ = uindex(schedule.rank);
    ranks_ = ranks;
    steps_.clear();
    peers_.clear();
    senders_.clear();
    for (const Step& step : schedule.steps) add(step);
    number_senders();
    to_.program_of_.push_back(shared_or_new());
  }

 private:
  void add(const Step& step) {
    ProgramStep s{.sends = step.op == Op::send,
                  .first_peer = static_cast<std::uint32_t>(peers_.size()),
                  .chunks = s_chunks(step)};
    for (const Rank peer : step.peers)
      if (uindex(peer) != me_) peers_.push_back((uindex(peer) + ranks_ - me_) % ranks_);
    s.peers = static_cast<std::uint32_t>(peers_.size()) - s.first_peer;
    if (step.op == Op::recv_reduce)
      s.additions = static_cast<std::uint32_t>(step.peers.size()) - 1;
    else if (step.op == Op::reduce)
      s.additions = 1;
    if (s.peers == 0 && s.additions == 0) return;
    // Messages of one step leave together and are awaited together, so their order means nothing;
    // sorted, the programs of more ranks are equal.
    const auto first = peers_.end() - s.peers;
    std::sort(first, peers_.end());
    if (!s.sends) senders_.insert(senders_.end(), first, peers_.end());
    steps_.push_back(s);
  }

  static std::uint32_t s_chunks(const Step& step) {
    return step.op == Op::send ? step.src.count : step.dst.count;
  }

  void number_senders() {
    std::sort(senders_.begin(), senders_.end());
    senders_.erase(std::unique(senders_.begin(), senders_.end()), senders_.end());
    for (const ProgramStep& s : steps_) {
      if (s.sends) continue;
      for (std::uint32_t k = s.first_peer; k < s.first_peer + s.peers; ++k)
        peers_[k] = static_cast<std::uint32_t>(
            std::lower_bound(senders_.begin(), senders_.end(), peers_[k]) - senders_.begin());
    }
  }

  std::uint32_t shared_or_new() {
    const std::uint64_t key = hash();
    const auto [first, last] = by_hash_.equal_range(key);
    for (auto it = first; it != last; ++it)
      if (equals(to_.programs_[it->second])) return it->second;
    const auto number = static_cast<std::uint32_t>(to_.programs_.size());
    to_.programs_.push_back({to_.steps_.size(), to_.peers_.size(), to_.senders_.size(),
                             size(steps_), size(peers_), size(senders_)});
    to_.steps_.insert(to_.steps_.end(), steps_.begin(), steps_.end());
    to_.peers_.insert(to_.peers_.end(), peers_.begin(), peers_.end());
    to_.senders_.insert(to_.senders_.end(), senders_.begin(), senders_.end());
    by_hash_.emplace(key, number);
    return number;
  }

  template <typename T>
  static std::uint32_t size(const std::vector<T>& of) {
    return static_cast<std::uint32_t>(of.size());
  }

  std::uint64_t hash() const {
    std::uint64_t h = steps_.size();
    const auto mix = [&h](std::uint64_t value) {
      h = (h ^ value) * 0x9E3779B97F4A7C15U + (h >> 29);
    };
    for (const ProgramStep& s : steps_)
      mix(s.chunks * 4ULL + s.additions * 2ULL + (s.sends ? 1 : 0));
    for (const std::uint32_t peer : peers_) mix(peer);
    return h;
  }

  bool equals(const RankPrograms::Program& p) const {
    const auto same = [](const ProgramStep& a, const ProgramStep& b) {
      return a.sends == b.sends && a.peers == b.peers && a.chunks == b.chunks &&
             a.additions == b.additions;
    };
    const auto at = [](const auto& all, std::size_t first) {
      return all.begin() + static_cast<std::ptrdiff_t>(first);
    };
    return p.steps == steps_.size() && p.peers == peers_.size() && p.senders == senders_.size() &&
           std::equal(steps_.begin(), steps_.end(), at(to_.steps_, p.first_step), same) &&
           std::equal(peers_.begin(), peers_.end(), at(to_.peers_, p.first_peer)) &&
           std::equal(senders_.begin(), senders_.end(), at(to_.senders_, p.first_sender));
  }

  RankPrograms& to_;
  std::uint32_t me_ = 0, ranks_ = 0;
  std::vector<ProgramStep> steps_;
  std::vector<std::uint32_t> peers_, senders_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

Result<RankPrograms> RankPrograms::of(const Algorithm& algorithm, Shape shape) {
  if (!algorithm.supports(shape))
    return error(Code::invalid_argument, "{} needs {}, not {} ranks", id(algorithm),
                 algorithm.needs, shape.size);
  shape.with_dependencies = false;
  // Rank n / 2 is no root and no leader, so a circle of ranks is refused before it is built.
  const auto n = static_cast<std::uint64_t>(shape.size);
  const std::uint64_t sent = messages_sent(algorithm.build(shape, Rank{shape.size / 2}));
  if (sent * n > kMostMessages) return too_many(algorithm, shape.size, sent * n);
  RankPrograms programs;
  ProgramWriter writer(programs);
  for (int r = 0; r < shape.size; ++r) {
    const Schedule schedule = algorithm.build(shape, Rank{r});
    programs.messages_ += messages_sent(schedule);
    if (programs.messages_ > kMostMessages)
      return too_many(algorithm, shape.size, programs.messages_);
    if (r == 0 && schedule.contract.has_bytes())
      programs.chunks_per_block_ = schedule.contract.chunks_per_block();
    writer.add(schedule, static_cast<std::uint32_t>(shape.size));
  }
  return programs;
}

}  // namespace anyccl::cli
