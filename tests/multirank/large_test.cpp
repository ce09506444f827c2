// Counts and offsets beyond 2^31 and 2^32 elements. The short forms have the same calls on less.

#include <memory>

#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Elements of a byte. A sanitized one is as small as the tests that look for wrong accesses need.
std::size_t beyond_2_32() {
  return effort<std::size_t>(1003, (std::size_t{1} << 20) + 3, (std::size_t{1} << 32) + 3);
}
std::size_t beyond_2_31() {
  return beyond_2_32() / 2 + 2;
}

/// Every byte of its place has a part in it, so that a block that is 2^k elements off is wrong.
std::uint8_t value(int rank, std::size_t i) {
  return static_cast<std::uint8_t>(i + 3 * (i >> 8) + 5 * (i >> 16) + 7 * (i >> 24) +
                                   11 * (i >> 32) + 17U * static_cast<unsigned>(rank));
}

/// Bytes that nobody has written yet: memory comes with the first touch.
class Bytes {
 public:
  explicit Bytes(std::size_t size) : size_(size), data_(new std::uint8_t[size]) {}
  std::uint8_t* at(std::size_t i) { return data_.get() + i; }
  std::size_t size() const { return size_; }
  /// Fills `count` elements from `first` on with those that `rank` has from `its` on.
  void fill(std::size_t first, std::size_t count, int rank, std::size_t its) {
    for (std::size_t i = 0; i < count; ++i) data_[first + i] = value(rank, its + i);
  }
  /// The first of `count` elements from `first` on that are not expected(0), ...; or `count`.
  template <typename Expected>
  std::size_t first_wrong(std::size_t first, std::size_t count, const Expected& expected) const {
    for (std::size_t i = 0; i < count; ++i)
      if (data_[first + i] != expected(i)) return i;
    return count;
  }
  bool is(std::size_t first, std::size_t count, int rank, std::size_t its) const {
    return first_wrong(first, count, [=](std::size_t i) { return value(rank, its + i); }) == count;
  }
  bool is_sum(std::size_t first, std::size_t count, std::size_t theirs) const {
    return first_wrong(first, count, [=](std::size_t i) {
             return static_cast<std::uint8_t>(value(0, theirs + i) + value(1, theirs + i));
           }) == count;
  }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint8_t[]> data_;
};

class Large : public testing::TestWithParam<const char*> {
 protected:
  using Body2 = std::function<void(anycclComm_t, int)>;
  /// On two ranks.
  static void run(const Body2& body) {
    run_ranks(
        2, [&](Communicator& comm) { body(comm.handle(), index(comm.rank())); }, 900);
  }

 private:
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(Over, Large, testing::Values("shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Large, all_reduce) {
  run([](anycclComm_t comm, int me) {
    Bytes x(beyond_2_32());
    x.fill(0, x.size(), me, 0);
    ASSERT_EQ(anycclAllReduce(x.at(0), x.at(0), x.size(), anycclUint8, anycclSum, comm, nullptr),
              anycclSuccess);
    EXPECT_TRUE(x.is_sum(0, x.size(), 0));
  });
}

TEST_P(Large, broadcast_and_message) {
  run([](anycclComm_t comm, int me) {
    Bytes x(beyond_2_32());
    if (me == 1) x.fill(0, x.size(), 1, 0);
    ASSERT_EQ(anycclBcast(x.at(0), x.size(), anycclUint8, 1, comm, nullptr), anycclSuccess);
    EXPECT_TRUE(x.is(0, x.size(), 1, 0));
    if (me == 1) {
      ASSERT_EQ(anycclRecv(x.at(0), x.size(), anycclUint8, 0, comm, nullptr), anycclSuccess);
      EXPECT_TRUE(x.is(0, x.size(), 0, 5));
    } else {
      x.fill(0, x.size(), 0, 5);
      ASSERT_EQ(anycclSend(x.at(0), x.size(), anycclUint8, 1, comm, nullptr), anycclSuccess);
    }
  });
}

TEST_P(Large, reduce_scatter_and_all_gather) {
  run([](anycclComm_t comm, int me) {
    const std::size_t block = beyond_2_31(), mine = static_cast<std::size_t>(me) * block;
    Bytes x(2 * block);
    x.fill(0, x.size(), me, 0);
    ASSERT_EQ(
        anycclReduceScatter(x.at(0), x.at(mine), block, anycclUint8, anycclSum, comm, nullptr),
        anycclSuccess);
    EXPECT_TRUE(x.is_sum(mine, block, mine));
    ASSERT_EQ(anycclAllGather(x.at(mine), x.at(0), block, anycclUint8, comm, nullptr),
              anycclSuccess);
    EXPECT_TRUE(x.is_sum(0, x.size(), 0));
  });
}

/// Counts of 2^30 and a bit, so that the displacements of the second ones are beyond 2^31.
TEST_P(Large, all_to_all_and_its_v_form) {
  run([](anycclComm_t comm, int me) {
    const std::size_t block = beyond_2_31() / 2, gap = block + 3, at = static_cast<std::size_t>(me);
    Bytes in(2 * gap), out(2 * gap);
    in.fill(0, in.size(), me, 0);
    ASSERT_EQ(anycclAllToAll(in.at(0), out.at(0), block, anycclUint8, comm, nullptr),
              anycclSuccess);
    for (int r = 0; r < 2; ++r)
      EXPECT_TRUE(out.is(static_cast<std::size_t>(r) * block, block, r, at * block));
    const std::size_t counts[] = {block - 1, block + 1}, displs[] = {0, gap};
    const std::size_t from_each[] = {counts[at], counts[at]};
    ASSERT_EQ(anycclAllToAllv(in.at(0), counts, displs, out.at(0), from_each, displs, anycclUint8,
                              comm, nullptr),
              anycclSuccess);
    for (int r = 0; r < 2; ++r)
      EXPECT_TRUE(out.is(static_cast<std::size_t>(r) * gap, counts[at], r, displs[at]));
  });
}

TEST_P(Large, v_forms) {
  run([](anycclComm_t comm, int me) {
    const std::size_t most = beyond_2_31(), at = static_cast<std::size_t>(me);
    const std::size_t counts[] = {most, 7}, displs[] = {5, most + 9};
    Bytes mine(counts[at]), all(most + 16);
    const auto is_all = [&] {
      return all.is(displs[0], counts[0], 0, 0) && all.is(displs[1], counts[1], 1, 0);
    };
    mine.fill(0, mine.size(), me, 0);
    ASSERT_EQ(anycclAllGatherv(mine.at(0), mine.size(), all.at(0), counts, displs, anycclUint8,
                               comm, nullptr),
              anycclSuccess);
    EXPECT_TRUE(is_all());
    all.fill(0, all.size(), 2, 0);
    ASSERT_EQ(anycclGatherv(mine.at(0), mine.size(), all.at(0), counts, displs, anycclUint8, 1,
                            comm, nullptr),
              anycclSuccess);
    EXPECT_EQ(is_all(), me == 1);
    mine.fill(0, mine.size(), 2, 0);
    ASSERT_EQ(anycclScatterv(all.at(0), counts, displs, mine.at(0), mine.size(), anycclUint8, 1,
                             comm, nullptr),
              anycclSuccess);
    EXPECT_TRUE(mine.is(0, mine.size(), me, 0));
    all.fill(0, all.size(), me, 0);
    ASSERT_EQ(anycclReduceScatterv(all.at(0), counts, displs, mine.at(0), mine.size(), anycclUint8,
                                   anycclSum, comm, nullptr),
              anycclSuccess);
    EXPECT_TRUE(mine.is_sum(0, mine.size(), displs[at]));
  });
}

}  // namespace
}  // namespace anyccl::test
