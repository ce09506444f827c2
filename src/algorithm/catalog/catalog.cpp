#include <algorithm>
#include <atomic>
#include <deque>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl {

#define ANYCCL_ENTRY(name) extern const Algorithm name;
#include "anyccl/algorithms.inc"
#undef ANYCCL_ENTRY

namespace {

constexpr const Algorithm* kListed[] = {
#define ANYCCL_ENTRY(name) &name,
#include "anyccl/algorithms.inc"
#undef ANYCCL_ENTRY
};

/// The listed ones and their v-forms.
struct Catalog {
  Catalog() {
    for (const Algorithm* a : kListed) {
      all.push_back(a);
      if ((a->traits & kVForm) == 0) continue;
      v_forms.push_back(*a);
      v_forms.back().collective = v_form(a->collective);
      all.push_back(&v_forms.back());
    }
  }
  std::deque<Algorithm> v_forms;  // whose elements stay where they are
  std::vector<const Algorithm*> all;
};

/// A new list of all algorithms with each addition, so that readers of a list need no lock.
class Lists {
 public:
  struct List {
    std::vector<const Algorithm*> all;
    const List* before = nullptr;  // which somebody may still read
  };
  Lists() { newest_.store(new List{catalog_.all}, std::memory_order_release); }
  const List& newest() const { return *newest_.load(std::memory_order_acquire); }
  /// Publishes a longer list with `algorithm` at its end; older lists stay as they are. One thread
  /// at a time.
  void add(const Algorithm& algorithm) {
    auto* const longer = new List(newest());
    longer->before = &newest();
    longer->all.push_back(&algorithm);
    newest_.store(longer, std::memory_order_release);
  }

 private:
  const Catalog catalog_;
  std::atomic<const List*> newest_;  // Stored with release when a list is whole; read with acquire.
};

/// Those of this process, with the algorithms of all collectives.
Lists& lists() {
  static Lists* const lists = new Lists;  // never destroyed: streams may run during exit
  return *lists;
}

}  // namespace

std::string_view name(Order order) {
  constexpr std::string_view kNames[] = {"position", "placement", "tree", "tree_in_one_step"};
  return kNames[static_cast<std::size_t>(order)];
}

std::string id(const Algorithm& algorithm) {
  return std::string(name(algorithm.collective)) + "/" + std::string(algorithm.name);
}

std::span<const Algorithm* const> all_algorithms() {
  return lists().newest().all;
}

void add_algorithm(const Algorithm& algorithm) {
  lists().add(algorithm);
}

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  const auto all = all_algorithms();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Algorithm* a) {
    return a->collective == collective && a->name == name;
  });
  return found == all.end() ? nullptr : *found;
}

std::vector<Schedule> build_all(const Algorithm& algorithm, const Shape& shape) {
  std::vector<Schedule> ranks;
  for (int r = 0; r < shape.size; ++r) ranks.push_back(algorithm.build(shape, Rank{r}));
  return ranks;
}

}  // namespace anyccl
