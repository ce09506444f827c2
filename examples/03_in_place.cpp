// In place: one buffer is input and output, by NCCL's rules. A rank's own block is at its place in
// the whole: block r of the larger buffer, or the one at displs[r] in the v-forms.
//   anyccl run -n 4 -- 03_in_place

#include <algorithm>
#include <numeric>
#include <string>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::BlockLayout, anyccl::Rank, anyccl::ReduceOp, anyccl::View;
using anyccl::view, anyccl::wait;
using example::expect, example::must;
using Numbers = std::vector<int>;

constexpr Rank kRoot{0};

/// 0, 1, 2, ...
Numbers counting(std::size_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Contiguous blocks, as views of one buffer.
struct Blocks {
  std::vector<std::size_t> counts, displs;
  std::size_t total = 0;

  explicit Blocks(const std::vector<std::size_t>& sizes) : counts(sizes) {
    for (const std::size_t count : counts) {
      displs.push_back(total);
      total += count;
    }
  }
  std::size_t begin(int r) const { return displs[static_cast<std::size_t>(r)]; }
  std::size_t size(int r) const { return counts[static_cast<std::size_t>(r)]; }
  View of(Numbers& whole, int r) const {
    return view(std::span<int>(whole).subspan(begin(r), size(r)));
  }
  BlockLayout layout() const { return {counts, displs}; }

  /// 0, 1, 2, ... in block r, and -1 elsewhere.
  Numbers only(int r) const {
    Numbers numbers(total, -1);
    const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(begin(r));
    std::iota(first, first + static_cast<std::ptrdiff_t>(size(r)), static_cast<int>(begin(r)));
    return numbers;
  }
  bool equal(const Numbers& a, const Numbers& b, int r) const {
    const auto first = static_cast<std::ptrdiff_t>(begin(r));
    return std::equal(a.begin() + first, a.begin() + first + static_cast<std::ptrdiff_t>(size(r)),
                      b.begin() + first);
  }
};

class Example {
 public:
  explicit Example(Communicator& comm)
      : comm_(comm), me_(index(comm.rank())), ranks_(comm.size()) {}

  /// sendbuff == recvbuff, on every rank or at the root.
  void whole_vectors() {
    Numbers x = counting(8);
    must(wait(comm_.all_reduce(view(x), view(x), ReduceOp::sum)));
    report("all_reduce: in == out", x == summed(8));

    x = at_root() ? counting(8) : Numbers(8);
    must(wait(comm_.broadcast(view(x), view(x), kRoot)));
    report("broadcast: in == out", x == counting(8));

    x = counting(8);
    must(wait(comm_.reduce(view(x), view(x), ReduceOp::sum, kRoot)));
    report("reduce: in == out at the root", x == (at_root() ? summed(8) : counting(8)));
  }

  void equal_blocks() {
    const Blocks blocks(std::vector<std::size_t>(static_cast<std::size_t>(ranks_), 3));
    Numbers x = counting(blocks.total);
    must(wait(comm_.reduce_scatter(view(x), blocks.of(x, me_), ReduceOp::sum)));
    report("reduce_scatter: out == in + rank * count", blocks.equal(x, summed(blocks.total), me_));

    x = blocks.only(me_);
    must(wait(comm_.all_gather(blocks.of(x, me_), view(x))));
    report("all_gather: in == out + rank * count", x == counting(blocks.total));

    x = blocks.only(me_);
    must(wait(comm_.gather(blocks.of(x, me_), view(x), kRoot)));
    report("gather: in == out + root * count at the root", x == own_or_all(blocks));

    x = at_root() ? counting(blocks.total) : Numbers(blocks.total, -1);
    must(wait(comm_.scatter(view(x), blocks.of(x, me_), kRoot)));
    report("scatter: out == in + root * count at the root", x == own_or_all(blocks));

    // Element i of block j goes to rank j, into the block of the sender.
    x = counting(blocks.total);
    must(wait(comm_.all_to_all(view(x), view(x))));
    bool right = true;
    for (std::size_t i = 0; i < blocks.total; ++i)
      right = right && x[i] == static_cast<int>(blocks.begin(me_) + i % 3);
    report("all_to_all: in == out", right);
  }

  /// The same rules with displs[rank] instead of rank * count.
  void unequal_blocks() {
    std::vector<std::size_t> sizes;
    for (int r = 0; r < ranks_; ++r) sizes.push_back(static_cast<std::size_t>(2 * r));
    const Blocks blocks(sizes);

    Numbers x = counting(blocks.total);
    must(wait(comm_.reduce_scatter_v(view(x), blocks.layout(), blocks.of(x, me_), ReduceOp::sum)));
    report("reduce_scatter_v: out == in + displs[rank]",
           blocks.equal(x, summed(blocks.total), me_));

    x = blocks.only(me_);
    must(wait(comm_.all_gather_v(blocks.of(x, me_), view(x), blocks.layout())));
    report("all_gather_v: in == out + displs[rank]", x == counting(blocks.total));

    x = blocks.only(me_);
    must(wait(comm_.gather_v(blocks.of(x, me_), view(x), blocks.layout(), kRoot)));
    report("gather_v: in == out + displs[root] at the root", x == own_or_all(blocks));

    x = at_root() ? counting(blocks.total) : Numbers(blocks.total, -1);
    must(wait(comm_.scatter_v(view(x), blocks.layout(), blocks.of(x, me_), kRoot)));
    report("scatter_v: out == in + displs[root] at the root", x == own_or_all(blocks));
  }

 private:
  bool at_root() const { return comm_.rank() == kRoot; }
  /// counting(), added up over all ranks.
  Numbers summed(std::size_t count) const {
    Numbers numbers = counting(count);
    for (int& number : numbers) number *= ranks_;
    return numbers;
  }
  /// After a gather or a scatter: the root has everything, the others their own block.
  Numbers own_or_all(const Blocks& blocks) const {
    return at_root() ? counting(blocks.total) : blocks.only(me_);
  }
  /// Every rank checks its own buffer; rank 0 prints.
  void report(const std::string& rule, bool right) const {
    expect(right, rule + ", on rank " + std::to_string(me_));
    if (me_ == 0) std::printf("ok  %s\n", rule.c_str());
  }

  Communicator& comm_;
  int me_, ranks_;
};

}  // namespace

int main() {
  auto comm = must(Communicator::from_env());
  Example example(comm);
  example.whole_vectors();
  example.equal_blocks();
  example.unequal_blocks();
  must(comm.destroy());
}
