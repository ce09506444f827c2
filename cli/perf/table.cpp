#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "perf/report.hpp"

namespace anyccl::cli {
namespace {

std::string columns_of(const std::optional<Row>& row) {
  if (!row) return fmt::format("{:>9}  {:>6}  {:>6}  {:>5}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("{:>9.2f}  {:>6.2f}  {:>6.2f}  {:>5}", row->measured.call.median_us,
                     row->algorithm_GBps(), row->bus_GBps(), row->measured.wrong);
}

std::string_view on_off(bool on) {
  return on ? "on" : "off";
}

constexpr std::string_view kColumns =
    "#                                                        out-of-place                        "
    "in-place\n"
    "#       size         count      type   redop    root       time   algbw   busbw #wrong       "
    "time   "
    "algbw   busbw #wrong       loop  algorithm protocol\n"
    "#        (B)    (elements)                                 (us)  (GB/s)  (GB/s)              "
    "(us)  "
    "(GB/s)  (GB/s)              (us)\n";

}  // namespace

double Row::algorithm_GBps() const {
  return static_cast<double>(bytes) / 1e3 / measured.call.median_us;
}

Row row_of(const Operation& operation, const Case& c, std::string_view redop,
           Measurement measured) {
  return {.operation = operation.name,
          .type = operation.has_data ? c.type.name : "none",
          .redop = operation.has_redop ? redop : "none",
          .ranks = c.ranks,
          .root = operation.has_root ? c.root : -1,
          .bytes = c.count * c.type.bytes * static_cast<std::size_t>(operation.blocks(c.ranks)),
          .count = c.count,
          .in_place = c.in_place,
          .measured = std::move(measured),
          .bus_factor = operation.bus_factor(c.ranks)};
}

PlanText split_plan(std::string_view text) {
  PlanText plan;
  std::istringstream words{std::string(text)};
  std::string word;
  for (std::string* part : {&plan.algorithm, &plan.protocol, &plan.transport})
    if (words >> word) *part = word;
  return plan;
}

std::string table_head(const PerfOptions& options, std::string_view where) {
  const Protocol& protocol = options.protocol;
  const std::string calls = protocol.iterations ? std::to_string(*protocol.iterations) : "auto";
  return fmt::format(
             "# anyccl {} perf {}, {}\n"
             "# warm-up calls {}, timed calls {}, touch {}, check {}{}\n"
             "# time: slowest rank of each call, median over the calls; loop: untouched calls back "
             "to back\n"
             "#\n",
             ANYCCL_VERSION_TEXT, options.operation->name, where, protocol.warmups, calls,
             on_off(protocol.touch), on_off(protocol.touch && protocol.check),
             options.offset != 0 ? fmt::format(", buffers at offset {} of a page", options.offset)
                                 : "") +
         std::string(kColumns);
}

std::string table_line(const std::optional<Row>& out_of_place, const std::optional<Row>& in_place) {
  const Row& any = out_of_place ? *out_of_place : *in_place;
  const PlanText plan = split_plan(any.measured.plan);
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {}  {}  {:>9.2f}  {} {} {}\n", any.bytes,
                     any.count, any.type, any.redop, any.root, columns_of(out_of_place),
                     columns_of(in_place), any.measured.loop_us, plan.algorithm, plan.protocol,
                     plan.transport);
}

std::string table_foot(const std::vector<Row>& rows) {
  std::int64_t wrong = 0;
  double bus = 0;
  for (const Row& row : rows) {
    wrong += row.measured.wrong;
    bus += row.bus_GBps() / static_cast<double>(rows.size());
  }
  return fmt::format("# wrong values: {}{}\n# average bus bandwidth: {:.3f} GB/s\n", wrong,
                     wrong == 0 ? " (all right)" : " (FAILED)", bus);
}

}  // namespace anyccl::cli
