// What it costs ranks to meet: processes of this host that join one group over TCP, at its loopback address, and
// get the table of all; they do not connect to each other. So many ranks in a row as --per-host says (default: 1)
// say that they are on one host.
//
//   join RANKS [ROUNDS] [started|released] [--per-host N]   default: 3 rounds of processes that join as soon as they
//                                                           have started
//
// `released`: all wait until the last has started, and come at once. Prints for each round the time from the last
// start (of main(), or the release) to the first and the last table; the time from the start of the first process; the
// CPU time of rank 0 (with the root server) and of the others, in the median, without what starting them takes; the
// most descriptors that rank 0 had; and the memory of one of the others that holds the table (proportional set
// size, and what it shares with nobody).

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../micro/must.hpp"
#include "launch/rendezvous.hpp"
#include "platform/bootstrap/rendezvous/environment.hpp"
#include "platform/bootstrap/socket/listeners.hpp"
#include "platform/probe/host_facts.hpp"

namespace {

using namespace anyccl;
using Clock = std::chrono::steady_clock;  // the same in all processes

/// What a rank tells the parent; written at once, so that those of many ranks do not mix.
struct Report {
  int rank = 0;
  enum Kind { started, joined, failed } kind = started;
  std::int64_t at_ns = 0;
  double cpu_s = 0;  ///< Since it started.
};

std::int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

void must_write(int fd, const Report& report) {
  if (::write(fd, &report, sizeof report) != sizeof report) fail("write");
}

/// Says why a rank failed, to the parent as well.
void must_join(const Status& status, int reports) {
  if (!status.ok()) must_write(reports, {-1, Report::failed, 0, 0});
  must(status);
}

void wait_for_end_of(int fd) {
  char byte = 0;
  while (::read(fd, &byte, 1) > 0) {
  }
}

/// The descriptors of a rank: those that its parent gave it.
struct Ends {
  int reports = -1, release = -1, hold = -1;
};

/// One rank: joins, reports, and stays until it may go.
int be_rank(const Config& config, int per_host, const Ends& ends) {
  must_write(ends.reports, {*config.rank, Report::started, now_ns(), 0});
  wait_for_end_of(ends.release);
  const double before = cpu_seconds();
  auto listeners = bootstrap::Listeners::open("");
  must_join(listeners.status(), ends.reports);
  const probe::HostFacts facts = probe::host_facts();
  auto hello = bootstrap::make_hello(
      Rank{*config.rank}, *config.world_size,
      {facts.boot_id, facts.network_namespace, std::to_string(*config.rank / per_host)}, "",
      *listeners);
  must_join(hello.status(), ends.reports);
  hello->cpus = facts.cpus;
  const auto group = bootstrap::join_environment(
      config, *hello, Deadline::in(std::chrono::seconds(60)), {}, &*listeners);
  must_join(group.status(), ends.reports);
  must_write(ends.reports, {*config.rank, Report::joined, now_ns(), cpu_seconds() - before});
  wait_for_end_of(ends.hold);
  return 0;
}

struct Pipe {
  UniqueFd reader, writer;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
    reader.reset(ends[0]);
    writer.reset(ends[1]);
  }
};

/// Starts this program again as a rank; a rank keeps only `ends`.
pid_t start_rank(const std::vector<std::string>& words, const Ends& ends) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid > 0) return pid;
  for (const int fd : {ends.reports, ends.release, ends.hold}) ::fcntl(fd, F_SETFD, 0);
  ::execv("/proc/self/exe", argv.data());
  std::_Exit(127);
}

std::size_t descriptors_of(pid_t pid) {
  std::size_t count = 0;
  std::error_code gone;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (auto it = std::filesystem::directory_iterator(folder, gone);
       !gone && it != std::filesystem::directory_iterator(); it.increment(gone))
    ++count;
  return count;
}

struct Memory {
  long pss_kb = 0, private_kb = 0;
};

Memory memory_of(pid_t pid) {
  Memory memory;
  std::string line;
  for (std::ifstream sizes("/proc/" + std::to_string(pid) + "/smaps_rollup");
       std::getline(sizes, line);) {
    if (line.rfind("Pss:", 0) == 0) memory.pss_kb = std::atol(line.c_str() + 4);
    if (line.rfind("Private_", 0) == 0)
      memory.private_kb += std::atol(line.c_str() + line.find(':') + 1);
  }
  return memory;
}

/// The processes of one round, and what they reported.
class Round {
 public:
  Round(int ranks, bool released, int per_host)
      : ranks_(ranks), released_(released), per_host_(per_host) {
    ports_ = cli::free_port_pair();
    secret_ = cli::random_secret();
    must(ports_.status());
    must(secret_.status());
  }

  void run() {
    if (!released_) release_.writer.reset();
    const std::int64_t begin = now_ns();
    for (int r = 0; r < ranks_; ++r) start(r);
    reports_.writer.reset();
    std::thread watcher([this] { watch_root(); });
    if (released_) {
      read(false);
      last_start_ns_ = now_ns();
      release_.writer.reset();
    }
    read(true);
    watching_ = false;
    watcher.join();
    const Memory memory = memory_of(processes_.back());
    hold_.writer.reset();
    for (const pid_t pid : processes_) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      if (status != 0) std::_Exit(1);
    }
    print(begin, memory);
  }

 private:
  void start(int rank) {
    const Ends ends{reports_.writer.get(), release_.reader.get(), hold_.reader.get()};
    std::vector<std::string> words{"join", "rank", *secret_};
    for (const int number :
         {rank, ranks_, ports_->first, ends.reports, ends.release, ends.hold, per_host_})
      words.push_back(std::to_string(number));
    processes_.push_back(start_rank(words, ends));
  }

  /// Until all have started or joined.
  void read(bool joined) {
    std::size_t& count = joined ? joined_ : started_;
    Report report;
    while (count < static_cast<std::size_t>(ranks_)) {
      if (::read(reports_.reader.get(), &report, sizeof report) != sizeof report) fail("read");
      if (report.kind == Report::failed) std::_Exit(1);
      ++(report.kind == Report::joined ? joined_ : started_);
      if (report.kind == Report::started) {
        last_start_ns_ = std::max(last_start_ns_, report.at_ns);
        continue;
      }
      first_table_ns_ = std::min(first_table_ns_, report.at_ns);
      last_table_ns_ = std::max(last_table_ns_, report.at_ns);
      if (report.rank == 0)
        root_cpu_s_ = report.cpu_s;
      else
        cpu_s_.push_back(report.cpu_s);
    }
  }

  /// They become more and more until all have the table: a sample every few milliseconds.
  void watch_root() {
    while (watching_) {
      root_descriptors_ = std::max(root_descriptors_, descriptors_of(processes_.front()));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  void print(std::int64_t begin, const Memory& memory) {
    const auto seconds = [](std::int64_t from, std::int64_t to) {
      return 1e-9 * static_cast<double>(to - from);
    };
    std::sort(cpu_s_.begin(), cpu_s_.end());
    std::printf(
        "%5d ranks: tables %6.3f to %6.3f s after the last %s, %6.2f s after the first; CPU: rank "
        "0 %7.1f ms, others %5.2f ms; rank 0 %4zu descriptors; memory %ld KB (PSS), %ld KB "
        "private\n",
        ranks_, seconds(last_start_ns_, first_table_ns_), seconds(last_start_ns_, last_table_ns_),
        released_ ? "was released" : "started", seconds(begin, last_table_ns_), 1e3 * root_cpu_s_,
        cpu_s_.empty() ? 0 : 1e3 * cpu_s_[cpu_s_.size() / 2], root_descriptors_, memory.pss_kb,
        memory.private_kb);
    std::fflush(stdout);
  }

  int ranks_;
  bool released_;
  int per_host_;
  Result<cli::PortPair> ports_ = cli::PortPair{};
  Result<std::string> secret_ = std::string();
  Pipe reports_, release_, hold_;
  std::vector<pid_t> processes_;
  std::size_t started_ = 0, joined_ = 0, root_descriptors_ = 0;
  std::int64_t last_start_ns_ = 0, last_table_ns_ = 0;
  std::int64_t first_table_ns_ = std::numeric_limits<std::int64_t>::max();
  double root_cpu_s_ = 0;
  std::vector<double> cpu_s_;
  std::atomic<bool> watching_ = true;
};

/// join rank SECRET RANK RANKS PORT, the descriptors, and the ranks of a host.
int run_as_rank(char** words) {
  Config config;
  config.secret = words[2];
  config.rank = std::atoi(words[3]);
  config.world_size = std::atoi(words[4]);
  config.port = std::atoi(words[5]) + 1;
  config.master_addr = "127.0.0.1";
  return be_rank(config, std::atoi(words[9]),
                 {std::atoi(words[6]), std::atoi(words[7]), std::atoi(words[8])});
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  if (argc == 10 && std::strcmp(words[1], "rank") == 0) return run_as_rank(argv);
  int per_host = 1;
  if (words.size() > 3 && std::strcmp(words[words.size() - 2], "--per-host") == 0) {
    per_host = std::atoi(words.back());
    words.resize(words.size() - 2);
  }
  const int ranks = words.size() > 1 ? std::atoi(words[1]) : 0;
  const int rounds = words.size() > 2 ? std::atoi(words[2]) : 3;
  const bool released = words.size() > 3 && std::strcmp(words[3], "released") == 0;
  if (ranks < 1 || rounds < 1 || per_host < 1) {
    std::fprintf(stderr, "usage: join RANKS [ROUNDS] [started|released] [--per-host N]\n");
    return 2;
  }
  for (int i = 0; i < rounds; ++i) Round(ranks, released, per_host).run();
  return 0;
}
