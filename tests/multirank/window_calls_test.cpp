// Windows: their lives, wrong calls, aborts, and one thread with all ranks.

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>

#include "support/windows.hpp"

namespace anyccl::test {
namespace {

using WindowCalls = Windows;
OVER_ALL_TRANSPORTS(WindowCalls);

TEST_P(WindowCalls, of_several_communicators_are_apart) {
  run_ranks(2, [](Communicator& comm) {
    auto other = comm.split(0, -index(comm.rank()));  // the other way round
    ASSERT_OK(other.status());
    Bytes here(10), there(10);
    Window first = new_window(comm, here), second = new_window(*other, there);
    ASSERT_OK(first.put_signal(view(pattern(10, 1)), next(comm), 0));
    ASSERT_OK(second.put_signal(view(pattern(10, 2)), next(*other), 0));
    ASSERT_OK(wait_signal(*other, {{next(*other)}}));
    ASSERT_OK(wait_signal(comm, {{next(comm)}}));
    EXPECT_EQ(here, pattern(10, 1));
    EXPECT_EQ(there, pattern(10, 2));
  });
}

TEST_P(WindowCalls, in_streams_send_what_the_stream_has_made) {
  for (const std::size_t bytes : {8U, 1000U, 5000U})
    run_ranks(2, [&](Communicator& comm) {
      Bytes memory(bytes), mine(bytes);
      Window window = new_window(comm, memory);
      auto stream = Stream::create();
      ASSERT_OK(stream.status());
      ASSERT_OK(stream->run([&] { std::ranges::copy(pattern(bytes, 7), mine.begin()); }));
      ASSERT_OK(window.put_signal(view(std::as_const(mine)), next(comm), 0, {}, *stream));
      ASSERT_OK(wait_signal(comm, {{next(comm)}}));
      EXPECT_EQ(memory, pattern(bytes, 7)) << bytes;
      ASSERT_OK(stream->synchronize());
      ASSERT_OK(window.deregister());
    });
}

TEST_P(WindowCalls, that_are_left_end_with_their_communicator) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(100);
    anycclWindow_t window = nullptr;
    ASSERT_EQ(anycclCommWindowRegister(comm.handle(), memory.data(), 100, &window,
                                       ANYCCL_WIN_COLL_SYMMETRIC),
              anycclSuccess);
    ASSERT_OK(signal(comm, next(comm)));
    ASSERT_OK(wait_signal(comm, {{next(comm)}}));
    ASSERT_OK(comm.destroy());
  });
}

TEST_P(WindowCalls, say_what_is_wrong_with_a_call) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(100), mine(10);
    Window window = new_window(comm, memory);
    const auto put = [&](const void* from, std::size_t count, int type, int peer,
                         std::size_t offset, int index, int context, unsigned flags) {
      const anycclResult_t code =
          anycclPutSignal(from, count, static_cast<anycclDataType_t>(type), peer, window.handle(),
                          offset, index, context, flags, comm.handle(), nullptr);
      return Status(static_cast<Code>(code), anycclGetLastError(comm.handle()));
    };
    constexpr auto kWrong = Code::invalid_argument;
    expect_error(put(&mine[0], 10, 1, 2, 0, 0, 0, 0), kWrong, {"peer 2", "communicator of 2"});
    expect_error(put(&mine[0], 10, 1, -1, 0, 0, 0, 0), kWrong, {"peer -1"});
    expect_error(put(&mine[0], 10, 1, 1, 0, 256, 0, 0), kWrong, {"sigIdx 256", "0..255"});
    expect_error(put(&mine[0], 10, 1, 1, 0, 0, -1, 0), kWrong, {"ctx -1", "0..15"});
    expect_error(put(&mine[0], 10, 1, 1, 0, 0, 0, 4), kWrong, {"flags is 4"});
    expect_error(put(&mine[0], 10, 30, 1, 0, 0, 0, 0), kWrong, {"datatype 30"});
    expect_error(put(nullptr, 10, 1, 1, 0, 0, 0, 0), kWrong, {"localbuff is NULL", "count is 10"});
    expect_error(put(&mine[0], 10, 1, 1, 91, 0, 0, 0), kWrong,
                 {"peerWinOffset 91", "10 bytes", "rank 1", "has 100 bytes"});
    expect_error(put(&mine[0], ~std::size_t{0}, 8, 1, 0, 0, 0, 0), kWrong, {"count", "overflows"});
    expect_error(put(&mine[0], 10, 1, 1, ~std::size_t{0}, 0, 0, 0), kWrong, {"peerWinOffset"});
    expect_error(signal(comm, Rank{0}, {.index = -1}), kWrong, {"sigIdx -1"});
    expect_error(wait_signal(comm, {{Rank{0}, 0}, {Rank{7}, 1}}), kWrong,
                 {"signalDescs[1]", "peer 7"});
    expect_error(wait_signal(comm, {{Rank{0}, -3}}), kWrong, {"signalDescs[0]", "opCnt -3"});
    EXPECT_EQ(anycclWaitSignal(-1, nullptr, comm.handle(), nullptr), anycclInvalidArgument);
    EXPECT_EQ(anycclWaitSignal(1, nullptr, comm.handle(), nullptr), anycclInvalidArgument);
    EXPECT_OK(wait_signal(comm, {}));
    EXPECT_OK(wait(comm.barrier()));  // it goes on
  });
}

TEST_P(WindowCalls, that_are_deregistered_cannot_be_used) {
  run_ranks(2, [](Communicator& comm) {
    Bytes memory(100);
    anycclWindow_t window = nullptr;
    void* at = nullptr;
    ASSERT_EQ(anycclCommWindowRegister(comm.handle(), memory.data(), 100, &window, 0),
              anycclSuccess);
    ASSERT_EQ(anycclWinGetUserPtr(comm.handle(), window, &at), anycclSuccess);
    EXPECT_EQ(at, memory.data());
    auto other = comm.split(0, 0);
    EXPECT_EQ(anycclWinGetUserPtr(other->handle(), window, &at), anycclInvalidArgument);
    EXPECT_EQ(anycclCommWindowDeregister(comm.handle(), nullptr), anycclInvalidArgument);
    ASSERT_EQ(anycclCommWindowDeregister(comm.handle(), window), anycclSuccess);
    EXPECT_EQ(anycclCommWindowDeregister(comm.handle(), window), anycclInvalidUsage);
    EXPECT_EQ(anycclPutSignal(at, 1, anycclUint8, 0, window, 0, 0, 0, 0, comm.handle(), nullptr),
              anycclInvalidUsage);
    EXPECT_NE(std::string(anycclGetLastError(comm.handle())).find("peerWin is deregistered"),
              std::string::npos);
  });
}

TEST_P(WindowCalls, that_one_rank_registers_wrongly_are_an_error_everywhere) {
  run_ranks(3, [](Communicator& comm) {
    Bytes memory(100);
    const bool wrong = comm.rank() == Rank{1};
    expect_error(Window::create(comm, memory.data(), 100, wrong ? 64 : 0).status(),
                 wrong ? Code::invalid_argument : Code::remote_error,
                 {wrong ? "winFlags 0x40" : "rank 1"});
    expect_error(Window::create(comm, nullptr, 7).status(), Code::invalid_argument,
                 {"buff is NULL", "size is 7"});
    Window window = new_window(comm, memory);  // it goes on
    ASSERT_OK(window.put_signal(view(pattern(10, 1)), next(comm), 0));
    ASSERT_OK(wait_signal(comm, {{previous(comm)}}));
  });
}

TEST(WindowAborts, end_waits_for_signals) {
  std::atomic<bool> aborted{false};
  run_ranks(3, [&](Communicator& comm) {
    Bytes memory(100);
    anycclWindow_t window = nullptr;
    ASSERT_EQ(anycclCommWindowRegister(comm.handle(), memory.data(), memory.size(), &window, 0),
              anycclSuccess);
    if (comm.rank() == Rank{2}) {
      ASSERT_OK(comm.abort());
      aborted = true;
      return;
    }
    expect_error(wait_signal(comm, {{Rank{0}}, {Rank{1}}}), Code::aborted, {"rank 2"});
    while (!aborted) std::this_thread::yield();
    const anycclResult_t put = anycclPutSignal(memory.data(), 1, anycclUint8, 0, window, 0, 0, 0, 0,
                                               comm.handle(), nullptr);
    EXPECT_EQ(put, anycclAborted);
  });
}

TEST(WindowAborts, end_waits_of_another_thread_and_of_streams) {
  run_ranks(2, [](Communicator& comm) {
    auto stream = Stream::create();
    ASSERT_OK(stream.status());
    ASSERT_OK(wait_signal(comm, {{Rank{0}}, {Rank{1}}}, *stream));
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(comm.abort());
    } else {
      expect_error(wait_signal(comm, {{Rank{1}}}), Code::aborted, {"rank 1"});
    }
    expect_error(stream->synchronize(), Code::aborted, {"rank 1"});
  });
}

TEST_P(WindowCalls, are_not_made_by_a_group) {
  run_ranks(1, [](Communicator& comm) {
    Bytes memory(100);
    auto window = Result<Window>(Window());
    const Status all = group([&] { window = Window::create(comm, memory); });
    for (const Status& status : {window.status(), all})
      expect_error(status, Code::invalid_usage, {"Window::create", "before the group"});
    EXPECT_OK(wait(comm.barrier()));
  });
}

/// No send has to meet a receive, so nothing is left to complete.
TEST(WindowAborts, are_not_needed_by_a_rank_whose_own_signal_never_comes) {
  run_ranks(1, [](Communicator& comm) {
    auto stream = Stream::create();
    ASSERT_OK(stream.status());
    ASSERT_OK(wait_signal(comm, {{Rank{0}}}, *stream));
    ASSERT_OK(comm.destroy());
    expect_error(stream->synchronize(), Code::invalid_usage, {"rank 0"});
  });
}

/// All ranks of one communicator, in this thread.
class OneThread : public testing::Test {
 protected:
  static constexpr int kRanks = 3;
  static constexpr std::size_t kBlock = 1 << 20;

  OneThread() {
    for (Bytes& memory : memory_) memory.resize(kRanks * kBlock);
    EXPECT_EQ(anycclCommInitAll(comms_, kRanks, nullptr), anycclSuccess);
    EXPECT_EQ(anycclGroupStart(), anycclSuccess);
    for (int r = 0; r < kRanks; ++r)
      EXPECT_EQ(anycclCommWindowRegister(comms_[r], memory_[r].data(), memory_[r].size(),
                                         &windows_[r], ANYCCL_WIN_DEFAULT),
                anycclSuccess);
    EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
  }
  ~OneThread() override {
    EXPECT_EQ(anycclGroupStart(), anycclSuccess);
    for (int r = 0; r < kRanks; ++r)
      EXPECT_EQ(anycclCommWindowDeregister(comms_[r], windows_[r]), anycclSuccess);
    EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
    for (anycclComm_t comm : comms_) EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
  }
  void put(int from, int to, const Bytes& data) {
    EXPECT_EQ(
        anycclPutSignal(data.data(), data.size(), anycclUint8, to, windows_[from],
                        kBlock * static_cast<std::size_t>(from), 0, 0, 0, comms_[from], nullptr),
        anycclSuccess)
        << anycclGetLastError(comms_[from]);
  }
  void wait_for_all(int rank) {
    anycclWaitSignalDesc_t all[kRanks] = {{1, 0, 0, 0}, {1, 1, 0, 0}, {1, 2, 0, 0}};
    EXPECT_EQ(anycclWaitSignal(kRanks, all, comms_[rank], nullptr), anycclSuccess)
        << anycclGetLastError(comms_[rank]);
  }
  void expect_all(std::size_t bytes) const {
    for (int r = 0; r < kRanks; ++r)
      for (int peer = 0; peer < kRanks; ++peer) {
        const Bytes theirs = pattern(bytes, 10 * peer + r);
        EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(),
                               &memory_[r][kBlock * static_cast<std::size_t>(peer)]));
      }
  }

  anycclComm_t comms_[kRanks] = {};
  anycclWindow_t windows_[kRanks] = {};
  Bytes memory_[kRanks];
};

TEST_F(OneThread, exchanges_blocks_in_a_group) {
  std::vector<Bytes> data;
  for (int i = 0; i < kRanks * kRanks; ++i) data.push_back(pattern(kBlock, 10 * (i / 3) + i % 3));
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    wait_for_all(r);
    for (int peer = 0; peer < kRanks; ++peer)
      put(r, peer, data[static_cast<std::size_t>(kRanks * r + peer)]);
  }
  ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
  expect_all(kBlock);
}

/// Each call waits, and no other thread acts for the target.
TEST_F(OneThread, exchanges_large_blocks_without_a_group) {
  for (int r = 0; r < kRanks; ++r)
    for (int peer = 0; peer < kRanks; ++peer) put(r, peer, pattern(kBlock, 10 * r + peer));
  for (int r = 0; r < kRanks; ++r) wait_for_all(r);
  expect_all(kBlock);
}

TEST_F(OneThread, is_told_how_long_a_group_of_puts_should_take) {
  const Bytes data(kBlock);
  anycclSimInfo_t info = ANYCCL_SIM_INFO_INITIALIZER;
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  put(0, 1, data);
  wait_for_all(2);
  ASSERT_EQ(anycclGroupSimulateEnd(&info), anycclSuccess) << anycclGetLastError(nullptr);
  EXPECT_GT(info.estimatedTime, 0);
}

TEST_F(OneThread, hears_of_a_wrong_put_at_the_end_of_its_group) {
  Bytes data(kBlock);
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  anycclPutSignal(data.data(), data.size(), anycclUint8, 1, windows_[0], 3 * kBlock, 0, 0, 0,
                  comms_[0], nullptr);
  EXPECT_EQ(anycclGroupEnd(), anycclInvalidArgument);
  EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("peerWinOffset 3145728"),
            std::string::npos);
}

}  // namespace
}  // namespace anyccl::test
