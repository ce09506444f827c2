// Random calls on random communicators, under faults and with ranks that are killed; every result
// is checked. Runs episodes, each a job of a few processes, until the time is over.

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <span>
#include <thread>

#include "launch/rendezvous.hpp"
#include "soak/episode.hpp"

namespace anyccl::soak {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUsage = R"(usage: soak [options]
  --seconds N      go on for so long (default 20)
  --episodes N     so many instead
  --seed S         of the first episode; the next one has the next seed (default 1)
  --ranks R        of each episode, 2 to 8; 0: random (default)
  --transport T    shm, tcp or unix (default: random)
  --chaos SPEC     for ANYCCL_CHAOS; none; random (default)
  --no-kills       no rank is killed
)";

struct Arguments {
  double seconds = 20;
  std::uint64_t episodes = 0, seed = 1;
  Episode::Options episode{.transport = "", .chaos = Episode::kDrawn};
};

Arguments parse(std::span<char*> words) {
  Arguments arguments;
  const auto fail = [] {
    std::cerr << kUsage;
    std::exit(2);
  };
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string name = words[i];
    if (name == "--no-kills") {
      arguments.episode.kills = false;
      continue;
    }
    if (++i == words.size()) fail();
    const std::string value = words[i];
    if (name == "--seconds")
      arguments.seconds = std::strtod(value.c_str(), nullptr);
    else if (name == "--episodes")
      arguments.episodes = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--seed")
      arguments.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--ranks")
      arguments.episode.ranks = std::atoi(value.c_str());
    else if (name == "--transport")
      arguments.episode.transport = value;
    else if (name == "--chaos")
      arguments.episode.chaos = value == "none" ? "" : value;
    else
      fail();
  }
  return arguments;
}

/// What came out of some episodes.
struct Totals {
  static constexpr const char* kTitles[] = {
      "episodes",      "right results", "ranks killed", "ranks with an error",
      "wrong results", "wrong errors",  "hangs",        "crashes"};
  std::uint64_t episodes = 0, calls = 0, killed = 0, failed = 0;
  std::uint64_t wrong_results = 0, wrong_errors = 0, hangs = 0, crashes = 0;

  std::array<std::uint64_t, std::size(kTitles)> values() const {
    return {episodes, calls, killed, failed, wrong_results, wrong_errors, hangs, crashes};
  }
  Totals& operator+=(const Totals& other) {
    episodes += other.episodes, calls += other.calls, killed += other.killed;
    failed += other.failed, wrong_results += other.wrong_results;
    wrong_errors += other.wrong_errors, hangs += other.hangs, crashes += other.crashes;
    return *this;
  }
  bool are_right() const { return wrong_results + wrong_errors + hangs + crashes == 0; }
};

/// The processes of an episode.
class Job {
 public:
  explicit Job(const Episode& episode) : episode_(episode) {
    const std::size_t bytes = sizeof(RankReport) * static_cast<std::size_t>(episode.ranks);
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    reports_ = {new (memory) RankReport[static_cast<std::size_t>(episode.ranks)],
                static_cast<std::size_t>(episode.ranks)};
    const Result<cli::PortPair> ports = cli::free_port_pair();
    for (int rank = 0; rank < episode.ranks; ++rank) start(rank, ports->first);
  }
  ~Job() { ::munmap(reports_.data(), reports_.size_bytes()); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Until all have ended, or none has come further for long: then they are killed. Time in which
  /// this process did not run itself, because it was stopped or had no core, does not count.
  void watch(Totals& totals) {
    constexpr std::chrono::milliseconds kLook(1), kMostPerLook(50), kLongest(60'000);
    std::chrono::nanoseconds idle(0);
    auto last = Clock::now();
    std::uint64_t before = 0;
    for (std::size_t ended = 0; ended < pids_.size();) {
      ended += collect();
      const std::uint64_t now = progress() + ended;
      const auto time = Clock::now();
      idle = now != before ? idle.zero()
                           : idle + std::min<std::chrono::nanoseconds>(time - last, kMostPerLook);
      last = time;
      before = now;
      if (idle > kLongest) return give_up(totals);
      std::this_thread::sleep_for(
          kLook);  // progress is a count in shared memory, which wakes nobody
    }
    count(totals);
  }
  const std::string& complaints() const { return complaints_; }

 private:
  void start(int rank, int port) {
    const pid_t pid = ::fork();
    if (pid != 0) return pids_.push_back(pid);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Environment variables = episode_.variables();
    variables.insert(variables.end(), {{"RANK", std::to_string(rank)},
                                       {"WORLD_SIZE", std::to_string(episode_.ranks)},
                                       {"MASTER_ADDR", "127.0.0.1"},
                                       {"MASTER_PORT", std::to_string(port)},
                                       {"ANYCCL_SECRET", "00112233445566778899aabbccddeeff"}});
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    run_rank(episode_, reports_[static_cast<std::size_t>(rank)]);
    std::exit(0);
  }

  /// How many have ended since the last time.
  std::size_t collect() {
    std::size_t count = 0;
    statuses_.resize(pids_.size(), -1);
    for (std::size_t r = 0; r < pids_.size(); ++r)
      if (statuses_[r] < 0 && ::waitpid(pids_[r], &statuses_[r], WNOHANG) == pids_[r]) ++count;
    return count;
  }
  std::uint64_t progress() const {
    std::uint64_t sum = 0;
    for (const RankReport& report : reports_)
      sum += report.calls.load(std::memory_order_relaxed) +
             static_cast<std::uint64_t>(report.step.load(std::memory_order_relaxed));
    return sum;
  }

  void give_up(Totals& totals) {
    ++totals.hangs;
    for (std::size_t r = 0; r < pids_.size(); ++r) {
      if (statuses_[r] >= 0) continue;
      complain(r, "hangs");
      ::kill(pids_[r], SIGKILL);
      ::waitpid(pids_[r], &statuses_[r], 0);
    }
  }

  void count(Totals& totals) {
    for (std::size_t r = 0; r < pids_.size(); ++r) {
      const RankReport& report = reports_[r];
      totals.calls += report.calls;
      totals.failed += report.has_failed ? 1 : 0;
      const bool was_killed = WIFSIGNALED(statuses_[r]) && WTERMSIG(statuses_[r]) == SIGKILL &&
                              static_cast<int>(r) == episode_.victim;
      totals.killed += was_killed ? 1 : 0;
      if (statuses_[r] != 0 && !was_killed) {
        ++totals.crashes;
        complain(r, "ended with status " + std::to_string(statuses_[r]));
      }
      if (report.finding == RankReport::Finding::right) continue;
      const bool is_wrong = report.finding == RankReport::Finding::wrong_result;
      ++(is_wrong ? totals.wrong_results : totals.wrong_errors);
      complain(
          r, std::string(is_wrong ? "has a wrong result: " : "has a wrong error: ") + report.text);
    }
  }

  void complain(std::size_t rank, const std::string& what) {
    complaints_ += "rank " + std::to_string(rank) + " in step " +
                   std::to_string(reports_[rank].step.load()) + " " + what + "\n";
  }

  const Episode& episode_;
  std::span<RankReport> reports_;
  std::vector<pid_t> pids_;
  std::vector<int> statuses_;  // -1: not ended.
  std::string complaints_;
};

/// What repeats an episode.
std::string command(const char* program, const Arguments& arguments, const Episode& episode) {
  std::string text = std::string(program) + " --episodes 1 --seed " + std::to_string(episode.seed);
  if (arguments.episode.ranks != 0) text += " --ranks " + std::to_string(episode.ranks);
  if (!arguments.episode.transport.empty()) text += " --transport " + episode.transport;
  if (arguments.episode.chaos != Episode::kDrawn)
    text += " --chaos '" + (episode.chaos.empty() ? "none" : episode.chaos) + "'";
  if (!arguments.episode.kills) text += " --no-kills";
  return text;
}

std::string describe(const Episode& e) {
  std::string text = "episode " + std::to_string(e.seed) + ": " + std::to_string(e.ranks) +
                     " ranks over " + e.transport + ", " + std::to_string(e.steps) + " steps";
  if (!e.chaos.empty()) text += ", chaos " + e.chaos;
  if (e.checksums) text += ", checksums";
  if (e.reconnects) text += ", reconnecting";
  if (e.victim >= 0)
    text +=
        ", rank " + std::to_string(e.victim) + " is killed in step " + std::to_string(e.killed_at);
  return text;
}

/// As the table has them.
std::string faults_of(const Episode& e) {
  const std::string faults = e.chaos.empty() ? "none" : "`" + e.chaos + "`";
  return e.reconnects ? faults + ", reconnecting" : faults;
}

void print_row(const std::string& title, const Totals& totals) {
  std::cout << "| " << title;
  for (const std::uint64_t value : totals.values()) std::cout << " | " << value;
  std::cout << " |\n";
}

/// By faults, in Markdown; returns the sum.
Totals print(const std::map<std::string, Totals>& by_faults) {
  std::cout << "| faults of connections |";
  for (const char* title : Totals::kTitles) std::cout << " " << title << " |";
  std::cout << "\n|---|";
  for (std::size_t i = 0; i < std::size(Totals::kTitles); ++i) std::cout << "---|";
  std::cout << "\n";
  Totals all;
  for (const auto& [faults, totals] : by_faults) {
    print_row(faults, totals);
    all += totals;
  }
  print_row("all", all);
  return all;
}

/// Whether everything was right.
bool run(const char* program, const Arguments& arguments) {
  std::map<std::string, Totals> by_faults;
  std::uint64_t done = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(arguments.seconds);
  do {
    const Episode episode = Episode::draw(arguments.seed + done++, arguments.episode);
    Totals& totals = by_faults[faults_of(episode)];
    Job job(episode);
    job.watch(totals);
    ++totals.episodes;
    if (!job.complaints().empty())
      std::cout << describe(episode) << "\n"
                << job.complaints() << "repeat it: " << command(program, arguments, episode)
                << std::endl;
  } while (arguments.episodes == 0 ? Clock::now() < end : done < arguments.episodes);
  return print(by_faults).are_right();
}

}  // namespace
}  // namespace anyccl::soak

int main(int count, char** words) {
  const auto arguments = anyccl::soak::parse({words, static_cast<std::size_t>(count)});
  return anyccl::soak::run(words[0], arguments) ? 0 : 1;
}
