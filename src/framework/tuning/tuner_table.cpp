#include "framework/tuning/tuner_table.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/types.hpp"
#include "base/whole_file.hpp"

namespace anyccl {
namespace {

using TableJson = nlohmann::json;

bool is_row(const TableJson& row) {
  const auto has = [&](const char* key, bool (TableJson::*is)() const noexcept) {
    return row.contains(key) && (row[key].*is)();
  };
  return row.is_object() && has("algorithm", &TableJson::is_string) &&
         has("protocol", &TableJson::is_string) && has("transport", &TableJson::is_string) &&
         has("ranks", &TableJson::is_number_integer) &&
         has("bytes", &TableJson::is_number_integer) && has("median_us", &TableJson::is_number) &&
         has("inplace", &TableJson::is_boolean);
}

/// The algorithm with this name, such as "all_reduce/ring"; null: there is none.
const Algorithm* algorithm_of(std::string_view id) {
  for (const Algorithm* a : all_algorithms()) {
    const std::string_view collective = name(a->collective);
    if (id.size() == collective.size() + 1 + a->name.size() && id.starts_with(collective) &&
        id[collective.size()] == '/' && id.ends_with(a->name))
      return a;
  }
  return nullptr;
}

/// Whether its bytes are those of all ranks' blocks.
bool counts_blocks(const Algorithm& algorithm, int ranks) {
  return blocks_held(algorithm.collective, ranks, true, Space::input) > 1 ||
         blocks_held(algorithm.collective, ranks, true, Space::output) > 1;
}

}  // namespace

Result<TunerTable> TunerTable::read(const std::string& file) {
  ANYCCL_TRY(const std::string text, read_whole_file(file));
  return parse(text, file);
}

Result<TunerTable> TunerTable::parse(const std::string& text, const std::string& file) {
  const TableJson all = TableJson::parse(text, nullptr, false);
  if (!all.is_array())
    return error(Code::invalid_argument, "{} is not a JSON array of rows of `anyccl perf --json`",
                 file);
  TunerTable table(file);
  table.hash_ = hash_of(text);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TableJson& json = all[i];
    if (!is_row(json))
      return error(Code::invalid_argument, "row {} of {} is not one of `anyccl perf --json`", i,
                   file);
    const int ranks =
        std::in_range<int>(json["ranks"].get<std::int64_t>()) ? json["ranks"].get<int>() : 0;
    const double us = json["median_us"];
    const double bytes = json["bytes"];
    if (ranks < 1 || !(us > 0) || !(bytes >= 0))
      return error(Code::invalid_argument, "row {} of {} has {} ranks and {} bytes and takes {} us",
                   i, file, ranks, bytes, us);
    const Algorithm* const a = algorithm_of(json["algorithm"].get<std::string>());
    if (a == nullptr || json["inplace"].get<bool>()) continue;
    const std::string transport = json["transport"];
    const bool network = transport != "shm" && transport != "loopback";
    table.add(*a, ranks, network, bytes / (counts_blocks(*a, ranks) ? ranks : 1), us);
  }
  return table;
}

void TunerTable::add(const Algorithm& algorithm, int ranks, bool network, double bytes, double us) {
  const auto [known, is_new] = us_by_bytes_[{&algorithm, ranks, network}].emplace(bytes, us);
  if (!is_new) known->second = std::min(known->second, us);
}

std::optional<double> TunerTable::measured_us(const Algorithm& algorithm,
                                              const TunerQuery& query) const {
  const auto found = us_by_bytes_.find({&algorithm, query.shape.size, query.network});
  if (found == us_by_bytes_.end()) return std::nullopt;
  const auto& points = found->second;
  const auto bytes = static_cast<double>(query.bytes);
  const auto above = points.lower_bound(bytes);
  if (above == points.begin() || (above != points.end() && above->first == bytes))
    return above->second;
  const auto [below_bytes, below_us] = *std::prev(above);
  if (above == points.end()) return below_us * bytes / std::max(below_bytes, 1.0);
  // Straight lines where both axes are logarithmic.
  const double part = std::log(bytes / std::max(below_bytes, 1.0)) /
                      std::log(above->first / std::max(below_bytes, 1.0));
  return below_us * std::pow(above->second / below_us, part);
}

}  // namespace anyccl
