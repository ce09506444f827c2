// Algorithms, protocols and sizes that the environment, a communicator or a call asks for.

#include <fmt/format.h>

#include <complex>
#include <functional>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

std::string last_plan(const Communicator& comm) {
  const char* text = "";
  EXPECT_EQ(anycclCommLastPlan(comm.handle(), &text), anycclSuccess);
  return text;
}

/// The plan of an AllReduce of `count` floats, whose result is right.
std::string plan_of(Communicator& comm, std::size_t count) {
  std::vector<float> x(count, static_cast<float>(index(comm.rank()) + 1));
  const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
  if (!status.ok()) return std::string(status.message());
  const int n = comm.size();
  EXPECT_EQ(x, std::vector<float>(count, static_cast<float>(n * (n + 1) / 2)));
  return last_plan(comm);
}

/// What became of the creation of each rank with a configuration of its own.
std::vector<Status> create_ranks(
    const std::vector<anycclConfig_t>& configs, const Body& body = [](Communicator&) {}) {
  const auto id = UniqueId::create();
  EXPECT_TRUE(id.ok());
  const int n = static_cast<int>(configs.size());
  std::vector<Status> outcomes(configs.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r)
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      auto comm = Communicator::from_unique_id(*id, Rank{r}, n, configs[i]);
      outcomes[i] = comm.status();
      if (comm.ok()) body(*comm);
      if (comm.ok()) EXPECT_OK(comm->destroy());
    });
  for (std::thread& t : threads) t.join();
  return outcomes;
}

void run_configured(int ranks, const anycclConfig_t& config, const Body& body) {
  for (const Status& outcome :
       create_ranks(std::vector<anycclConfig_t>(static_cast<std::size_t>(ranks), config), body))
    EXPECT_OK(outcome);
}

anycclConfig_t configured(const char* algo, const char* proto = nullptr) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.algo = algo;
  config.proto = proto;
  return config;
}

anycclCollConfig_t call_config(const char* algorithms, const char* proto = nullptr) {
  anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = algorithms;
  config.proto = proto;
  return config;
}

constexpr std::size_t k8B = 2, k1KiB = 256, k16KiB = 4096, k1MiB = 1 << 18;  // floats

// --- by collective and size ----------------------------------------------------------------------

TEST(ProtocolByRule, is_another_for_other_sizes_and_collectives) {
  const Environment env(Environment::Variables{
      {"ANYCCL_PROTO", "all_reduce:LL@-1K,LL128@1K-16K,Simple@16K-;broadcast:Simple"}});
  run_ranks(3, [](Communicator& comm) {
    EXPECT_NE(plan_of(comm, k8B).find(" LL "), std::string::npos) << last_plan(comm);
    EXPECT_NE(plan_of(comm, k1KiB).find(" LL128 "), std::string::npos) << last_plan(comm);
    EXPECT_NE(plan_of(comm, k16KiB).find(" Simple "), std::string::npos) << last_plan(comm);
    std::vector<float> x(2, comm.rank() == Rank{1} ? 5.0F : 0.0F);
    ASSERT_OK(wait(comm.broadcast(view(x), view(x), Rank{1})));
    EXPECT_EQ(x[1], 5.0F);
    EXPECT_NE(last_plan(comm).find(" Simple "), std::string::npos) << last_plan(comm);
  });
}

TEST(ProtocolByRule, of_calls_that_follow_each_other_may_change_every_time) {
  const Environment env(Environment::Variables{
      {"ANYCCL_PROTO", "all_reduce:LL@-16,Simple@16-32,LL128@32-48,Simple@48-64,LL@64-"}});
  run_ranks(4, [](Communicator& comm) {
    for (std::size_t round = 0; round < 300; ++round) {
      std::vector<float> x(1 + round * 7 % 23, static_cast<float>(index(comm.rank())));
      ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
      ASSERT_EQ(x, std::vector<float>(x.size(), 6.0F)) << round;
    }
  });
}

TEST(ProtocolByRule, that_is_excluded_leaves_the_others) {
  const Environment env(Environment::Variables{{"ANYCCL_PROTO", "^LL128"}});
  run_ranks(2, [](Communicator& comm) {
    EXPECT_NE(plan_of(comm, k8B).find(" LL "), std::string::npos) << last_plan(comm);
    EXPECT_NE(plan_of(comm, k1KiB).find(" Simple "), std::string::npos) << last_plan(comm);
  });
}

TEST(ProtocolByRule, without_any_left_is_an_error_that_says_so) {
  const Environment env(Environment::Variables{{"ANYCCL_PROTO", "^LL,^LL128,^Simple"}});
  run_ranks(2, [](Communicator& comm) {
    EXPECT_EQ(plan_of(comm, k8B), "ANYCCL_PROTO leaves no protocol for all_reduce of 8 bytes");
  });
}

TEST(ProtocolByRule, works_with_blocks_of_different_sizes) {
  const Environment env(Environment::Variables{{"ANYCCL_PROTO", "LL"}});
  run_ranks(3, [](Communicator& comm) {
    const std::vector<std::size_t> counts{5, 0, 70}, displs{0, 5, 5};
    const auto me = static_cast<std::size_t>(index(comm.rank()));
    std::vector<float> in(counts[me], static_cast<float>(me)), out(75);
    ASSERT_OK(wait(comm.all_gather_v(view(in), view(out), {counts, displs})));
    EXPECT_EQ(out[4], 0.0F);
    EXPECT_EQ(out[74], 2.0F);
    const std::vector<std::size_t> ones(3, 1), places{0, 1, 2};
    std::vector<float> to(3, static_cast<float>(me)), from(3);
    ASSERT_OK(wait(comm.all_to_all_v(view(to), {ones, places}, view(from), {ones, places})));
    EXPECT_EQ(from, (std::vector<float>{0, 1, 2}));
  });
}

TEST(ProtocolByRule, keeps_elements_whole_that_do_not_fill_a_line) {
  const Environment env(Environment::Variables{{"ANYCCL_PROTO", "LL"}});
  run_ranks(2, [](Communicator& comm) {
    using Element = std::complex<double>;  // 3.5 of them would fit
    std::vector<Element> in(100), out(100), want;
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = {static_cast<double>(i), 1};
    for (const Element& one : in) want.push_back(2.0 * one);
    ASSERT_OK(wait(comm.all_reduce(view(in), view(out), ReduceOp::sum)));
    EXPECT_EQ(out, want);
  });
}

TEST(ProtocolByRule, has_no_meaning_over_sockets_unless_it_is_asked_for) {
  const Environment tcp(Environment::Variables{{"ANYCCL_TRANSPORT", "tcp"}});
  run_ranks(2, [](Communicator& comm) {
    EXPECT_EQ(plan_of(comm, k8B).find("all_reduce/one_shot - tcp"), 0U) << last_plan(comm);
  });
  const Environment lines(Environment::Variables{{"ANYCCL_PROTO", "LL128"}});
  run_ranks(2, [](Communicator& comm) {
    EXPECT_NE(plan_of(comm, k16KiB).find(" LL128 tcp"), std::string::npos) << last_plan(comm);
  });
}

TEST(ProtocolByRule, is_for_messages_where_it_is_for_everything) {
  for (const char* rules : {"LL", "LL128", "Simple", "all_reduce:Simple"}) {
    const Environment env(Environment::Variables{{"ANYCCL_PROTO", rules}});
    run_ranks(2, [](Communicator& comm) {
      const Rank peer{1 - index(comm.rank())};
      for (const std::size_t count : {1UL, 12UL, 500UL, 30000UL}) {
        std::vector<float> out(count, static_cast<float>(index(comm.rank()))), in(count);
        auto sent = comm.send(view(out), peer);
        ASSERT_OK(wait(comm.recv(view(in), peer)));
        ASSERT_OK(wait(std::move(sent)));
        EXPECT_EQ(in, std::vector<float>(count, static_cast<float>(index(peer))));
      }
    });
  }
}

// --- of a communicator ---------------------------------------------------------------------------

TEST(CommunicatorChoice, holds_for_it_and_its_parts_unless_they_say_something_else) {
  run_configured(2, configured("all_reduce:two_shot", "Simple"), [](Communicator& comm) {
    EXPECT_EQ(plan_of(comm, k8B), "all_reduce/two_shot Simple loopback");
    auto part = comm.split(0, 0);
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_EQ(plan_of(*part, k8B), "all_reduce/two_shot Simple loopback");
    anycclConfig_t other = configured(nullptr, "LL");
    auto own = comm.split(0, 0, other);
    ASSERT_TRUE(own.ok()) << own.status().message();
    EXPECT_EQ(plan_of(*own, k8B), "all_reduce/two_shot LL loopback");
    ASSERT_OK(own->destroy());
    ASSERT_OK(part->destroy());
  });
}

TEST(CommunicatorChoice, comes_after_the_environment) {
  const Environment env(Environment::Variables{{"ANYCCL_ALGO", "all_reduce:ring@-1K"},
                                               {"ANYCCL_PROTO", "all_reduce:LL@-1K"}});
  run_configured(2, configured("two_shot", "Simple"), [](Communicator& comm) {
    EXPECT_EQ(plan_of(comm, k8B), "all_reduce/ring LL loopback");
    EXPECT_EQ(plan_of(comm, k1KiB), "all_reduce/two_shot Simple loopback")
        << "of this size the environment says nothing";
  });
}

TEST(CommunicatorChoice, that_is_wrong_is_named_with_its_field_and_value) {
  const auto message = [](const anycclConfig_t& config) {
    const std::vector<Status> outcome = create_ranks({config});
    EXPECT_EQ(outcome[0].code(), Code::invalid_argument);
    return std::string(outcome[0].message());
  };
  EXPECT_NE(message(configured("rnig")).find("config->algo: 'rnig'"), std::string::npos);
  EXPECT_NE(message(configured("", "fast")).find("config->proto: 'fast'"), std::string::npos);
  anycclConfig_t sizes = configured(nullptr);
  sizes.chunkBytes = -5;
  EXPECT_NE(message(sizes).find("config->chunkBytes is -5"), std::string::npos);
  sizes.chunkBytes = 100;
  EXPECT_NE(message(sizes).find("config->chunkBytes=100 is not in 4096.."), std::string::npos);
  sizes = configured(nullptr);
  sizes.buffSize = 1000;
  EXPECT_NE(message(sizes).find("config->buffSize=1000 is not in 65536.."), std::string::npos);
}

TEST(CommunicatorChoice, that_differs_is_an_error_that_names_both) {
  const auto differ = [](const anycclConfig_t& a, const anycclConfig_t& b,
                         const std::vector<std::string>& words) {
    for (const Status& outcome : create_ranks({a, b})) {
      EXPECT_FALSE(outcome.ok());
      for (const std::string& word : words)
        EXPECT_NE(outcome.message().find(word), std::string::npos) << outcome.message();
    }
  };
  differ(configured("ring"), configured("two_shot"), {"config->algo", "ring", "two_shot"});
  differ(configured(nullptr, "LL"), configured(nullptr), {"config->proto", "LL", "not set"});
  anycclConfig_t a = configured(nullptr), b = a;
  a.chunkBytes = 8192;
  differ(a, b, {"config->chunkBytes", "8192", "not set"});
  a = b;
  a.buffSize = 1 << 20;
  b.buffSize = 1 << 19;
  differ(a, b, {"config->buffSize", "1048576", "524288"});
}

TEST(CommunicatorChoice, of_a_split_that_differs_fails_there_and_the_parent_goes_on) {
  run_ranks(2, [](Communicator& comm) {
    anycclConfig_t config = configured(comm.rank() == Rank{0} ? "ring" : "two_shot");
    const Status status = comm.split(0, 0, config).status();
    EXPECT_NE(status.message().find("config->algo must be the same"), std::string::npos)
        << status.message();
    ASSERT_OK(wait(comm.barrier()));
    config = configured("rnig");
    EXPECT_FALSE(
        comm.split(0, 0, comm.rank() == Rank{0} ? CommunicatorConfig(config) : CommunicatorConfig())
            .ok());
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST(CommunicatorChoice, of_long_rules_is_compared_too) {
  std::string rules = "all_reduce:ring@1M-2M";
  for (int i = 2; i < 60; ++i) rules += fmt::format(",ring@{}M-{}M", i, i + 1);
  const std::string others = rules + ",two_shot@100M-";
  for (const Status& outcome :
       create_ranks({configured(rules.c_str()), configured(others.c_str())}))
    EXPECT_NE(outcome.message().find("config->algo must be the same"), std::string::npos)
        << outcome.message();
  run_configured(2, configured(rules.c_str(), rules.c_str() + rules.size()),
                 [](Communicator& comm) { ASSERT_OK(wait(comm.barrier())); });
}

TEST(CommunicatorChoice, of_sizes_gives_the_same_results) {
  anycclConfig_t config = configured(nullptr);
  config.chunkBytes = 5000;
  config.buffSize = 70000;
  run_configured(3, config, [](Communicator& comm) {
    for (const std::size_t count : {k8B, k16KiB, k1MiB + 3}) plan_of(comm, count);
    std::vector<float> in(3 * 50000, static_cast<float>(index(comm.rank()))), out(in.size());
    ASSERT_OK(wait(comm.all_to_all(view(in), view(out))));
    for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(out[50000 * r + 49999], static_cast<float>(r));
  });
  const Environment env(
      Environment::Variables{{"ANYCCL_CHUNK_SIZE", "4K"}, {"ANYCCL_BUFFSIZE", "64K"}});
  run_ranks(4, [](Communicator& comm) {
    for (const std::size_t count : {k8B, k16KiB, k1MiB + 3}) plan_of(comm, count);
  });
}

TEST(CommunicatorChoice, of_a_buffer_that_is_too_small_for_so_many_ranks_is_refused) {
  anycclConfig_t config = configured(nullptr);
  config.buffSize = 65536;
  for (const Status& outcome : create_ranks(std::vector<anycclConfig_t>(6, config)))
    EXPECT_NE(outcome.message().find("config->buffSize=65536 is not in 73728.."), std::string::npos)
        << outcome.message();
}

// --- of a call -----------------------------------------------------------------------------------

TEST(CallChoice, is_for_that_call_only) {
  run_ranks(2, [](Communicator& comm) {
    const std::string usual = plan_of(comm, k8B);
    const anycclCollConfig_t ring = call_config("ring", "Simple");
    for (int i = 0; i < 3; ++i) {
      comm.set_call_config(&ring);
      EXPECT_EQ(plan_of(comm, k8B), "all_reduce/ring Simple loopback");
      comm.set_call_config(nullptr);
      EXPECT_EQ(plan_of(comm, k8B), usual);
    }
  });
}

TEST(CallChoice, comes_after_the_environment_and_before_the_communicator) {
  const Environment env(Environment::Variables{{"ANYCCL_ALGO", "all_reduce:bcube@1M-"},
                                               {"ANYCCL_PROTO", "all_reduce:LL128@1K-2K"}});
  run_configured(4, configured("two_shot", "Simple"), [](Communicator& comm) {
    const anycclCollConfig_t ring = call_config("ring", "LL");
    comm.set_call_config(&ring);
    EXPECT_EQ(plan_of(comm, k8B), "all_reduce/ring LL loopback");
    EXPECT_EQ(plan_of(comm, k1KiB), "all_reduce/ring LL128 loopback");
    EXPECT_EQ(plan_of(comm, k1MiB), "all_reduce/bcube LL loopback");
    comm.set_call_config(nullptr);
    EXPECT_EQ(plan_of(comm, k8B), "all_reduce/two_shot Simple loopback");
  });
}

TEST(CallChoice, that_the_ranks_cannot_do_is_an_error_or_something_else) {
  run_ranks(3, [](Communicator& comm) {
    anycclCollConfig_t config = call_config("hypercube");
    comm.set_call_config(&config);
    EXPECT_EQ(plan_of(comm, k8B),
              "all_reduce/hypercube does not support 3 ranks: it needs a power of two "
              "(config->algSelection)");
    config.forceAlgSelection = 0;
    EXPECT_NE(plan_of(comm, k8B).find("all_reduce/one_shot"), std::string::npos);
    config = call_config("hypercube,ring");
    EXPECT_NE(plan_of(comm, k8B).find("all_reduce/ring"), std::string::npos);
    comm.set_call_config(nullptr);
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST(CallChoice, that_differs_between_ranks_is_an_error_of_all) {
  for (const auto& both : {std::pair{call_config("ring"), call_config("two_shot")},
                           std::pair{call_config(nullptr, "LL"), call_config(nullptr, "Simple")}})
    run_ranks(2, [&](Communicator& comm) {
      comm.set_call_config(comm.rank() == Rank{0} ? &both.first : &both.second);
      std::vector<float> x(2);
      const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
      EXPECT_NE(
          status.message().find("with another algorithm, protocol, or type of sums or results"),
          std::string::npos)
          << status.message();
    });
}

TEST(CallChoice, of_how_much_is_under_way_must_be_the_same) {
  run_ranks(2, [](Communicator& comm) {
    anycclCollConfig_t config = call_config(nullptr);
    config.chunkBytes = 8192;
    comm.set_call_config(&config);
    plan_of(comm, k1MiB);
    config.chunkBytes = comm.rank() == Rank{0} ? 8192 : 16384;
    std::vector<float> x(k1MiB);
    const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
    EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
  });
}

TEST(CallChoice, is_not_fused_with_calls_of_another) {
  run_ranks(2, [](Communicator& comm) {
    const anycclCollConfig_t two_shot = call_config("two_shot");
    std::vector<float> x(4, 1);
    const auto add = [&](float* at, const anycclCollConfig_t* config) {
      return anycclAllReduceConfig(at, at, 1, anycclFloat32, anycclMax, comm.handle(), nullptr,
                                   config);
    };
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(add(&x[i], nullptr), anycclSuccess);
    for (std::size_t i = 2; i < 4; ++i) EXPECT_EQ(add(&x[i], &two_shot), anycclSuccess);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess);
    EXPECT_EQ(last_plan(comm), "all_reduce/two_shot LL loopback, 2 calls as one");
    EXPECT_EQ(x, std::vector<float>(4, 1));
  });
}

TEST(CallChoice, is_that_of_calls_in_streams_and_of_issued_calls) {
  run_ranks(2, [](Communicator& comm) {
    anycclCollConfig_t config = call_config("two_shot");
    float x = 1;
    anycclStream_t stream = nullptr;
    ASSERT_EQ(anycclStreamCreate(&stream), anycclSuccess);
    ASSERT_EQ(
        anycclAllReduceConfig(&x, &x, 1, anycclFloat32, anycclSum, comm.handle(), stream, &config),
        anycclSuccess);
    config = call_config("ring");  // it was read
    ASSERT_EQ(anycclStreamSynchronize(stream), anycclSuccess);
    EXPECT_NE(last_plan(comm).find("two_shot"), std::string::npos) << last_plan(comm);
    ASSERT_EQ(anycclStreamDestroy(stream), anycclSuccess);
    anycclCall_t call{};
    call.size = sizeof call;
    call.collective = anycclCollBarrier;
    const anycclCollConfig_t central = call_config("central");
    call.config = &central;
    ASSERT_OK(wait(comm.issue(call)));
    EXPECT_NE(last_plan(comm).find("barrier/central"), std::string::npos) << last_plan(comm);
  });
}

TEST(CallChoice, has_a_tag_that_is_told) {
  run_ranks(2, [](Communicator& comm) {
    anycclCollConfig_t config = call_config(nullptr);
    config.userProfilerTag = comm.rank() == Rank{0} ? 7 : 8;  // each rank's own
    comm.set_call_config(&config);
    EXPECT_EQ(plan_of(comm, k8B),
              fmt::format("all_reduce/one_shot LL loopback, tag {}", 7 + index(comm.rank())));
    config.userProfilerTag = 99;
    EXPECT_NE(plan_of(comm, k8B).find(", tag 99"), std::string::npos) << last_plan(comm);
  });
}

TEST(CallChoice, exists_for_each_function_of_nccl) {
  run_ranks(2, [](Communicator& comm) {
    const anycclComm_t c = comm.handle();
    const int me = index(comm.rank());
    const auto expect = [&](anycclResult_t result, const char* plan) {
      EXPECT_EQ(result, anycclSuccess) << anycclGetLastError(c);
      EXPECT_EQ(last_plan(comm).find(plan), 0U) << last_plan(comm);
    };
    const auto with = [](const char* algorithm) { return call_config(algorithm); };
    std::vector<float> in{1.0F + static_cast<float>(me), 3}, out(4);
    auto k = with("ring");
    expect(
        anycclAllReduceConfig(in.data(), out.data(), 2, anycclFloat32, anycclSum, c, nullptr, &k),
        "all_reduce/ring");
    EXPECT_EQ(out[0], 3.0F);
    k = with("binomial");
    expect(anycclBroadcastConfig(in.data(), out.data(), 2, anycclFloat32, 1, c, nullptr, &k),
           "broadcast/binomial");
    EXPECT_EQ(out[0], 2.0F);
    expect(
        anycclReduceConfig(in.data(), out.data(), 2, anycclFloat32, anycclSum, 0, c, nullptr, &k),
        "reduce/binomial");
    k = with("ring");
    expect(anycclReduceScatterConfig(in.data(), out.data(), 1, anycclFloat32, anycclSum, c, nullptr,
                                     &k),
           "reduce_scatter/ring");
    EXPECT_EQ(out[0], me == 0 ? 3.0F : 6.0F);
    expect(anycclAllGatherConfig(in.data(), out.data(), 2, anycclFloat32, c, nullptr, &k),
           "all_gather/ring");
    EXPECT_EQ(out[2], 2.0F);
    k = with("pairwise");
    expect(anycclAlltoAllConfig(in.data(), out.data(), 1, anycclFloat32, c, nullptr, &k),
           "all_to_all/pairwise");
    k = with("binomial");
    expect(anycclGatherConfig(in.data(), out.data(), 2, anycclFloat32, 0, c, nullptr, &k),
           "gather/binomial");
    expect(anycclScatterConfig(in.data(), out.data(), 1, anycclFloat32, 0, c, nullptr, &k),
           "scatter/binomial");
    EXPECT_EQ(out[0], me == 0 ? 1.0F : 3.0F);
  });
}

}  // namespace
}  // namespace anyccl::test
