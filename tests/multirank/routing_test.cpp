// Dispatch and combine of mixture-of-experts layers, against the layer on one rank.

#include <memory>
#include <numeric>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

constexpr int kExperts = 8, kChoices = 3;
constexpr std::size_t kWidth = 37;

struct Destroy {
  void operator()(anycclRouting_t routing) const {
    EXPECT_EQ(anycclRoutingDestroy(routing), anycclSuccess);
  }
};
using Routing = std::unique_ptr<anycclRouting, Destroy>;

/// The tokens of one rank; ranks have different numbers of them, the first one none.
struct Tokens {
  explicit Tokens(int rank) : count(static_cast<std::size_t>(rank) * 11) {
    for (std::size_t t = 0; t < count; ++t)
      for (int k = 0; k < kChoices; ++k) {
        const int mixed =
            static_cast<int>((t * 7 + static_cast<std::size_t>(rank * 5 + k * 3)) % 11);
        experts.push_back(mixed < kExperts ? mixed * mixed % kExperts
                                           : -1);  // uneven, and some none
        weights.push_back(0.25 * (1 + k));
      }
    for (std::size_t i = 0; i < count * kWidth; ++i)
      values.push_back(static_cast<double>((i * 13 + static_cast<std::size_t>(rank)) % 101));
  }
  std::size_t count;
  std::vector<int> experts;
  std::vector<double> weights, values;
};

/// What expert e makes of a token.
double expert(int e, double x) {
  return x * (e + 1) + e;
}

/// The layer's result for the tokens of one rank, and how many choices are dropped.
std::vector<double> expected(const Tokens& tokens, std::size_t capacity, std::size_t* dropped) {
  std::vector<double> result(tokens.values.size());
  std::vector<std::size_t> taken(kExperts);
  *dropped = 0;
  for (std::size_t i = 0; i < tokens.experts.size(); ++i) {
    const int e = tokens.experts[i];
    if (e < 0) continue;
    if (capacity > 0 && taken[static_cast<std::size_t>(e)]++ >= capacity) {
      ++*dropped;
      continue;
    }
    const std::size_t first = i / kChoices * kWidth;
    for (std::size_t c = 0; c < kWidth; ++c)
      result[first + c] += tokens.weights[i] * expert(e, tokens.values[first + c]);
  }
  return result;
}

void check_layer(Communicator& comm, std::size_t capacity, bool padded) {
  const int me = index(comm.rank()), n = comm.size(), mine = kExperts / n;
  const Tokens tokens(me);
  anycclRouting_t made = nullptr;
  ASSERT_EQ(anycclRoutingCreate(&made, tokens.count, kChoices, tokens.experts.data(), kExperts,
                                capacity, padded ? 1 : 0, comm.handle()),
            anycclSuccess)
      << anycclGetLastError(comm.handle());
  const Routing routing(made);
  std::size_t rows = 0, dropped = 0, all_dropped = 0;
  std::vector<std::size_t> counts(static_cast<std::size_t>(mine));
  ASSERT_EQ(anycclRoutingRows(made, &rows, counts.data(), &dropped), anycclSuccess);
  if (padded) {
    EXPECT_EQ(rows, static_cast<std::size_t>(kExperts) * capacity);
  } else {
    EXPECT_EQ(rows, std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  }

  for (int turn = 0; turn < 2; ++turn) {  // the same routing again
    std::vector<double> dispatched(rows * kWidth, -1), combined(tokens.values.size(), -1);
    ASSERT_EQ(anycclDispatch(tokens.values.data(), dispatched.data(), kWidth, anycclFloat64, made,
                             comm.handle()),
              anycclSuccess)
        << anycclGetLastError(comm.handle());
    std::size_t row = 0;
    for (int e = 0; e < mine; ++e) {
      const std::size_t here =
          padded ? capacity * static_cast<std::size_t>(n) : counts[static_cast<std::size_t>(e)];
      for (const std::size_t end = row + here; row < end; ++row)
        for (std::size_t c = 0; c < kWidth; ++c) {
          double& x = dispatched[row * kWidth + c];
          x = expert(me * mine + e, x);
        }
    }
    ASSERT_EQ(anycclCombine(dispatched.data(), tokens.weights.data(), combined.data(), kWidth,
                            anycclFloat64, made, comm.handle()),
              anycclSuccess)
        << anycclGetLastError(comm.handle());
    EXPECT_EQ(combined, expected(tokens, capacity, &all_dropped));
    EXPECT_EQ(dropped, all_dropped);
  }
}

class Experts : public testing::TestWithParam<const char*> {
 protected:
  void on_ranks(const Body& body) const {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}});
    for (const int ranks : {1, 2, 4, 8}) run_ranks(ranks, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Experts, testing::Values("loopback", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Experts, get_all_tokens_without_a_capacity) {
  on_ranks([](Communicator& comm) { check_layer(comm, 0, false); });
}

TEST_P(Experts, drop_what_is_beyond_their_capacity) {
  on_ranks([](Communicator& comm) { check_layer(comm, 4, false); });
}

TEST_P(Experts, have_rows_of_fixed_size_when_padded) {
  on_ranks([](Communicator& comm) {
    check_layer(comm, 4, true);
    check_layer(comm, 1000, true);
  });
}

/// Rows are in the order of experts, then ranks, then tokens; padding is zero.
TEST(ExpertRows, are_in_order) {
  run_ranks(2, [](Communicator& comm) {
    const int me = index(comm.rank());
    const std::vector<int> experts{3, 0, 3};  // of one choice each
    const std::vector<std::int32_t> x{100 * me + 1, 100 * me + 2, 100 * me + 3};
    anycclRouting_t made = nullptr;
    ASSERT_EQ(anycclRoutingCreate(&made, 3, 1, experts.data(), 4, 2, 1, comm.handle()),
              anycclSuccess);
    const Routing routing(made);
    std::vector<std::int32_t> rows(8, -1), back(3, -1);
    ASSERT_EQ(anycclDispatch(x.data(), rows.data(), 1, anycclInt32, made, comm.handle()),
              anycclSuccess);
    EXPECT_EQ(rows, me == 0 ? (std::vector<std::int32_t>{2, 0, 102, 0, 0, 0, 0, 0})
                            : (std::vector<std::int32_t>{0, 0, 0, 0, 1, 3, 101, 103}));
    ASSERT_EQ(anycclCombine(rows.data(), nullptr, back.data(), 1, anycclInt32, made, comm.handle()),
              anycclSuccess);
    EXPECT_EQ(back, x);
  });
}

TEST(ExpertRows, of_many_choices_are_added_up) {
  run_ranks(2, [](Communicator& comm) {
    constexpr int kMany = 40;
    const std::vector<int> experts(kMany, 1);
    const float x = 2;
    float sum = 0;
    anycclRouting_t made = nullptr;
    ASSERT_EQ(anycclRoutingCreate(&made, 1, kMany, experts.data(), 2, 0, 0, comm.handle()),
              anycclSuccess);
    const Routing routing(made);
    std::size_t rows = 0;
    ASSERT_EQ(anycclRoutingRows(made, &rows, nullptr, nullptr), anycclSuccess);
    std::vector<float> received(rows);
    ASSERT_EQ(anycclDispatch(&x, received.data(), 1, anycclFloat32, made, comm.handle()),
              anycclSuccess);
    const std::vector<float> weights(kMany, 0.5F);
    ASSERT_EQ(
        anycclCombine(received.data(), weights.data(), &sum, 1, anycclFloat32, made, comm.handle()),
        anycclSuccess);
    EXPECT_EQ(sum, kMany);
  });
}

TEST(Routing, names_what_is_wrong_with_its_arguments) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  const anycclComm_t comm = (*comms)[0].handle();
  anycclRouting_t made = nullptr;
  const auto refused = [&](std::vector<int> experts, int choices, int nexperts,
                           std::size_t capacity, int padded) {
    EXPECT_EQ(anycclRoutingCreate(&made, experts.size(), choices, experts.data(), nexperts,
                                  capacity, padded, comm),
              anycclInvalidArgument);
    return std::string(anycclGetLastError(comm));
  };
  EXPECT_NE(refused({0, 4}, 1, 4, 0, 0).find("choice 0 of token 1 is expert 4 of 4"),
            std::string::npos);
  EXPECT_NE(refused({-2}, 1, 4, 0, 0).find("expert -2"), std::string::npos);
  EXPECT_NE(refused({0}, 0, 4, 0, 0).find("choices is 0"), std::string::npos);
  EXPECT_NE(refused({0}, 1, 0, 0, 0).find("nexperts is 0"), std::string::npos);
  EXPECT_NE(refused({0}, 1, 4, 0, 1).find("capacity is 0"), std::string::npos);
  EXPECT_EQ(made, nullptr);

  const int expert = 0;
  ASSERT_EQ(anycclRoutingCreate(&made, 1, 1, &expert, 1, 0, 0, comm), anycclSuccess);
  const Routing routing(made);
  float x = 1;
  EXPECT_EQ(anycclDispatch(nullptr, &x, 1, anycclFloat32, made, comm), anycclInvalidArgument);
  EXPECT_NE(std::string(anycclGetLastError(comm)).find("sendbuff is NULL, but has 1 rows"),
            std::string::npos);
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  EXPECT_EQ(anycclDispatch(&x, &x, 1, anycclFloat32, made, comm), anycclInvalidUsage);
  EXPECT_EQ(anycclGroupEnd(), anycclInvalidUsage);
}

TEST(Routing, is_refused_by_a_communicator_of_another_size) {
  run_ranks(2, [](Communicator& comm) {
    auto alone = comm.split(index(comm.rank()), 0);
    ASSERT_TRUE(alone.ok()) << alone.status().message();
    const int expert = 0;
    anycclRouting_t made = nullptr;
    ASSERT_EQ(anycclRoutingCreate(&made, 1, 1, &expert, 1, 0, 0, alone->handle()), anycclSuccess);
    const Routing routing(made);
    float x = 1, y = 0;
    EXPECT_EQ(anycclDispatch(&x, &y, 1, anycclFloat32, made, comm.handle()), anycclInvalidArgument);
    EXPECT_STREQ(anycclGetLastError(comm.handle()),
                 "routing is of 1 ranks, but the communicator has 2");
    EXPECT_EQ(anycclCombine(&x, nullptr, &y, 1, anycclFloat32, made, comm.handle()),
              anycclInvalidArgument);
  });
}

TEST(Routing, compares_what_ranks_give) {
  struct Given {
    std::size_t capacity;
    int padded;
    const char* text;  // of rank 0
  };
  for (const Given& other : {Given{5, 1, "capacity is 4 here and 5 on rank 1"},
                             Given{4, 0, "padded is 1 here and 0 on rank 1"}})
    run_ranks(3, [&](Communicator& comm) {
      const bool is_other = comm.rank() == Rank{1};
      const Given given = is_other ? other : Given{4, 1, nullptr};
      const int expert = 0;
      anycclRouting_t made = nullptr;
      EXPECT_EQ(
          anycclRoutingCreate(&made, 1, 1, &expert, 3, given.capacity, given.padded, comm.handle()),
          anycclInvalidUsage);
      const std::string text = anycclGetLastError(comm.handle());
      EXPECT_NE(text.find(is_other ? "rank 0" : other.text), std::string::npos) << text;
      EXPECT_TRUE(comm.barrier().ok());
    });
}

}  // namespace
}  // namespace anyccl::test
