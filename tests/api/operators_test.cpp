// Operators that programs create.

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

const char* const kTransports[] = {"loopback", "tcp"};

template <typename Run>
void over_both(int ranks, const Run& run) {
  for (const char* transport : kTransports) {
    SCOPED_TRACE(transport);
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    run_ranks(ranks, run);
  }
}

/// Rank r multiplies by r + 2.
template <typename T>
ReduceOp weighted(Communicator& comm) {
  const auto op = comm.create_pre_mul_sum(static_cast<T>(index(comm.rank()) + 2));
  EXPECT_TRUE(op.ok()) << op.status().message();
  return op.ok() ? *op : ReduceOp::sum;
}

template <typename T>
T value(int rank, std::size_t i) {
  return static_cast<T>(static_cast<int>(i % 7) + rank);
}

template <typename T>
T weighted_sum(int ranks, std::size_t i) {
  T sum{};
  for (int r = 0; r < ranks; ++r)
    sum = static_cast<T>(sum + value<T>(r, i) * static_cast<T>(r + 2));
  return sum;
}

template <typename T>
void check_pre_multiplied(Communicator& comm, std::size_t block) {
  const int me = index(comm.rank()), n = comm.size();
  const auto ranks = static_cast<std::size_t>(n), mine = static_cast<std::size_t>(me);
  const ReduceOp op = weighted<T>(comm);
  std::vector<T> x(ranks * block), y(x.size()), part(block);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = value<T>(me, i);
  const std::vector<T> before = x;

  ASSERT_OK(wait(comm.all_reduce(view(x), view(y), op)));
  EXPECT_EQ(x, before) << "the input is changed";
  ASSERT_OK(wait(comm.reduce_scatter(view(x), view(part), op)));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], weighted_sum<T>(n, i)) << i;
  for (std::size_t i = 0; i < block; ++i)
    ASSERT_EQ(part[i], weighted_sum<T>(n, mine * block + i)) << i;

  std::fill(y.begin(), y.end(), T{});
  ASSERT_OK(wait(comm.reduce(view(x), view(y), op, Rank{n - 1})));
  for (std::size_t i = 0; i < x.size() && me == n - 1; ++i)
    ASSERT_EQ(y[i], weighted_sum<T>(n, i)) << i;

  // Pieces in the reverse order, with gaps.
  std::vector<std::size_t> counts(ranks, block), displs;
  for (std::size_t r = 0; r < ranks; ++r) displs.push_back((ranks - 1 - r) * (block + 1));
  std::vector<T> apart(ranks * (block + 1), static_cast<T>(99));
  for (std::size_t r = 0; r < ranks; ++r)
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(r * block), block,
                apart.begin() + static_cast<std::ptrdiff_t>(displs[r]));
  ASSERT_OK(wait(comm.reduce_scatter_v(view(apart), {counts, displs}, view(part), op)));
  for (std::size_t i = 0; i < block; ++i)
    ASSERT_EQ(part[i], weighted_sum<T>(n, mine * block + i)) << i;

  ASSERT_OK(wait(comm.all_reduce(view(x), view(x), op)));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], weighted_sum<T>(n, i)) << i;
  EXPECT_OK(comm.destroy_operator(op));
}

TEST(PreMulSum, multiplies_each_ranks_input_by_its_own_scalar) {
  for (const int ranks : effort<std::vector<int>>({3}, {1, 2, 3, 5}, {1, 2, 3, 5}))
    over_both(ranks, [](Communicator& comm) {
      for (const std::size_t block : {1U, 100U, 40000U}) {
        check_pre_multiplied<float>(comm, block);
        check_pre_multiplied<std::int64_t>(comm, block);
        check_pre_multiplied<std::uint8_t>(comm, block);  // wraps
        check_pre_multiplied<std::complex<double>>(comm, block);
      }
    });
}

TEST(PreMulSum, rounds_the_product_before_the_sum) {
  run_ranks(2, [](Communicator& comm) {
    // 1 + 2^-7 is a bfloat16, its square is not: 1 + 2^-6 is.
    const BFloat16 x{0x3f81};
    const auto op = comm.create_pre_mul_sum(x);
    ASSERT_TRUE(op.ok());
    std::vector<BFloat16> in{x}, out(1);
    ASSERT_OK(wait(comm.all_reduce(view(in), view(out), *op)));
    EXPECT_EQ(out[0].bits, 0x4002) << std::hex << out[0].bits;  // twice 1 + 2^-6
  });
}

TEST(PreMulSum, reads_a_device_scalar_when_the_operation_starts) {
  run_ranks(3, [](Communicator& comm) {
    float factor = 1;
    anycclRedOp_t op{};
    ASSERT_EQ(
        anycclRedOpCreatePreMulSum(&op, &factor, anycclFloat32, anycclScalarDevice, comm.handle()),
        anycclSuccess);
    for (factor = 1; factor < 5; ++factor) {
      float x = 1;
      ASSERT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, op, comm.handle(), nullptr),
                anycclSuccess);
      EXPECT_EQ(x, 3 * factor);
    }
  });
}

/// The larger by absolute value; the number of calls is counted.
void larger(const void* in, void* inout, std::size_t count, anycclDataType_t type, void* data) {
  ASSERT_EQ(type, anycclFloat32);
  const auto* const x = static_cast<const float*>(in);
  auto* const y = static_cast<float*>(inout);
  for (std::size_t i = 0; i < count; ++i)
    if (std::abs(x[i]) > std::abs(y[i])) y[i] = x[i];
  ++*static_cast<int*>(data);
}

TEST(UserOperator, combines_what_it_is_given_in_every_reducing_collective) {
  for (const int ranks : effort<std::vector<int>>({4}, {1, 2, 4, 5}, {1, 2, 4, 5}))
    over_both(ranks, [](Communicator& comm) {
      const int me = index(comm.rank()), n = comm.size();
      int calls = 0;
      const auto op = comm.create_operator(larger, &calls);
      ASSERT_TRUE(op.ok()) << op.status().message();
      for (const std::size_t block : {1U, 3000U, 200000U}) {
        const auto ranks_here = static_cast<std::size_t>(n);
        const auto largest = [&](std::size_t i) {  // the sign and size that a rank has there
          return static_cast<float>(i % 2 == 0 ? -n : n);
        };
        std::vector<float> x(ranks_here * block), y(x.size()), part(block);
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = me == static_cast<int>(i % ranks_here) ? largest(i) : static_cast<float>(me) / 9;
        ASSERT_OK(wait(comm.reduce_scatter(view(x), view(part), *op)));
        ASSERT_OK(wait(comm.scan(view(x), view(y), *op)));
        if (me == n - 1) {
          EXPECT_EQ(y[0], largest(0));
        }
        ASSERT_OK(wait(comm.reduce(view(x), view(y), *op, Rank{0})));
        if (me == 0) {
          EXPECT_EQ(y[y.size() - 1], largest(y.size() - 1));
        }
        ASSERT_OK(wait(comm.all_reduce(view(x), view(x), *op)));
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], largest(i)) << i;
        for (std::size_t i = 0; i < block; ++i)
          ASSERT_EQ(part[i], largest(static_cast<std::size_t>(me) * block + i)) << i;
      }
      EXPECT_EQ(calls > 0, n > 1);
    });
}

std::string failure_of(const Status& status, Code code) {
  EXPECT_EQ(status.code(), code) << status.message();
  return std::string(status.message());
}

TEST(CreatedOperator, that_is_gone_or_of_another_type_is_refused) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  const ReduceOp op = *comm.create_pre_mul_sum(2.0F);
  std::vector<double> twice(1);
  std::vector<float> x(1);
  EXPECT_OK(wait(comm.all_reduce(view(x), view(x), op)));
  EXPECT_NE(failure_of(wait(comm.all_reduce(view(twice), view(twice), op)), Code::invalid_usage)
                .find("multiplies f32, but the call is of f64"),
            std::string::npos);
  EXPECT_OK(comm.destroy_operator(op));
  const ReduceOp other = *comm.create_pre_mul_sum(5.0F);
  for (const Status& status :
       {wait(comm.all_reduce(view(x), view(x), op)), comm.destroy_operator(op)})
    EXPECT_NE(failure_of(status, Code::invalid_argument).find("not created with this communicator"),
              std::string::npos);
  x[0] = 1;
  EXPECT_OK(wait(comm.all_reduce(view(x), view(x), other)));
  EXPECT_EQ(x[0], 5);
  EXPECT_EQ(comm.destroy_operator(ReduceOp::sum).code(), Code::invalid_argument);
  EXPECT_OK(comm.destroy_operator(other));
}

/// More than a communicator has at a time, one after the other.
TEST(CreatedOperator, has_a_handle_of_its_own) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  std::set<ReduceOp> all;
  for (int i = 0; i < 400; ++i) {
    const ReduceOp op = *comm.create_pre_mul_sum(static_cast<float>(i));
    EXPECT_TRUE(all.insert(op).second) << i;
    float x = 1;
    EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, static_cast<anycclRedOp_t>(op),
                              comm.handle(), nullptr),
              anycclSuccess);
    EXPECT_EQ(x, static_cast<float>(i));
    EXPECT_OK(comm.destroy_operator(op));
  }
}

/// A value and where it is.
template <typename Value, typename Index>
struct Found {
  Value value;
  Index index;
  bool operator==(const Found&) const = default;
};

template <typename Value, typename Index>
void check_locations(Communicator& comm, anycclDataType_t value, anycclDataType_t pair) {
  const int me = index(comm.rank()), n = comm.size();
  using Pair = Found<Value, Index>;
  anycclRedOp_t largest{}, least{};
  ASSERT_EQ(anycclRedOpCreateLoc(&largest, anycclMax, value, comm.handle()), anycclSuccess);
  ASSERT_EQ(anycclRedOpCreateLoc(&least, anycclMin, value, comm.handle()), anycclSuccess);
  // Element 0 is largest at the last rank and least at rank 0; element 1 is the same everywhere.
  const std::array<Pair, 2> x{Pair{static_cast<Value>(me), static_cast<Index>(10 + me)},
                              Pair{Value{-5}, static_cast<Index>(n - me)}};
  std::array<Pair, 2> y{};
  ASSERT_EQ(anycclAllReduce(x.data(), y.data(), 2, pair, largest, comm.handle(), nullptr),
            anycclSuccess);
  EXPECT_EQ(y[0], (Pair{static_cast<Value>(n - 1), static_cast<Index>(9 + n)}));
  EXPECT_EQ(y[1], (Pair{Value{-5}, 1})) << "the least index of equal values";
  ASSERT_EQ(anycclAllReduce(x.data(), y.data(), 2, pair, least, comm.handle(), nullptr),
            anycclSuccess);
  EXPECT_EQ(y[0], (Pair{Value{0}, 10}));
  EXPECT_EQ(y[1], (Pair{Value{-5}, 1}));
}

TEST(LocatingOperator, finds_the_largest_and_the_least_value_and_the_first_index) {
  for (const int ranks : {1, 2, 5})
    over_both(ranks, [](Communicator& comm) {
      check_locations<float, std::int32_t>(comm, anycclFloat32, anycclUint64);
      check_locations<std::int32_t, std::int32_t>(comm, anycclInt32, anycclUint64);
      check_locations<double, std::int64_t>(comm, anycclFloat64, anycclComplexDouble);
      check_locations<std::int64_t, std::int64_t>(comm, anycclInt64, anycclComplexDouble);
    });
}

TEST(LocatingOperator, lets_a_nan_win_and_refuses_other_types) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  const anycclComm_t comm = (*comms)[0].handle();
  anycclRedOp_t op{};
  ASSERT_EQ(anycclRedOpCreateLoc(&op, anycclMin, anycclFloat32, comm), anycclSuccess);
  using Pair = Found<float, std::int32_t>;
  const Pair x{std::numeric_limits<float>::quiet_NaN(), 7};
  Pair y{1, 2};
  ASSERT_EQ(anycclReduceLocal(&x, &y, 1, anycclUint64, op, comm), anycclSuccess);
  EXPECT_EQ(y.index, 7);
  EXPECT_EQ(anycclRedOpCreateLoc(&op, anycclMin, anycclFloat16, comm), anycclUnsupported);
  EXPECT_EQ(anycclRedOpCreateLoc(&op, anycclSum, anycclFloat32, comm), anycclInvalidArgument);
  EXPECT_NE(std::string(anycclGetLastError(comm)).find("anycclMax or anycclMin"),
            std::string::npos);
}

TEST(ReduceLocal, combines_two_vectors_as_collectives_do) {
  std::vector<float> x = {1, -5, 3}, y = {10, 20, -0.5F};
  const auto reduce = [&](anycclRedOp_t op, anycclComm_t comm = nullptr) {
    return detail::status_of(anycclReduceLocal(x.data(), y.data(), 3, anycclFloat32, op, comm));
  };
  EXPECT_OK(reduce(anycclSum));
  EXPECT_EQ(y, (std::vector<float>{11, 15, 2.5F}));
  EXPECT_OK(reduce(anycclMin));
  EXPECT_EQ(y, (std::vector<float>{1, -5, 2.5F}));

  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  int calls = 0;
  const auto own = static_cast<anycclRedOp_t>(*comm.create_operator(larger, &calls));
  y = {-7, 1, 1};
  EXPECT_OK(reduce(own, comm.handle()));
  EXPECT_EQ(y, (std::vector<float>{-7, -5, 3}));
  EXPECT_EQ(calls, 1);

  const auto twice = static_cast<anycclRedOp_t>(*comm.create_pre_mul_sum(2.0F));
  EXPECT_NE(failure_of(reduce(twice, comm.handle()), Code::unsupported).find("pre-multiplied"),
            std::string::npos);
  EXPECT_NE(failure_of(reduce(anycclAvg), Code::unsupported).find("avg"), std::string::npos);
  EXPECT_NE(failure_of(reduce(own), Code::invalid_argument).find("another communicator"),
            std::string::npos);
  EXPECT_NE(failure_of(reduce(anycclBand), Code::unsupported).find("f32"), std::string::npos);
}

TEST(ReduceLocal, needs_a_communicator_that_can_be_used_or_none) {
  float x = 1, y = 2;
  anycclComm_t comm = nullptr;
  ASSERT_EQ(anycclCommInitAll(&comm, 1, nullptr), anycclSuccess);
  ASSERT_EQ(anycclCommDestroy(comm), anycclSuccess);
  EXPECT_EQ(anycclReduceLocal(&x, &y, 1, anycclFloat32, anycclSum, comm), anycclInvalidUsage);
  EXPECT_EQ(anycclReduceLocal(&x, &y, 1, anycclFloat32, anycclSum, nullptr), anycclSuccess);
}

TEST(ReduceLocal, needs_sensible_arguments) {
  int x[4] = {}, y[4] = {};
  const auto reduce = [&](const void* in, void* inout, int type) {
    const auto result =
        anycclReduceLocal(in, inout, 3, static_cast<anycclDataType_t>(type), anycclSum, nullptr);
    return failure_of(detail::status_of(result), Code::invalid_argument);
  };
  EXPECT_NE(reduce(nullptr, y, anycclInt32).find("in is NULL"), std::string::npos);
  EXPECT_NE(reduce(x, nullptr, anycclInt32).find("inout is NULL"), std::string::npos);
  EXPECT_NE(reduce(x, x + 1, anycclInt32).find("overlap"), std::string::npos);
  EXPECT_NE(reduce(x, y, anycclNumTypes).find("datatype"), std::string::npos);
  EXPECT_EQ(anycclReduceLocal(nullptr, nullptr, 0, anycclInt32, anycclSum, nullptr), anycclSuccess);
}

TEST(CreatedOperator, needs_sensible_arguments) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  const anycclComm_t comm = (*comms)[0].handle();
  anycclRedOp_t op{};
  float x = 1;
  const auto pre_mul = [&](void* scalar, int type, int residence) {
    return anycclRedOpCreatePreMulSum(&op, scalar, static_cast<anycclDataType_t>(type),
                                      static_cast<anycclScalarResidence_t>(residence), comm);
  };
  EXPECT_EQ(pre_mul(nullptr, anycclFloat32, 1), anycclInvalidArgument);
  EXPECT_EQ(pre_mul(&x, 30, 1), anycclInvalidArgument);
  EXPECT_EQ(pre_mul(&x, anycclBool, 1), anycclUnsupported);
  EXPECT_EQ(anycclRedOpCreate(&op, nullptr, nullptr, comm), anycclInvalidArgument);
  EXPECT_EQ(anycclRedOpCreate(nullptr, larger, nullptr, comm), anycclInvalidArgument);
  int made = 0;
  while (pre_mul(&x, anycclFloat32, 1) == anycclSuccess && made < 1000) ++made;
  EXPECT_EQ(made, 127);
  EXPECT_NE(std::string(anycclGetLastError(comm)).find("at most 127"), std::string::npos);
}

TEST(CreatedOperator, against_a_plain_sum_names_both) {
  over_both(2, [](Communicator& comm) {
    std::vector<float> x(8);
    const ReduceOp op = comm.rank() == Rank{0} ? *comm.create_pre_mul_sum(2.0F) : ReduceOp::sum;
    const Status status = wait(comm.all_reduce(view(x), view(x), op));
    const std::string text = failure_of(status, Code::invalid_usage);
    EXPECT_NE(text.find("f32, premul_sum"), std::string::npos) << text;
    EXPECT_NE(text.find("f32, sum"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace anyccl::test
