// These tests let a stream work by itself, without operations of a communicator.

#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/stream/stream.hpp"
#include "support/streams.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;

/// An item of a stream that does what a test says.
class PlayedItem final : public StreamItem {
 public:
  using Body = std::function<Status(const Status& so_far)>;
  explicit PlayedItem(Body body) : body_(std::move(body)) {}
  Status run(const Status& so_far) override { return body_(so_far); }

 private:
  Body body_;
};

/// Two streams with nothing in them.
struct StreamAlone : testing::Test {
  ~StreamAlone() override {
    for (const auto& ends : {stream, other})
      if (ends != nullptr) ends->close();
  }
  static void put(HostStream& into, PlayedItem::Body body) {
    HostStream::Items items;
    items.push_back(std::make_unique<PlayedItem>(std::move(body)));
    ASSERT_OK(into.start());
    into.push(std::move(items));
  }
  /// Returns `why` from an item of its own.
  static void fail(HostStream& into, const char* why) {
    put(into, [why](const Status&) { return Status(Code::system_error, why); });
  }
  /// The stream goes on when the door is open.
  static void hold(HostStream& held, Door& until) {
    put(held, [&until](const Status&) {
      return until.pass() ? Status() : Status(Code::timeout, "the test does not go on");
    });
  }
  std::shared_ptr<Moment> moment() { return std::make_shared<Moment>(stream); }

  std::shared_ptr<HostStream> stream = std::make_shared<HostStream>(),
                              other = std::make_shared<HostStream>();
};

TEST_F(StreamAlone, does_its_work_in_the_order_of_the_calls) {
  std::vector<int> order, all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(i);
    put(*stream, [&order, i](const Status&) {
      order.push_back(i);
      return Status();
    });
  }
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(order, all);
}

TEST_F(StreamAlone, calls_functions_with_their_arguments) {
  int called = 0;
  ASSERT_OK(stream->call([](void* argument) { ++*static_cast<int*>(argument); }, &called));
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(called, 1);
}

TEST_F(StreamAlone, is_done_only_when_its_work_is) {
  EXPECT_TRUE(*stream->query()) << "nothing was called";
  Door until;
  hold(*stream, until);
  EXPECT_FALSE(*stream->query());
  until.open();
  ASSERT_OK(stream->synchronize());
  EXPECT_TRUE(*stream->query());
}

TEST_F(StreamAlone, goes_on_after_an_error_and_says_the_first_one_each_time) {
  bool ran = false;
  fail(*stream, "the first");
  fail(*stream, "the second");
  put(*stream, [&ran](const Status&) {
    ran = true;
    return Status();
  });
  EXPECT_EQ(stream->synchronize().message(), "the first");
  EXPECT_TRUE(ran);
  EXPECT_EQ(stream->synchronize().message(), "the first");
  EXPECT_EQ(stream->query().status().message(), "the first");
}

TEST_F(StreamAlone, makes_an_error_of_what_a_function_throws) {
  ASSERT_OK(stream->call([](void*) { throw std::runtime_error("out of soup"); }, nullptr));
  const Status status = stream->synchronize();
  EXPECT_EQ(status.code(), Code::invalid_usage);
  EXPECT_NE(status.message().find("out of soup"), std::string_view::npos) << status.message();
}

TEST_F(StreamAlone, tells_its_work_the_first_error_before_it) {
  std::vector<std::string> told;
  const auto listen = [&told](const Status& so_far) {
    told.emplace_back(so_far.message());
    return Status();
  };
  put(*stream, listen);
  fail(*stream, "the first");
  put(*stream, listen);
  fail(*stream, "the second");
  put(*stream, listen);
  EXPECT_FALSE(stream->synchronize().ok());
  EXPECT_EQ(told, (std::vector<std::string>{"", "the first", "the first"}));
}

TEST_F(StreamAlone, waits_for_the_moment_of_another_one) {
  Door until;
  bool is_before = false, seen = false;
  const auto reached = moment();
  ASSERT_OK(other->wait_for(reached));
  put(*other, [&](const Status&) {
    seen = is_before;
    return Status();
  });
  hold(*stream, until);
  put(*stream, [&](const Status&) {
    is_before = true;
    return Status();
  });
  ASSERT_OK(stream->record(reached));
  EXPECT_FALSE(reached->reached());
  EXPECT_FALSE(*other->query());
  until.open();
  ASSERT_OK(other->synchronize());
  EXPECT_TRUE(seen);
}

TEST_F(StreamAlone, has_errors_before_a_moment_that_it_waits_for) {
  const auto reached = moment();
  fail(*stream, "the first");
  ASSERT_OK(stream->record(reached));
  ASSERT_OK(other->wait_for(reached));
  EXPECT_EQ(other->synchronize().message(), "the first");
}

TEST_F(StreamAlone, has_no_errors_behind_a_moment_that_it_waits_for) {
  const auto reached = moment();
  ASSERT_OK(stream->record(reached));
  fail(*stream, "too late");
  EXPECT_EQ(stream->synchronize().message(), "too late");
  ASSERT_OK(other->wait_for(reached));
  EXPECT_OK(other->synchronize());
}

TEST_F(StreamAlone, waits_for_what_an_event_was_recorded_at_last) {
  HostEvent event;
  EXPECT_EQ(event.latest(), nullptr);
  ASSERT_OK(event.record(*stream));
  const auto first = event.latest();
  fail(*stream, "between them");
  ASSERT_OK(event.record(*stream));
  EXPECT_NE(event.latest(), first);
  ASSERT_OK(first->wait());
  EXPECT_EQ(event.latest()->wait().message(), "between them");
}

TEST_F(StreamAlone, is_not_waited_for_by_its_own_work) {
  Status inside;
  put(*stream, [&](const Status&) {
    inside = stream->synchronize();
    return Status();
  });
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(inside.code(), Code::invalid_usage);
}

TEST_F(StreamAlone, lets_its_work_wait_for_nothing_that_stands_behind_it) {
  Door until;
  const auto behind = moment(), elsewhere = moment();
  Status for_behind, for_elsewhere;
  hold(*stream, until);
  put(*stream, [&](const Status&) {
    for_behind = HostStream::check_wait({.moment = behind.get()});
    for_elsewhere = HostStream::check_wait({.moment = elsewhere.get()});
    return Status();
  });
  ASSERT_OK(stream->record(behind));
  ASSERT_OK(other->record(elsewhere));
  EXPECT_OK(HostStream::check_wait({.moment = behind.get()}));  // another thread may wait
  until.open();
  ASSERT_OK(stream->synchronize());
  EXPECT_EQ(for_behind.code(), Code::invalid_usage);
  EXPECT_OK(for_elsewhere);
}

TEST_F(StreamAlone, does_what_is_in_it_after_it_was_closed) {
  Door until;
  auto ran = std::make_shared<std::promise<void>>();
  const std::future<void> has_run = ran->get_future();
  hold(*stream, until);
  put(*stream, [ran = std::move(ran)](const Status&) {
    ran->set_value();
    return Status();
  });
  stream->close();
  stream.reset();
  until.open();
  EXPECT_EQ(has_run.wait_for(60s), std::future_status::ready);
}

TEST_F(StreamAlone, begins_nothing_more_once_it_is_stopped) {
  struct Flag {
    ~Flag() { gone.set_value(); }
    std::promise<void> gone;
  };
  Door until;
  bool ran = false;
  auto flag = std::make_shared<Flag>();
  const std::future<void> gone = flag->gone.get_future();
  hold(*stream, until);
  put(*stream, [&ran, flag = std::move(flag)](const Status&) {
    ran = true;
    return Status();
  });
  stream->stop(Deadline::in(0ms));
  stream.reset();  // its thread has the last one
  until.open();
  ASSERT_EQ(gone.wait_for(60s), std::future_status::ready);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace anyccl::test
