#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Run, prefixes_each_line_with_its_rank) {
  Tool tool(run_script({"-n", "2"}, "echo one; echo two"));
  EXPECT_EQ(tool.finish(), 0);
  for (const char* line : {"[0] one\n", "[0] two\n", "[1] one\n", "[1] two\n"})
    EXPECT_TRUE(contains(tool.out(), line)) << tool.out();
}

TEST(Run, ends_a_partial_last_line) {
  Tool tool(run_script({"-n", "1"}, "printf partial"));
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out(), "[0] partial\n");
}

TEST(Run, keeps_standard_output_and_error_apart) {
  Tool tool(run_script({"-n", "1"}, "echo out; echo err >&2"));
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out(), "[0] out\n");
  EXPECT_EQ(tool.err(), "[0] err\n");
}

TEST(Run, leaves_output_alone_without_prefix) {
  Tool tool(run_script({"-n", "1", "--no-prefix"}, "echo out; printf rest"));
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out(), "out\nrest");
}

TEST(Run, passes_on_more_output_than_a_pipe_holds) {
  Tool tool(
      run_script({"-n", "1"}, "i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done"));
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out().size(), 20000 * std::string("[0] 0123456789\n").size());
}

TEST(Run, tells_every_rank_who_it_is) {
  Tool tool(
      run_script({"-n", "2"}, "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR"));
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), "[0] 0/2 0/2 127.0.0.1\n")) << tool.out();
  EXPECT_TRUE(contains(tool.out(), "[1] 1/2 1/2 127.0.0.1\n")) << tool.out();
}

TEST(Run, gives_all_ranks_one_port_and_one_secret) {
  Tool tool(run_script({"-n", "2", "--no-prefix"}, "echo $MASTER_PORT $ANYCCL_SECRET"));
  EXPECT_EQ(tool.finish(), 0);
  std::string ports[2], secrets[2];
  std::istringstream(tool.out()) >> ports[0] >> secrets[0] >> ports[1] >> secrets[1];
  EXPECT_GT(std::stoi(ports[0]), 0);
  EXPECT_EQ(ports[0], ports[1]);
  EXPECT_EQ(secrets[0].size(), 32U);
  EXPECT_EQ(secrets[0], secrets[1]);
}

TEST(Run, takes_the_port_it_is_given) {
  Tool tool(run_script({"-n", "1", "--port", "12345"}, "echo $MASTER_PORT"));
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out(), "[0] 12345\n");
}

TEST(Run, gives_exported_variables_to_all_ranks_of_one_host_and_of_a_node) {
  ASSERT_EQ(::setenv("ANYCCL_SECRET", std::string(32, '7').c_str(), 1), 0);
  ASSERT_EQ(::setenv("KEPT", "here", 1), 0);
  using Words = std::vector<std::string>;
  for (Words flags :
       {Words(), Words{"--nnodes", "1", "--node-rank", "0", "--master", "localhost"}}) {
    flags.insert(flags.end(), {"-n", "2", "-x", "GIVEN=a=b", "-x", "KEPT", "-x", "RANK=5"});
    Tool tool(run_script(flags, "echo $GIVEN $KEPT $RANK"));
    EXPECT_EQ(tool.finish(), 0) << tool.err();
    for (const char* line : {"[0] a=b here 0\n", "[1] a=b here 1\n"})
      EXPECT_TRUE(contains(tool.out(), line)) << tool.out();
  }
  ::unsetenv("KEPT");
  ::unsetenv("ANYCCL_SECRET");
}

TEST(Run, gives_its_standard_input_to_rank_0_only) {
  Tool tool(run_script({"-n", "2"}, "read line; echo got:$line"));
  tool.send("hello\n");
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_TRUE(contains(tool.out(), "[0] got:hello\n")) << tool.out();
  EXPECT_TRUE(contains(tool.out(), "[1] got:\n")) << tool.out();
}

TEST(Run, needs_no_dashes_before_the_program) {
  Tool tool({"run", "-n", "1", "/bin/sh", "-c", "echo $1 $2", "name", "--keep-going", "--"});
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out(), "[0] --keep-going --\n");
}

TEST(Run, fails_with_2_without_a_program) {
  Tool tool({"run", "-n", "2"});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_TRUE(contains(tool.err(), "the program to run is missing")) << tool.err();
}

TEST(Run, refuses_to_start_a_job_inside_a_rank) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    ::setenv(name, "0", 1);
    Tool tool({"run", "-n", "1", "--", "true"});
    ::unsetenv(name);
    EXPECT_EQ(tool.finish(), 2);
    EXPECT_TRUE(contains(tool.err(), std::string("anyccl run: ") + name + "=0 is set"))
        << tool.err();
  }
}

/// What `anyccl run arguments... -- true` says; it fails with 2.
std::string refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--", "true"});
  Tool tool(arguments);
  EXPECT_EQ(tool.finish(), 2);
  return tool.err();
}

TEST(Run, names_what_is_wrong_with_the_number_of_ranks) {
  EXPECT_EQ(refusal({}), "anyccl run: --ranks is required\n");
  for (const char* ranks : {"0", "x", "2x", "70000"})
    EXPECT_EQ(refusal({"-n", ranks}), std::string("anyccl run: --ranks ") + ranks + ": '" + ranks +
                                          "' is not a number from 1 to 65536\n");
  for (const char* ranks : {"3,", ",3", ",", "3,,1"})
    EXPECT_EQ(refusal({"-n", ranks}), std::string("anyccl run: --ranks ") + ranks +
                                          ": '' is not a number from 1 to 65536\n");
  EXPECT_EQ(refusal({"-n", "1,2"}), "anyccl run: --ranks has 2 numbers: give --nnodes, too\n");
  EXPECT_EQ(refusal({"-n", "1,2", "--nnodes", "3", "--node-rank", "0", "--master", "a"}),
            "anyccl run: --ranks has 2 numbers; for --nnodes 3 it has one for all, or one for "
            "each\n");
}

TEST(Run, names_what_several_nodes_lack) {
  EXPECT_EQ(refusal({"-n", "1", "--nnodes", "2"}),
            "anyccl run: --nnodes 2: each node also needs --node-rank (0 to 1) and --master "
            "HOST:PORT\n");
  EXPECT_EQ(refusal({"-n", "1", "--nnodes", "2", "--node-rank", "2", "--master", "a"}),
            "anyccl run: --node-rank 2: with --nnodes 2 they are 0 to 1\n");
  EXPECT_EQ(refusal({"-n", "1", "--master", "a"}),
            "anyccl run: --node-rank, --master and --secret-file are for a job of several nodes: "
            "give --nnodes, too\n");
}

TEST(Run, refuses_a_remote_shell_without_hosts) {
  EXPECT_EQ(refusal({"-n", "1", "--ssh", "rsh"}),
            "anyccl: run: --ssh requires --hosts (see anyccl run --help)\n");
}

TEST(Secret, is_made_new_for_this_user_alone) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/secret";
  Tool tool({"secret", path});
  EXPECT_EQ(tool.finish(), 0);
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  EXPECT_EQ(facts.st_size, 33);
  Tool again({"secret", path});
  EXPECT_EQ(again.finish(), 1);
  EXPECT_TRUE(contains(again.err(), path + ": File exists")) << again.err();
}

TEST(Run, fails_with_127_for_an_unknown_program) {
  Tool tool({"run", "-n", "2", "--", "no-such-program"});
  EXPECT_EQ(tool.finish(), 127);
  EXPECT_EQ(tool.err(), "anyccl run: cannot start 'no-such-program': No such file or directory\n");
}

TEST(Run, fails_with_126_for_what_is_no_program) {
  Tool tool({"run", "-n", "1", "--", "/etc/passwd"});
  EXPECT_EQ(tool.finish(), 126);
}

TEST(Run, names_the_rank_that_failed_and_returns_its_exit_code) {
  Tool tool(run_script({"-n", "3"}, "[ $RANK = 1 ] && exit 42; exec sleep 100"));
  EXPECT_EQ(tool.finish(), 42);
  EXPECT_TRUE(contains(tool.err(), "anyccl run: rank 1 (pid ")) << tool.err();
  EXPECT_TRUE(contains(tool.err(), ") failed first: exit code 42\n")) << tool.err();
}

TEST(Run, names_the_signal_that_killed_a_rank) {
  Tool tool(run_script({"-n", "3"}, "[ $RANK = 2 ] && kill -KILL $$; exec sleep 100"));
  EXPECT_EQ(tool.finish(), 128 + SIGKILL);
  EXPECT_TRUE(contains(tool.err(), "anyccl run: rank 2 (pid ")) << tool.err();
  EXPECT_TRUE(contains(tool.err(), ") failed first: killed by SIGKILL\n")) << tool.err();
}

TEST(Run, lets_the_others_clean_up_when_a_rank_fails) {
  Tool tool(run_script({"-n", "2"},
                       "if [ $RANK = 0 ]; then read go; exit 3; fi;"
                       "trap 'echo cleaned up; exit 0' TERM; echo ready; sleep 100 & wait"));
  ASSERT_TRUE(tool.says("ready"));
  tool.send("go\n");
  EXPECT_EQ(tool.finish(), 3);
  EXPECT_TRUE(contains(tool.out(), "[1] cleaned up\n")) << tool.out();
}

TEST(Run, prints_what_a_rank_said_last_before_its_failure) {
  Tool tool(run_script({"-n", "1"}, "echo reason >&2; exit 3"));
  EXPECT_EQ(tool.finish(), 3);
  EXPECT_LT(tool.err().find("[0] reason"), tool.err().find("failed first")) << tool.err();
}

TEST(Run, keep_going_lets_the_others_finish) {
  Tool tool(run_script({"-n", "2", "--keep-going"},
                       "[ $RANK = 1 ] && exit 5; read go; echo went on; exit 6"));
  ASSERT_TRUE(tool.says("rank 1 (pid "));
  tool.send("go\n");
  EXPECT_EQ(tool.finish(), 5);
  EXPECT_TRUE(contains(tool.out(), "[0] went on\n")) << tool.out();
  EXPECT_TRUE(contains(tool.err(), ") failed first: exit code 5\n")) << tool.err();
  EXPECT_TRUE(contains(tool.err(), ") failed: exit code 6\n")) << tool.err();
}

TEST(Run, shows_a_prompt) {
  Tool tool(run_script({"-n", "2"},
                       "[ $RANK = 0 ] || exit 0; printf 'name? '; read name; echo hello $name"));
  ASSERT_TRUE(tool.says("[0] name? "));
  tool.send("bob\n");
  EXPECT_EQ(tool.finish(), 0);
  EXPECT_EQ(tool.out(), "[0] name? hello bob\n");
}

TEST(Run, passes_signals_of_programs_on_and_goes_on) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    const std::string name = ::sigabbrev_np(signal);
    Tool tool(run_script({"-n", "2"}, "trap 'echo got it' " + name +
                                          "; echo ready; sleep 100 & while ! wait; do "
                                          "[ -n \"$done\" ] && exit 0; done=1; read go; done"));
    ASSERT_TRUE(tool.says("ready", 2));
    tool.signal(signal);
    EXPECT_TRUE(tool.says("got it", 2)) << tool.out() << tool.err();
    tool.signal(SIGTERM);
    tool.finish();
  }
}

/// Its output is a pipe that is full, and that nobody reads.
TEST(Run, obeys_while_nobody_reads_its_output) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd unread(ends[0]);
  UniqueFd write(ends[1]);
  const int most = ::fcntl(unread.get(), F_GETPIPE_SZ);
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::dup2(write.get(), STDOUT_FILENO);
    ::execl(ANYCCL_TOOL, "anyccl", "run", "-n", "2", "--", "yes", nullptr);
    ::_exit(127);
  }
  write.reset();
  for (int filled = 0; filled < most - 4096;) {
    ASSERT_EQ(::ioctl(unread.get(), FIONREAD, &filled), 0);
    ::poll(nullptr, 0, 1);
  }
  ::kill(pid, SIGTERM);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);  // the test's own limit is that of ctest
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM) << status;
}

class RunSignal : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Signals, RunSignal, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_P(RunSignal, is_passed_on_to_all_ranks) {
  Tool tool(run_script({"-n", "2"},
                       "for s in INT TERM HUP; do trap \"echo got $s; exit 0\" $s; done;"
                       "echo ready; sleep 100 & wait"));
  ASSERT_TRUE(tool.says("ready", 2));
  tool.signal(GetParam());
  EXPECT_EQ(tool.finish(), 0);
  const std::string name = ::sigabbrev_np(GetParam());
  EXPECT_TRUE(contains(tool.out(), "[0] got " + name)) << tool.out();
  EXPECT_TRUE(contains(tool.out(), "[1] got " + name)) << tool.out();
}

TEST(Run, returns_128_and_the_signal_when_ranks_die_of_it) {
  Tool tool(run_script({"-n", "2"}, "echo ready; exec sleep 100"));
  ASSERT_TRUE(tool.says("ready", 2));
  tool.signal(SIGTERM);
  EXPECT_EQ(tool.finish(), 128 + SIGTERM);
}

TEST(Run, kills_ranks_that_ignore_sigterm_when_the_grace_is_over) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    Tool tool(run_script({"-n", "2", "--grace", "0"},
                         "trap '' TERM HUP; echo ready; while :; do sleep 100; done"));
    ASSERT_TRUE(tool.says("ready", 2));
    tool.signal(signal);
    EXPECT_EQ(tool.finish(), 128 + SIGKILL);
    EXPECT_TRUE(contains(tool.err(), std::string("did not end within 0 s of SIG") +
                                         ::sigabbrev_np(signal) + ": killing it"))
        << tool.err();
  }
}

TEST(Run, second_sigint_kills_ranks_that_ignore_the_first) {
  Tool tool(run_script({"-n", "2"}, "trap '' INT; echo ready; sleep 100 & wait"));
  ASSERT_TRUE(tool.says("ready", 2));
  tool.signal(SIGINT);
  ASSERT_TRUE(tool.says("passing SIGINT on"));
  tool.signal(SIGINT);
  EXPECT_EQ(tool.finish(), 128 + SIGKILL);
}

TEST(Run, ends_what_a_rank_left_running) {
  Tool tool(run_script({"-n", "1", "--no-prefix"}, "sleep 100 & echo started"));
  EXPECT_EQ(tool.finish(),
            0);  // The sleep holds the output open: were it alive, this would not end.
}

class RunKilled : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RunKilled,
                         ::testing::Values("echo pid $$; exec sleep 100",
                                           "sleep 100 & echo pid $!; wait"));

/// And what they have started.
TEST_P(RunKilled, takes_its_ranks_with_it) {
  Tool tool({"run", "-n", "2", "--no-prefix", "--", "/bin/sh", "-c", GetParam()});
  ASSERT_TRUE(tool.says("pid ", 2));
  ASSERT_TRUE(tool.says("\n", 2));
  std::istringstream words(tool.out());
  std::string word;
  std::vector<UniqueFd> ranks;
  for (int pid = 0; words >> word >> pid;)
    ranks.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_EQ(ranks.size(), 2U);
  tool.signal(SIGKILL);
  for (const UniqueFd& rank : ranks) {
    pollfd ended{rank.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 10'000), 1) << "a rank outlived the launcher";
  }
}

}  // namespace
}  // namespace anyccl::cli
