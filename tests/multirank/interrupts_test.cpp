// A program ends calls of its own threads that wait, and other ranks hear of it.

#include <future>
#include <latch>
#include <string>
#include <thread>

#include "anyccl/interrupt.h"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

class Interrupts : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(Over, Interrupts, testing::Values("loopback", "shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

/// The program lets calls of this thread wait until it is asked a second time.
class AsksTwice {
 public:
  AsksTwice() {
    anycclThreadInterrupt([](void* asked) { return ++*static_cast<int*>(asked) >= 2 ? 1 : 0; },
                          &asked_);
  }
  AsksTwice(const AsksTwice&) = delete;
  AsksTwice& operator=(const AsksTwice&) = delete;
  ~AsksTwice() { anycclThreadInterrupt(nullptr, nullptr); }
  int asked() const { return asked_; }

 private:
  int asked_ = 0;
};

using WaitingCall = anycclResult_t (*)(anycclComm_t, float*);

anycclResult_t all_reduce(anycclComm_t comm, float* x) {
  return anycclAllReduce(x, x, 1, anycclFloat32, anycclSum, comm, nullptr);
}

anycclResult_t recv(anycclComm_t comm, float* x) {
  return anycclRecv(x, 1, anycclFloat32, 0, comm, nullptr);
}

anycclResult_t group(anycclComm_t comm, float* x) {
  anycclGroupStart();
  anycclRecv(x, 1, anycclFloat32, 0, comm, nullptr);
  anycclAllReduce(x, x, 1, anycclFloat32, anycclSum, comm, nullptr);
  return anycclGroupEnd();
}

anycclResult_t wait_signal(anycclComm_t comm, float*) {
  anycclWaitSignalDesc_t one{1, 0, 0, 0};
  return anycclWaitSignal(1, &one, comm, nullptr);
}

anycclResult_t make_window(anycclComm_t comm, float* x) {
  anycclWindow_t window{};
  return anycclCommWindowRegister(comm, x, sizeof *x, &window, ANYCCL_WIN_DEFAULT);
}

anycclResult_t make_coded(anycclComm_t comm, float*) {
  anycclCoded_t coded = nullptr;
  const anycclResult_t result = anycclCodedCreate(&coded, anycclCodecBfloat16, 1, 0, comm);
  EXPECT_EQ(anycclCodedDestroy(coded), anycclSuccess);
  return result;
}

anycclResult_t route(anycclComm_t comm, float*) {
  const int experts[] = {0};
  anycclRouting_t routing = nullptr;
  const anycclResult_t result = anycclRoutingCreate(&routing, 1, 1, experts, 2, 0, 0, comm);
  EXPECT_EQ(anycclRoutingDestroy(routing), anycclSuccess);
  return result;
}

anycclResult_t finalize_behind_a_call(anycclComm_t comm, float* x) {
  const anycclCall_t call = call_of(anycclCollAllReduce, {x, 1});
  anycclWork_t work = nullptr;
  EXPECT_EQ(anycclIssue(&call, comm, &work), anycclSuccess);
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  return anycclCommFinalize(comm);
}

/// A call of rank 1 that is interrupted, and one of rank 0 that comes late and fits.
struct Pair {
  WaitingCall interrupted, late;
};
constexpr Pair kPairs[] = {{all_reduce, all_reduce},
                           {recv, all_reduce},
                           {group, all_reduce},
                           {wait_signal, all_reduce},
                           {make_window, make_window},
                           {make_coded, make_coded},
                           {route, route},
                           {finalize_behind_a_call, all_reduce}};

TEST_P(Interrupts, end_calls_that_wait_and_other_ranks_are_told) {
  for (const Pair& calls : kPairs) {
    std::promise<void> over;
    run_ranks(2, [&](Communicator& comm) {
      float x = 1;
      if (comm.rank() == Rank{1}) {
        const AsksTwice interrupt;
        EXPECT_EQ(calls.interrupted(comm.handle(), &x), anycclAborted);
        EXPECT_EQ(interrupt.asked(), 2);
        over.set_value();
      } else {
        over.get_future().wait();
        anycclResult_t result = calls.late(comm.handle(), &x);
        if (result == anycclSuccess) result = all_reduce(comm.handle(), &x);  // it had all it needs
        EXPECT_EQ(result, anycclAborted);
        const std::string why = anycclGetLastError(comm.handle());
        EXPECT_NE(why.find("was interrupted by its program while it waited"), std::string::npos)
            << why;
      }
    });
  }
}

TEST_P(Interrupts, end_only_the_wait_for_a_sequence_of_another_thread) {
  run_ranks(2, [](Communicator& comm) {
    float x = 1, y = 1;
    ASSERT_EQ(anycclSequenceBegin(comm.handle(), ANYCCL_NO_TIMEOUT), anycclSuccess);
    std::thread([&] {
      const AsksTwice interrupt;
      EXPECT_EQ(all_reduce(comm.handle(), &y), anycclAborted);
    }).join();
    EXPECT_EQ(all_reduce(comm.handle(), &x), anycclSuccess);
    EXPECT_EQ(x, 2);
    ASSERT_EQ(anycclSequenceEnd(comm.handle()), anycclSuccess);
  });
}

TEST_P(Interrupts, are_not_asked_for_by_calls_with_a_time_of_their_own) {
  std::latch both(2);
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(1, 1.0F);
    const AsksTwice interrupt;
    const anycclCall_t call = call_of(anycclCollRecv, x, 1 - index(comm.rank()));
    anycclWork_t rest = nullptr;
    EXPECT_EQ(anycclRunFor(&call, comm.handle(), 300, &rest), anycclInProgress);
    EXPECT_EQ(interrupt.asked(), 0);
    both.arrive_and_wait();
    EXPECT_EQ(anycclSend(x.data(), 1, anycclFloat32, call.root, comm.handle(), nullptr),
              anycclSuccess);
    EXPECT_EQ(anycclWorkWait(rest), anycclSuccess);
    EXPECT_EQ(anycclWorkFree(rest), anycclSuccess);
  });
}

TEST_P(Interrupts, end_the_wait_of_destroying_a_communicator_that_is_still_being_created) {
  const auto id = UniqueId::create();
  ASSERT_OK(id.status());
  CommunicatorConfig config;
  config.blocking = false;
  auto comm = Communicator::from_unique_id(*id, Rank{0}, 2, config);
  ASSERT_OK(comm.status());
  const AsksTwice asks;
  EXPECT_EQ(comm->destroy().code(), Code::aborted);
  EXPECT_GE(asks.asked(), 2);
}

}  // namespace
}  // namespace anyccl::test
