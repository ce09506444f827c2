#include "launch/job.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "support/temporary_folder.hpp"

namespace anyccl::cli {
namespace {

/// A FIFO in a folder of its own, for ranks to wait for each other.
class Fifo {
 public:
  Fifo() { EXPECT_EQ(::mkfifo(path().c_str(), 0600), 0); }
  std::string path() const { return folder_.path() + "/fifo"; }

 private:
  test::TemporaryFolder folder_;
};

TEST(Job, kills_what_outlives_the_grace) {
  const Fifo fifo;
  Job job;
  job.name = "test";
  job.ranks = 2;
  job.grace = std::chrono::seconds(0);
  job.command = {"/bin/sh", "-c",
                 "if [ $RANK = 1 ]; then read go < " + fifo.path() + "; exit 3; fi;" +
                     "trap '' TERM; echo go > " + fifo.path() + "; while :; do sleep 100; done"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_job(job), 3);
  EXPECT_NE(
      testing::internal::GetCapturedStderr().find("did not end within 0 s of SIGTERM: killing it"),
      std::string::npos);
}

TEST(Job, sets_what_it_is_told_to) {
  Job job;
  job.name = "test";
  job.settings = {{"ANYCCL_JOB_TEST", "5"}};
  job.command = {"/bin/sh", "-c", "exit $ANYCCL_JOB_TEST"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_job(job), 5);
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace anyccl::cli
