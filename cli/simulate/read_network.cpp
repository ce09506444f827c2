#include "simulate/read_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "simulate/networks/kinds.hpp"

namespace anyccl::cli {

namespace {

using Json = nlohmann::ordered_json;
using Words = std::map<std::string, std::string>;

struct NetworkKind {
  std::string_view name;
  Result<Network> (*make)(NetworkParams& params, std::uint32_t ranks);
};

constexpr NetworkKind kKinds[] = {
    {"flat", make_flat},           {"ring", make_ring},
    {"tree", make_tree},           {"torus", make_torus},
    {"hypercube", make_hypercube}, {"fat-tree", make_fat_tree},
    {"dragonfly", make_dragonfly}, {"dragonfly+", make_dragonfly_plus},
    {"rails", make_rails},
};

constexpr std::string_view kNetworkFormat = "anyccl.topology/1";

/// "k=4,taper=2"
Result<Words> words_of(std::string_view text) {
  Words words;
  for (std::size_t place = 0; !text.empty() && place <= text.size();) {
    const std::string_view word = text.substr(place, text.find(',', place) - place);
    place += word.size() + 1;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return error(Code::invalid_argument, "'{}' is no parameter such as k=4", word);
    const auto [at, added] = words.emplace(word.substr(0, equals), word.substr(equals + 1));
    if (!added) return error(Code::invalid_argument, "parameter {} is given twice", at->first);
  }
  return words;
}

Result<Network> make(const std::string& name, Words words, std::uint32_t ranks) {
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                        [&](const NetworkKind& k) { return k.name == name; });
  if (kind == std::end(kKinds))
    return error(Code::invalid_argument, "there is no topology '{}', but {}", name,
                 network_kinds());
  NetworkParams params(name, std::move(words));
  ANYCCL_TRY(Network network, kind->make(params, ranks));
  if (network.ends() < ranks)
    return error(Code::invalid_argument, "{} has room for {} ranks, not for {}", network.text(),
                 network.ends(), ranks);
  return network;
}

Result<Network> from_json(std::string_view text, std::uint32_t ranks) {
  const auto json = Json::parse(text, nullptr, false);
  const auto is_text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  const auto params = json.is_object() ? json.value("params", Json::object()) : Json();
  if (!json.is_object() || !is_text("format") || json["format"] != kNetworkFormat ||
      !is_text("kind") || !params.is_object())
    return error(
        Code::invalid_argument,
        "a topology in JSON is an object with \"format\": \"{}\", a \"kind\" and \"params\"",
        kNetworkFormat);
  Words words;
  for (const auto& [key, value] : params.items())
    words[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return make(json["kind"].get<std::string>(), std::move(words), ranks);
}

}  // namespace

std::string network_kinds() {
  std::string names;
  for (const NetworkKind& kind : kKinds)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
  return names;
}

Result<Network> read_network(std::string_view description, std::uint32_t ranks) {
  const std::size_t first = description.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && description[first] == '{')
    return from_json(description, ranks);
  const std::size_t colon = std::min(description.find(':'), description.size());
  ANYCCL_TRY(Words words, words_of(description.substr(std::min(colon + 1, description.size()))));
  return make(std::string(description.substr(0, colon)), std::move(words), ranks);
}

std::string to_json(const Network& network) {
  const std::string& text = network.text();
  Json params = Json::object();
  const Result<Words> words = words_of(std::string_view(text).substr(network.kind().size() + 1));
  for (const auto& [name, value] : *words) params[name] = value;
  return Json{{"format", kNetworkFormat}, {"kind", network.kind()}, {"params", params}}.dump(1);
}

Result<std::vector<std::uint32_t>> read_placement(std::string_view text, std::uint32_t ranks,
                                                  std::uint32_t ends) {
  constexpr std::string_view kRandom = "random:";
  std::vector<std::uint32_t> place(ends);
  std::iota(place.begin(), place.end(), 0U);
  if (text.starts_with(kRandom)) {
    const std::string_view number = text.substr(kRandom.size());
    std::uint64_t seed = 0;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), seed);
    if (problem == std::errc{} && end == number.data() + number.size()) {
      // Not std::shuffle, which differs between libraries.
      std::mt19937_64 random(seed);
      for (std::size_t i = ends; i > 1; --i) std::swap(place[i - 1], place[random() % i]);
      text = "linear";
    }
  }
  if (text != "linear")
    return error(Code::invalid_argument, "'{}' is no placement: linear, or random: and a number",
                 text);
  place.resize(ranks);
  return place;
}

}  // namespace anyccl::cli
