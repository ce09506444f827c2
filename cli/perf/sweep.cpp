#include "perf/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "perf/memory.hpp"
#include "perf/report.hpp"

namespace anyccl::cli {
namespace {

class Sweep {
 public:
  Sweep(const PerfOptions& options, const Comm& comm, Memory input, Memory output)
      : options_(options), comm_(comm), input_(std::move(input)), output_(std::move(output)) {}

  Status all_rows();
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Status rows_of(const TypeName& type, const RedopName& redop);
  Status measure_line(const TypeName& type, const RedopName& redop, std::size_t count);
  Result<Row> measure_row(const TypeName& type, const RedopName& redop, std::size_t count,
                          bool in_place, int columns);

  const PerfOptions& options_;
  const Comm& comm_;
  Memory input_, output_;
  std::vector<Row> rows_;
};

/// Whether a sweep over several combinations measures this one. One that is asked for alone is
/// always measured, and gets the error of the library if it is not possible.
bool is_offered(const Operation& operation, const TypeName& type, const RedopName& redop) {
  const bool is_prefix = operation.name == "scan" || operation.name == "exscan";
  return is_possible(type.type, redop.redop) && !(is_prefix && redop.redop == anycclAvg);
}

Status Sweep::all_rows() {
  const Operation& operation = *options_.operation;
  for (const TypeName& type : options_.types) {
    for (const RedopName& redop : options_.redops) {
      const bool one = options_.types.size() == 1 && options_.redops.size() == 1;
      if (operation.has_redop && !one && !is_offered(operation, type, redop)) continue;
      ANYCCL_CHECK(rows_of(type, redop));
      if (!operation.has_redop) break;
    }
    if (!operation.has_data) break;
  }
  return {};
}

Status Sweep::rows_of(const TypeName& type, const RedopName& redop) {
  if (!options_.operation->has_data) return measure_line(type, redop, 0);
  std::size_t last = 0;
  for (const std::size_t size : options_.sizes) {
    const std::size_t elements = std::max<std::size_t>(1, size / type.bytes);
    const std::size_t count = options_.operation->count(elements, comm_.ranks());
    // Sizes below the operation's smallest all become the smallest.
    if (count != std::exchange(last, count)) ANYCCL_CHECK(measure_line(type, redop, count));
  }
  return {};
}

Status Sweep::measure_line(const TypeName& type, const RedopName& redop, std::size_t count) {
  const bool in_place = options_.in_place && options_.operation->in_place;
  const int columns = options_.out_of_place && in_place ? 2 : 1;
  std::optional<Row> halves[2];
  for (const bool inside : {false, true}) {
    if (!(inside ? in_place : options_.out_of_place)) continue;
    ANYCCL_TRY(halves[inside], measure_row(type, redop, count, inside, columns));
    rows_.push_back(*halves[inside]);
  }
  if (comm_.rank() == 0) {
    fmt::print("{}", table_line(halves[0], halves[1]));
    std::fflush(stdout);
  }
  return {};
}

Result<Row> Sweep::measure_row(const TypeName& type, const RedopName& redop, std::size_t count,
                               bool in_place, int columns) {
  const Operation& operation = *options_.operation;
  const Case c{type, redop.redop, options_.root, count, in_place, comm_.rank(), comm_.ranks()};
  void* const output = in_place ? input_.get() : output_.get();
  const auto exercise = operation.make(c, input_.get(), output, comm_.get());
  ANYCCL_TRY(Measurement measured,
             measure(operation, *exercise, options_.protocol, in_place, columns, comm_));
  if (!operation.is_collective)  // The text is that of the last barrier; only its transport holds.
    measured.plan = "- - " + split_plan(measured.plan).transport;
  return row_of(operation, c, redop.name, std::move(measured));
}

}  // namespace

std::size_t buffer_bytes(const std::vector<std::size_t>& sizes, int ranks) {
  constexpr std::size_t kLargestElement = 16;
  return std::max(sizes.empty() ? 0 : sizes.back(),
                  static_cast<std::size_t>(ranks) * kLargestElement);
}

Result<std::int64_t> sweep(const PerfOptions& options, const Comm& comm, std::string_view where) {
  const bool leader = comm.rank() == 0;
  if (options.root >= comm.ranks())
    return error(Code::invalid_argument, "root {} does not exist among {} ranks", options.root,
                 comm.ranks());
  // Written before the run, so that a wrong path fails at once.
  if (leader && !options.json.empty()) ANYCCL_CHECK(write_json(options.json, {}));
  const std::size_t bytes = buffer_bytes(options.sizes, comm.ranks());
  ANYCCL_TRY(Memory input, Memory::allocate(bytes, options.arena, options.offset));
  ANYCCL_TRY(Memory output, Memory::allocate(bytes, options.arena, options.offset));
  if (leader) fmt::print("{}", table_head(options, where));

  Sweep sweep(options, comm, std::move(input), std::move(output));
  ANYCCL_CHECK(sweep.all_rows());
  if (leader) {
    fmt::print("{}", table_foot(sweep.rows()));
    if (!options.json.empty()) ANYCCL_CHECK(write_json(options.json, sweep.rows()));
  }
  std::int64_t wrong = 0;
  for (const Row& row : sweep.rows()) wrong += row.measured.wrong;
  return wrong;
}

}  // namespace anyccl::cli
