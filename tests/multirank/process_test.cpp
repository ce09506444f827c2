// Ranks as processes.

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "support/ranks.hpp"
#include "support/sealed_file.hpp"
#include "support/usage.hpp"

namespace anyccl::test {
namespace {

float input(int rank, std::size_t i) {
  return static_cast<float>((i * 5 + static_cast<std::size_t>(rank)) % 17);
}
float sum(int ranks, std::size_t i) {
  float s = 0;
  for (int r = 0; r < ranks; ++r) s += input(r, i);
  return s;
}
void expect_sums(const float* got, std::size_t count, int ranks, const char* what) {
  for (std::size_t i = 0; i < count; ++i)
    if (got[i] != sum(ranks, i)) {
      ADD_FAILURE() << what << ": element " << i << " of " << count << " is " << got[i]
                    << " instead of " << sum(ranks, i);
      return;
    }
}
std::string last_plan(Communicator& comm) {
  const char* text = "";
  EXPECT_EQ(anycclCommLastPlan(comm.handle(), &text), anycclSuccess);
  return text;
}

void all_reduce_sizes(Communicator& comm) {
  for (const std::size_t count : {1UL, 2UL, 14UL, 15UL, 1000UL, 16385UL, 262144UL, 1000003UL}) {
    std::vector<float> x(count), y(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = input(index(comm.rank()), i);
    ASSERT_OK(wait(comm.all_reduce(view(x), view(y), ReduceOp::sum)));
    expect_sums(y.data(), count, comm.size(), "out of place");
    ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
    expect_sums(x.data(), count, comm.size(), "in place");
  }
}

TEST(Processes, reduce_over_shared_memory) {
  for (const int ranks : {2, 3, 4})
    expect_all_passed(run_processes(ranks, [](Communicator& comm) {
      all_reduce_sizes(comm);
      EXPECT_NE(last_plan(comm).find("shm"), std::string::npos) << last_plan(comm);
    }));
}

/// Of shared memory, in this process.
std::size_t resident_shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kib = 0; word == "RssShmem:" && status >> kib) return kib;
  ADD_FAILURE() << "no RssShmem in /proc/self/status";
  return 0;
}

TEST(Processes, have_little_memory_for_groups_of_small_operations) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    constexpr int kGroups = 32;
    const std::size_t before = resident_shared_kib();
    std::vector<Communicator> groups;
    std::vector<float> x(4096);
    for (int i = 0; i < kGroups; ++i) {
      auto made = comm.split(0, 0);
      ASSERT_TRUE(made.ok()) << made.status().message();
      groups.push_back(*std::move(made));
      for (int turn = 0; turn < 20; ++turn)
        ASSERT_OK(wait(groups.back().all_reduce(view(x), view(x), ReduceOp::max)));
    }
    EXPECT_LT((resident_shared_kib() - before) / kGroups, 1536U) << "KiB per group";
    for (Communicator& group : groups) EXPECT_OK(group.destroy());
  }));
}

TEST(Processes, reduce_over_tcp_when_told_to) {
  expect_all_passed(run_processes(
      3,
      [](Communicator& comm) {
        all_reduce_sizes(comm);
        EXPECT_NE(last_plan(comm).find("tcp"), std::string::npos) << last_plan(comm);
      },
      [](int) {
        return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_TRANSPORT", "tcp"}};
      }));
}

/// Ranks that share a core know it before they have done anything, and all the same.
TEST(Processes, take_other_algorithms_when_many_share_a_core) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // inherited
  expect_all_passed(run_processes(9, [](Communicator& comm) {
    std::vector<float> x(4096, 1.0F);
    ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
    EXPECT_EQ(x[4095], 9.0F);
    EXPECT_NE(last_plan(comm).find("reduce_broadcast"), std::string::npos) << last_plan(comm);
  }));
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Processes, use_one_protocol_when_told_to) {
  for (const std::string proto : {"LL", "LL128", "Simple"})
    expect_all_passed(run_processes(
        2,
        [&](Communicator& comm) {
          for (const std::size_t count : {2UL, 500UL, 20000UL}) {
            std::vector<float> x(count);
            for (std::size_t i = 0; i < count; ++i) x[i] = input(index(comm.rank()), i);
            ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
            expect_sums(x.data(), count, comm.size(), proto.c_str());
            EXPECT_NE(last_plan(comm).find(" " + proto + " "), std::string::npos)
                << last_plan(comm);
          }
        },
        [&](int) {
          return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_PROTO", proto}};
        }));
}

TEST(Processes, use_the_protocol_of_each_size) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        for (const auto& [count, name] : {std::pair{2UL, " LL shm"}, {500UL, " Simple shm"}}) {
          std::vector<float> x(count, 1.0F);
          ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
          EXPECT_EQ(x, std::vector<float>(count, 2.0F));
          EXPECT_NE(last_plan(comm).find(name), std::string::npos) << last_plan(comm);
        }
      },
      [](int) {
        return std::vector<std::pair<std::string, std::string>>{
            {"ANYCCL_PROTO", "all_reduce:LL@-1K,Simple@1K-"}};
      }));
}

/// Three hosts with 3, 1 and 2 ranks: shared memory inside, TCP between them, one communicator.
TEST(Processes, reduce_over_two_levels_on_uneven_hosts) {
  const auto host = [](int r) { return std::string(r < 3 ? "a" : r < 4 ? "b" : "c"); };
  expect_all_passed(run_processes(
      6,
      [&](Communicator& comm) {
        all_reduce_sizes(comm);
        const std::string plan = last_plan(comm);
        EXPECT_NE(plan.find("two_level"), std::string::npos) << plan;
        EXPECT_NE(plan.find("tcp"), std::string::npos) << plan;
        EXPECT_EQ(plan.find("shm") != std::string::npos, host(index(comm.rank())) != "b") << plan;
        std::vector<float> z(70001, comm.rank() == Rank{4} ? 3.0F : 0.0F);
        ASSERT_OK(wait(comm.broadcast(view(z), view(z), Rank{4})));
        EXPECT_EQ(z[70000], 3.0F);
        ASSERT_OK(wait(comm.barrier()));
      },
      [&](int r) {
        return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_HOSTID", host(r)}};
      }));
}

void expect_plan(Communicator& comm, const char* algorithm) {
  EXPECT_NE(last_plan(comm).find(algorithm), std::string::npos) << last_plan(comm);
}

/// Blocks of `count` elements; input(r, i) is rank r's element i of the whole vector.
void cross_once(Communicator& comm, std::size_t count) {
  const int me = index(comm.rank());
  const std::size_t all = count * static_cast<std::size_t>(comm.size()),
                    mine = count * uindex(comm.rank());
  std::vector<float> x(all), block(count), gathered(all);
  for (std::size_t i = 0; i < all; ++i) x[i] = input(me, i);

  ASSERT_OK(wait(comm.reduce_scatter(view(x), view(block), ReduceOp::sum)));
  expect_plan(comm, "reduce_scatter/two_level");
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(block[i], sum(comm.size(), mine + i)) << i;

  ASSERT_OK(wait(comm.all_gather(view(block), view(gathered))));
  expect_plan(comm, "all_gather/two_level");
  expect_sums(gathered.data(), all, comm.size(), "gathered");

  ASSERT_OK(wait(comm.broadcast(view(x), view(x), Rank{4})));
  expect_plan(comm, "broadcast/two_level");
  for (std::size_t i = 0; i < all; ++i) ASSERT_EQ(x[i], input(4, i)) << i;
}

TEST(Processes, of_hosts_that_are_uneven_and_scattered_cross_to_each_host_once) {
  const std::string hosts = "abcaca";
  expect_all_passed(run_processes(
      6,
      [](Communicator& comm) {
        for (const std::size_t count : {1UL, 1000UL, 100003UL}) cross_once(comm, count);
        std::vector<float> x(16, static_cast<float>(index(comm.rank())));
        ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
        expect_plan(comm, "all_reduce/single_leader");
        EXPECT_EQ(x, std::vector<float>(16, 15.0F));
      },
      [&](int r) {
        return std::vector<std::pair<std::string, std::string>>{
            {"ANYCCL_HOSTID", hosts.substr(static_cast<std::size_t>(r), 1)}};
      }));
}

/// One rank lends memory from anycclMemAlloc, one works in place, one has ordinary buffers: one
/// plan.
TEST(Processes, mix_window_in_place_and_private_memory_in_one_call) {
  expect_all_passed(run_processes(3, [](Communicator& comm) {
    const int me = index(comm.rank());
    const std::size_t count = 300007;
    std::vector<float> own(count), own_out(count);
    void* window = nullptr;
    ASSERT_EQ(anycclMemAlloc(&window, 2 * count * sizeof(float)), anycclSuccess);
    float* const in = me == 0 ? static_cast<float*>(window) : own.data();
    float* const out = me == 0 ? in + count : me == 1 ? in : own_out.data();
    std::string plan;
    for (int round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < count; ++i)
        in[i] = input(me, i + static_cast<std::size_t>(round));
      ASSERT_EQ(anycclAllReduce(in, out, count, anycclFloat32, anycclSum, comm.handle(), nullptr),
                anycclSuccess)
          << anycclGetLastError(comm.handle());
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], sum(3, i + static_cast<std::size_t>(round)))
            << "round " << round << " element " << i;
      plan = last_plan(comm);
      EXPECT_EQ(plan, "all_reduce/two_shot Simple shm");
      // The lender may change its memory as soon as the call returns.
      std::memset(in, 0xff, count * sizeof(float));
    }
    EXPECT_EQ(anycclMemFree(window), anycclSuccess);
  }));
}

/// Makes calls until `is_so` on all ranks: they hear of each other's memory while they wait.
void call_until_all(Communicator& comm, const std::function<void()>& call,
                    const std::function<bool()>& is_so) {
  std::vector<int> everywhere{0};
  for (int round = 0; round < 1000 && everywhere[0] == 0; ++round) {
    for (int i = 0; i < 20; ++i) call();
    everywhere[0] = is_so() ? 1 : 0;
    ASSERT_OK(wait(comm.all_reduce(view(everywhere), view(everywhere), ReduceOp::min)));
  }
  EXPECT_EQ(everywhere[0], 1);
}

/// Memory that the program has mapped and registered itself, and peers read where it lies.
TEST(Processes, read_registered_memory_where_it_is) {
  expect_all_passed(run_processes(3, [](Communicator& comm) {
    constexpr std::size_t kCount = 300007, kOffset = 8192;
    const SealedFile file(kOffset + kCount * sizeof(float));
    auto* const x = reinterpret_cast<float*>(file.at + kOffset);
    std::vector<float> y(kCount);
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(anycclMemRegister(x, kCount * sizeof(float), file.fd, kOffset), anycclSuccess)
          << anycclGetLastError(nullptr);
      const auto sum_up = [&, me = index(comm.rank())] {
        for (std::size_t i = 0; i < kCount; ++i) x[i] = input(me, i);
        ASSERT_OK(wait(comm.all_reduce(view(std::span(x, kCount)), view(y), ReduceOp::sum)));
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(y[i], sum(3, i)) << i;
      };
      // Its own, ours, and those of two peers.
      call_until_all(comm, sum_up, [] { return mappings_of("of_the_program") >= 4; });
      EXPECT_EQ(anycclMemDeregister(x), anycclSuccess);
      call_until_all(
          comm, [&] { ASSERT_OK(wait(comm.barrier())); },
          [] { return mappings_of("of_the_program") == 1; });
    }
  }));
}

/// Which is read in parts, so that others get their turn meanwhile.
TEST(Processes, get_all_of_a_very_long_lent_message) {
  for (const char* copy : {"cma", "window"}) {
    const auto settings = [copy](int) { return Environment::Variables{{"ANYCCL_SHM_COPY", copy}}; };
    expect_all_passed(run_processes(
        2,
        [](Communicator& comm) {
          constexpr std::size_t kCount = (std::size_t{33} << 20) + 7;  // 132 MiB
          void* window = nullptr;
          ASSERT_EQ(anycclMemAlloc(&window, kCount * sizeof(float)), anycclSuccess);
          const std::span<float> x(static_cast<float*>(window), kCount);
          const auto value = [](std::size_t i) { return static_cast<float>(i % 65521); };
          if (comm.rank() == Rank{0}) {
            for (std::size_t i = 0; i < kCount; ++i) x[i] = value(i);
            ASSERT_OK(wait(comm.send(view(x), Rank{1})));
          } else {
            ASSERT_OK(wait(comm.recv(view(x), Rank{0})));
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < kCount; ++i) wrong += x[i] != value(i) ? 1U : 0U;
            EXPECT_EQ(wrong, 0U);
          }
          EXPECT_EQ(anycclMemFree(window), anycclSuccess);
        },
        settings));
  }
}

/// The memory of a message that was given up belongs to its program again, which may write to it.
TEST(Processes, do_not_take_a_lent_message_that_its_sender_gave_up) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    constexpr std::size_t kCount = 1 << 20;
    auto other = comm.split(0, index(comm.rank()));
    ASSERT_OK(other.status());
    void* window = nullptr;
    ASSERT_EQ(anycclMemAlloc(&window, kCount * sizeof(float)), anycclSuccess);
    const std::span<float> x(static_cast<float*>(window), kCount);
    std::fill(x.begin(), x.end(), 1.0F);
    if (comm.rank() == Rank{0}) {
      auto work = comm.send(view(x), Rank{1});
      ASSERT_OK(work.status());
      ASSERT_OK(work->limit(50));
      EXPECT_EQ(work->wait().code(), Code::timeout);
      std::fill(x.begin(), x.end(), 2.0F);
      ASSERT_OK(wait(other->barrier()));
    } else {
      ASSERT_OK(wait(other->barrier()));
      EXPECT_NE(wait(comm.recv(view(x), Rank{0})).code(), Code::ok) << "received " << x[0];
    }
    ASSERT_OK(wait(other->barrier()));
  }));
}

/// On CPUs where long messages are read in the memory of their senders, this one is gone.
TEST(Processes, hear_why_a_message_does_not_come_whose_memory_is_gone) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    constexpr std::size_t kCount = 1 << 20;
    auto other = comm.split(0, index(comm.rank()));
    ASSERT_OK(other.status());
    void* const memory = ::mmap(nullptr, kCount * sizeof(float), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const std::span<float> x(static_cast<float*>(memory), kCount);
    if (comm.rank() == Rank{0}) {
      auto work = comm.send(view(x), Rank{1});
      ASSERT_OK(work.status());
      ASSERT_OK(work->limit(50));
      EXPECT_EQ(work->wait().code(), Code::timeout);
      ::munmap(memory, kCount * sizeof(float));
      ASSERT_OK(wait(other->barrier()));
    } else {
      ASSERT_OK(wait(other->barrier()));
      const Status status = wait(comm.recv(view(x), Rank{0}));
      EXPECT_EQ(status.code(), Code::timeout) << status.message();
      ::munmap(memory, kCount * sizeof(float));
    }
    ASSERT_OK(wait(other->barrier()));
  }));
}

/// Programs that only send and receive give memory back, too: here, and what peers have mapped of
/// it.
TEST(Processes, keep_no_memory_that_was_lent_for_messages) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    constexpr std::size_t kCount = 8 << 20;
    std::vector<float> y(kCount);
    for (int round = 0; round < 40; ++round) {
      if (comm.rank() == Rank{1}) {
        ASSERT_OK(wait(comm.recv(view(y), Rank{0})));
        EXPECT_EQ(y[kCount - 1], static_cast<float>(round));
        continue;
      }
      void* window = nullptr;
      ASSERT_EQ(anycclMemAlloc(&window, kCount * sizeof(float)), anycclSuccess);
      auto* const x = static_cast<float*>(window);
      x[kCount - 1] = static_cast<float>(round);
      ASSERT_OK(wait(comm.send(view(std::span(x, kCount)), Rank{1})));
      ASSERT_EQ(anycclMemFree(window), anycclSuccess);
    }
    EXPECT_LT(mappings_of("memfd:anyccl"), 25);
    ASSERT_OK(wait(comm.barrier()));
  }));
}

/// Of this process so far, user and system.
std::chrono::microseconds cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// Alone, and with the background thread on watch. The only test here that sleeps: what is measured
/// is processor time while nothing happens.
TEST(Processes, use_little_time_while_they_wait) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    constexpr std::chrono::milliseconds kWait{1500};
    for (const bool blocking : {true, false}) {
      ASSERT_OK(wait(comm.barrier()));
      std::vector<float> x(1);
      const auto before = cpu_time();
      if (comm.rank() == Rank{1}) {
        std::this_thread::sleep_for(kWait);
        ASSERT_OK(wait(comm.send(view(x), Rank{0})));
      } else if (blocking) {
        ASSERT_EQ(anycclRecv(x.data(), 1, anycclFloat32, 1, comm.handle(), nullptr), anycclSuccess);
      } else {
        auto work = comm.recv(view(x), Rank{1});
        ASSERT_OK(work.status());
        std::this_thread::sleep_for(kWait);
        ASSERT_OK(work->wait());
      }
      EXPECT_LT(cpu_time() - before, kWait / 25) << (blocking ? "blocking" : "in the background");
    }
  }));
}

TEST(Processes, join_without_a_secret_on_one_host) {
  expect_all_passed(run_processes(
      2, [](Communicator& comm) { ASSERT_OK(wait(comm.barrier())); },
      [](int) {
        return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_SECRET", ""}};
      }));
}

TEST(Processes, that_differ_in_settings_fail_by_name) {
  const auto outcomes = run_processes(
      2, [](Communicator&) {},
      [](int r) {
        return std::vector<std::pair<std::string, std::string>>{
            {"ANYCCL_ALGO", r == 0 ? "ring" : "two_shot"}};
      });
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.exit_code, 3);
    EXPECT_NE(o.output.find("ANYCCL_ALGO"), std::string::npos) << o.output;
    EXPECT_NE(o.output.find("two_shot"), std::string::npos) << o.output;
  }
}

}  // namespace
}  // namespace anyccl::test
