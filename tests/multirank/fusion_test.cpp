// Fused calls of a group: the results have the same bits as those of the calls one by one.

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

constexpr anycclCollective_t kCollectives[] = {
    anycclCollAllReduce, anycclCollReduce, anycclCollBroadcast, anycclCollReduceScatter,
    anycclCollAllGather, anycclCollGather, anycclCollScatter,   anycclCollAllToAll,
    anycclCollScan,      anycclCollExscan};

/// Values whose sum depends on the order in which they are added up.
std::vector<float> values(std::size_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<float> made(count);
  for (float& value : made) value = std::ldexp(mantissa(random), exponent(random));
  return made;
}

/// One call, with a buffer for each side that is large enough for every collective.
struct Part {
  anycclCall_t call{};
  std::vector<float> input, output;
};

/// The same sizes on all ranks, other values.
std::vector<Part> make_parts(const Communicator& comm, anycclCollective_t collective,
                             anycclRedOp_t op, std::size_t number) {
  std::mt19937 sizes(7), random(static_cast<unsigned>(100 + index(comm.rank())));
  const auto n = static_cast<std::size_t>(comm.size());
  std::vector<Part> parts(number);
  for (Part& part : parts) {
    const std::size_t count = sizes() % 3 == 0 ? 64 : sizes() % 700;
    part.input = values(count * n, random);
    part.output.assign(count * n, -1);
    part.call.size = sizeof part.call;
    part.call.collective = collective;
    part.call.datatype = anycclFloat32;
    part.call.op = op;
    part.call.count = count;
    part.call.sendbuff = part.input.data();
    part.call.recvbuff = part.output.data();
  }
  return parts;
}

std::vector<std::vector<float>> outputs(const std::vector<Part>& parts) {
  std::vector<std::vector<float>> all;
  for (const Part& part : parts) all.push_back(part.output);
  return all;
}

void expect_same_bits(const std::vector<std::vector<float>>& a,
                      const std::vector<std::vector<float>>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i].empty() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * 4) == 0)
        << what << ", call " << i << " of " << a[i].size() << " elements";
}

std::string last_plan(const Communicator& comm) {
  const char* text = nullptr;
  EXPECT_EQ(anycclCommLastPlan(comm.handle(), &text), anycclSuccess);
  return text == nullptr ? "" : text;
}

void run_one_by_one(Communicator& comm, std::vector<Part>& parts) {
  for (Part& part : parts) ASSERT_EQ(anycclRun(&part.call, comm.handle()), anycclSuccess);
}
void run_group(Communicator& comm, std::vector<Part>& parts) {
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (Part& part : parts) ASSERT_EQ(anycclRun(&part.call, comm.handle()), anycclSuccess);
  ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << comm.failure().message();
}
void issue_all(Communicator& comm, std::vector<Part>& parts) {
  std::vector<anycclCall_t> calls;
  for (const Part& part : parts) calls.push_back(part.call);
  std::vector<anycclWork_t> works(calls.size());
  ASSERT_EQ(anycclIssueAll(calls.data(), calls.size(), comm.handle(), works.data()), anycclSuccess);
  for (anycclWork_t work : works) {
    EXPECT_EQ(anycclWorkWait(work), anycclSuccess);
    anycclWorkFree(work);
  }
}
void run_in_a_stream(Communicator& comm, std::vector<Part>& parts) {
  anycclStream_t stream = nullptr;
  ASSERT_EQ(anycclStreamCreate(&stream), anycclSuccess);
  for (Part& part : parts) part.call.stream = stream;
  run_group(comm, parts);
  EXPECT_EQ(anycclStreamSynchronize(stream), anycclSuccess);
  EXPECT_EQ(anycclStreamDestroy(stream), anycclSuccess);
}

/// All parts, with a handle of their own for each.
void start_all(Communicator& comm, std::vector<Part>& parts) {
  std::vector<anycclPrepared_t> prepared(parts.size());
  std::vector<anycclWork_t> works(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    ASSERT_EQ(anycclPrepare(&parts[i].call, comm.handle(), &prepared[i]), anycclSuccess);
  ASSERT_EQ(anycclStartAll(prepared.data(), prepared.size(), works.data()), anycclSuccess);
  for (anycclWork_t work : works) {
    EXPECT_EQ(anycclWorkWait(work), anycclSuccess) << comm.failure().message();
    anycclWorkFree(work);
  }
  for (anycclPrepared_t one : prepared) anycclPreparedFree(one);
}

/// The buffers of `parts`, which were copied.
std::vector<Part> copy_of(const std::vector<Part>& parts) {
  std::vector<Part> copy = parts;
  for (Part& part : copy) {
    part.call.sendbuff = part.input.data();
    part.call.recvbuff = part.output.data();
  }
  return copy;
}

class Fusion : public testing::TestWithParam<const char*> {
 protected:
  void on_ranks(const Body& body) const {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}});
    for (const int ranks : {1, 2, 3, 5}) run_ranks(ranks, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Fusion, testing::Values("loopback", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Fusion, keeps_the_bits_of_every_collective) {
  on_ranks([](Communicator& comm) {
    for (const anycclCollective_t collective : kCollectives)
      for (const auto run : {run_group, issue_all, run_in_a_stream}) {
        auto alone = make_parts(comm, collective, anycclSum, 20);
        auto together = copy_of(alone);
        run_one_by_one(comm, alone);
        run(comm, together);
        expect_same_bits(outputs(alone), outputs(together),
                         "collective " + std::to_string(collective));
      }
  });
}

TEST_P(Fusion, of_broadcasts_in_place_writes_them_everywhere_but_at_the_root) {
  on_ranks([](Communicator& comm) {
    const int root = comm.size() - 1, me = index(comm.rank());
    std::vector<std::vector<float>> all(3, std::vector<float>(10, static_cast<float>(me)));
    ASSERT_OK(group([&] {
      for (auto& x : all) static_cast<void>(comm.broadcast(view(x), view(x), Rank{root}));
    }));
    for (const auto& x : all) EXPECT_EQ(x, std::vector<float>(10, static_cast<float>(root)));
  });
}

TEST_P(Fusion, keeps_the_bits_of_every_operator) {
  on_ranks([](Communicator& comm) {
    for (const anycclRedOp_t op : {anycclSum, anycclProd, anycclMax, anycclMin, anycclAvg}) {
      auto alone = make_parts(comm, anycclCollAllReduce, op, 20), together = alone;
      for (std::size_t i = 0; i < alone.size(); ++i) {  // in place, too
        together[i].call.recvbuff = together[i].input.data();
        together[i].call.sendbuff = together[i].input.data();
      }
      run_one_by_one(comm, alone);
      run_group(comm, together);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        alone[i].output.resize(alone[i].call.count);
        together[i].input.resize(alone[i].call.count);
        together[i].output = together[i].input;
      }
      expect_same_bits(outputs(alone), outputs(together), "operator " + std::to_string(op));
    }
  });
}

TEST_P(Fusion, is_one_operation) {
  on_ranks([](Communicator& comm) {
    auto parts = make_parts(comm, anycclCollAllGather, anycclSum, 20);
    run_group(comm, parts);
    EXPECT_NE(last_plan(comm).find("20 calls as one"), std::string::npos) << last_plan(comm);
    run_one_by_one(comm, parts);
    EXPECT_EQ(last_plan(comm).find("as one"), std::string::npos) << last_plan(comm);
  });
}

/// Time limits, tags and streams are local, in NCCL, MPI and torch, too.
TEST_P(Fusion, is_decided_by_what_all_ranks_give_alike) {
  on_ranks([](Communicator& comm) {
    const int me = index(comm.rank());
    anycclCollConfig_t tagged = ANYCCL_COLLCONFIG_INITIALIZER;
    tagged.userProfilerTag = 7;
    for (const anycclCollective_t collective : {anycclCollAllReduce, anycclCollAllGather})
      for (const auto run : {run_group, issue_all, start_all}) {
        auto alone = make_parts(comm, collective, anycclMax, 20);
        auto together = copy_of(alone);
        for (std::size_t i = 0; i < together.size(); ++i) {
          anycclCall_t& call = together[i].call;
          call.timeout_ms = (static_cast<int>(i) + me) % 3 == 0
                                ? 0
                                : 60'000 + static_cast<unsigned>(me) * static_cast<unsigned>(i);
          if ((static_cast<int>(i) + me) % 2 == 0) call.config = &tagged;
        }
        run_one_by_one(comm, alone);
        run(comm, together);
        expect_same_bits(outputs(alone), outputs(together), "local arguments");
        EXPECT_NE(last_plan(comm).find("20 calls as one"), std::string::npos) << last_plan(comm);
      }
  });
}

TEST_P(Fusion, belongs_to_the_streams_of_all_its_calls) {
  on_ranks([](Communicator& comm) {
    const auto me = static_cast<std::size_t>(index(comm.rank()));
    std::vector<anycclStream_t> streams(3);  // the last one: none
    for (const int i : {0, 1})
      ASSERT_EQ(anycclStreamCreate(&streams[static_cast<std::size_t>(i)]), anycclSuccess);
    auto alone = make_parts(comm, anycclCollAllReduce, anycclMax, 12);
    auto together = copy_of(alone);
    for (std::size_t i = 0; i < together.size();
         ++i)  // rank 0 has all, rank 1 one, others none or some
      together[i].call.stream = streams[me == 0 ? i / 4 : me == 1 ? 0 : (i + me) % 3];
    run_one_by_one(comm, alone);
    // Its inputs are there when its streams have come to it.
    std::vector<std::vector<float>> inputs;
    for (Part& part : together) {
      inputs.push_back(part.input);
      std::fill(part.input.begin(), part.input.end(), -1.0F);
    }
    struct Fill {
      std::vector<Part>* parts;
      const std::vector<std::vector<float>>* inputs;
      anycclStream_t stream;
    };
    std::vector<Fill> fills;
    for (anycclStream_t stream : streams) fills.push_back({&together, &inputs, stream});
    const auto fill = [](void* argument) {
      const Fill& mine = *static_cast<const Fill*>(argument);
      // So that a call which did not wait for its streams would most likely read -1; one that waits
      // is right at any speed.
      if (mine.stream != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (std::size_t i = 0; i < mine.parts->size(); ++i) {
        Part& part = (*mine.parts)[i];
        if (part.call.stream == mine.stream)
          std::copy((*mine.inputs)[i].begin(), (*mine.inputs)[i].end(), part.input.begin());
      }
    };
    for (Fill& one : fills) {
      if (one.stream == nullptr)
        fill(&one);
      else
        ASSERT_EQ(anycclLaunchHostFunc(one.stream, fill, &one), anycclSuccess);
    }
    run_group(comm, together);
    for (anycclStream_t stream : streams) {
      if (stream == nullptr) continue;
      EXPECT_EQ(anycclStreamSynchronize(stream), anycclSuccess);
      EXPECT_EQ(anycclStreamDestroy(stream), anycclSuccess);
    }
    expect_same_bits(outputs(alone), outputs(together), "streams");
    EXPECT_NE(last_plan(comm).find("12 calls as one"), std::string::npos) << last_plan(comm);
  });
}

/// A ring adds up each block in another order, so where an element lies decides about its last bit.
TEST(FusionOrder, sums_that_would_change_are_not_fused) {
  const Environment env(Environment::Variables{{"ANYCCL_ALGO", "ring"}});
  run_ranks(3, [](Communicator& comm) {
    auto alone = make_parts(comm, anycclCollAllReduce, anycclSum, 20), together = alone;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      together[i].call.sendbuff = together[i].input.data();
      together[i].call.recvbuff = together[i].output.data();
    }
    run_one_by_one(comm, alone);
    run_group(comm, together);
    expect_same_bits(outputs(alone), outputs(together), "ring");
    auto whole = make_parts(comm, anycclCollAllReduce, anycclMax, 20);
    run_group(comm, whole);
    EXPECT_NE(last_plan(comm).find("20 calls as one"), std::string::npos)
        << "a maximum is the same in any order: " << last_plan(comm);
  });
}

TEST(FusionOrder, calls_that_depend_on_each_other_keep_their_order) {
  run_ranks(3, [](Communicator& comm) {
    std::vector<std::int32_t> a(8, 1), b(8), c(8);
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    anycclAllReduce(a.data(), b.data(), 8, anycclInt32, anycclSum, comm.handle(), nullptr);
    anycclAllReduce(b.data(), c.data(), 8, anycclInt32, anycclSum, comm.handle(), nullptr);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess);
    EXPECT_EQ(c, std::vector<std::int32_t>(8, 9));
  });
}

/// Each of three calls reads what the one before it writes, some at the root only: the other ranks
/// cannot know it.
TEST_P(Fusion, keeps_the_order_of_calls_that_depend_on_each_other_at_the_root) {
  on_ranks([](Communicator& comm) {
    for (const anycclCollective_t collective : kCollectives) {
      const int root = comm.size() - 1;
      const bool at_root = index(comm.rank()) == root;
      const auto n = static_cast<std::size_t>(comm.size());
      // Stages of equal size: stage i + 1 is the result of stage i; others' pointers may be null.
      const auto stages_after = [&](const auto& run_them) {
        std::vector<std::vector<float>> stages(4);
        std::mt19937 random(static_cast<unsigned>(index(comm.rank())));
        for (auto& stage : stages) stage = values(8 * n, random);
        std::vector<Part> parts(3);
        for (std::size_t i = 0; i < 3; ++i) {
          anycclCall_t& call = parts[i].call;
          call.size = sizeof call;
          call.collective = collective;
          call.datatype = anycclFloat32;
          call.op = anycclSum;
          call.count = 8;
          call.root = root;
          call.sendbuff = stages[i].data();
          call.recvbuff = stages[i + 1].data();
          if (collective == anycclCollReduce && !at_root) call.recvbuff = nullptr;
          if (collective == anycclCollGather && !at_root) call.recvbuff = nullptr;
          if (collective == anycclCollScatter && !at_root) call.sendbuff = nullptr;
          if (collective == anycclCollBroadcast && !at_root) call.sendbuff = nullptr;
        }
        run_them(comm, parts);
        return stages;
      };
      expect_same_bits(stages_after(run_one_by_one), stages_after(run_group),
                       "collective " + std::to_string(collective));
    }
  });
}

TEST(FusionOrder, ranks_of_one_thread_may_mix_their_calls) {
  std::vector<anycclComm_t> comms(3);
  ASSERT_EQ(anycclCommInitAll(comms.data(), 3, nullptr), anycclSuccess);
  std::vector<std::vector<std::int32_t>> data(3, std::vector<std::int32_t>(10, 1));
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t r = 0; r < 3; ++r)
      anycclAllReduce(&data[r][i], &data[r][i], 1, anycclInt32, anycclSum, comms[r], nullptr);
  ASSERT_EQ(anycclGroupEnd(), anycclSuccess);
  for (const auto& of_rank : data) EXPECT_EQ(of_rank, std::vector<std::int32_t>(10, 3));
  for (anycclComm_t comm : comms) anycclCommDestroy(comm);
}

/// Two calls of 4 and 12 elements here, of 8 and 8 there: together they have the same size.
TEST(FusionErrors, groups_of_other_calls_are_told_apart) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> data(32);
    const std::size_t first = comm.rank() == Rank{0} ? 4 : 8;
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    for (float* const at : {data.data(), data.data() + 16}) {
      const std::size_t count = at == data.data() ? first : 16 - first;
      anycclAllReduce(at, at, count, anycclFloat32, anycclSum, comm.handle(), nullptr);
    }
    EXPECT_NE(anycclGroupEnd(), anycclSuccess);
    const std::string text(comm.failure().message());
    EXPECT_NE(text.find("2 calls of a group, together all_reduce of 16 f32, sum"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("of other sizes"), std::string::npos) << text;
  });
}

TEST(FusionErrors, a_group_on_some_ranks_only_is_named) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> data(32);
    if (comm.rank() == Rank{0}) anycclGroupStart();
    anycclResult_t result = anycclSuccess;
    for (float* const at : {data.data(), data.data() + 16})
      result = anycclAllReduce(at, at, 16, anycclFloat32, anycclSum, comm.handle(), nullptr);
    if (comm.rank() == Rank{0}) result = anycclGroupEnd();
    EXPECT_NE(result, anycclSuccess);
    const std::string text(comm.failure().message());
    EXPECT_NE(text.find("the calls of a group must be the same on all ranks"), std::string::npos)
        << text;
  });
}

TEST(FusionErrors, a_wrong_call_is_named_and_the_others_run) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<std::int32_t> data(4, 1);
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    for (int i = 0; i < 4; ++i)
      anycclAllReduce(&data[0] + i, i == 2 ? nullptr : &data[0] + i, 1, anycclInt32, anycclSum,
                      comm.handle(), nullptr);
    EXPECT_EQ(anycclGroupEnd(), anycclInvalidArgument);
    EXPECT_EQ(data, (std::vector<std::int32_t>{2, 2, 1, 2}));
  });
}

}  // namespace
}  // namespace anyccl::test
