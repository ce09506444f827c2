// Verified collectives: what is right passes, whatever the call looks like and however it is made;
// what is wrong is an error that names it; and settings.

#include <fmt/format.h>

#include <barrier>
#include <complex>

#include "../unit/reduce/reference.hpp"
#include "algorithm/schedule/contract.hpp"
#include "support/creation.hpp"
#include "support/effort.hpp"
#include "support/streams.hpp"

namespace anyccl::test {
namespace {

constexpr auto kSum = ReduceOp::sum;

// --- calls --------------------------------------------------------------------------------------

/// One call of any kind with buffers of its own, which all ranks draw alike.
class Drawn {
 public:
  Drawn(Communicator& comm, std::uint64_t seed)
      : random_(seed), n_(static_cast<std::size_t>(comm.size())) {
    kind_ = static_cast<Collective>(random_() % anycclNumCollectives);
    if (kind_ == Collective::send || kind_ == Collective::recv) kind_ = Collective::all_reduce;
    type_ = static_cast<DType>(random_() % anycclNumTypes);
    const std::size_t count = random_() % (std::size_t{1} << random_() % 15);
    const bool in_place = random_() % 4 == 0;
    op_ = is_float(type_) && !is_complex(type_) && !is_prefix(kind_) && random_() % 4 == 0
              ? ReduceOp::avg
          : is_complex(type_) || random_() % 2 == 0 ? ReduceOp::sum
                                                    : ReduceOp::max;
    const auto me = static_cast<std::size_t>(index(comm.rank()));
    root_ = static_cast<int>(random_() % n_);
    for (std::size_t r = 0; r < n_; ++r) {
      counts_.push_back(count);
      displs_.push_back(r * count);
    }
    std::mt19937_64 own(seed + me);
    in_ = random_elements(type_, n_ * count, own);
    out_.resize(in_.size());
    call_.size = sizeof call_;
    call_.collective = static_cast<anycclCollective_t>(kind_);
    call_.sendbuff = in_.data();
    call_.recvbuff = out_.data();
    call_.sendcounts = call_.recvcounts = counts_.data();
    call_.sdispls = call_.rdispls = displs_.data();
    call_.count = count;
    call_.datatype = static_cast<anycclDataType_t>(type_);
    call_.op = static_cast<anycclRedOp_t>(op_);
    call_.root = root_;
    const bool shares = kind_ == Collective::all_reduce || kind_ == Collective::scan ||
                        kind_ == Collective::broadcast || kind_ == Collective::all_to_all;
    if (in_place && shares) call_.recvbuff = in_.data();
  }
  const anycclCall_t& call() const { return call_; }

 private:
  std::mt19937_64 random_;
  std::size_t n_;
  Collective kind_;
  DType type_;
  ReduceOp op_;
  int root_ = 0;
  std::vector<std::size_t> counts_, displs_;
  Memory in_, out_;
  anycclCall_t call_{};
};

struct Setting {
  const char *verify, *transport, *algorithm;
};
constexpr Setting kSettings[] = {
    {"all", "", ""}, {"all", "tcp", ""},      {"all,late", "", ""}, {"all,late", "tcp", ""},
    {"1/3", "", ""}, {"1/3,late", "tcp", ""}, {"all", "", "ring"},  {"all", "loopback", ""}};

class Verified : public testing::TestWithParam<Setting> {
 protected:
  const Environment environment_{{{"ANYCCL_VERIFY", GetParam().verify},
                                  {"ANYCCL_TRANSPORT", GetParam().transport},
                                  {"ANYCCL_ALGO", GetParam().algorithm}}};
};
INSTANTIATE_TEST_SUITE_P(With, Verified, testing::ValuesIn(kSettings), [](const auto& test) {
  std::string name =
      fmt::format("{}_{}_{}", test.param.verify, test.param.transport, test.param.algorithm);
  for (char& c : name)
    if (c == ',' || c == '/') c = '_';
  return name;
});

TEST_P(Verified, calls_of_all_kinds_and_types_pass) {
  const int calls = effort(40, 150, 3000);
  for (const int ranks : {2, 3, 5})
    run_ranks(ranks, [&](Communicator& comm) {
      for (int i = 0; i < calls; ++i) {
        const Drawn drawn(comm, static_cast<std::uint64_t>(1000 * ranks + i));
        SCOPED_TRACE(name(static_cast<Collective>(drawn.call().collective)));
        ASSERT_OK(wait(comm.issue(drawn.call())));
      }
    });
}

TEST_P(Verified, blocking_calls_and_groups_give_right_results) {
  run_ranks(4, [](Communicator& comm) {
    for (const std::size_t count : {1U, 1000U, 200000U}) {
      std::vector<float> x(count, static_cast<float>(index(comm.rank()))), y(count), z(count);
      for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(anycclAllReduce(x.data(), y.data(), count, anycclFloat32, anycclSum,
                                  comm.handle(), nullptr),
                  anycclSuccess);
        ASSERT_EQ(y, std::vector<float>(count, 6.0F));
      }
      const Status together = group([&] {
        for (auto* out : {&y, &y, &z}) EXPECT_TRUE(comm.all_reduce(view(x), view(*out), kSum).ok());
      });
      ASSERT_OK(together);
      ASSERT_EQ(z, std::vector<float>(count, 6.0F));
    }
  });
}

TEST_P(Verified, prepared_calls_can_be_started_again) {
  run_ranks(3, [](Communicator& comm) {
    std::vector<float> x(5000), y(5000);
    anycclCall_t call = call_of(anycclCollAllReduce, x);
    call.recvbuff = y.data();
    auto sum = prepare(comm, call);
    ASSERT_OK(sum.status());
    for (int round = 1; round < 8; ++round) {
      std::fill(x.begin(), x.end(), static_cast<float>(round * index(comm.rank())));
      ASSERT_OK(wait(sum->start()));
      ASSERT_EQ(y, std::vector<float>(5000, 3.0F * static_cast<float>(round)));
    }
  });
}

TEST_P(Verified, calls_in_streams_wait_for_their_turn) {
  run_ranks(3, [](Communicator& comm) {
    Stream stream = new_stream();
    std::vector<float> x(1000);
    float seen = 0;
    for (int i = 1; i <= 20; ++i) {
      ASSERT_OK(stream.run([&, i] { x.assign(x.size(), static_cast<float>(i)); }));
      ASSERT_OK(comm.all_reduce(view(x), view(x), kSum, stream).status());
      ASSERT_OK(stream.run([&] { seen += x[999]; }));
    }
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(seen, 3.0F * 20 * 21 / 2);
  });
}

/// Each rank multiplies by another number.
template <typename T>
void sum_products(Communicator& comm, anycclDataType_t type, T factor, T element) {
  SCOPED_TRACE(type);
  std::vector<T> x(3000, element), y(3000);
  anycclRedOp_t op{};
  ASSERT_EQ(
      anycclRedOpCreatePreMulSum(&op, &factor, type, anycclScalarHostImmediate, comm.handle()),
      anycclSuccess);
  for (const auto at : {x.data(), y.data()}) {  // in place, and not
    ASSERT_EQ(anycclAllReduce(x.data(), at, x.size(), type, op, comm.handle(), nullptr),
              anycclSuccess)
        << anycclGetLastError(comm.handle());
    std::fill(x.begin(), x.end(), element);
  }
  EXPECT_EQ(anycclRedOpDestroy(op, comm.handle()), anycclSuccess);
}

TEST_P(Verified, sums_of_products_are_of_what_each_rank_multiplies) {
  run_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank());
    sum_products<float>(comm, anycclFloat32, 0.1F * static_cast<float>(me) - 0.05F, 1.7F);
    sum_products<double>(comm, anycclFloat64, -1.5 * me, 0.3);
    sum_products<std::uint16_t>(comm, anycclBfloat16, static_cast<std::uint16_t>(0x3f80 + me),
                                0x4049);
    sum_products<std::int32_t>(comm, anycclInt32, 7 - 5 * me, -12345);
    sum_products<std::complex<float>>(comm, anycclComplexFloat,
                                      {0.5F, 1.0F * static_cast<float>(me)}, {1.0F, -2.0F});
  });
}

// --- faults -------------------------------------------------------------------------------------

std::string said(const Communicator& comm) {
  return anycclGetLastError(comm.handle());
}

/// Rank 1 writes into its input after the call has begun, so that the sum is not that of what it
/// gave.
void change_input_during_a_call(bool later) {
  constexpr std::size_t kCount = 24 << 20;
  std::barrier<> begun(2);
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(kCount, 1.0F), y(kCount);
    const bool writes = comm.rank() == Rank{1};
    if (!writes) begun.arrive_and_wait();
    auto work = comm.all_reduce(view(x), view(y), kSum);
    ASSERT_OK(work.status());
    if (writes) {
      x[kCount - 1] = 1000.0F;
      begun.arrive_and_wait();
    }
    Status status = work->wait();
    if (later) {
      ASSERT_OK(status);
      status = comm.barrier().status();
      std::vector<float> small(4);
      for (int i = 0; i < 3 && status.ok(); ++i)
        status = wait(comm.all_reduce(view(small), view(small), kSum));
    }
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::internal) << status.message();
    for (const char* word : {"verification", "all_reduce of 25165824 f32, sum", "are off by ",
                             "where rounding explains", "elements 25100288..25165823 at rank "})
      EXPECT_NE(status.message().find(word), std::string::npos) << word << ": " << status.message();
  });
}

TEST(WrongResult, ends_the_communicator_on_all_ranks_and_is_named) {
  const Environment env(Environment::Variables{{"ANYCCL_VERIFY", "all"}});
  change_input_during_a_call(false);
}

TEST(WrongResult, comes_with_a_later_call_if_calls_do_not_wait) {
  const Environment env(Environment::Variables{{"ANYCCL_VERIFY", "all,late"}});
  change_input_during_a_call(true);
}

// --- settings -----------------------------------------------------------------------------------

TEST(VerifySetting, refuses_operators_without_a_check_and_goes_on) {
  const Environment env(Environment::Variables{{"ANYCCL_VERIFY", "1/1000"}});
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(8, 1.0F);
    std::vector<int> whole(8, 1);
    EXPECT_EQ(
        anycclAllReduce(x.data(), x.data(), 8, anycclFloat32, anycclProd, comm.handle(), nullptr),
        anycclInvalidUsage);
    for (const char* word : {"prod", "ANYCCL_VERIFY", "config->verify"})
      EXPECT_NE(said(comm).find(word), std::string::npos) << said(comm);
    EXPECT_EQ(anycclAllReduce(whole.data(), whole.data(), 8, anycclInt32, anycclAvg, comm.handle(),
                              nullptr),
              anycclInvalidUsage);
    EXPECT_OK(wait(comm.all_reduce(view(x), view(x), kSum)));
    EXPECT_EQ(x, std::vector<float>(8, 2.0F));
  });
}

struct Asked {
  int verify = ANYCCL_CONFIG_UNDEF_INT, later = ANYCCL_CONFIG_UNDEF_INT;
};

std::vector<Status> create_ranks(const std::vector<Asked>& asked) {
  std::vector<anycclConfig_t> configs;
  for (const Asked& one : asked) {
    configs.push_back(ANYCCL_CONFIG_INITIALIZER);
    configs.back().verify = one.verify;
    configs.back().verifyLater = one.later;
  }
  return created(configs);
}

TEST(VerifySetting, that_ranks_have_not_alike_is_an_error_that_names_both) {
  for (const Status& outcome : create_ranks({{1}, {2}}))
    expect_words(outcome, {"config->verify", "1", "2", "rank 0", "rank 1"});
  for (const Status& outcome : create_ranks({{1, 1}, {1, 0}}))
    expect_words(outcome, {"config->verifyLater", "rank 0", "rank 1"});
}

TEST(VerifySetting, is_checked) {
  expect_words(create_ranks({{-2}})[0], {"config->verify is -2"});
  expect_words(create_ranks({{1, 2}})[0], {"config->verifyLater is 2"});
  for (const char* wrong : {"yes", "1/0", "1/", "2/3", "off,late", ",late", "1/3,", "1/3,later"}) {
    const Environment env(Environment::Variables{{"ANYCCL_VERIFY", wrong}});
    expect_words(UniqueId::create().status(), {"ANYCCL_VERIFY", wrong, "1/N"});
  }
  for (const char* right : {"off", "", "all", "1/1", "1/16", "1/16,late", "all,late"}) {
    const Environment env(Environment::Variables{{"ANYCCL_VERIFY", right}});
    EXPECT_OK(create_ranks({{}})[0]);
  }
}

TEST(VerifySetting, of_a_configuration_comes_before_that_of_the_environment_and_is_inherited) {
  const Environment env(Environment::Variables{{"ANYCCL_VERIFY", "off"}});
  run_ranks(2, [](Communicator& comm) {
    CommunicatorConfig config;
    config.fields.verify = 1;
    auto child = comm.split(0, index(comm.rank()), config);
    ASSERT_OK(child.status());
    auto grandchild = child->split(0, index(comm.rank()));
    ASSERT_OK(grandchild.status());
    std::vector<float> x(8, 1.0F);
    for (Communicator* verified : {&*child, &*grandchild})
      EXPECT_EQ(anycclAllReduce(x.data(), x.data(), 8, anycclFloat32, anycclProd,
                                verified->handle(), nullptr),
                anycclInvalidUsage);
    EXPECT_EQ(
        anycclAllReduce(x.data(), x.data(), 8, anycclFloat32, anycclProd, comm.handle(), nullptr),
        anycclSuccess);
  });
}

}  // namespace
}  // namespace anyccl::test
