#include "framework/tuner_table.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "base/error.hpp"
#include "base/types.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::json;

bool is_row(const Json& row) {
  const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
    return row.contains(key) && (row[key].*is)();
  };
  return row.is_object() && has("algorithm", &Json::is_string) &&
         has("protocol", &Json::is_string) && has("transport", &Json::is_string) &&
         has("ranks", &Json::is_number_integer) && has("bytes", &Json::is_number_integer) &&
         has("median_us", &Json::is_number) && has("inplace", &Json::is_boolean);
}

/// Whether its bytes are those of all ranks' blocks.
bool counts_blocks(const std::string& algorithm, int ranks) {
  for (const Algorithm* a : all_algorithms())
    if (id(*a) == algorithm)
      return blocks_held(a->collective, ranks, true, Space::input) > 1 ||
             blocks_held(a->collective, ranks, true, Space::output) > 1;
  return false;
}

}  // namespace

Result<TunerTable> TunerTable::read(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) return system_error(errno, "read {}", file);
  return parse(text.str(), file);
}

Result<TunerTable> TunerTable::parse(const std::string& text, const std::string& file) {
  const Json all = Json::parse(text, nullptr, false);
  if (!all.is_array())
    return error(Code::invalid_argument, "{} is not a JSON array of rows of `anyccl perf --json`",
                 file);
  TunerTable table;
  table.hash_ = 0xcbf29ce484222325U;  // FNV-1a: the same on every host
  for (const char c : text)
    table.hash_ = (table.hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& json = all[i];
    if (!is_row(json))
      return error(Code::invalid_argument, "row {} of {} is not one of `anyccl perf --json`", i,
                   file);
    Row row{json["algorithm"], json["ranks"],
            json["transport"].get<std::string>().find("tcp") != std::string::npos, json["bytes"],
            json["median_us"]};
    if (row.ranks < 1 || !(row.us > 0))
      return error(Code::invalid_argument, "row {} of {} has {} ranks and takes {} us", i, file,
                   row.ranks, row.us);
    if (counts_blocks(row.algorithm, row.ranks)) row.bytes /= row.ranks;
    if (!json["inplace"].get<bool>()) table.rows_.push_back(std::move(row));
  }
  // Of several protocols, the fastest counts: a call takes its protocol by its size.
  const auto place = [](const Row& r) {
    return std::tie(r.bytes, r.algorithm, r.ranks, r.network);
  };
  std::sort(table.rows_.begin(), table.rows_.end(), [&](const Row& a, const Row& b) {
    return std::tuple_cat(place(a), std::tie(a.us)) < std::tuple_cat(place(b), std::tie(b.us));
  });
  const auto slower = std::unique(table.rows_.begin(), table.rows_.end(),
                                  [&](const Row& a, const Row& b) { return place(a) == place(b); });
  table.rows_.erase(slower, table.rows_.end());
  return table;
}

std::optional<double> TunerTable::time(const Algorithm& algorithm, const Question& question) const {
  const std::string wanted = id(algorithm);
  const auto bytes = static_cast<double>(question.bytes);
  const Row *below = nullptr, *above = nullptr;
  for (const Row& row : rows_) {
    if (row.algorithm != wanted || row.ranks != question.shape.size ||
        row.network != question.network)
      continue;
    if (row.bytes <= bytes) below = &row;
    if (row.bytes >= bytes && above == nullptr) above = &row;
  }
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below == nullptr) return above->us;
  if (above == nullptr) return below->us * bytes / std::max(below->bytes, 1.0);
  if (above->bytes <= below->bytes) return below->us;
  // Straight lines where both axes are logarithmic.
  const double part = std::log(std::max(bytes, 1.0) / std::max(below->bytes, 1.0)) /
                      std::log(above->bytes / std::max(below->bytes, 1.0));
  return below->us * std::pow(above->us / below->us, part);
}

}  // namespace anyccl
