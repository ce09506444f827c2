#include "simulate/calibration.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kCalibrationFormat = "anyccl.calibration/1";
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Null if the key is missing, or the value is no object.
Json value_of(const Json& object, const std::string& key) {
  return object.is_object() ? object.value(key, Json()) : Json();
}

/// Reads keys; the first mistake is kept until status() is asked.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  double number(const Json& object, const std::string& key, const std::string& where) {
    const Json value = value_of(object, key);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (number >= 0 && std::isfinite(number)) return number;
    wrong(where + key, value, "a number of at least 0");
    return 0;
  }
  /// A number above 2^24 is a mistake, and so is a fraction.
  int whole(const Json& object, const std::string& key, const std::string& where) {
    constexpr int kMost = 1 << 24;
    const Json value = value_of(object, key);
    if (value.is_number_integer() && value >= 0 && value <= kMost) return value.get<int>();
    wrong(where + key, value, fmt::format("a whole number from 0 to {}", kMost));
    return 0;
  }
  std::string text(const Json& object, const std::string& key, const std::string& where) {
    const Json value = value_of(object, key);
    if (value.is_string()) return value.get<std::string>();
    wrong(where + key, value, "a text");
    return {};
  }
  /// An object without keys, if there is none.
  Json object(const Json& parent, const std::string& key) {
    Json value = value_of(parent, key);
    if (value.is_object()) return value;
    wrong(key, value, "an object");
    return Json::object();
  }
  /// A missing list is a mistake, and so is an empty one; both return an empty list.
  Json array(const Json& parent, const std::string& key, const std::string& where) {
    Json value = value_of(parent, key);
    if (value.is_array() && !value.empty()) return value;
    wrong(where + key, value, "a list that is not empty");
    return Json::array();
  }
  void wrong(const std::string& key, const Json& value, std::string_view allowed) {
    if (status_.ok())
      status_ = error(Code::invalid_argument,
                      "{}: {} is {}, not {}; measure again with anyccl tune --calibrate", file_,
                      key, value.is_null() ? "missing" : value.dump(), allowed);
  }
  const Status& status() const { return status_; }

 private:
  const std::string& file_;
  Status status_;
};

/// The last segment has no upper limit: a number there is a mistake.
CostSegment segment_from(const Json& json, const std::string& where, bool last, Reader& read) {
  CostSegment segment;
  segment.most_bytes = last ? kUnlimited : read.number(json, "up_to_bytes", where);
  if (const Json most = value_of(json, "up_to_bytes"); last && !most.is_null())
    read.wrong(where + "up_to_bytes", most, "null in the last segment");
  segment.alpha_s = read.number(json, "alpha_us", where) * 1e-6;
  segment.beta_s = read.number(json, "beta_ns_per_byte", where) * 1e-9;
  return segment;
}

LinkCosts link_from(const Json& json, const std::string& where, Reader& read) {
  LinkCosts link;
  link.name = read.text(json, "name", where);
  const Json segments = read.array(json, "segments", where);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::string here = fmt::format("{}segments[{}].", where, i);
    link.segments.push_back(segment_from(segments[i], here, i + 1 == segments.size(), read));
    if (i > 0 && !(link.segments[i].most_bytes > link.segments[i - 1].most_bytes))
      read.wrong(here + "up_to_bytes", value_of(segments[i], "up_to_bytes"),
                 "above the one before");
  }
  link.overhead_s = read.number(json, "overhead_us", where) * 1e-6;
  link.residual = read.number(json, "residual_percent", where) / 100;
  link.points = read.whole(json, "points", where);
  return link;
}

std::vector<CollectiveFactor> factors_from(const Json& collectives, const std::string& key,
                                           Reader& read) {
  std::vector<CollectiveFactor> factors;
  if (value_of(collectives, key).is_null()) return factors;
  double least = 0;
  for (const Json& factor : read.array(collectives, key, "collectives.")) {
    const std::string where = fmt::format("collectives.{}[{}].", key, factors.size());
    factors.push_back({read.number(factor, "bytes", where), read.number(factor, "factor", where)});
    if (factors.back().bytes <= least || factors.back().factor <= 0)
      read.wrong(where + "bytes", factor, "larger than the one before, with a factor above 0");
    least = factors.back().bytes;
  }
  return factors;
}

/// They may be missing, as null; those in turns are not in files of earlier versions.
void read_factors(const Json& json, Calibration& c, Reader& read) {
  if (json.value("collectives", Json()).is_null()) return;
  const Json collectives = read.object(json, "collectives");
  c.factors_link = read.text(collectives, "link", "collectives.");
  c.factors = factors_from(collectives, "factors", read);
  c.factors_in_turns = factors_from(collectives, "factors_in_turns", read);
}

/// Returns null if there are none.
Json json_of(const std::vector<CollectiveFactor>& factors) {
  if (factors.empty()) return nullptr;
  Json json = Json::array();
  for (const CollectiveFactor& f : factors)
    json.push_back({{"bytes", f.bytes}, {"factor", f.factor}});
  return json;
}

/// Returns null if none were measured.
Json json_of_factors(const Calibration& c) {
  if (c.factors.empty() && c.factors_in_turns.empty()) return nullptr;
  return {{"link", c.factors_link},
          {"factors", json_of(c.factors)},
          {"factors_in_turns", json_of(c.factors_in_turns)}};
}

/// It may be missing, in files of earlier versions.
void read_memory(const Json& json, Calibration& c, Reader& read) {
  if (json.value("memory", Json()).is_null()) return;
  const Json memory = read.object(json, "memory");
  for (const auto& [key, rates] :
       {std::pair{"alone", &c.memory_alone}, std::pair{"shared", &c.memory_shared}}) {
    double least = 0;
    for (const Json& rate : read.array(memory, key, "memory.")) {
      const std::string where = fmt::format("memory.{}[{}].", key, rates->size());
      rates->push_back({read.number(rate, "bytes", where),
                        read.number(rate, "read_ns_per_byte", where) * 1e-9,
                        read.number(rate, "write_ns_per_byte", where) * 1e-9});
      if (rates->back().bytes <= least)
        read.wrong(where + "bytes", rate, "larger than the one before");
      least = rates->back().bytes;
    }
  }
}

Json json_of(const std::vector<MemoryRate>& rates) {
  Json json = Json::array();
  for (const MemoryRate& r : rates)
    json.push_back({{"bytes", r.bytes},
                    {"read_ns_per_byte", r.read_s * 1e9},
                    {"write_ns_per_byte", r.write_s * 1e9}});
  return json;
}

/// Returns the rates of one core alone and of all at once; null if none were measured.
Json json_of_memory(const Calibration& c) {
  if (c.memory_alone.empty()) return nullptr;
  return {{"alone", json_of(c.memory_alone)}, {"shared", json_of(c.memory_shared)}};
}

Json json_of(const LinkCosts& link) {
  Json segments = Json::array();
  for (const CostSegment& s : link.segments)
    segments.push_back(
        {{"up_to_bytes", std::isfinite(s.most_bytes) ? Json(s.most_bytes) : Json(nullptr)},
         {"alpha_us", s.alpha_s * 1e6},
         {"beta_ns_per_byte", s.beta_s * 1e9}});
  return {{"name", link.name},
          {"segments", std::move(segments)},
          {"overhead_us", link.overhead_s * 1e6},
          {"residual_percent", link.residual * 100},
          {"points", link.points}};
}

}  // namespace

const CostSegment& LinkCosts::at(double bytes) const {
  for (const CostSegment& segment : segments)
    if (bytes <= segment.most_bytes) return segment;
  return segments.back();
}

const LinkCosts* Calibration::find(const std::string& link) const {
  for (const LinkCosts& l : links)
    if (l.name == link) return &l;
  return nullptr;
}

double Calibration::factor_at(const std::string& link, double bytes, bool in_turns) const {
  const std::vector<CollectiveFactor>& all =
      in_turns && !factors_in_turns.empty() ? factors_in_turns : factors;
  if (all.empty() || link != factors_link) return 1;
  if (bytes <= all.front().bytes) return all.front().factor;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const CollectiveFactor &a = all[i - 1], &b = all[i];
    if (bytes > b.bytes) continue;
    const double part = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
    return std::exp(std::log(a.factor) * (1 - part) + std::log(b.factor) * part);
  }
  return all.back().factor;
}

MemoryRate Calibration::memory_at(double bytes, bool shared) const {
  const std::vector<MemoryRate>& rates = shared ? memory_shared : memory_alone;
  if (bytes <= rates.front().bytes) return rates.front();
  for (std::size_t i = 1; i < rates.size(); ++i) {
    const MemoryRate &a = rates[i - 1], &b = rates[i];
    if (bytes > b.bytes) continue;
    const double part = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
    return {bytes, a.read_s + part * (b.read_s - a.read_s),
            a.write_s + part * (b.write_s - a.write_s)};
  }
  return rates.back();
}

std::string Calibration::residuals() const {
  std::string text;
  for (const LinkCosts& link : links)
    text += fmt::format("{} {:.0f} %, ", link.name, link.residual * 100);
  return text + fmt::format("additions {:.0f} %", reduce_residual * 100);
}

Result<Calibration> read_calibration(const std::string& text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != kCalibrationFormat)
    return error(
        Code::invalid_argument,
        "{}: not a JSON object with \"format\": \"{}\", which anyccl tune --calibrate writes", name,
        kCalibrationFormat);
  Reader read(name);
  Calibration c;
  c.host = read.text(json, "host", "");
  c.cpu = read.text(json, "cpu", "");
  c.date = read.text(json, "date", "");
  c.version = read.text(json, "version", "");
  const Json links = read.array(json, "links", "");
  for (std::size_t i = 0; i < links.size(); ++i)
    c.links.push_back(link_from(links[i], fmt::format("links[{}].", i), read));
  const Json cpu = read.object(json, "processor");
  c.read_s = read.number(cpu, "reduce_read_ns_per_byte", "processor.") * 1e-9;
  c.write_s = read.number(cpu, "reduce_write_ns_per_byte", "processor.") * 1e-9;
  c.reduce_residual = read.number(cpu, "reduce_residual_percent", "processor.") / 100;
  c.copy_s = read.number(cpu, "copy_ns_per_byte", "processor.") * 1e-9;
  const Json contention = read.object(json, "contention");
  c.cores = read.whole(contention, "cores", "contention.");
  if (c.cores < 1) read.wrong("contention.cores", value_of(contention, "cores"), "at least 1");
  c.memory_bytes_per_s = read.number(contention, "memory_GBps", "contention.") * 1e9;
  c.hand_over_s = read.number(contention, "hand_over_us", "contention.") * 1e-6;
  c.load = read.number(contention, "load", "contention.");
  read_memory(json, c, read);
  read_factors(json, c, read);
  ANYCCL_CHECK(read.status());
  return c;
}

std::string to_json(const Calibration& c) {
  Json links = Json::array();
  for (const LinkCosts& link : c.links) links.push_back(json_of(link));
  const Json json = {{"format", kCalibrationFormat},
                     {"host", c.host},
                     {"cpu", c.cpu},
                     {"date", c.date},
                     {"version", c.version},
                     {"links", std::move(links)},
                     {"processor",
                      {{"reduce_read_ns_per_byte", c.read_s * 1e9},
                       {"reduce_write_ns_per_byte", c.write_s * 1e9},
                       {"reduce_residual_percent", c.reduce_residual * 100},
                       {"copy_ns_per_byte", c.copy_s * 1e9}}},
                     {"memory", json_of_memory(c)},
                     {"contention",
                      {{"cores", c.cores},
                       {"memory_GBps", c.memory_bytes_per_s / 1e9},
                       {"hand_over_us", c.hand_over_s * 1e6},
                       {"load", c.load}}},
                     {"collectives", json_of_factors(c)}};
  return json.dump(1) + "\n";
}

}  // namespace anyccl::cli
