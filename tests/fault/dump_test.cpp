// What ranks know of their operations is in the dumps that they write. planted/ has the verdicts on
// them.

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>

#include "blame/dumps.hpp"
#include "support/effort.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Variables = Environment::Variables;

Status reduce(Communicator& comm, std::size_t count = 2) {
  std::vector<float> x(count, 1.0F);
  return wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The first dump in which an operation of `comm` waits.
Result<cli::RankDump> dump_with_a_wait(Communicator& comm, const std::string& path) {
  for (;;) {
    if (const Status written = comm.dump(path); !written.ok()) return written;
    auto dump = cli::parse_dump(text_in(path));
    if (!dump.ok() || !dump->waits.empty()) return dump;
  }
}

TEST(Dump, says_without_records_whom_a_collective_waits_for) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/dump";
  const Environment environment(Variables{{"ANYCCL_RECORD", "0"}});
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(2, 1.0F);
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(wait(comm.recv(view(x), Rank{0}, {}, 1)));
      ASSERT_OK(reduce(comm));
      return;
    }
    std::thread waits([&] { EXPECT_OK(reduce(comm)); });
    const Result<cli::RankDump> dump = dump_with_a_wait(comm, path);
    ASSERT_OK(dump.status());
    EXPECT_EQ(dump->waits[0].ranks, std::vector<int>{1});
    EXPECT_OK(wait(comm.send(view(x), Rank{1}, {}, 1)));
    waits.join();
  });
}

TEST(Dump, can_be_asked_for_while_another_thread_waits) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/dump";
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(2, 1.0F);
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(wait(comm.recv(view(x), Rank{0}, {}, 1)));
      ASSERT_OK(wait(comm.send(view(x), Rank{0})));
      return;
    }
    std::thread waits([&] { EXPECT_OK(wait(comm.recv(view(x), Rank{1}))); });
    const Result<cli::RankDump> dump = dump_with_a_wait(comm, path);
    ASSERT_OK(dump.status());
    EXPECT_EQ(dump->waits[0].ranks, std::vector<int>{1});
    EXPECT_EQ(dump->call(dump->waits[0].number)->what, "recv of 2 f32 from rank 1, tag 0");
    std::vector<float> go(2, 1.0F);
    EXPECT_OK(wait(comm.send(view(go), Rank{1}, {}, 1)));
    waits.join();
  });
}

/// Of a process that a user suspects to hang: nothing has failed yet.
TEST(Dump, is_written_at_a_signal) {
  const TemporaryFolder folder;
  const auto outcomes = run_processes(
      2,
      [&](Communicator& comm) {
        ASSERT_OK(wait(comm.barrier()));
        const std::string mine = "-" + std::to_string(index(comm.rank())) + ".json";
        const auto has_dump = [&] {
          const std::filesystem::directory_iterator files(folder.path());
          return std::any_of(begin(files), end(files), [&](const auto& file) {
            return file.path().string().ends_with(mine) &&
                   text_in(file.path()).find("\"signal\"") != std::string::npos;
          });
        };
        std::thread waits;
        if (comm.rank() == Rank{0}) waits = std::thread([&] { EXPECT_OK(reduce(comm)); });
        ASSERT_EQ(::kill(::getpid(), SIGUSR2), 0);
        while (!has_dump()) std::this_thread::yield();
        if (comm.rank() == Rank{1}) {
          EXPECT_OK(reduce(comm));
        }
        if (waits.joinable()) waits.join();
      },
      [&](int) {
        return Variables{{"ANYCCL_DUMP_DIR", folder.path()}, {"ANYCCL_DUMP_SIGNAL", "USR2"}};
      },
      20);
  expect_all_passed(outcomes);
}

TEST(Dump, is_written_when_a_wait_takes_long) {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == Rank{1}) {
          while (std::filesystem::is_empty(folder.path()) || !cli::read_dumps({folder.path()}).ok())
            std::this_thread::sleep_for(1ms);  // nothing wakes a process when there is a file
          const auto dumps = cli::read_dumps({folder.path()});
          ASSERT_OK(dumps.status());
          EXPECT_EQ((*dumps)[0].reason, "wait");
          ASSERT_EQ((*dumps)[0].waits.size(), 1U);
          EXPECT_EQ((*dumps)[0].waits[0].ranks, std::vector<int>{1});
        }
        EXPECT_OK(reduce(comm));
      },
      [&](int rank) {
        return Variables{{"ANYCCL_DUMP_DIR", folder.path()},
                         {"ANYCCL_DEBUG", "NONE"},
                         {"ANYCCL_WARN_AFTER", rank == 0 ? "0.05" : "0"}};
      }));
}

TEST(Dump, has_as_many_operations_as_are_remembered) {
  const TemporaryFolder folder;
  const Environment environment(Variables{{"ANYCCL_RECORD", "4"}});
  run_ranks(2, [&](Communicator& comm) {
    for (int i = 0; i < 10; ++i) ASSERT_OK(reduce(comm));
    const std::string path = folder.path() + "/" + std::to_string(index(comm.rank()));
    ASSERT_OK(comm.dump(path));
    const auto dump = cli::parse_dump(text_in(path));
    ASSERT_OK(dump.status());
    ASSERT_EQ(dump->calls.size(), 4U);
    EXPECT_EQ(dump->calls.back().sequence, 10U);
    EXPECT_EQ(dump->calls.back().state, "done");
    EXPECT_GE(dump->calls.back().issued_ns, dump->calls.front().ended_ns);
  });
}

TEST(Dump, of_a_team_has_the_slices_of_all_its_threads) {
  const TemporaryFolder folder;
  constexpr int kThreads = 3;
  constexpr std::size_t kLong = 100000;
  run_ranks(2, [&](Communicator& comm) {
    ASSERT_EQ(anycclCommParts(comm.handle(), kThreads), anycclSuccess);
    std::vector<float> x(kLong, 1.0F);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        EXPECT_EQ(anycclAllReducePart(x.data(), x.data(), x.size(), anycclFloat32, anycclSum,
                                      comm.handle(), t, kThreads),
                  anycclSuccess);
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_OK(comm.dump(folder.path() + "/anyccl-" + std::to_string(index(comm.rank())) + ".json"));
  });
  const auto dumps = cli::read_dumps({folder.path()});
  ASSERT_OK(dumps.status());
  ASSERT_EQ(dumps->size(), 2U * kThreads);
  for (const cli::RankDump& dump : *dumps) EXPECT_EQ(dump.calls.back().kind, "all_reduce");
  EXPECT_NE((*dumps)[0].communicator, (*dumps)[1].communicator);
}

/// Each operation of the other thread needs the progress lock, and a trace of so many takes long.
TEST(Dump, and_trace_are_written_while_other_threads_go_on) {
  constexpr int kCalls = kSanitized ? 5000 : 20000;
  const TemporaryFolder folder;
  const Environment environment(Variables{{"ANYCCL_TRACE", folder.path()}});
  run_ranks(1, [&](Communicator& comm) {
    for (int i = 0; i < kCalls; ++i) ASSERT_OK(reduce(comm));
    std::atomic<bool> written{false};
    std::thread writer([&] {
      EXPECT_OK(comm.dump(folder.path() + "/dump"));
      written = true;
    });
    int meanwhile = 0;
    for (; !written; ++meanwhile) ASSERT_OK(reduce(comm));
    writer.join();
    EXPECT_GT(meanwhile, 100) << "calls while a trace of " << kCalls << " was written";
  });
}

TEST(Dump, that_cannot_be_written_is_an_error_of_the_call_and_leaves_nothing) {
  const TemporaryFolder folder;
  run_ranks(1, [&](Communicator& comm) {
    EXPECT_EQ(comm.dump(folder.path() + "/none/dump").code(), Code::system_error);
    EXPECT_EQ(anycclCommDump(comm.handle(), nullptr), anycclInvalidArgument);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    EXPECT_OK(reduce(comm));
  });
}

TEST(Dump, replaces_neither_links_nor_devices) {
  const TemporaryFolder folder;
  const std::string link = folder.path() + "/link", pipe = folder.path() + "/pipe";
  std::filesystem::create_symlink(folder.path() + "/target", link);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  run_ranks(1, [&](Communicator& comm) {
    for (const std::string& path : {link, pipe})
      EXPECT_EQ(comm.dump(path).code(), Code::system_error) << path;
  });
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/target"));
}

TEST(Dump, that_is_larger_than_files_may_be_is_an_error_and_ends_nothing) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  run_ranks(1, [&](Communicator& comm) {
    const rlimit small{16, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status status = comm.dump(folder.path() + "/dump");
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(status.code(), Code::system_error);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  });
}

TEST(Dump, to_a_full_disk_is_an_error_and_leaves_nothing_there) {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(1, [&](Communicator& comm) {
    // Of this process alone; needs root.
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=4096"), 0);
    std::ofstream(folder.path() + "/filler") << std::string(4096, 'x');
    const Status status = comm.dump(folder.path() + "/dump");
    EXPECT_EQ(status.code(), Code::system_error);
    EXPECT_NE(status.message().find("No space left on device"), std::string_view::npos)
        << status.message();
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/dump"));
    std::filesystem::remove(folder.path() + "/filler");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }));
}

TEST(Dump, into_a_folder_that_is_not_there_is_one_warning) {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        std::vector<float> x(2, 1.0F);
        if (comm.rank() == Rank{0}) ASSERT_OK(comm.revoke());
        EXPECT_FALSE(reduce(comm).ok());
        EXPECT_OK(comm.abort());
      },
      [&](int rank) {
        return Variables{{"ANYCCL_DUMP_DIR", folder.path() + "/none"},
                         {"ANYCCL_DEBUG_FILE", log + std::to_string(rank)}};
      }));
  const std::string text = text_in(log + "0");
  const std::size_t first = text.find("no dump, see ANYCCL_DUMP_DIR");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("no dump", first + 1), std::string::npos) << text;
}

TEST(Log, lines_have_their_time_and_tell_what_is_set_in_vain) {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(
      1, [](Communicator& comm) { EXPECT_OK(wait(comm.barrier())); },
      [&](int) {
        return Variables{{"ANYCCL_DEBUG", "INFO"},
                         {"ANYCCL_DEBUG_FILE", folder.path() + "/log"},
                         {"ANYCCL_DEBGU", "INFO"},
                         {"NCCL_DEBUG", "INFO"},
                         {"NCCL_ALGO", "ring"}};
      }));
  const std::string text = text_in(folder.path() + "/log");
  const std::regex line(
      R"(anyccl \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \S+:\d+ warning ANYCCL_DEBGU is set but)");
  EXPECT_TRUE(std::regex_search(text, line)) << text;
  EXPECT_NE(text.find("info INIT set for NCCL, not read: NCCL_"), std::string::npos) << text;
  EXPECT_NE(text.find("NCCL_ALGO"), std::string::npos) << text;
}

}  // namespace
}  // namespace anyccl::test
