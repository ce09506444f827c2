#include "perf/operations.hpp"

#include <algorithm>

#include "perf/values.hpp"

namespace anyccl::cli {
namespace {

/// An operation whose input and output are one run of elements each.
class Vector : public Exercise {
 public:
  Extents extents() const override {
    const std::size_t bytes = case_.count * case_.type.bytes;
    return {{static_cast<std::byte*>(input_), bytes}, {static_cast<std::byte*>(output_), bytes}};
  }
  void prepare(std::uint32_t turn) override { given_.write(input_, 0, case_.count, turn); }
  std::size_t count_wrong(std::uint32_t turn) const override {
    return expected_.count_wrong(output_, 0, case_.count, turn);
  }

 protected:
  Vector(const Case& c, void* input, void* output, anycclComm_t comm, Elements given,
         Elements expected)
      : case_(c),
        input_(input),
        output_(output),
        comm_(comm),
        given_(std::move(given)),
        expected_(std::move(expected)) {}

  const Case case_;
  void* const input_;
  void* const output_;
  const anycclComm_t comm_;

 private:
  const Elements given_, expected_;
};

class AllReduce final : public Vector {
 public:
  AllReduce(const Case& c, void* input, void* output, anycclComm_t comm)
      : AllReduce(c, input, output, comm, Values(c.type, c.redop, c.ranks)) {}
  anycclResult_t call() override {
    return anycclAllReduce(input_, output_, case_.count, case_.type.type, case_.redop, comm_,
                           nullptr);
  }

 private:
  AllReduce(const Case& c, void* input, void* output, anycclComm_t comm, const Values& values)
      : Vector(c, input, output, comm, values.of(c.rank), values.result(c.ranks)) {}
};

class Broadcast final : public Vector {
 public:
  Broadcast(const Case& c, void* input, void* output, anycclComm_t comm)
      : Vector(c, input, output, comm, Values(c.type).of(c.rank), Values(c.type).of(c.root)) {}
  anycclResult_t call() override {
    return anycclBroadcast(input_, output_, case_.count, case_.type.type, case_.root, comm_,
                           nullptr);
  }
};

/// Every rank sends to the next and receives from the one before.
class SendRecv final : public Vector {
 public:
  SendRecv(const Case& c, void* input, void* output, anycclComm_t comm)
      : Vector(c, input, output, comm, Values(c.type).of(c.rank), Values(c.type).of(before(c))) {}
  anycclResult_t call() override {
    anycclGroupStart();
    // The end of the group returns an error of these two.
    anycclSend(input_, case_.count, case_.type.type, (case_.rank + 1) % case_.ranks, comm_,
               nullptr);
    anycclRecv(output_, case_.count, case_.type.type, before(case_), comm_, nullptr);
    return anycclGroupEnd();
  }

 private:
  static int before(const Case& c) { return (c.rank + c.ranks - 1) % c.ranks; }
};

/// An operation whose input or output is several blocks of `count` elements.
class Blocks : public Exercise {
 public:
  Extents extents() const override {
    return {{input_, given_blocks_ * block_bytes()}, {output_, expected_.size() * block_bytes()}};
  }
  void prepare(std::uint32_t turn) override {
    given_.write(input_, 0, case_.count * given_blocks_, turn);
  }
  std::size_t count_wrong(std::uint32_t turn) const override {
    std::size_t differ = 0;
    for (const Part& part : expected_)
      differ += part.from.count_wrong(output_ + part.block * block_bytes(),
                                      part.source_block * case_.count, case_.count, turn);
    return differ;
  }

 protected:
  /// Block `block` of the output is block `source_block` of `from`.
  struct Part {
    Elements from;
    std::size_t block, source_block;
  };
  Blocks(const Case& c, void* input, void* output, anycclComm_t comm, std::size_t given_blocks,
         bool reduces = false)
      : case_(c),
        input_(static_cast<std::byte*>(input)),
        output_(static_cast<std::byte*>(output)),
        comm_(comm),
        values_(reduces ? Values(c.type, c.redop, c.ranks) : Values(c.type)),
        given_(values_.of(c.rank)),
        given_blocks_(given_blocks) {}

  Elements result_of_first(int ranks) const { return values_.result(ranks); }
  Elements result() const { return result_of_first(case_.ranks); }
  Elements of(int rank) const { return values_.of(rank); }
  std::size_t block_bytes() const { return case_.count * case_.type.bytes; }
  std::size_t mine() const { return static_cast<std::size_t>(case_.rank); }
  bool at_root() const { return case_.rank == case_.root; }
  void expect(Elements from, std::size_t block, std::size_t source_block) {
    expected_.push_back({std::move(from), block, source_block});
  }
  void expect_all(std::size_t source_block) {
    for (int r = 0; r < case_.ranks; ++r) expect(of(r), static_cast<std::size_t>(r), source_block);
  }

  const Case case_;
  std::byte* input_;
  std::byte* output_;
  const anycclComm_t comm_;

 private:
  const Values values_;
  const Elements given_;
  const std::size_t given_blocks_;
  std::vector<Part> expected_;
};

std::size_t all_blocks(const Case& c) {
  return static_cast<std::size_t>(c.ranks);
}

class Reduce final : public Blocks {
 public:
  Reduce(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, 1, true) {
    if (at_root()) expect(result(), 0, 0);
  }
  anycclResult_t call() override {
    return anycclReduce(input_, output_, case_.count, case_.type.type, case_.redop, case_.root,
                        comm_, nullptr);
  }
};

class Scan final : public Blocks {
 public:
  Scan(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, 1, true) {
    expect(result_of_first(c.rank + 1), 0, 0);
  }
  anycclResult_t call() override {
    return anycclScan(input_, output_, case_.count, case_.type.type, case_.redop, comm_, nullptr);
  }
};

class Exscan final : public Blocks {
 public:
  Exscan(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, 1, true) {
    if (c.rank > 0) expect(result_of_first(c.rank), 0, 0);
  }
  anycclResult_t call() override {
    return anycclExscan(input_, output_, case_.count, case_.type.type, case_.redop, comm_, nullptr);
  }
};

class ReduceScatter : public Blocks {
 public:
  ReduceScatter(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, all_blocks(c), true) {
    if (c.in_place) output_ = input_ + mine() * block_bytes();
    expect(result(), 0, mine());
  }
  anycclResult_t call() override {
    return anycclReduceScatter(input_, output_, case_.count, case_.type.type, case_.redop, comm_,
                               nullptr);
  }
};

class AllGather : public Blocks {
 public:
  AllGather(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, 1) {
    if (c.in_place) input_ = output_ + mine() * block_bytes();
    expect_all(0);
  }
  anycclResult_t call() override {
    return anycclAllGather(input_, output_, case_.count, case_.type.type, comm_, nullptr);
  }
};

class Gather : public Blocks {
 public:
  Gather(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, 1) {
    if (c.in_place) input_ = output_ + mine() * block_bytes();
    if (at_root()) expect_all(0);
  }
  anycclResult_t call() override {
    return anycclGather(input_, output_, case_.count, case_.type.type, case_.root, comm_, nullptr);
  }
};

class Scatter : public Blocks {
 public:
  Scatter(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, all_blocks(c)) {
    if (c.in_place) output_ = input_ + mine() * block_bytes();
    expect(of(c.root), 0, mine());
  }
  anycclResult_t call() override {
    return anycclScatter(input_, output_, case_.count, case_.type.type, case_.root, comm_, nullptr);
  }
};

/// Block j of the input goes to rank j; block i of the output comes from rank i.
class AllToAll : public Blocks {
 public:
  AllToAll(const Case& c, void* input, void* output, anycclComm_t comm)
      : Blocks(c, input, output, comm, all_blocks(c)) {
    expect_all(mine());
  }
  anycclResult_t call() override {
    return anycclAllToAll(input_, output_, case_.count, case_.type.type, comm_, nullptr);
  }
};

/// The v-forms, with blocks of one size.
template <typename Base>
class WithPieces : public Base {
 public:
  /// All pieces have one size, `c.count` elements.
  WithPieces(const Case& c, void* input, void* output, anycclComm_t comm)
      : Base(c, input, output, comm), counts_(all_blocks(c), c.count) {
    for (std::size_t r = 0; r < counts_.size(); ++r) starts_.push_back(r * c.count);
  }

 protected:
  std::vector<std::size_t> counts_, starts_;
};

class AllGatherV final : public WithPieces<AllGather> {
 public:
  using WithPieces::WithPieces;
  anycclResult_t call() override {
    return anycclAllGatherv(input_, case_.count, output_, counts_.data(), starts_.data(),
                            case_.type.type, comm_, nullptr);
  }
};

class ReduceScatterV final : public WithPieces<ReduceScatter> {
 public:
  using WithPieces::WithPieces;
  anycclResult_t call() override {
    return anycclReduceScatterv(input_, counts_.data(), starts_.data(), output_, case_.count,
                                case_.type.type, case_.redop, comm_, nullptr);
  }
};

class GatherV final : public WithPieces<Gather> {
 public:
  using WithPieces::WithPieces;
  anycclResult_t call() override {
    return anycclGatherv(input_, case_.count, output_, counts_.data(), starts_.data(),
                         case_.type.type, case_.root, comm_, nullptr);
  }
};

class ScatterV final : public WithPieces<Scatter> {
 public:
  using WithPieces::WithPieces;
  anycclResult_t call() override {
    return anycclScatterv(input_, counts_.data(), starts_.data(), output_, case_.count,
                          case_.type.type, case_.root, comm_, nullptr);
  }
};

class AllToAllV final : public WithPieces<AllToAll> {
 public:
  using WithPieces::WithPieces;
  anycclResult_t call() override {
    return anycclAllToAllv(input_, counts_.data(), starts_.data(), output_, counts_.data(),
                           starts_.data(), case_.type.type, comm_, nullptr);
  }
};

class Barrier final : public Exercise {
 public:
  Barrier(const Case&, void*, void*, anycclComm_t comm) : comm_(comm) {}
  Extents extents() const override { return {}; }
  void prepare(std::uint32_t) override {}
  anycclResult_t call() override { return anycclBarrier(comm_, nullptr); }
  std::size_t count_wrong(std::uint32_t) const override { return 0; }

 private:
  const anycclComm_t comm_;
};

template <typename Kind>
std::unique_ptr<Exercise> make(const Case& c, void* input, void* output, anycclComm_t comm) {
  return std::make_unique<Kind>(c, input, output, comm);
}

double none(int) {
  return 0;
}
double one(int) {
  return 1;
}
double others(int n) {
  return static_cast<double>(n - 1) / n;
}
double twice_others(int n) {
  return 2 * others(n);
}

std::size_t whole(std::size_t elements, int) {
  return elements;
}
std::size_t share(std::size_t elements, int n) {
  return std::max<std::size_t>(1, elements / static_cast<std::size_t>(n));
}
int one_block(int) {
  return 1;
}
int block_each(int n) {
  return n;
}

// clang-format off
constexpr Operation kOperations[] = {
    // name               call                    data   redop  root   in place collective bus
    // factor    count  blocks      make
    {"all_reduce",       "anycclAllReduce",      true,  true,  false, true,    true,      twice_others, whole, one_block,  make<AllReduce>},
    {"reduce",           "anycclReduce",         true,  true,  true,  true,    true,      one,          whole, one_block,  make<Reduce>},
    {"scan",             "anycclScan",           true,  true,  false, true,    true,      one,          whole, one_block,  make<Scan>},
    {"exscan",           "anycclExscan",         true,  true,  false, true,    true,      one,          whole, one_block,  make<Exscan>},
    {"reduce_scatter",   "anycclReduceScatter",  true,  true,  false, true,    true,      others,       share, block_each, make<ReduceScatter>},
    {"reduce_scatter_v", "anycclReduceScatterv", true,  true,  false, true,    true,      others,       share, block_each, make<ReduceScatterV>},
    {"all_gather",       "anycclAllGather",      true,  false, false, true,    true,      others,       share, block_each, make<AllGather>},
    {"all_gather_v",     "anycclAllGatherv",     true,  false, false, true,    true,      others,       share, block_each, make<AllGatherV>},
    {"broadcast",        "anycclBroadcast",      true,  false, true,  true,    true,      one,          whole, one_block,  make<Broadcast>},
    {"gather",           "anycclGather",         true,  false, true,  true,    true,      others,       share, block_each, make<Gather>},
    {"gather_v",         "anycclGatherv",        true,  false, true,  true,    true,      others,       share, block_each, make<GatherV>},
    {"scatter",          "anycclScatter",        true,  false, true,  true,    true,      others,       share, block_each, make<Scatter>},
    {"scatter_v",        "anycclScatterv",       true,  false, true,  true,    true,      others,       share, block_each, make<ScatterV>},
    {"all_to_all",       "anycclAllToAll",       true,  false, false, true,    true,      others,       share, block_each, make<AllToAll>},
    {"all_to_all_v",     "anycclAllToAllv",      true,  false, false, false,   true,      others,       share, block_each, make<AllToAllV>},
    {"send_recv",        "anycclGroupEnd",       true,  false, false, false,   false,     one,          whole, one_block,  make<SendRecv>},
    {"barrier",          "anycclBarrier",        false, false, false, false,   true,      none,         whole, one_block,  make<Barrier>},
};
// clang-format on

}  // namespace

std::span<const Operation> operations() {
  return kOperations;
}

const Operation* find_operation(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                         [&](const Operation& o) { return o.name == name; });
  return found == std::end(kOperations) ? nullptr : found;
}

}  // namespace anyccl::cli
