#pragma once
// For .cpp files only: what they read with it is JSON.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace anyccl::cli {

/// The keys of one JSON object. Keeps the first mistake; a key that is not asked for is one.
class Fields {
 public:
  using Json = nlohmann::json;
  enum class Need { required, optional };

  /// `path`: what errors call the object, such as "mine.json" or "mine.json: moe".
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) fail("it must be an object");
  }

  /// A number above 2^24 is a mistake, too.
  void read_whole(const char* key, int& out, int least, Need need = Need::required) {
    constexpr int kMost = 1 << 24;
    const Json* const value = find(key, need);
    if (value == nullptr) return;
    if (value->is_number_integer() && *value >= least && *value <= kMost)
      out = value->get<int>();
    else
      not_allowed(key, *value, fmt::format("a whole number from {} to {}", least, kMost));
  }

  void read_real(const char* key, double& out, double most, Need need = Need::required) {
    const Json* const value = find(key, need);
    if (value == nullptr) return;
    if (value->is_number() && *value > 0 && *value <= most)
      out = value->get<double>();
    else
      not_allowed(key, *value, fmt::format("a number above 0, up to {}", most));
  }

  /// The key may be missing.
  void read_flag(const char* key, bool& out) {
    const Json* const value = find(key, Need::optional);
    if (value == nullptr) return;
    if (value->is_boolean())
      out = value->get<bool>();
    else
      not_allowed(key, *value, "true or false");
  }

  /// Names are drawn in pictures, so they have no signs that need escapes.
  void read_name(const char* key, std::string& out) {
    const Json* const value = find(key, Need::required);
    if (value == nullptr) return;
    const auto plain = [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view(" -_.").find(static_cast<char>(c)) != std::string_view::npos;
    };
    if (value->is_string() && !value->get_ref<const std::string&>().empty() &&
        std::all_of(value->get_ref<const std::string&>().begin(),
                    value->get_ref<const std::string&>().end(), plain))
      out = value->get<std::string>();
    else
      not_allowed(key, *value, "letters, digits, '-', '_', '.' and spaces");
  }

  /// The key may be missing.
  void read_text(const char* key, std::string& out) {
    const Json* const value = find(key, Need::optional);
    if (value == nullptr) return;
    if (value->is_string())
      out = value->get<std::string>();
    else
      not_allowed(key, *value, "text");
  }

  /// `word` and nothing else.
  void need_constant(const char* key, std::string_view word) {
    const Json* const value = find(key, Need::required);
    if (value != nullptr && *value != word) not_allowed(key, *value, fmt::format("\"{}\"", word));
  }

  /// Reads a nested object by `read`, which gets its Fields.
  template <typename Read>
  void read_object(const char* key, Need need, Read read) {
    const Json* const value = find(key, need);
    if (value == nullptr) return;
    Fields inner(*value, fmt::format("{}: {}", path_, key));
    read(inner);
    if (problem_.empty()) problem_ = inner.problem();
  }

  /// The first mistake in words; empty: none.
  std::string problem() const {
    if (!problem_.empty() || !json_.is_object()) return problem_;
    for (const auto& [key, value] : json_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        return fmt::format("{}: there is no key '{}'; the keys are {}", path_, key,
                           fmt::join(known_, ", "));
    return "";
  }
  Status status() const {
    const std::string text = problem();
    return text.empty() ? Status() : error(Code::invalid_argument, "{}", text);
  }
  void fail(std::string_view text) {
    if (problem_.empty()) problem_ = fmt::format("{}: {}", path_, text);
  }

 private:
  const Json* find(const char* key, Need need) {
    known_.emplace_back(key);
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    if (need == Need::required) fail(fmt::format("the key '{}' is missing", key));
    return nullptr;
  }
  void not_allowed(const char* key, const Json& value, std::string_view allowed) {
    fail(fmt::format("'{}' is {}, but must be {}", key,
                     value.dump(-1, ' ', true, Json::error_handler_t::replace), allowed));
  }

  const Json& json_;
  std::string path_;
  std::vector<std::string> known_;
  std::string problem_;
};

}  // namespace anyccl::cli
