#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <unordered_map>

#include "algorithm/schedule/print.hpp"
#include "algorithm/verify/check.hpp"
#include "base/error.hpp"

namespace anyccl::verify {
namespace {

constexpr int kThorough = 17;

enum class InPlace { none, all, some };

std::vector<int> roots(Collective collective, int n) {
  if (!is_rooted(collective)) return {0};
  std::set<int> roots{0, std::min(1, n - 1), n / 2, n - 1};
  for (int r = 0; n <= kThorough && r < n; ++r) roots.insert(r);
  return {roots.begin(), roots.end()};
}

// One host; a large and small ones; scattered; and, if thorough, even halves and one rank each.
std::vector<std::vector<int>> host_maps(int n) {
  std::vector<std::vector<int>> maps(n <= kThorough ? 5 : 3);
  for (int r = 0; r < n; ++r) {
    maps[1].push_back(2 * r < n ? 0 : 1 + (2 * r - n) * 2 / (n + 1));
    maps[2].push_back(r * r % 7 % 3);
    if (n > kThorough) continue;
    maps[3].push_back(2 * r / n);
    maps[4].push_back(r);
  }
  return maps;
}

std::vector<Schedule> build_ranks(const Algorithm& algorithm, Shape shape, InPlace in_place) {
  std::vector<Schedule> ranks;
  for (int r = 0; r < shape.size; ++r) {
    shape.in_place = in_place == InPlace::all || (in_place == InPlace::some && r % 2 == 1);
    ranks.push_back(algorithm.build(shape, Rank{r}));
  }
  return ranks;
}

bool same_steps(const std::vector<Schedule>& a, const std::vector<Schedule>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const Schedule& x, const Schedule& y) {
    return x.steps == y.steps && x.scratch == y.scratch;
  });
}

/// The order of the results of one run. `one`: the last of them that was looked at.
Order order_of(const Outcome& outcome, Terms& terms, TermId& one) {
  std::unordered_map<std::bitset<kMaxRanks>, TermId> known;  // prefixes are of other ranks
  Order order = Order::tree_in_one_step;
  for (const std::vector<TermId>& chunks : outcome.output)
    for (const TermId id : chunks) {
      one = id;
      const TermId exact = terms.order_key(id);
      const TermId either = terms.bits_key(exact);  // ranks that add the same two may swap them
      if (known.try_emplace(terms[id].ranks, either).first->second != either)
        return Order::position;
      if (exact != terms.tree(terms[id].ranks)) order = Order::placement;
      if (terms[id].roundings > 1) order = std::min(order, Order::tree);
    }
  return order;
}

std::string describe(const Algorithm& algorithm, const Shape& shape, InPlace in_place) {
  std::string text = fmt::format("{} with {} ranks", id(algorithm), shape.size);
  if (is_rooted(shape.collective)) text += fmt::format(", root {}", index(shape.root));
  if (in_place != InPlace::none)
    text += in_place == InPlace::all ? ", in place" : ", some in place";
  if (shape.host_of.empty()) return text;
  text += ", hosts";
  for (int h : shape.host_of) text += fmt::format(" {}", h);
  return text;
}

class AlgorithmCheck {
 public:
  /// `alone`: the shapes are checked for their own sake, each rank in place and out of place.
  explicit AlgorithmCheck(const Algorithm& algorithm, bool alone = false)
      : algorithm_(algorithm), alone_(alone) {}

  /// Checks all roots and host maps that the algorithm supports. The report gets nothing if it
  /// supports none.
  Status check_size(int n) {
    CheckReport::Size size{.size = n};
    of_root_.clear();
    bool supported = false;
    for (int root : roots(algorithm_.collective, n)) {
      std::vector<std::vector<Schedule>> seen;  // host maps that change nothing are not repeated
      for (const std::vector<int>& hosts : host_maps(n)) {
        const Shape shape{algorithm_.collective, n, Rank{root}, false, hosts};
        if (!algorithm_.supports(shape)) continue;
        auto ranks = build_ranks(algorithm_, shape, InPlace::none);
        if (std::any_of(seen.begin(), seen.end(),
                        [&](const auto& before) { return same_steps(before, ranks); }))
          continue;
        supported = true;
        ANYCCL_CHECK(check_shape(shape, ranks, size));
        seen.push_back(std::move(ranks));
      }
    }
    if (supported) report_.sizes.push_back(size);
    return {};
  }

  Status check_one(const Shape& shape) {
    CheckReport::Size size{.size = shape.size};
    ANYCCL_CHECK(check_shape(shape, build_ranks(algorithm_, shape, InPlace::none), size));
    report_.sizes.push_back(size);
    return {};
  }

  CheckReport report() && {
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return std::move(report_);
  }

 private:
  /// Checks that messages do not depend on in_place, then each way of being in place by itself. The
  /// report counts these.
  Status check_shape(const Shape& shape, const std::vector<Schedule>& out_of_place,
                     CheckReport::Size& size) {
    Outcome first;
    const auto in_place = build_ranks(algorithm_, shape, InPlace::all);
    for (std::size_t r = 0; r < in_place.size(); ++r)
      ANYCCL_CHECK(
          with_names(shape, InPlace::all, check_same_messages(in_place[r], out_of_place[r])));
    for (InPlace way : {InPlace::none, InPlace::all, InPlace::some}) {
      const bool aliases = out_of_place[0].contract.has_bytes();
      if (way != InPlace::none && !aliases) continue;
      if ((way == InPlace::some) == alone_ && aliases && shape.size > kThorough) continue;
      const auto ranks = build_ranks(algorithm_, shape, way);
      ANYCCL_CHECK(with_names(shape, way, check_ranks(shape, ranks, first, size)));
      ++report_.shapes;
    }
    const bool plain = shape.root == Rank{0} && shape.host_of.empty();
    if (plain || alone_) size.cost = counted_cost(first, out_of_place[0].contract);
    return {};
  }

  /// Checks the schedules of all ranks, the order, the cost and the plans. `first` gets the outcome
  /// if it has none yet.
  Status check_ranks(const Shape& shape, const std::vector<Schedule>& ranks, Outcome& first,
                     CheckReport::Size& size) {
    const bool thorough = shape.size <= kThorough;
    Terms terms;
    ANYCCL_TRY(Outcome outcome, check(ranks, terms, thorough));
    if (reduces(shape.collective)) ANYCCL_CHECK(check_order(shape, outcome, terms, size));
    const Cost spent = counted_cost(outcome, ranks[0].contract);
    if (const Cost promised = algorithm_.cost ? algorithm_.cost(shape) : spent; promised != spent)
      return error(
          Code::internal,
          "takes {} rounds, sends {} of {} chunks, rounds {} times; cost() promises {}, {} "
          "of {}, {}",
          spent.rounds, spent.sent, spent.of, spent.roundings, promised.rounds, promised.sent,
          promised.of, promised.roundings);
    ANYCCL_TRY(const std::uint32_t slots, check_plans(ranks, outcome, terms, thorough));
    size.slots = std::max(size.slots, slots);
    if (first.output.empty()) first = std::move(outcome);
    return {};
  }

  /// Fails if results are added up in a weaker order than promised. `size` keeps the weakest of all
  /// its shapes.
  Status check_order(const Shape& shape, const Outcome& outcome, Terms& terms,
                     CheckReport::Size& size) {
    TermId one = Terms::kGarbage;
    Order order = order_of(outcome, terms, one);
    if (order == Order::placement && is_rooted(shape.collective)) {
      const std::string order_now = terms.shape_key(one);
      if (of_root_.try_emplace(shape.host_of, order_now).first->second != order_now)
        order = Order::position;
    }
    size.order = std::min(size.order, order);
    const Order promised = algorithm_.order(shape);
    if (order >= promised) return {};
    return error(Code::internal, "adds up by {}, such as {}; order() promises {}", name(order),
                 terms.text(one), name(promised));
  }

  static Cost counted_cost(const Outcome& outcome, const Contract& contract) {
    const std::uint32_t of = contract.chunks(contract.shape().root, Space::input);
    return {outcome.rounds, outcome.sent, of, outcome.roundings};
  }

  Status with_names(const Shape& shape, InPlace in_place, const Status& s) const {
    if (s.ok()) return s;
    return error(s.code(), "{}: {}", describe(algorithm_, shape, in_place), s.message());
  }

  const Algorithm& algorithm_;
  const bool alone_;
  std::map<std::vector<int>, std::string> of_root_;  // by hosts: the order for the first root
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  CheckReport report_;
};

}  // namespace

Result<CheckReport> check_algorithm(const Algorithm& algorithm, int first_n, int last_n) {
  if (first_n < 1 || last_n < first_n || last_n > static_cast<int>(kMaxRanks))
    return error(Code::invalid_argument, "check {} for {} to {} ranks: from 1 to {} is possible",
                 id(algorithm), first_n, last_n, kMaxRanks);
  AlgorithmCheck check(algorithm);
  for (int n = first_n; n <= last_n; ++n) ANYCCL_CHECK(check.check_size(n));
  return std::move(check).report();
}

Result<CheckReport> check_shapes(const Algorithm& algorithm, std::span<const Shape> shapes) {
  AlgorithmCheck check(algorithm, true);
  for (const Shape& shape : shapes) {
    if (shape.size > static_cast<int>(kMaxRanks))
      return error(Code::unsupported, "{} for {} ranks cannot be checked: {} are the most",
                   id(algorithm), shape.size, kMaxRanks);
    ANYCCL_CHECK(check.check_one(shape));
  }
  return std::move(check).report();
}

}  // namespace anyccl::verify
