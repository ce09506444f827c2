// Logical operators give 0 or 1, also where one contribution alone goes into a result.

#include <array>
#include <cstdint>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

constexpr std::size_t kCount = 5;  // of an odd size, for the ends of vectors

/// What a call leaves at this rank, where every rank gives elements that are not 0, and whether all
/// are `right`.
template <typename T>
struct Logical {
  Communicator& comm;
  anycclDataType_t type;
  anycclRedOp_t op;
  std::vector<T> in{}, out{};

  void expect(anycclResult_t code, int right, const char* what) {
    ASSERT_EQ(code, anycclSuccess) << what << anycclGetLastError(comm.handle());
    EXPECT_EQ(out, std::vector<T>(kCount, static_cast<T>(right)))
        << what << " with operator " << op << " of type " << type << ", rank " << index(comm.rank())
        << " of " << comm.size();
  }
  /// `of`(k): the result of k contributions.
  template <typename Of>
  void check(const Of& of) {
    const int n = comm.size(), me = index(comm.rank());
    anycclComm_t const c = comm.handle();
    in.assign(kCount * static_cast<std::size_t>(n), static_cast<T>(6));
    out.assign(kCount, static_cast<T>(9));
    expect(anycclAllReduce(in.data(), out.data(), kCount, type, op, c, nullptr), of(n),
           "AllReduce");
    out.assign(kCount, static_cast<T>(6));
    expect(anycclAllReduce(out.data(), out.data(), kCount, type, op, c, nullptr), of(n),
           "in place");
    expect(anycclReduceScatter(in.data(), out.data(), kCount, type, op, c, nullptr), of(n),
           "ReduceScatter");
    std::vector<std::size_t> counts(static_cast<std::size_t>(n), kCount), displs(counts.size());
    for (std::size_t r = 0; r < displs.size(); ++r) displs[r] = r * kCount;
    expect(anycclReduceScatterv(in.data(), counts.data(), displs.data(), out.data(), kCount, type,
                                op, c, nullptr),
           of(n), "ReduceScatterv");
    const anycclResult_t reduced =
        anycclReduce(in.data(), out.data(), kCount, type, op, n - 1, c, nullptr);
    if (me == n - 1) expect(reduced, of(n), "Reduce");
    expect(anycclScan(in.data(), out.data(), kCount, type, op, c, nullptr), of(me + 1), "Scan");
    out.assign(kCount, static_cast<T>(6));
    expect(anycclExscan(in.data(), out.data(), kCount, type, op, c, nullptr), me == 0 ? 6 : of(me),
           "Exscan");
    anycclGroupStart();
    std::array<std::vector<T>, 2> outs{out, out};
    for (auto& one : outs) anycclAllReduce(in.data(), one.data(), kCount, type, op, c, nullptr);
    const anycclResult_t grouped = anycclGroupEnd();
    for (auto& one : outs) {
      out = one;
      expect(grouped, of(n), "a group");
    }
  }
};

template <typename T>
void check_type(Communicator& comm, anycclDataType_t type) {
  Logical<T>{comm, type, anycclLand}.check([](int) { return 1; });
  Logical<T>{comm, type, anycclLor}.check([](int) { return 1; });
  Logical<T>{comm, type, anycclLxor}.check([](int contributions) { return contributions % 2; });
}

TEST(Logical, operators_give_0_or_1) {
  for (const int ranks : {1, 2, 3})
    run_ranks(ranks, [](Communicator& comm) {
      check_type<std::int8_t>(comm, anycclInt8);
      check_type<std::uint8_t>(comm, anycclBool);
      check_type<std::int16_t>(comm, anycclInt16);
      check_type<std::int32_t>(comm, anycclInt32);
      check_type<std::uint64_t>(comm, anycclUint64);
    });
}

/// All operators of bool are logical.
TEST(Logical, values_are_0_or_1_by_every_operator) {
  for (const int ranks : {1, 2})
    run_ranks(ranks, [](Communicator& comm) {
      for (const anycclRedOp_t op : {anycclSum, anycclProd, anycclMax, anycclMin})
        Logical<std::uint8_t>{comm, anycclBool, op}.check([](int) { return 1; });
    });
}

}  // namespace
}  // namespace anyccl::test
