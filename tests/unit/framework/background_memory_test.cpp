// The background thread gives back memory of communicators that nobody calls any more.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "framework/communicator/background_progress.hpp"
#include "unit/framework/fake_peers.hpp"

namespace anyccl::test {
namespace {

/// What the transport of a communicator answers, and how often it was asked.
class Answers {
 public:
  explicit Answers(std::vector<GivenBack> answers) : answers_(std::move(answers)) {}
  GivenBack next() {
    const std::lock_guard lock(mutex_);
    asked_now_.notify_all();
    return asked_ < answers_.size() ? answers_[asked_++] : (++asked_, GivenBack::all);
  }
  bool await(std::size_t asked) {
    std::unique_lock lock(mutex_);
    return asked_now_.wait_for(lock, std::chrono::seconds(30), [&] { return asked_ >= asked; });
  }
  std::size_t asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable asked_now_;
  std::vector<GivenBack> answers_;
  std::size_t asked_ = 0;
};

class IdlePeer final : public FakePeers {
 public:
  explicit IdlePeer(Answers& answers) : FakePeers(0, {Rank{1}}), answers_(answers) {}
  GivenBack give_back() override { return answers_.next(); }

 private:
  bool has_published(std::uint32_t) override { return false; }
  PeerState state(Rank) override { return PeerState::present; }
  Answers& answers_;
};

std::shared_ptr<Comm> idle(Answers& answers) {
  Membership m;
  m.size = 2;
  m.near_of.assign(2, 0);
  m.transports.push_back(std::make_unique<IdlePeer>(answers));
  return std::make_shared<Comm>(std::move(m));
}

TEST(BackgroundMemory, is_asked_for_until_all_is_given_back_and_again_when_it_has_grown) {
  Answers answers({GivenBack::in_use, GivenBack::unread, GivenBack::unread, GivenBack::all});
  const auto comm = idle(answers);
  // Its thread is never joined, so it is never destroyed.
  BackgroundProgress& background = *new BackgroundProgress(std::chrono::milliseconds(1));
  background.give_back_later(comm);
  background.give_back_later(comm);
  EXPECT_TRUE(answers.await(4));
  background.forget(*comm);  // returns after the turn
  EXPECT_EQ(answers.asked(), 4U);
  background.give_back_later(comm);
  EXPECT_TRUE(answers.await(5));
  background.forget(*comm);
  EXPECT_EQ(answers.asked(), 5U);
  background.stop(Deadline::in(std::chrono::seconds(30)));
}

TEST(BackgroundMemory, does_not_keep_a_communicator) {
  Answers answers({});
  BackgroundProgress& background = *new BackgroundProgress(std::chrono::hours(1));
  std::weak_ptr<Comm> ended;
  {
    const auto comm = idle(answers);
    background.give_back_later(comm);
    ended = comm;
  }
  EXPECT_TRUE(ended.expired());
  background.stop(Deadline::in(std::chrono::seconds(30)));
}

}  // namespace
}  // namespace anyccl::test
