#include "base/chaos_plan.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/byte_size.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

struct Fault {
  std::string_view name;
  double ChaosPlan::*probability;
};
constexpr Fault kFaults[] = {{"delay", &ChaosPlan::delay},         {"partial", &ChaosPlan::partial},
                             {"reorder", &ChaosPlan::reorder},     {"drop", &ChaosPlan::drop},
                             {"duplicate", &ChaosPlan::duplicate}, {"cut", &ChaosPlan::cut},
                             {"corrupt", &ChaosPlan::corrupt}};

/// Takes from `text` the part before `end`, and `end` with it; without an `end`, all of it.
std::string_view take(std::string_view& text, char end) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

template <typename Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), into);
  return problem == std::errc{} && end == text.data() + text.size();
}

Status read_duration(std::string_view text, std::chrono::nanoseconds& into) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  constexpr double kMost = 3600e9;
  for (const auto& [unit, nanoseconds] : kUnits) {
    double value = 0;
    if (!text.ends_with(unit) || !read_number(text.substr(0, text.size() - unit.size()), value))
      continue;
    if (!(value >= 0 && value * nanoseconds <= kMost)) break;
    into = std::chrono::nanoseconds(static_cast<std::int64_t>(value * nanoseconds));
    return {};
  }
  return error(Code::invalid_argument,
               "'{}' is not how long a delay takes: write delay=0.01:200us (or ms, s)", text);
}

Status read_fault(const Fault& fault, std::string_view value, ChaosPlan& into) {
  const bool is_delay = fault.probability == &ChaosPlan::delay;
  const std::string_view number = is_delay ? take(value, ':') : value;
  double& probability = into.*fault.probability;
  if (!read_number(number, probability) || !(probability >= 0 && probability <= 1))
    return error(Code::invalid_argument, "{}={} is not a probability from 0 to 1", fault.name,
                 number);
  return is_delay ? read_duration(value, into.delay_time) : Status();
}

Status read_item(std::string_view item, ChaosPlan& into) {
  std::string_view value = item;
  const std::string_view name = take(value, '=');
  if (name == "seed") {
    if (read_number(value, into.seed)) return {};
    return error(Code::invalid_argument, "seed={} is not a number", value);
  }
  if (name == "die") {
    if (read_number(value, into.die)) return {};
    return error(Code::invalid_argument, "die={} is not a number", value);
  }
  if (name == "slow") {
    ANYCCL_TRY(into.slow, parse_size(value));
    return {};
  }
  const auto fault = std::find_if(std::begin(kFaults), std::end(kFaults),
                                  [&](const Fault& one) { return one.name == name; });
  if (fault != std::end(kFaults)) return read_fault(*fault, value, into);
  std::string names = "seed, die, slow";
  for (const Fault& one : kFaults) names.append(", ").append(one.name);
  return error(Code::invalid_argument, "'{}' is not one of {}", name, names);
}

}  // namespace

bool ChaosPlan::is_empty() const {
  return slow == 0 && std::all_of(std::begin(kFaults), std::end(kFaults), [&](const Fault& fault) {
           return this->*fault.probability == 0;
         });
}

Result<ChaosPlan> ChaosPlan::parse(std::string_view text) {
  ChaosPlan plan;
  while (!text.empty()) ANYCCL_CHECK(read_item(take(text, ','), plan));
  return plan;
}

}  // namespace anyccl
