#pragma once
// A verified call with all ranks in one thread.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <set>

#include "../reduce/reference.hpp"
#include "algorithm/schedule/contract.hpp"
#include "base/hash.hpp"
#include "framework/verification/verification.hpp"
#include "platform/reduce/convert.hpp"
#include "platform/reduce/reduce.hpp"

namespace anyccl::test {

using Random = std::mt19937_64;

inline std::size_t below(Random& random, std::size_t limit) {
  return random() % limit;
}

inline std::string rank_name(Rank r) {
  return fmt::format("rank {} (host h{}, pid {})", index(r), index(r), 100 + index(r));
}

/// One call on all ranks, and what a right implementation makes of it.
class World {
 public:
  World(Collective kind, DType dtype, ReduceOp op, int n, std::size_t count, std::uint64_t seed)
      : kind_(kind),
        dtype_(dtype),
        op_(op),
        n_(static_cast<std::size_t>(n)),
        count_(count),
        random_(seed) {
    root_ = kind == Collective::exscan ? 0 : below(random_, n_);
    is_tree_ = below(random_, 2) == 0;
    for (std::size_t r = 0; r < n_; ++r) {
      counts_.push_back(has_equal_blocks(kind) ? count : below(random_, count + 1));
      displs_.push_back(r * count);
    }
    for (std::size_t r = 0; r < n_; ++r) {
      in.push_back(Memory(blocks(r, Space::input) * count * element()));
      out.push_back(Memory(blocks(r, Space::output) * count * element()));
    }
  }

  /// The call has a configuration that says so: see ElementTypes, and leaves_of_rank(). Before
  /// fill().
  void configure(DType sum, DType output, std::size_t parts) {
    sum_ = sum;
    output_ = output;
    parts_ = parts;
    for (Memory& one : in) one.resize(one.size() * parts);
    for (Memory& one : out) one.resize(one.size() / element() * bytes_of(output));
  }

  /// Each rank's own data: what `make(r, bytes)` fills in.
  template <typename Make>
  void fill(const Make& make) {
    for (std::size_t r = 0; r < n_; ++r) in[r] = make(r, in[r].size() / element());
  }

  Call call(std::size_t r) {
    Call c;
    c.collective = kind_;
    c.dtype = dtype_;
    c.op = op_;
    c.root = Rank{static_cast<int>(root_)};
    c.count = has_equal_blocks(kind_) ? count_ : counts_[single(r)];
    c.input = reinterpret_cast<const std::byte*>(in[r].data());
    c.output = reinterpret_cast<std::byte*>(out[r].data());
    c.send_counts = c.recv_counts = counts_.data();
    c.send_displs = c.recv_displs = displs_.data();
    if (kind_ == Collective::all_to_all_v) {
      c.send_counts = pairs_from(r).data();
      c.recv_counts = pairs_to(r).data();
    }
    return c;
  }

  void begin(const std::shared_ptr<const Operator>& created = nullptr) {
    pairs();
    for (std::size_t r = 0; r < n_; ++r) {
      const Call c = call(r);
      const auto method = method_of(c, sum_, output_, created.get(), static_cast<int>(n_));
      ASSERT_TRUE(method.ok()) << method.status().message();
      VerifiedCall verified{.call = c,
                            .me = Rank{static_cast<int>(r)},
                            .size = static_cast<int>(n_),
                            .sequence = 4711,
                            .secret = random_seed_,
                            .method = *method,
                            .output = output_,
                            .parts = parts_,
                            .roundings = roundings_of(method->dtype, output_,
                                                      {.ranks = static_cast<int>(n_ * parts_),
                                                       .is_tree = is_tree_,
                                                       .is_average = op_ == ReduceOp::avg,
                                                       .is_multiplied = false,
                                                       .is_complex = method->per_element == 2})};
      all_.push_back(std::make_unique<Verification>(verified, rank_name));
    }
    for (auto& v : all_) v->take_input();
  }

  /// What the ranks say: of results that are there.
  std::vector<Status> end() {
    for (auto& v : all_) v->take_result();
    exchange();
    std::vector<Status> said;
    for (auto& v : all_) said.push_back(v->compare());
    return said;
  }

  /// The results, in an order of additions that a schedule could have.
  void run() {
    for (std::size_t r = 0; r < n_; ++r) run_at(r);
  }

  /// A sum over some ranks of the part that rank r gets.
  Memory sum(std::size_t r, std::vector<std::size_t> ranks) {
    const bool has_blocks =
        kind_ == Collective::reduce_scatter || kind_ == Collective::reduce_scatter_v;
    const std::size_t first = has_blocks ? r * count_ : 0, all = count_ * (has_blocks ? n_ : 1);
    std::vector<Memory> sources;
    for (const std::size_t from : ranks)
      for (std::size_t k = 0; k < parts_; ++k) {
        const Memory::value_type* const at = in[from].data() + (k * all + first) * element();
        sources.push_back(converted(dtype_, sum_, Memory(at, at + part(r) * element())));
      }
    const bool is_average = op_ == ReduceOp::avg;
    const auto kernel = reduce_kernel(sum_, is_average ? ReduceOp::sum : op_);
    if (!is_tree_)  // two at a time: they are rounded most often
      while (sources.size() > 1) {
        const std::size_t k = below(random_, sources.size() - 1);
        combine(*kernel, {&sources[k], &sources[k + 1]}, sources[k]);
        sources.erase(sources.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      }
    std::vector<Memory*> left;
    for (Memory& source : sources) left.push_back(&source);
    Memory result = sources[0];
    if (left.size() > 1) combine(*kernel, left, result);
    if (is_average)
      (*divide_kernel(sum_))(result.data(), result.data(), part(r),
                             static_cast<std::uint32_t>(n_ * parts_));
    return converted(sum_, output_, result);
  }

  /// The result stays where it is.
  void replace(std::size_t r, const Memory& result) {
    std::copy(result.begin(), result.end(), out[r].begin());
  }

  DType input() const { return dtype_; }
  std::size_t element() const { return bytes_of(dtype_); }
  std::size_t n() const { return n_; }
  bool is_tree() const { return is_tree_; }
  std::size_t part(std::size_t r) const { return has_equal_blocks(kind_) ? count_ : counts_[r]; }
  std::vector<std::size_t> all_ranks() const {
    std::vector<std::size_t> ranks(n_);
    for (std::size_t r = 0; r < n_; ++r) ranks[r] = r;
    return ranks;
  }
  /// Some rank that has a result.
  std::size_t someone() {
    for (;;) {
      const std::size_t r = below(random_, n_);
      const bool has = kind_ != Collective::exscan || r > 0;
      if (has && !out[r].empty()) return r;
    }
  }
  Random& random() { return random_; }

  std::vector<Memory> in, out;

 private:
  std::size_t blocks(std::size_t r, Space side) const {
    if (has_blocks_apart(kind_, r == root_, side)) return n_;
    return blocks_held(kind_, static_cast<int>(n_), r == root_, side);
  }
  /// Whose count a v-form has in `count`.
  std::size_t single(std::size_t r) const { return r; }

  void pairs() {
    for (std::size_t from = 0; from < n_; ++from)
      for (std::size_t to = 0; to < n_; ++to) {
        const std::size_t c = mix(random_seed_, from * n_ + to) % (count_ + 1);
        from_.resize(n_);
        to_.resize(n_);
        from_[from].resize(n_);
        to_[to].resize(n_);
        from_[from][to] = to_[to][from] = c;
      }
  }
  std::vector<std::size_t>& pairs_from(std::size_t r) { return from_[r]; }
  std::vector<std::size_t>& pairs_to(std::size_t r) { return to_[r]; }

  void combine(ReduceFn kernel, const std::vector<Memory*>& from, Memory& to) const {
    std::vector<const void*> sources;
    for (const Memory* m : from) sources.push_back(m->data());
    kernel(to.data(), nullptr, sources.data(), sources.size(), to.size() / bytes_of(sum_));
  }

  static Memory converted(DType from, DType to, const Memory& memory) {
    if (from == to) return memory;
    const std::size_t count = memory.size() / bytes_of(from);
    Memory result(count * bytes_of(to));
    converter(from, to)(result.data(), memory.data(), count);
    return result;
  }

  void put(std::size_t r, std::size_t at, const Memory& from, std::size_t begin,
           std::size_t count) {
    const std::size_t bytes = bytes_of(output_);
    ASSERT_LE((at + count) * bytes, out[r].size()) << anyccl::name(kind_);
    ASSERT_LE((begin + count) * bytes, from.size()) << anyccl::name(kind_);
    if (count > 0)
      std::memcpy(out[r].data() + at * bytes, from.data() + begin * bytes, count * bytes);
  }

  void run_at(std::size_t r) {
    switch (kind_) {
      case Collective::broadcast:
        return put(r, 0, in[root_], 0, count_);
      case Collective::scatter:
      case Collective::scatter_v:
        return put(r, 0, in[root_], r * count_, part(r));
      case Collective::gather:
      case Collective::gather_v:
        if (r != root_) return;
        [[fallthrough]];
      case Collective::all_gather:
      case Collective::all_gather_v:
        for (std::size_t from = 0; from < n_; ++from)
          put(r, from * count_, in[from], 0, part(from));
        return;
      case Collective::all_to_all:
      case Collective::all_to_all_v:
        for (std::size_t from = 0; from < n_; ++from)
          put(r, from * count_, in[from], r * count_,
              kind_ == Collective::all_to_all ? count_ : from_[from][r]);
        return;
      default:
        break;
    }
    if (kind_ == Collective::reduce && r != root_) return;
    std::vector<std::size_t> ranks = all_ranks();
    if (kind_ == Collective::scan) ranks.resize(r + 1);
    if (kind_ == Collective::exscan) ranks.resize(r);
    if (ranks.empty() || part(r) == 0) return;
    // All ranks have the same bits.
    const bool is_known = kind_ == Collective::all_reduce && r > 0;
    put(r, 0, is_known ? out[0] : sum(r, ranks), 0, part(r));
  }

  void exchange() {
    std::vector<Call> checks;
    for (auto& v : all_) checks.push_back(v->check());
    const std::size_t bytes = checks[0].count;
    for (std::size_t r = 0; r < n_; ++r)
      for (std::size_t from = 0; from < n_; ++from) {
        std::byte* const to = checks[r].output;
        switch (checks[r].collective) {
          case Collective::gather:
            if (r == root_) std::memcpy(to + from * bytes, checks[from].input, bytes);
            break;
          case Collective::scatter:
            if (from == root_) std::memcpy(to, checks[from].input + r * bytes, bytes);
            break;
          case Collective::all_to_all:
            std::memcpy(to + from * bytes, checks[from].input + r * bytes, bytes);
            break;
          default:
            std::memcpy(to + from * bytes, checks[from].input, bytes);
        }
      }
  }

  Collective kind_;
  DType dtype_, sum_ = dtype_, output_ = dtype_;
  ReduceOp op_;
  std::size_t n_, count_, parts_ = 1;
  Random random_;
  std::uint64_t random_seed_ = random_();
  std::size_t root_ = 0;
  bool is_tree_ = false;
  std::vector<std::size_t> counts_, displs_;
  std::vector<std::vector<std::size_t>> from_, to_;
  std::vector<std::unique_ptr<Verification>> all_;
};

}  // namespace anyccl::test
