#include "perf/operations.hpp"

#include <algorithm>

#include "perf/values.hpp"

namespace anyccl::cli {
namespace {

/// An operation whose input and output are one run of elements each.
class Vector : public Exercise {
 public:
  void prepare(std::uint32_t turn) override { given_.write(input_, 0, case_.count, turn); }
  std::size_t wrong(std::uint32_t turn) const override {
    return expected_.wrong(output_, 0, case_.count, turn);
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
      : AllReduce(c, input, output, comm, Values(c.type, c.redop == anycclSum ? c.ranks : 1)) {}
  anycclResult_t call() override {
    return anycclAllReduce(input_, output_, case_.count, case_.type.type, case_.redop, comm_,
                           nullptr);
  }

 private:
  AllReduce(const Case& c, void* input, void* output, anycclComm_t comm, const Values& values)
      : Vector(c, input, output, comm, values.of(c.rank), result(c, values)) {}
  static Elements result(const Case& c, const Values& values) {
    if (c.redop == anycclSum) return values.sum();
    return c.redop == anycclMax ? values.max(c.ranks) : values.min();
  }
};

class Broadcast final : public Vector {
 public:
  Broadcast(const Case& c, void* input, void* output, anycclComm_t comm)
      : Vector(c, input, output, comm, Values(c.type, 1).of(c.rank), Values(c.type, 1).of(c.root)) {
  }
  anycclResult_t call() override {
    return anycclBroadcast(input_, output_, case_.count, case_.type.type, case_.root, comm_,
                           nullptr);
  }
};

/// Every rank sends to the next and receives from the one before.
class SendRecv final : public Vector {
 public:
  SendRecv(const Case& c, void* input, void* output, anycclComm_t comm)
      : Vector(c, input, output, comm, Values(c.type, 1).of(c.rank),
               Values(c.type, 1).of(before(c))) {}
  anycclResult_t call() override {
    anycclGroupStart();
    // An error of these two is what the end of the group returns.
    anycclSend(input_, case_.count, case_.type.type, (case_.rank + 1) % case_.ranks, comm_,
               nullptr);
    anycclRecv(output_, case_.count, case_.type.type, before(case_), comm_, nullptr);
    return anycclGroupEnd();
  }

 private:
  static int before(const Case& c) { return (c.rank + c.ranks - 1) % c.ranks; }
};

/// Block j of the input goes to rank j; block i of the output comes from rank i.
class AllToAll final : public Exercise {
 public:
  AllToAll(const Case& c, void* input, void* output, anycclComm_t comm)
      : case_(c), input_(input), output_(static_cast<std::byte*>(output)), comm_(comm) {
    const Values values(c.type, 1);
    for (int rank = 0; rank < c.ranks; ++rank) {
      from_.push_back(values.of(rank));
      counts_.push_back(c.count);
      starts_.push_back(c.count * static_cast<std::size_t>(rank));
    }
  }
  void prepare(std::uint32_t turn) override {
    from_[static_cast<std::size_t>(case_.rank)].write(input_, 0, case_.count * from_.size(), turn);
  }
  anycclResult_t call() override {
    return anycclAllToAllv(input_, counts_.data(), starts_.data(), output_, counts_.data(),
                           starts_.data(), case_.type.type, comm_, nullptr);
  }
  std::size_t wrong(std::uint32_t turn) const override {
    const std::size_t my_block = starts_[static_cast<std::size_t>(case_.rank)];
    std::size_t differ = 0;
    for (std::size_t i = 0; i < from_.size(); ++i)
      differ +=
          from_[i].wrong(output_ + starts_[i] * case_.type.bytes, my_block, case_.count, turn);
    return differ;
  }

 private:
  const Case case_;
  void* const input_;
  std::byte* const output_;
  const anycclComm_t comm_;
  std::vector<Elements> from_;  ///< The whole input of each rank.
  std::vector<std::size_t> counts_, starts_;
};

class Barrier final : public Exercise {
 public:
  Barrier(const Case&, void*, void*, anycclComm_t comm) : comm_(comm) {}
  void prepare(std::uint32_t) override {}
  anycclResult_t call() override { return anycclBarrier(comm_, nullptr); }
  std::size_t wrong(std::uint32_t) const override { return 0; }

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
    // name         call               data   redop  root   in place  collective  bus factor    count  blocks      make
    {"all_reduce", "anycclAllReduce",  true,  true,  false, true,     true,       twice_others, whole, one_block,  make<AllReduce>},
    {"broadcast",  "anycclBroadcast",  true,  false, true,  true,     true,       one,          whole, one_block,  make<Broadcast>},
    {"all_to_all", "anycclAllToAllv",  true,  false, false, false,    true,       others,       share, block_each, make<AllToAll>},
    {"send_recv",  "anycclGroupEnd",   true,  false, false, false,    false,      one,          whole, one_block,  make<SendRecv>},
    {"barrier",    "anycclBarrier",    false, false, false, false,    true,       none,         whole, one_block,  make<Barrier>},
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
