// Every wait for a peer that does not come ends with the time limit of the communicator, and says
// which rank is missing.

#include <atomic>
#include <functional>
#include <span>
#include <thread>

#include "support/streams.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr int kRanks = 3;
constexpr Rank kAbsent{2};

Status status_in(Communicator& comm, anycclResult_t result) {
  if (result == anycclSuccess) return {};
  const std::string text = anycclGetLastError(comm.handle());
  return {static_cast<Code>(result),
          text.empty() ? anycclGetLastError(nullptr) : text};  // of a group
}

struct Waiting {
  const char* name;
  std::function<Status(Communicator&, std::vector<float>&)> run;
};

Status issued(Communicator& comm, std::vector<float>& x) {
  return wait(comm.issue(call_of(anycclCollAllReduce, x)));
}

Status behind_another_one(Communicator& comm, std::vector<float>& x) {
  auto first = comm.issue(call_of(anycclCollAllReduce, x));
  EXPECT_TRUE(first.ok());
  std::vector<float> y{1};
  return wait(comm.all_reduce(view(y), view(y), ReduceOp::sum));
}

Status any_of_two(Communicator& comm, std::vector<float>& x) {
  std::vector<float> y{1};
  auto first = comm.issue(call_of(anycclCollRecv, x, 2)),
       second = comm.issue(call_of(anycclCollRecv, y, 2));
  const anycclWork_t works[] = {first->handle(), second->handle()};
  std::size_t which = 0;
  const anycclResult_t result = anycclWorkWaitAny(works, 2, &which);
  const Status status{static_cast<Code>(result), anycclGetLastError(nullptr)};
  EXPECT_EQ(anycclWorkWaitAll(works, 2), result);
  return status;
}

Status in_a_stream(Communicator& comm, std::vector<float>& x) {
  Stream stream = new_stream();
  EXPECT_OK(status_in(comm, anycclAllReduce(x.data(), x.data(), x.size(), anycclFloat32, anycclSum,
                                            comm.handle(), stream.handle())));
  return stream.synchronize();
}

Status in_a_group(Communicator& comm, std::vector<float>& x) {
  std::vector<float> y{1};
  EXPECT_EQ(anycclGroupStart(), anycclSuccess);
  EXPECT_EQ(anycclSend(x.data(), x.size(), anycclFloat32, 2, comm.handle(), nullptr),
            anycclSuccess);
  EXPECT_EQ(anycclRecv(y.data(), 1, anycclFloat32, 2, comm.handle(), nullptr), anycclSuccess);
  const anycclResult_t result = anycclGroupEnd();
  return {static_cast<Code>(result), anycclGetLastError(nullptr)};
}

Status prepared(Communicator& comm, std::vector<float>& x) {
  const anycclCall_t call = call_of(anycclCollAllReduce, x);
  anycclPrepared_t prepared = nullptr;
  EXPECT_OK(status_in(comm, anycclPrepare(&call, comm.handle(), &prepared)));
  anycclWork_t work = nullptr;
  EXPECT_EQ(anycclStart(prepared, &work), anycclSuccess);
  const anycclResult_t result = anycclWorkWait(work);
  const Status status{static_cast<Code>(result), anycclGetLastError(nullptr)};
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
  return status;
}

Status handed_over(Communicator& comm, std::vector<float>& x) {
  const anycclCall_t call = call_of(anycclCollAllReduce, x);
  anycclWork_t work = nullptr;
  const anycclResult_t first = anycclRunFor(&call, comm.handle(), 1, &work);
  if (first != anycclInProgress) return status_in(comm, first);
  const anycclResult_t result = anycclWorkWait(work);
  const Status status{static_cast<Code>(result), anycclGetLastError(nullptr)};
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  return status;
}

Status signals(Communicator& comm, std::vector<float>&) {
  anycclWaitSignalDesc_t wanted{};
  wanted.opCnt = 1;
  wanted.peer = 2;
  return status_in(comm, anycclWaitSignal(1, &wanted, comm.handle(), nullptr));
}

Status own_signal(Communicator& comm, std::vector<float>&) {
  anycclWaitSignalDesc_t wanted{};
  wanted.opCnt = 1;
  wanted.peer = index(comm.rank());
  return status_in(comm, anycclWaitSignal(1, &wanted, comm.handle(), nullptr));
}

Status window(Communicator& comm, std::vector<float>& x) {
  anycclWindow_t made = nullptr;
  return status_in(
      comm, anycclCommWindowRegister(comm.handle(), x.data(), x.size() * sizeof x[0], &made, 0));
}

Status split(Communicator& comm, std::vector<float>&) {
  return comm.split(0, 0).status();
}

Status grow(Communicator& comm, std::vector<float>&) {
  anycclComm_t made = nullptr;
  return status_in(comm, anycclCommGrow(comm.handle(), kRanks + 1, nullptr, -1, &made, nullptr));
}

Status parts(Communicator& comm, std::vector<float>&) {
  return status_in(comm, anycclCommParts(comm.handle(), 2));
}

Status neighbours(Communicator& comm, std::vector<float>& x) {
  anycclTopology_t ring = nullptr;
  const int dims[] = {kRanks}, periodic[] = {1};
  EXPECT_OK(status_in(comm, anycclTopologyCreateGrid(&ring, 1, dims, periodic, comm.handle())));
  std::vector<float> all(2 * x.size());
  const Status status =
      status_in(comm, anycclNeighborAllGather(x.data(), all.data(), x.size(), anycclFloat32, ring,
                                              comm.handle(), nullptr));
  EXPECT_EQ(anycclTopologyDestroy(ring), anycclSuccess);
  return status;
}

Status routing(Communicator& comm, std::vector<float>&) {
  const int experts[] = {0, 1};
  anycclRouting_t made = nullptr;
  return status_in(comm, anycclRoutingCreate(&made, 2, 1, experts, kRanks, 4, 0, comm.handle()));
}

const Waiting kWaits[] = {
    {"all_reduce",
     [](auto& comm, auto& x) { return wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)); }},
    {"receive", [](auto& comm, auto& x) { return wait(comm.recv(view(x), kAbsent)); }},
    {"receive_from_anyone",
     [](auto& comm, auto& x) { return wait(comm.recv(view(x), kAnySource)); }},
    {"synchronous_send",
     [](auto& comm, auto& x) {
       return status_in(comm,
                        anycclSsend(x.data(), x.size(), anycclFloat32, 2, comm.handle(), nullptr));
     }},
    {"long_send",
     [](auto& comm, auto&) {
       static float large[12 << 20];  // nobody writes it, so making it takes no time
       return wait(comm.send(view(std::span<float>(large)), kAbsent));
     }},
    {"probe",
     [](auto& comm, auto&) {
       anycclMessage_t message;
       return status_in(comm, anycclProbe(2, 0, comm.handle(), &message));
     }},
    {"probe_of_anyone",
     [](auto& comm, auto&) {
       anycclMessage_t message;
       return status_in(comm, anycclProbe(ANYCCL_ANY_SOURCE, 0, comm.handle(), &message));
     }},
    {"issued", issued},
    {"behind_another_one", behind_another_one},
    {"any_of_two", any_of_two},
    {"in_a_stream", in_a_stream},
    {"in_a_group", in_a_group},
    {"prepared", prepared},
    {"handed_over", handed_over},
    {"signals", signals},
    {"own_signal", own_signal},
    {"window", window},
    {"split", split},
    {"grow", grow},
    {"parts", parts},
    {"neighbours", neighbours},
    {"routing", routing},
};

class WaitLimit : public testing::TestWithParam<Waiting> {
  const Environment limits_{{{"ANYCCL_OP_TIMEOUT", "0.1"}}};
};

TEST_P(WaitLimit, ends_a_wait_for_a_rank_that_never_calls) {
  std::atomic<int> over{0};
  Door all_over;
  run_ranks(kRanks, [&](Communicator& comm) {
    if (comm.rank() == kAbsent) {
      EXPECT_TRUE(all_over.pass());
      return;
    }
    std::vector<float> x{1, 2};
    const auto since = Clock::now();
    const Status status = GetParam().run(comm, x);
    EXPECT_LT(Clock::now() - since, 100ms + 2s);  // a machine may be busy
    EXPECT_EQ(status.code(), Code::timeout) << status.message();
    EXPECT_NE(status.message().find("timeout after 100 ms"), std::string::npos) << status.message();
    if (++over == kRanks - 1) all_over.open();
  });
}

INSTANTIATE_TEST_SUITE_P(Of, WaitLimit, testing::ValuesIn(kWaits),
                         [](const auto& one) { return std::string(one.param.name); });

/// Runs on rank 0 alone, with a limit of 100 ms.
void run_on_rank_0(const std::function<void(Communicator&)>& body) {
  const Environment limits{{{"ANYCCL_OP_TIMEOUT", "0.1"}}};
  Door over;
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{0}) body(comm);
    if (comm.rank() == Rank{0}) over.open();
    EXPECT_TRUE(over.pass());
  });
}

TEST(WaitLimits, end_the_destruction_of_a_communicator_with_an_open_receive) {
  run_on_rank_0([](Communicator& comm) {
    std::vector<float> x{1};
    auto receive = comm.issue(call_of(anycclCollRecv, x, 1));
    const auto since = Clock::now();
    static_cast<void>(comm.destroy());
    EXPECT_LT(Clock::now() - since, 100ms + 2s);
    EXPECT_EQ(receive->wait().code(), Code::timeout);
  });
}

TEST(WaitLimits, of_a_message_to_this_rank_itself) {
  run_on_rank_0([](Communicator& comm) {
    std::vector<float> x{1};
    const Status status = wait(comm.recv(view(x), Rank{0}));
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_NE(status.message().find("waits for itself in a receive"), std::string::npos)
        << status.message();
  });
}

TEST(WaitLimits, of_an_object_hold_for_its_synchronous_sends) {
  run_on_rank_0([](Communicator& comm) {
    std::vector<float> x{1};
    comm.set_timeout(50ms);
    const Status status = wait(ssend(comm, view(x), Rank{1}));
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_NE(status.message().find("timeout after 50 ms"), std::string::npos) << status.message();
  });
}

TEST(WaitLimits, of_messages_that_this_rank_sends_to_itself_and_does_not_receive) {
  static float large[12 << 20];
  const std::pair<const char*, std::function<Status(Communicator&)>> sends[] = {
      {"send",
       [](Communicator& comm) {
         return wait(comm.send(view(std::span<float>(large, 1)), Rank{0}));
       }},
      {"long send",
       [](Communicator& comm) { return wait(comm.send(view(std::span<float>(large)), Rank{0})); }},
      {"synchronous send",
       [](Communicator& comm) {
         return wait(ssend(comm, view(std::span<float>(large, 1)), Rank{0}));
       }},
  };
  for (const auto& [name, send] : sends)
    run_on_rank_0([&name = name, &send = send](Communicator& comm) {
      const Status status = send(comm);
      EXPECT_EQ(status.code(), Code::timeout) << name << ": " << status.message();
      EXPECT_NE(status.message().find("waits for itself in a "), std::string::npos)
          << name << ": " << status.message();
    });
}

TEST(WaitLimits, of_a_call_come_before_that_of_the_communicator) {
  const Environment limits{{{"ANYCCL_OP_TIMEOUT", "0.05"}}};
  Door waited;
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x{1};
    anycclCall_t call = call_of(anycclCollAllReduce, x);
    call.timeout_ms = ANYCCL_NO_TIMEOUT;
    if (comm.rank() == Rank{1}) {
      EXPECT_TRUE(waited.pass());
    }
    auto work = comm.issue(call);
    if (comm.rank() == Rank{0}) {
      const Status status = work->wait_for(150ms);
      EXPECT_EQ(status.code(), Code::in_progress);
      EXPECT_NE(status.message().find("waits for rank 1"), std::string::npos) << status.message();
    }
    waited.open();
    EXPECT_OK(work->wait());
  });
}

TEST(WaitLimits, of_a_configuration_come_before_the_environment_and_are_inherited) {
  const Environment limits{{{"ANYCCL_OP_TIMEOUT", "60"}}};
  Door over;
  run_ranks(2, [&](Communicator& comm) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    config.timeoutMs = 1000;
    anycclComm_t child = nullptr, grandchild = nullptr;
    ASSERT_OK(
        status_in(comm, anycclCommSplit(comm.handle(), 0, index(comm.rank()), &child, &config)));
    ASSERT_EQ(anycclCommSplit(child, 0, index(comm.rank()), &grandchild, nullptr), anycclSuccess);
    if (comm.rank() == Rank{0}) {
      EXPECT_EQ(anycclBarrier(grandchild, nullptr), anycclTimeout);
      EXPECT_EQ(std::string(anycclGetLastError(grandchild)).find("timeout after 1000 ms"), 0U);
      over.open();
    }
    EXPECT_TRUE(over.pass());
    EXPECT_EQ(anycclCommAbort(grandchild), anycclSuccess);
    EXPECT_EQ(anycclCommAbort(child), anycclSuccess);
  });
}

TEST(WaitLimits, do_not_count_for_a_receive_that_nobody_waits_for) {
  const Environment limits{{{"ANYCCL_OP_TIMEOUT", "0.3"}}};
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x{1}, message{1};
    const bool receives = comm.rank() == Rank{0};
    anycclCall_t last =
        call_of(receives ? anycclCollRecv : anycclCollSend, message, 1 - index(comm.rank()));
    last.tag = 9;
    anyccl::Result<Work> posted =
        receives ? comm.issue(last) : comm.all_reduce(view(x), view(x), ReduceOp::max);
    if (receives) EXPECT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::max)));
    for (int i = 0; i < 6; ++i) {
      if (!receives)
        std::this_thread::sleep_for(
            100ms);  // the limit passes while rank 0 is in calls that succeed
      EXPECT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::max)));
    }
    if (!receives) {
      EXPECT_OK(posted->wait());
      posted = comm.issue(last);
    }
    EXPECT_OK(posted->wait());
  });
}

TEST(WaitLimits, count_for_a_receive_behind_one_that_may_wait_for_ever) {
  run_on_rank_0([](Communicator& comm) {
    std::vector<float> x{1}, y{1};
    anycclCall_t first = call_of(anycclCollRecv, x, 1);
    first.tag = 9;
    first.timeout_ms = ANYCCL_NO_TIMEOUT;
    auto posted = comm.issue(first);
    EXPECT_EQ(wait(comm.issue(call_of(anycclCollRecv, y, 1))).code(), Code::timeout);
    EXPECT_EQ(posted->wait().code(), Code::timeout) << "the communicator has failed";
  });
}

TEST(WaitLimits, that_are_negative_are_refused) {
  run_ranks(1, [](Communicator& comm) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    config.timeoutMs = -5;
    anycclComm_t child = nullptr;
    const Status status = status_in(comm, anycclCommSplit(comm.handle(), 0, 0, &child, &config));
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_EQ(status.message(), "config->timeoutMs is -5 ms");
  });
}

}  // namespace
}  // namespace anyccl::test
