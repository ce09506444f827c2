#include "algorithm/loaded/form.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "algorithm/schedule/print.hpp"

namespace anyccl {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The ranks of the peers as integers.
std::vector<int> numbers_of(const PeerList& peers) {
  std::vector<int> numbers;
  for (const Rank peer : peers) numbers.push_back(index(peer));
  return numbers;
}

OrderedJson step_json(const Step& step, Rank me, std::string_view place) {
  OrderedJson json = {name(step.op)};
  const bool local = step.op == Op::copy || step.op == Op::reduce;
  if (!local) json.push_back(numbers_of(step.peers));
  const bool has_own = local || step.op == Op::recv_reduce;
  if (has_own || step.op == Op::send) json.push_back(slice_text(step.src));
  if (step.op != Op::send) json.push_back(slice_text(step.dst));
  const bool reads_own = std::find(step.peers.begin(), step.peers.end(), me) != step.peers.end();
  if (step.op == Op::recv && (reads_own || step.src != Slice{}))
    json.push_back(slice_text(step.src));
  if (!place.empty()) json.push_back("@" + std::string(place));
  return json;
}

/// A list with a line for each element.
template <typename Elements, typename Text>
std::string lines_of(const Elements& elements, Text text) {
  std::vector<std::string> lines;
  for (const auto& element : elements) lines.push_back(text(element));
  return fmt::format("[\n    {}]", fmt::join(lines, ",\n    "));
}

std::string steps_text(const WrittenRank& rank, Rank me, bool bare) {
  OrderedJson steps = OrderedJson::array();
  for (std::size_t i = 0; i < rank.steps.size(); ++i)
    steps.push_back(
        step_json(rank.steps[i], me, bare || i >= rank.places.size() ? "" : rank.places[i]));
  return steps.dump();
}

std::string size_text(const WrittenSize& size, bool bare) {
  const OrderedJson hosts = size.host_of.empty() ? OrderedJson(nullptr) : OrderedJson(size.host_of);
  const bool has_scratch = std::any_of(size.each.begin(), size.each.end(),
                                       [](const WrittenRank& r) { return !r.scratch.empty(); });
  std::string text = fmt::format("  {{\"ranks\": {}, \"parts\": {}, \"hosts\": {}", size.ranks,
                                 size.chunks_per_block, hosts.dump());
  if (has_scratch)
    text += fmt::format(",\n   \"scratch\": {}", lines_of(size.each, [](const WrittenRank& rank) {
                          return OrderedJson(rank.scratch).dump();
                        }));
  int me = 0;
  return text + fmt::format(",\n   \"steps\": {}}}", lines_of(size.each, [&](const WrittenRank& r) {
                              return steps_text(r, Rank{me++}, bare);
                            }));
}

}  // namespace

std::vector<int> renumber_hosts(const std::vector<int>& host_of, int ranks) {
  if (host_of.empty()) return std::vector<int>(static_cast<std::size_t>(ranks));
  std::map<int, int> number;
  std::vector<int> numbered;
  for (const int host : host_of)
    numbered.push_back(number.try_emplace(host, static_cast<int>(number.size())).first->second);
  return numbered;
}

WrittenAlgorithm written_form(const Algorithm& algorithm, std::span<const Shape> shapes) {
  WrittenAlgorithm all{.name = std::string(algorithm.name), .collective = algorithm.collective};
  all.place_texts = std::make_shared<std::deque<std::string>>();
  for (Shape shape : shapes) {
    shape.root = Rank{0};
    shape.in_place = false;
    shape.with_dependencies = false;
    WrittenSize& size = all.sizes.emplace_back();
    size.ranks = shape.size;
    if (!shape.host_of.empty()) size.host_of = renumber_hosts(shape.host_of, shape.size);
    for (int r = 0; r < shape.size; ++r) {
      Schedule schedule = algorithm.build(shape, Rank{r});
      size.chunks_per_block = schedule.contract.chunks_per_block();
      for (std::string_view& place : schedule.places) place = all.place_texts->emplace_back(place);
      size.each.push_back(
          {std::move(schedule.scratch), std::move(schedule.steps), std::move(schedule.places)});
    }
  }
  return all;
}

std::string to_text(const WrittenAlgorithm& algorithm, bool bare) {
  std::vector<std::string> sizes;
  for (const WrittenSize& size : algorithm.sizes) sizes.push_back(size_text(size, bare));
  const OrderedJson about = bare ? "" : algorithm.about;
  return fmt::format(
      "{{\"format\": \"anyccl.algorithm/1\", \"name\": {}, \"collective\": \"{}\",{}\n "
      "\"sizes\": [\n{}]}}\n",
      OrderedJson(algorithm.name).dump(), name(algorithm.collective),
      about.get<std::string>().empty()
          ? ""
          : "\n \"about\": " +
                about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ",",
      fmt::join(sizes, ",\n"));
}

std::string slice_text(const Slice& slice) {
  constexpr char kLetters[] = {'i', 'o', 's'};
  std::string text =
      fmt::format("{}{}", kLetters[static_cast<std::size_t>(slice.space)], slice.first);
  if (slice.count != 1) text += fmt::format(":{}", slice.count);
  if (slice.stride != 0) text += fmt::format("+{}", slice.stride);
  return text;
}

}  // namespace anyccl
