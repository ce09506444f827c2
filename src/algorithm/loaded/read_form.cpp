// The text of an algorithm, which anyone may have written: nothing in it is used before it is known
// to exist.

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "algorithm/loaded/form.hpp"
#include "algorithm/schedule/print.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace anyccl {
namespace {

using Json = nlohmann::json;
using Limits = FormLimits;

constexpr std::string_view kFormat = "anyccl.algorithm/1";

/// The fault of a JSON text, without the library's own number for it.
std::string reason_of(const std::exception& problem) {
  const std::string_view text = problem.what();
  const std::size_t end = text.find("] ");
  return printable(end == std::string_view::npos ? text : text.substr(end + 2));
}

/// The text of a value, shortened, for messages. Says of lists and objects only that they are such,
/// as they may be nested deeper than the stack.
std::string shown(const Json& json) {
  constexpr std::size_t kMost = 60;
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";
  std::string text = printable(json.dump(-1, ' ', true, Json::error_handler_t::replace));
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

/// A value and where it stands.
struct Value {
  const Json& json;
  const std::string& file;
  std::string path;

  template <typename... Args>
  Status wrong(fmt::format_string<Args...> text, Args&&... args) const {
    return error(Code::invalid_argument, "{}: {}{}{}", file, path, path.empty() ? "" : ": ",
                 fmt::format(text, std::forward<Args>(args)...));
  }
  Value at(std::size_t i) const { return {json[i], file, fmt::format("{}[{}]", path, i)}; }
  Value at(const char* key) const {
    return {json[key], file, path.empty() ? key : fmt::format("{}.{}", path, key)};
  }
  Result<std::uint32_t> number(std::uint32_t least, std::uint64_t most) const {
    const bool fits = json.is_number_unsigned() && json.get<std::uint64_t>() >= least &&
                      json.get<std::uint64_t>() <= most;
    if (!fits) return wrong("{} is not a number from {} to {}", shown(json), least, most);
    return json.get<std::uint32_t>();
  }
  /// Ok if it is a list of at most `most` elements.
  Status list(std::size_t most) const {
    if (!json.is_array()) return wrong("{} is not a list", shown(json));
    if (json.size() > most) return wrong("has {} elements; {} are the most", json.size(), most);
    return {};
  }
  /// Ok if it is an object with `needed`, perhaps some of `others`, and nothing else.
  Status object(std::initializer_list<const char*> needed,
                std::initializer_list<const char*> others) const {
    if (!json.is_object()) return wrong("{} is not an object", shown(json));
    for (const char* key : needed)
      if (!json.contains(key)) return wrong("there is no \"{}\"", key);
    for (const auto& [key, value] : json.items()) {
      const auto is = [&key = key](const char* known) { return key == known; };
      if (!std::any_of(needed.begin(), needed.end(), is) &&
          !std::any_of(others.begin(), others.end(), is))
        return wrong("\"{}\" means nothing here", printable(key));
    }
    return {};
  }
};

/// The steps of one size.
class SizeReader {
 public:
  SizeReader(Collective collective, WrittenSize& size, std::deque<std::string>& places)
      : size_(size),
        places_(places),
        contract_({.collective = collective, .size = size.ranks}, size.chunks_per_block) {}

  Status read_scratch(const Value& value, WrittenRank& rank) {
    ANYCCL_CHECK(value.list(Limits::kChunks));
    for (std::size_t i = 0; i < value.json.size(); ++i) {
      ANYCCL_TRY(const Origin origin, value.at(i).number(0, contract_.origins() - 1));
      rank.scratch.push_back(origin);
    }
    return {};
  }

  Status read_steps(const Value& value, Rank me, WrittenRank& rank) {
    me_ = me;
    scratch_ = static_cast<std::uint32_t>(rank.scratch.size());
    ANYCCL_CHECK(value.list(Limits::kSteps));
    for (std::size_t i = 0; i < value.json.size(); ++i) {
      ANYCCL_TRY(Step step, read_step(value.at(i)));
      rank.steps.push_back(std::move(step));
      if (place_.empty()) continue;
      rank.places.resize(rank.steps.size() - 1);
      rank.places.push_back(place_);
    }
    return {};
  }

 private:
  /// How many words follow the operation, without a place, which is remembered.
  Result<std::size_t> words_of(const Value& value) {
    const Json& json = value.json;
    if (!json.is_array() || json.empty() || !json[0].is_string())
      return value.wrong("{} is not a step such as [\"send\", [1], \"i0\"]", shown(json));
    std::size_t words = json.size() - 1;
    place_ = {};
    if (words == 0 || !json.back().is_string()) return words;
    const auto& last = json.back().get_ref<const std::string&>();
    if (!last.starts_with('@')) return words;
    if (last.size() > Limits::kPlaceLength)
      return value.wrong("the place of a step has at most {} characters", Limits::kPlaceLength);
    if (places_.empty() || places_.back() != last.substr(1))
      places_.push_back(printable(last.substr(1)));
    place_ = places_.back();
    return words - 1;
  }

  Result<Step> read_step(const Value& value) {
    ANYCCL_TRY(const std::size_t words, words_of(value));
    const auto& called = value.json[0].get_ref<const std::string&>();
    constexpr Op kOps[] = {Op::copy, Op::reduce, Op::send, Op::recv, Op::recv_reduce};
    const auto* const op = std::find_if(std::begin(kOps), std::end(kOps),
                                        [&](Op known) { return name(known) == called; });
    if (op == std::end(kOps))
      return value.wrong("{} is none of send, recv, recv_reduce, copy, reduce",
                         shown(value.json[0]));
    Step step{.op = *op, .src = {}, .dst = {}, .peers = {me_}};
    switch (*op) {
      case Op::copy:
      case Op::reduce:
        ANYCCL_CHECK(expect(value, words, 2, 2, "SOURCE, TARGET"));
        ANYCCL_CHECK(read_slice(value.at(1), step, step.src));
        ANYCCL_CHECK(read_target(value.at(2), step));
        break;
      case Op::send:
        ANYCCL_CHECK(expect(value, words, 2, 2, "[RANK...], SOURCE"));
        ANYCCL_CHECK(read_peers(value.at(1), step.peers));
        ANYCCL_CHECK(read_slice(value.at(2), step, step.src));
        step.dst.count = 0;
        break;
      case Op::recv:
        ANYCCL_CHECK(expect(value, words, 2, 3, "[RANK...], TARGET, or also OWN"));
        ANYCCL_CHECK(read_peers(value.at(1), step.peers));
        ANYCCL_CHECK(read_target(value.at(2), step));
        if (words == 3)
          ANYCCL_CHECK(read_slice(value.at(3), step, step.src));
        else if (std::find(step.peers.begin(), step.peers.end(), me_) != step.peers.end())
          return value.wrong("names rank {} itself and not what that reads: [RANK...], TARGET, OWN",
                             index(me_));
        break;
      default:
        ANYCCL_CHECK(expect(value, words, 3, 3, "[RANK...], OWN, TARGET"));
        ANYCCL_CHECK(read_peers(value.at(1), step.peers));
        ANYCCL_CHECK(read_slice(value.at(2), step, step.src));
        ANYCCL_CHECK(read_target(value.at(3), step));
    }
    return step;
  }

  static Status expect(const Value& value, std::size_t words, std::size_t least, std::size_t most,
                       std::string_view what) {
    if (words >= least && words <= most) return {};
    return value.wrong("{} is followed by {}", shown(value.json[0]), what);
  }

  Status read_peers(const Value& value, PeerList& peers) const {
    ANYCCL_CHECK(value.list(Limits::kPeers));
    if (value.json.empty()) return value.wrong("names no rank");
    peers.clear();
    for (std::size_t k = 0; k < value.json.size(); ++k) {
      ANYCCL_TRY(const std::uint32_t peer,
                 value.at(k).number(0, static_cast<std::uint64_t>(size_.ranks) - 1));
      peers.push_back(Rank(static_cast<std::int32_t>(peer)));
    }
    return {};
  }

  /// Takes one number of a slice, with its sign, from `rest`. Without that sign `into` stays as it
  /// is. False: it is no number, or too large.
  static bool take(std::string_view& rest, char sign, std::uint32_t& into) {
    if (sign != 0 && !rest.starts_with(sign)) return true;
    if (sign != 0) rest.remove_prefix(1);
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), into);
    if (problem != std::errc{} || into > Limits::kChunks) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return true;
  }

  /// Reads the slice that a step writes into `step.dst`. Errors: also for a slice of the input.
  Status read_target(const Value& value, Step& step) const {
    ANYCCL_CHECK(read_slice(value, step, step.dst));
    if (step.dst.space != Space::input) return {};
    return value.wrong("{} is input, which stays as it is", shown(value.json));
  }

  /// Reads a slice, after the peers of `step`, each of which has a piece of it. Only a slice of
  /// scratch must not run past the end: input and output are circular.
  Status read_slice(const Value& value, const Step& step, Slice& into) const {
    constexpr std::string_view kLetters = "ios";
    const std::string text = value.json.is_string() ? value.json.get<std::string>() : "";
    std::string_view rest = text;
    const std::size_t space = rest.empty() ? kLetters.npos : kLetters.find(rest[0]);
    if (!rest.empty()) rest.remove_prefix(1);
    Slice slice;
    if (space == kLetters.npos || !take(rest, 0, slice.first) || !take(rest, ':', slice.count) ||
        !take(rest, '+', slice.stride) || !rest.empty())
      return value.wrong("{} is not a slice such as \"o3\", \"i0:2\" or \"s0:1+2\"",
                         shown(value.json));
    slice.space = static_cast<Space>(space);
    const std::uint32_t room =
        slice.space == Space::scratch ? scratch_ : contract_.chunks(me_, slice.space);
    const auto last = static_cast<std::uint64_t>(step.peers.size() - 1) * slice.stride;
    // Input and output go on with their beginning.
    const std::uint32_t most = slice.space == Space::scratch ? room : Limits::kChunks;
    if (slice.count == 0 || slice.count > room || slice.first + last + slice.count > most)
      return value.wrong("{} is not in the {} of rank {}, which has {} chunks", shown(value.json),
                         name(slice.space), index(me_), room);
    into = slice;
    return {};
  }

  WrittenSize& size_;
  std::deque<std::string>& places_;
  const Contract contract_;
  Rank me_{0};
  std::uint32_t scratch_ = 0;
  std::string_view place_;
};

class FormReader {
 public:
  explicit FormReader(const std::string& file) : file_(file) {}

  Result<WrittenAlgorithm> read(const Json& json) {
    const Value top{json, file_, ""};
    ANYCCL_CHECK(top.object({"format"}, {"name", "collective", "about", "sizes"}));
    if (json["format"] != kFormat)
      return top.at("format").wrong("{} is not \"{}\"", shown(json["format"]), kFormat);
    ANYCCL_CHECK(top.object({"format", "name", "collective", "sizes"}, {"about"}));
    ANYCCL_CHECK(read_name(top.at("name")));
    ANYCCL_CHECK(read_collective(top.at("collective")));
    if (json.contains("about")) {
      if (!json["about"].is_string()) return top.at("about").wrong("is not a text");
      all_.about = json["about"];
    }
    const Value sizes = top.at("sizes");
    ANYCCL_CHECK(sizes.list(Limits::kRanks));
    if (json["sizes"].empty()) return sizes.wrong("has no number of ranks");
    for (std::size_t i = 0; i < sizes.json.size(); ++i) ANYCCL_CHECK(read_size(sizes.at(i)));
    return std::move(all_);
  }

 private:
  Status read_name(const Value& value) {
    const std::string text = value.json.is_string() ? value.json.get<std::string>() : "";
    const bool good = std::all_of(text.begin(), text.end(), [](unsigned char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (text.empty() || text.size() > Limits::kNameLength || !good)
      return value.wrong("{} is not a name of up to {} letters, digits and _", shown(value.json),
                         Limits::kNameLength);
    all_.name = text;
    return {};
  }

  Status read_collective(const Value& value) {
    for (int c = 0; c <= std::numeric_limits<std::uint8_t>::max(); ++c) {
      const auto collective = static_cast<Collective>(c);
      if (!is_scheduled(collective) || value.json != std::string(name(collective))) continue;
      all_.collective = collective;
      return {};
    }
    return value.wrong("{} is no collective such as \"all_reduce\"", shown(value.json));
  }

  Status read_size(const Value& value) {
    ANYCCL_CHECK(value.object({"ranks", "steps"}, {"parts", "hosts", "scratch"}));
    WrittenSize size;
    ANYCCL_TRY(const std::uint32_t ranks, value.at("ranks").number(1, Limits::kRanks));
    size.ranks = static_cast<int>(ranks);
    const bool has_parts = value.json.contains("parts");
    if (has_parts) {
      const std::uint32_t most = has_equal_blocks(all_.collective) ? Limits::kChunks : 1;
      ANYCCL_TRY(size.chunks_per_block, value.at("parts").number(1, most));
    }
    ANYCCL_CHECK(check_chunks(value, size));
    if (value.json.contains("hosts") && !value.json["hosts"].is_null())
      ANYCCL_CHECK(read_hosts(value.at("hosts"), size));
    for (const WrittenSize& other : all_.sizes)
      if (other.ranks == size.ranks && other.host_of == size.host_of)
        return value.wrong("{} ranks are listed twice", size.ranks);
    ANYCCL_CHECK(read_ranks(value, size));
    all_.sizes.push_back(std::move(size));
    return {};
  }

  Status check_chunks(const Value& value, const WrittenSize& size) const {
    std::uint64_t most = 0;
    for (const bool at_root : {false, true})
      for (const Space side : {Space::input, Space::output})
        most =
            std::max<std::uint64_t>(most, blocks_held(all_.collective, size.ranks, at_root, side));
    most *= size.chunks_per_block;
    const bool pairs = Contract({.collective = all_.collective, .size = 1}, 1).pairs();
    const std::uint64_t origins = pairs ? most * static_cast<std::uint64_t>(size.ranks) : most;
    if (most > Limits::kChunks)
      return value.wrong("{} ranks and {} parts are more than {} chunks", size.ranks,
                         size.chunks_per_block, Limits::kChunks);
    if (origins > Limits::kOrigins)
      return value.wrong("{} ranks and {} parts are more than {} chunks of all ranks together",
                         size.ranks, size.chunks_per_block, Limits::kOrigins);
    return {};
  }

  static Status read_hosts(const Value& value, WrittenSize& size) {
    ANYCCL_CHECK(value.list(Limits::kRanks));
    if (value.json.size() != static_cast<std::size_t>(size.ranks))
      return value.wrong("has {} hosts for {} ranks: one for each rank", value.json.size(),
                         size.ranks);
    std::vector<int> hosts;
    for (std::size_t r = 0; r < value.json.size(); ++r) {
      ANYCCL_TRY(const std::uint32_t host, value.at(r).number(0, Limits::kRanks));
      hosts.push_back(static_cast<int>(host));
    }
    size.host_of = renumber_hosts(hosts, size.ranks);
    return {};
  }

  Status read_ranks(const Value& value, WrittenSize& size) {
    const auto ranks = static_cast<std::size_t>(size.ranks);
    SizeReader reader(all_.collective, size, *all_.place_texts);
    const bool has_scratch = value.json.contains("scratch");
    for (const char* key : {"scratch", "steps"}) {
      if (!value.json.contains(key)) continue;
      ANYCCL_CHECK(value.at(key).list(Limits::kRanks));
      if (value.json[key].size() != ranks)
        return value.at(key).wrong("has {} lists for {} ranks", value.json[key].size(), ranks);
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      WrittenRank& rank = size.each.emplace_back();
      if (has_scratch) ANYCCL_CHECK(reader.read_scratch(value.at("scratch").at(r), rank));
      ANYCCL_CHECK(reader.read_steps(value.at("steps").at(r), Rank(static_cast<int>(r)), rank));
    }
    return {};
  }

  const std::string& file_;
  WrittenAlgorithm all_{.place_texts = std::make_shared<std::deque<std::string>>()};
};

}  // namespace

Result<WrittenAlgorithm> parse_algorithm(std::string_view text, const std::string& file) {
  if (text.size() > Limits::kBytes)
    return error(Code::invalid_argument, "{} has {} bytes; {} are the most", file, text.size(),
                 Limits::kBytes);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& problem) {
    return error(Code::invalid_argument, "{}: {}", file, reason_of(problem));
  }
  return FormReader(file).read(json);
}

}  // namespace anyccl
