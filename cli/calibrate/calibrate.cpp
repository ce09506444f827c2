#include "calibrate/calibrate.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "calibrate/processor.hpp"
#include "draw/table.hpp"
#include "launch/job.hpp"
#include "launch/own_command.hpp"
#include "perf/files.hpp"
#include "perf/start.hpp"
#include "platform/probe/host_facts.hpp"
#include "platform/probe/machine.hpp"

namespace anyccl::cli {

namespace {

/// Returns the date in UTC, such as "2026-11-30".
std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

/// The timings of all jobs that run on this machine.
Result<std::vector<LinkTimings>> measure_here() {
  ANYCCL_TRY(const std::vector<std::string> own, own_command());
  ANYCCL_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  std::vector<LinkTimings> all;
  for (const std::string transport : {"shm", "tcp"})
    for (const int ranks : {2, 4}) {
      const std::string part = fmt::format("{}/{}-{}.json", folder.path(), transport, ranks);
      std::vector<std::string> command = own;
      command.insert(command.end(), {"--links-part", part});
      const int code = run_job({.name = "anyccl tune",
                                .ranks = ranks,
                                .command = std::move(command),
                                .settings = default_settings(transport),
                                .prefix_output = false});
      if (code != 0)
        return error(Code::system_error, "the job of {} ranks over {} ended with {}", ranks,
                     transport, code);
      ANYCCL_TRY(const std::vector<LinkTimings> more, read_timings(part));
      all.insert(all.end(), more.begin(), more.end());
    }
  return all;
}

Result<std::vector<LinkTimings>> measure_pairs_only(const Comm& comm) {
  ANYCCL_TRY(LinkTimings timings, measure_all_pairs(comm));
  return std::vector<LinkTimings>{std::move(timings)};
}

std::string line_of_segment(const std::string& link, const CostSegment& s, double from) {
  const std::string to = s.most_bytes > 1e18 ? "" : fmt::format(" to {:.0f}", s.most_bytes);
  return fmt::format("{}, above {:.0f}{} bytes: alpha {:.2f} us, beta {:.4f} ns/B{}\n", link, from,
                     to, s.alpha_s * 1e6, s.beta_s * 1e9,
                     s.beta_s > 0 ? fmt::format(" ({:.2f} GB/s)", 1e-9 / s.beta_s) : "");
}

/// What copies take, by working sets.
std::string memory_text(const Calibration& c) {
  std::vector<Line> lines = {{"working set", "copy, alone, ns/B", "on all cores at once"}};
  for (std::size_t i = 0; i < c.memory_alone.size(); ++i) {
    const MemoryRate &alone = c.memory_alone[i], &shared = c.memory_shared[i];
    lines.push_back({fmt::format("{:.0f}", alone.bytes),
                     fmt::format("{:.4f}", (alone.read_s + alone.write_s) * 1e9),
                     fmt::format("{:.4f}", (shared.read_s + shared.write_s) * 1e9)});
  }
  return c.memory_alone.empty() ? "" : table(lines);
}

std::string constants_text(const Calibration& c) {
  std::string text;
  for (const LinkCosts& link : c.links) {
    double from = 0;
    for (const CostSegment& s : link.segments) {
      text += line_of_segment(link.name, s, from);
      from = s.most_bytes;
    }
    text += fmt::format("{}: a message occupies its sender, and its receiver, {:.2f} us\n",
                        link.name, link.overhead_s * 1e6);
  }
  text += fmt::format("adding k vectors: (k * {:.4f} + {:.4f}) ns/B; copying {:.4f} ns/B\n",
                      c.read_s * 1e9, c.write_s * 1e9, c.copy_s * 1e9);
  text += fmt::format(
      "{} cores; together they copy {:.2f} GB/s, {:.2f} times as much as one; a core changes to "
      "another rank in {:.2f} us\n",
      c.cores, c.memory_bytes_per_s / 1e9, c.memory_bytes_per_s * c.copy_s, c.hand_over_s * 1e6);
  text += memory_text(c);
  if (c.load > c.cores)
    text += fmt::format(
        "the machine was busy: {:.1f} programs wanted its {} cores; times are longer than on an "
        "idle one\n",
        c.load, c.cores);
  return text + fmt::format("residuals: {}\n", c.residuals());
}

}  // namespace

Result<Calibration> fit_calibration(const std::vector<LinkTimings>& timings,
                                    const Calibration& processor) {
  Calibration c = processor;
  for (const LinkTimings& t : timings) {
    if (t.pings.empty()) continue;
    const std::vector<Timing> pings(t.pings.begin(), t.pings.end());
    ANYCCL_TRY(LinkCosts link, fit_link(t.link, pings));
    // One way takes the overheads of both sides at least.
    link.overhead_s = std::min(t.overhead_s, link.segments[0].alpha_s / 2);
    c.links.push_back(std::move(link));
  }
  if (c.links.empty())
    return error(Code::invalid_argument, "a calibration needs at least two ranks");
  for (const LinkTimings& t : timings)
    if (const LinkCosts* link = c.find(t.link);
        link != nullptr && t.all_at_once_s > 0 && t.link == "shm")
      c.hand_over_s = std::max(0.0, t.all_at_once_s - link->seconds(8));
  return c;
}

std::string report(const std::vector<LinkTimings>& timings, const Calibration& calibration) {
  std::vector<Line> lines = {
      {"link", "bytes", "one way, us", "median", "90 % below", "fitted us", "error"}};
  for (const LinkTimings& t : timings)
    for (const SpreadTiming& p : t.pings) {
      const double fitted = calibration.find(t.link)->seconds(p.bytes);
      lines.push_back({t.link, fmt::format("{:.0f}", p.bytes),
                       fmt::format("{:.2f}", p.seconds * 1e6),
                       fmt::format("{:.2f}", p.median_s * 1e6),
                       fmt::format("{:.2f}", p.high_s * 1e6), fmt::format("{:.2f}", fitted * 1e6),
                       fmt::format("{:+.1f} %", 100 * (fitted / p.seconds - 1))});
    }
  return table(lines) + "\n" + constants_text(calibration);
}

Result<std::string> calibrate(const std::string& file, const Comm* comm) {
  std::optional<PendingFile> pending;  // first, so that nothing is measured in vain
  if (comm == nullptr || comm->rank() == 0) {
    ANYCCL_TRY(PendingFile created, PendingFile::create(file));
    pending.emplace(std::move(created));
  }
  std::vector<LinkTimings> timings;
  if (comm != nullptr) {
    ANYCCL_TRY(timings, measure_links(*comm));
    if (!pending) return std::string();
  } else {
    ANYCCL_TRY(timings, measure_here());
  }
  Calibration c;
  c.host = probe::host_facts().hostname;
  c.cpu = probe::this_machine().cpu;
  c.date = today();
  c.version = ANYCCL_VERSION_TEXT;
  if (::getloadavg(&c.load, 1) != 1) c.load = 0;
  ANYCCL_CHECK(measure_processor(c));
  ANYCCL_TRY(c, fit_calibration(timings, c));
  ANYCCL_CHECK(pending->commit(to_json(c)));
  return report(timings, c) +
         fmt::format("written to {}: anyccl simulate --model {}\n", file, file);
}

Status calibrate_part(const std::string& part) {
  ANYCCL_TRY(Comm comm, Comm::join());
  // The job of two ranks has measured the link.
  const Result<std::vector<LinkTimings>> timings =
      comm.ranks() == 2 ? measure_links(comm) : measure_pairs_only(comm);
  if (!timings.ok()) comm.abort();
  ANYCCL_CHECK(timings.status());
  return comm.rank() == 0 ? write_timings(part, *timings) : Status();
}

}  // namespace anyccl::cli
