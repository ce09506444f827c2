// Operators, works and time limits of the C++ interface.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>

#include "multirank/cpp/expect.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Ints = std::vector<int>;

TEST(CppOperators, find_the_largest_and_the_least_value_and_where_it_is) {
  run_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank());
    const auto check = [&]<typename T>(T value) {
      const auto largest = comm.create_max_loc<T>(), least = comm.create_min_loc<T>();
      ASSERT_TRUE(largest.ok() && least.ok());
      const std::vector<ValueIndex<T>> x{{me == 1 ? value : T{0}, me}};
      std::vector<ValueIndex<T>> max(1), min(1);
      ASSERT_OK(wait(comm.all_reduce(x, max, *largest)));
      ASSERT_OK(wait(comm.all_reduce(x, min, *least)));
      EXPECT_EQ(max[0], (ValueIndex<T>{value, 1}));
      EXPECT_EQ(min[0], (ValueIndex<T>{0, 0})) << "the first of two";
      EXPECT_OK(comm.destroy_operator(*largest));
      EXPECT_OK(comm.destroy_operator(*least));
    };
    check(2.5F);
    check(2.5);
    check(std::int32_t{7});
    check(std::int64_t{7});
  });
}

TEST(CppOperators, reduce_locally) {
  const std::vector<float> x{1, 5};
  std::vector<float> y{2, 3}, three(3);
  ASSERT_OK(reduce_local(x, y, ReduceOp::max));
  EXPECT_EQ(y, (std::vector<float>{2, 5}));
  EXPECT_REFUSED(reduce_local(x, three, ReduceOp::sum), Code::invalid_argument,
                 "2 f32 and the result 3 f32");
  EXPECT_REFUSED(reduce_local(x, y, ReduceOp::avg), Code::unsupported, "avg");
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  const auto largest = comm.create_max_loc<float>();
  ASSERT_TRUE(largest.ok());
  const std::vector<ValueIndex<float>> a{{1, 4}};
  std::vector<ValueIndex<float>> b{{1, 5}};
  ASSERT_OK(comm.reduce_local(a, b, *largest));
  EXPECT_EQ(b[0], a[0]);
}

TEST(CppCalls, all_to_all_w_has_a_type_for_each_pair) {
  run_ranks(2, [](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    // To rank 0 go two bytes, to rank 1 one double.
    const std::array<std::size_t, 2> sent{2, 1}, sent_at{0, 8}, got_at{0, 8};
    const std::array<std::size_t, 2> got =
        me == 0 ? std::array<std::size_t, 2>{2, 2} : std::array<std::size_t, 2>{1, 1};
    const std::array<DType, 2> sent_as{DType::i8, DType::f64};
    const std::array<DType, 2> got_as{sent_as[me], sent_as[me]};
    std::vector<std::byte> x(16, static_cast<std::byte>(me + 1)), y(16), want(16);
    ASSERT_OK(comm.all_to_all_w(x, {sent, sent_at, sent_as}, y, {got, got_at, got_as}));
    for (std::size_t from : {0U, 1U})
      std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(8 * from), me == 0 ? 2 : 8,
                  static_cast<std::byte>(from + 1));
    EXPECT_EQ(y, want);
    const std::array<DType, 1> one{};
    EXPECT_REFUSED(comm.all_to_all_w(x, {sent, sent_at, one}, y, {got, got_at, got_as}),
                   Code::invalid_argument, "1 entries instead of one for each of 2 ranks");
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST(CppCalls, whose_blocks_are_counted_need_a_communicator_that_is_not_finalized) {
  run_ranks(2, [](Communicator& comm) {
    ASSERT_OK(comm.finalize());
    std::vector<int> x(4), y(4);
    EXPECT_REFUSED(comm.all_to_all(x, y).status(), Code::invalid_usage, "finalized");
  });
}

TEST(CppCalls, issue_all_gives_a_work_for_each_call) {
  run_ranks(2, [](Communicator& comm) {
    Ints x(1, 1), y(1, 2);
    anycclCall_t call{};
    call.size = sizeof call;
    call.collective = anycclCollAllReduce;
    call.count = 1;
    call.datatype = anycclInt32;
    std::array<anycclCall_t, 2> calls{call, call};
    calls[0].sendbuff = calls[0].recvbuff = x.data();
    calls[1].sendbuff = calls[1].recvbuff = y.data();
    auto works = comm.issue_all(calls);
    ASSERT_TRUE(works.ok()) << works.status().message();
    for (Work& work : *works) ASSERT_OK(work.wait());
    EXPECT_EQ(x[0] + y[0], 6);
  });
}

TEST(CppWork, notifies_once) {
  run_ranks(2, [](Communicator& comm) {
    std::promise<int> told;
    std::future<int> hears = told.get_future();
    auto work = comm.barrier();
    ASSERT_TRUE(work.ok());
    ASSERT_OK(work->notify([promise = std::move(told)]() mutable { promise.set_value(7); }));
    EXPECT_EQ(hears.get(), 7);
    ASSERT_OK(work->wait());
    EXPECT_REFUSED(Work().notify([] {}), Code::invalid_argument, "work is NULL");
  });
}

TEST(CppWork, of_a_communicator_with_a_time_limit_fails_when_it_is_over) {
  std::atomic<bool> failed = false;
  run_ranks(2, [&](Communicator& comm) {
    comm.set_timeout(60s);
    ASSERT_OK(wait(comm.barrier()));
    if (comm.rank() == Rank{1}) return failed.wait(false);  // and never calls the second one
    comm.set_timeout(20ms);
    EXPECT_EQ(wait(comm.barrier()).code(), Code::timeout);
    failed = true;
    failed.notify_all();
  });
}

TEST(CppWork, has_a_time_limit_of_its_own) {
  std::atomic<bool> failed = false;
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{1}) return failed.wait(false);
    auto work = comm.barrier();
    ASSERT_TRUE(work.ok());
    EXPECT_EQ(work->wait_for(1ms).code(), Code::in_progress);
    EXPECT_OK(work->limit(10ms));
    EXPECT_EQ(work->wait().code(), Code::timeout);
    failed = true;
    failed.notify_all();
  });
}

}  // namespace
}  // namespace anyccl::test
