// The background thread gives back memory of communicators that nobody calls any more.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/communicator/background_progress.hpp"
#include "support/ranks.hpp"
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

std::shared_ptr<Comm> of_two(std::unique_ptr<Transport> transport) {
  Membership m;
  m.size = 2;
  m.near_of.assign(2, 0);
  m.transports.push_back(std::move(transport));
  return std::make_shared<Comm>(std::move(m));
}
std::shared_ptr<Comm> idle(Answers& answers) {
  return of_two(std::make_unique<IdlePeer>(answers));
}

/// Its thread is never joined, so it is never destroyed; that is no leak.
BackgroundProgress& new_background(std::chrono::milliseconds unused) {
  static auto* const all = new std::vector<BackgroundProgress*>;
  all->push_back(new BackgroundProgress(unused));
  return *all->back();
}

TEST(BackgroundMemory, is_asked_for_until_all_is_given_back_and_again_when_it_has_grown) {
  Answers answers({GivenBack::in_use, GivenBack::unread, GivenBack::unread, GivenBack::all});
  const auto comm = idle(answers);
  BackgroundProgress& background = new_background(std::chrono::milliseconds(1));
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

/// Is asked for memory until it may answer.
class SlowPeer final : public FakePeers {
 public:
  SlowPeer(std::promise<void>& asked, std::shared_future<void> answers)
      : FakePeers(0, {Rank{1}}), asked_(asked), answers_(std::move(answers)) {}
  GivenBack give_back() override {
    asked_.set_value();
    answers_.wait();
    return GivenBack::all;
  }

 private:
  bool has_published(std::uint32_t) override { return false; }
  PeerState state(Rank) override { return PeerState::present; }
  std::promise<void>& asked_;
  const std::shared_future<void> answers_;
};

TEST(BackgroundMemory, is_not_touched_any_more_once_it_is_forgotten) {
  std::promise<void> asked, answers;
  auto comm = of_two(std::make_unique<SlowPeer>(asked, answers.get_future().share()));
  const std::weak_ptr<Comm> watched = comm;
  BackgroundProgress& background = new_background(std::chrono::milliseconds(1));
  background.give_back_later(comm);
  asked.get_future().wait();
  std::thread destroys([&] {
    background.forget_memory(*comm);
    comm = nullptr;
    EXPECT_TRUE(watched.expired());  // it has ended in this thread
  });
  answers.set_value();
  destroys.join();
  background.stop(Deadline::in(std::chrono::seconds(30)));
}

TEST(BackgroundProgress, forgets_a_communicator_while_another_one_has_something_open) {
  Answers answers({});
  const auto open = idle(answers), ended = idle(answers);
  float x = 0;
  Call call;
  call.collective = Collective::recv;
  call.root = Rank{1};
  call.count = 1;
  call.output = reinterpret_cast<std::byte*>(&x);
  const auto receives = open->issue(call);
  ASSERT_TRUE(receives.ok()) << receives.status().message();
  BackgroundProgress& background = new_background(std::chrono::hours(1));
  ASSERT_OK(background.add(open));
  std::promise<void> forgotten;
  std::thread forgets([&] {
    for (int i = 0; i < 100; ++i) background.forget(*ended);
    forgotten.set_value();
  });
  EXPECT_EQ(forgotten.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  background.stop(Deadline::in(std::chrono::seconds(30)));
  forgets.join();
}

TEST(BackgroundMemory, does_not_keep_a_communicator) {
  Answers answers({});
  BackgroundProgress& background = new_background(std::chrono::hours(1));
  std::weak_ptr<Comm> ended;
  {
    const auto comm = idle(answers);
    background.give_back_later(comm);
    ended = comm;
  }
  EXPECT_TRUE(ended.expired());
  background.stop(Deadline::in(std::chrono::seconds(30)));
}

TEST(BackgroundChores, are_done_again_and_again) {
  BackgroundProgress& background = new_background(std::chrono::hours(1));
  std::promise<void> first, second;
  std::atomic<int> of_first{0}, of_second{0};
  background.repeat(std::chrono::milliseconds(1), [&] {
    if (++of_first == 3) first.set_value();
  });
  background.repeat(std::chrono::milliseconds(2), [&] {
    if (++of_second == 3) second.set_value();
  });
  for (std::promise<void>* done : {&first, &second})
    ASSERT_EQ(done->get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  background.stop(Deadline::in(std::chrono::seconds(30)));
}

}  // namespace
}  // namespace anyccl::test
