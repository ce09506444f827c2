// Operations in streams, with ranks as threads.

#include "support/streams.hpp"

#include <random>

namespace anyccl::test {
namespace {

constexpr auto kSum = ReduceOp::sum;

TEST(StreamOrder, functions_and_operations_see_what_came_before) {
  run_ranks(3, [](Communicator& comm) {
    Stream stream = new_stream();
    std::vector<float> x(1000);
    float seen = 0;
    for (int i = 1; i <= 50; ++i) {
      ASSERT_OK(stream.run([&, i] { x.assign(x.size(), static_cast<float>(i)); }));
      ASSERT_OK(comm.all_reduce(view(x), view(x), kSum, stream).status());
      ASSERT_OK(stream.run([&] { seen += x[999]; }));
    }
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(seen, 3.0F * 50 * 51 / 2);
  });
}

TEST(StreamOrder, a_call_with_a_stream_returns_before_its_stream_comes_to_it) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    Door door;
    std::vector<float> x(100000, 0.0F);
    ASSERT_OK(stream.run([&] {
      EXPECT_TRUE(door.pass());
      x.assign(x.size(), 1.0F);
    }));
    auto work = comm.all_reduce(view(x), view(x), kSum, stream);  // hangs if it waits
    ASSERT_TRUE(work.ok());
    const auto early = work->test();
    ASSERT_TRUE(early.ok());
    EXPECT_FALSE(*early);
    door.open();
    ASSERT_OK(work->wait());
    EXPECT_EQ(x, std::vector<float>(100000, 2.0F));
  });
}

TEST(StreamOrder, later_calls_without_a_stream_wait_for_their_turn) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    Door door;
    std::vector<float> first(10, 0.0F), second(10, 1.0F);
    ASSERT_OK(stream.run([&] {
      EXPECT_TRUE(door.pass());
      first.assign(10, 1.0F);
    }));
    ASSERT_OK(comm.all_reduce(view(first), view(first), kSum, stream).status());
    auto later = comm.all_reduce(view(second), view(second), kSum);
    ASSERT_TRUE(later.ok());
    for (int i = 0; i < 1000; ++i) {
      const auto done = later->test();
      ASSERT_TRUE(done.ok());
      ASSERT_FALSE(*done);
    }
    door.open();
    ASSERT_OK(later->wait());
    EXPECT_EQ(first[9], 2.0F);
    EXPECT_EQ(second[9], 2.0F);
    ASSERT_OK(stream.synchronize());
  });
}

TEST(StreamOrder, blocking_calls_wait_for_their_turn) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    std::vector<float> x(10, 1.0F);
    ASSERT_OK(stream.run(busy_for(std::chrono::milliseconds(30))));
    ASSERT_OK(comm.all_reduce(view(x), view(x), kSum, stream).status());
    ASSERT_EQ(anycclBarrier(comm.handle(), nullptr), anycclSuccess);
    EXPECT_EQ(x[9], 2.0F);
    ASSERT_OK(stream.synchronize());
  });
}

TEST(StreamOrder, two_streams_take_turns_on_one_communicator) {
  run_ranks(3, [](Communicator& comm) {
    constexpr int kCalls = 300;
    Stream streams[2] = {new_stream(), new_stream()};
    std::vector<std::vector<float>> x(kCalls);
    std::mt19937 random(17);  // the same calls on all ranks
    for (std::size_t i = 0; i < kCalls; ++i) {
      x[i].assign(1 + random() % 20000, static_cast<float>(i));
      Stream& stream = streams[random() % 2];
      ASSERT_OK(comm.all_reduce(view(x[i]), view(x[i]), kSum, stream).status());
    }
    for (Stream& stream : streams) ASSERT_OK(stream.synchronize());
    for (std::size_t i = 0; i < kCalls; ++i) EXPECT_EQ(x[i].back(), 3.0F * static_cast<float>(i));
  });
}

/// The stream that is called last comes first to its operation on one rank, and last on the other.
TEST(StreamOrder, of_a_communicator_is_the_order_of_the_calls) {
  run_ranks(2, [](Communicator& comm) {
    Stream slow = new_stream(), quick = new_stream();
    Door door;
    std::vector<float> a(3, 1.0F), b(7, 2.0F);
    Stream& one = comm.rank() == Rank{0} ? slow : quick;
    Stream& two = comm.rank() == Rank{0} ? quick : slow;
    ASSERT_OK(slow.run([&] { EXPECT_TRUE(door.pass()); }));
    ASSERT_OK(comm.all_reduce(view(a), view(a), kSum, one).status());
    ASSERT_OK(comm.all_reduce(view(b), view(b), kSum, two).status());
    door.open();
    ASSERT_OK(slow.synchronize());
    ASSERT_OK(quick.synchronize());
    EXPECT_EQ(a, std::vector<float>(3, 2.0F));
    EXPECT_EQ(b, std::vector<float>(7, 4.0F));
  });
}

TEST(StreamOrder, two_communicators_may_come_in_another_order_on_each_rank) {
  run_ranks(2, [](Communicator& a) {
    auto made = a.split(0, index(a.rank()));
    ASSERT_TRUE(made.ok()) << made.status().message();
    Communicator& b = *made;
    Stream with_a = new_stream(), with_b = new_stream();
    std::vector<float> x(5000, 1.0F), y(5000, 1.0F);
    const auto call_a = [&] { return a.all_reduce(view(x), view(x), kSum, with_a).status(); };
    const auto call_b = [&] { return b.all_reduce(view(y), view(y), kSum, with_b).status(); };
    for (int i = 0; i < 10; ++i) {
      ASSERT_OK(a.rank() == Rank{0} ? call_a() : call_b());
      ASSERT_OK(a.rank() == Rank{0} ? call_b() : call_a());
    }
    ASSERT_OK(with_a.synchronize());
    ASSERT_OK(with_b.synchronize());
    EXPECT_EQ(x[4999], 1024.0F);
    EXPECT_EQ(y[4999], 1024.0F);
    ASSERT_OK(b.destroy());
  });
}

TEST(StreamEvents, order_a_reduction_between_the_streams_around_it) {
  run_ranks(2, [](Communicator& comm) {
    Stream compute = new_stream(), reduce = new_stream();
    auto written = Event::create(), reduced = Event::create();
    ASSERT_TRUE(written.ok() && reduced.ok());
    std::vector<float> x(20000, 0.0F);
    float sum = 0;
    for (int i = 1; i <= 30; ++i) {
      ASSERT_OK(compute.run([&, i] { x.assign(x.size(), static_cast<float>(i)); }));
      ASSERT_OK(written->record(compute));
      ASSERT_OK(reduce.wait(*written));
      ASSERT_OK(comm.all_reduce(view(x), view(x), kSum, reduce).status());
      ASSERT_OK(reduced->record(reduce));
      ASSERT_OK(compute.wait(*reduced));
      ASSERT_OK(compute.run([&] { sum += x[19999]; }));
    }
    ASSERT_OK(compute.synchronize());
    EXPECT_EQ(sum, 2.0F * 30 * 31 / 2);
    ASSERT_OK(reduce.synchronize());
  });
}

TEST(StreamMessages, of_one_peer_stay_in_the_order_of_the_calls) {
  run_ranks(2, [](Communicator& comm) {
    const Rank other{1 - index(comm.rank())};
    Stream slow = new_stream(), quick = new_stream();
    Door door;
    std::vector<float> a(1, 0.0F), b(1, 2.0F);
    ASSERT_OK(slow.run([&] {
      EXPECT_TRUE(door.pass());
      if (comm.rank() == Rank{0}) a[0] = 1.0F;
    }));
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(comm.send(view(a), other, slow).status());
      ASSERT_OK(comm.send(view(b), other, quick).status());
    } else {
      ASSERT_OK(comm.recv(view(a), other, quick).status());
      ASSERT_OK(comm.recv(view(b), other).status());
    }
    door.open();
    ASSERT_OK(slow.synchronize());
    ASSERT_OK(quick.synchronize());
    ASSERT_OK(wait(comm.barrier()));
    EXPECT_EQ(a[0], 1.0F);
    EXPECT_EQ(b[0], 2.0F);
  });
}

TEST(StreamGroups, exchange_without_waiting_for_each_other) {
  run_ranks(3, [](Communicator& comm) {
    const auto n = static_cast<std::size_t>(comm.size());
    const int me = index(comm.rank());
    Stream stream = new_stream();
    Door door;
    std::vector<std::vector<std::int64_t>> out(n), in(n);
    for (auto& to : out) to.assign(500000, -1);  // more than fits in between
    for (auto& from : in) from.assign(500000, -1);
    ASSERT_OK(stream.run([&] {
      EXPECT_TRUE(door.pass());
      for (std::size_t r = 0; r < n; ++r)
        out[r].assign(500000, me * 10 + static_cast<std::int64_t>(r));
    }));
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    for (std::size_t r = 0; r < n; ++r) {
      const auto peer = static_cast<int>(r);
      EXPECT_EQ(
          anycclSend(out[r].data(), 500000, anycclInt64, peer, comm.handle(), stream.handle()),
          anycclSuccess);
      EXPECT_EQ(anycclRecv(in[r].data(), 500000, anycclInt64, peer, comm.handle(), stream.handle()),
                anycclSuccess);
    }
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);  // does not wait
    door.open();
    ASSERT_OK(stream.synchronize());
    for (std::size_t r = 0; r < n; ++r) {
      EXPECT_EQ(in[r].front(), static_cast<int>(r) * 10 + me);
      EXPECT_EQ(in[r].back(), static_cast<int>(r) * 10 + me);
    }
  });
}

TEST(StreamGroups, wait_only_for_calls_without_a_stream) {
  run_ranks(2, [](Communicator& comm) {
    auto made = comm.split(0, index(comm.rank()));
    ASSERT_TRUE(made.ok()) << made.status().message();
    Stream stream = new_stream();
    Door door;
    std::vector<float> x(100, 1.0F), y(100, 1.0F);
    ASSERT_OK(stream.run([&] { EXPECT_TRUE(door.pass()); }));
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    EXPECT_EQ(anycclAllReduce(x.data(), x.data(), 100, anycclFloat32, anycclSum, comm.handle(),
                              stream.handle()),
              anycclSuccess);
    EXPECT_EQ(
        anycclAllReduce(y.data(), y.data(), 100, anycclFloat32, anycclSum, made->handle(), nullptr),
        anycclSuccess);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
    EXPECT_EQ(y[99], 2.0F);
    const auto done = stream.query();
    ASSERT_TRUE(done.ok());
    EXPECT_FALSE(*done);
    door.open();
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(x[99], 2.0F);
  });
}

/// One thread, one stream: the ranks' operations are one piece of work.
TEST(StreamGroups, keep_a_stream_that_is_destroyed_before_their_end) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(3, 1.0F);
    const Status ended = group([&] {
      Stream stream = new_stream();
      EXPECT_OK(stream.run([] {}));
      EXPECT_OK(stream.synchronize());
      EXPECT_OK(comm.all_reduce(view(x), view(x), ReduceOp::sum, stream).status());
    });
    ASSERT_OK(ended);
    ASSERT_OK(wait(comm.barrier()));
    EXPECT_EQ(x, std::vector<float>(3, 2.0F));
  });
}

TEST(StreamGroups, run_all_ranks_of_a_communicator_in_one_stream) {
  auto comms = Communicator::init_all(4);
  ASSERT_TRUE(comms.ok()) << comms.status().message();
  Stream stream = new_stream();
  std::vector<std::vector<float>> x(4, std::vector<float>(50000, 1.0F));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    for (std::size_t r = 0; r < 4; ++r)
      EXPECT_EQ(anycclAllReduce(x[r].data(), x[r].data(), x[r].size(), anycclFloat32, anycclSum,
                                (*comms)[r].handle(), stream.handle()),
                anycclSuccess);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
  }
  ASSERT_OK(stream.synchronize());
  for (const auto& result : x) EXPECT_EQ(result.back(), 64.0F);
}

TEST(StreamCollectives, all_take_a_stream) {
  run_ranks(2, [](Communicator& comm) {
    Stream s = new_stream();
    const int me = index(comm.rank());
    const Rank root{1};
    std::vector<int> one(2, me + 1), two(4, me + 1), out(4, 0), all(4, 0), small(2, 0);
    const std::vector<std::size_t> counts = {2, 2}, displs = {0, 2};
    std::vector<std::vector<int>> seen;
    const auto keep = [&](std::vector<int>& result) {
      return s.run([&] { seen.push_back(result); });
    };
    ASSERT_OK(comm.broadcast(view(one), view(small), root, s).status());
    ASSERT_OK(keep(small));
    ASSERT_OK(comm.reduce(view(one), view(small), kSum, root, s).status());
    ASSERT_OK(keep(small));
    ASSERT_OK(comm.reduce_scatter(view(two), view(small), kSum, s).status());
    ASSERT_OK(keep(small));
    ASSERT_OK(comm.all_gather(view(one), view(all), s).status());
    ASSERT_OK(keep(all));
    ASSERT_OK(comm.gather(view(one), view(out), root, s).status());
    ASSERT_OK(comm.scatter(view(two), view(small), root, s).status());
    ASSERT_OK(keep(small));
    ASSERT_OK(comm.all_to_all(view(two), view(all), s).status());
    ASSERT_OK(keep(all));
    ASSERT_OK(s.run([&] { all.assign(4, 0); }));
    ASSERT_OK(
        comm.all_to_all_v(view(two), {counts, displs}, view(all), {counts, displs}, s).status());
    ASSERT_OK(keep(all));
    ASSERT_OK(comm.barrier(s).status());
    ASSERT_OK(s.synchronize());
    const std::vector<std::vector<int>> want = {
        {2, 2},      me == 1 ? std::vector<int>{3, 3} : std::vector<int>{2, 2},
        {3, 3},      {1, 1, 2, 2},
        {2, 2},      {1, 1, 2, 2},
        {1, 1, 2, 2}};
    EXPECT_EQ(seen, want);
    EXPECT_EQ(out, me == 1 ? (std::vector<int>{1, 1, 2, 2}) : std::vector<int>(4, 0));
  });
}

// --- at random -----------------------------------------------------------------------------------

/// What the calls of one rank work on; every reduction is checked in stream order.
struct Playground {
  explicit Playground(Communicator& comm) : all(comm) {
    auto made = comm.split(0, -index(comm.rank()));
    EXPECT_TRUE(made.ok()) << made.status().message();
    part = *std::move(made);
    for (int i = 0; i < 3; ++i) streams.push_back(new_stream());
    for (int i = 0; i < 3; ++i) events.push_back(*Event::create());
  }
  void reduce(Communicator& comm, std::size_t count, Stream& stream) {
    auto x = std::make_shared<std::vector<float>>(count, 0.0F);
    const auto value = static_cast<float>(++salt);
    EXPECT_OK(stream.run([=] { x->assign(x->size(), value); }));
    EXPECT_OK(comm.all_reduce(view(*x), view(*x), kSum, stream).status());
    EXPECT_OK(stream.run([=, n = static_cast<float>(comm.size())] {
      EXPECT_EQ(x->front(), n * value);
      EXPECT_EQ(x->back(), n * value);
    }));
  }
  Communicator& all;
  Communicator part;
  std::vector<Stream> streams;
  std::vector<Event> events;
  int salt = 0;
};

TEST(StreamStress, random_calls_on_three_streams_and_two_communicators) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  run_ranks(
      3,
      [&](Communicator& comm) {
        Playground p(comm);
        std::mt19937 random(seed);  // the same calls on all ranks
        for (int i = 0; i < 600; ++i) {
          const auto what = random() % 10;
          Stream& stream = p.streams[random() % 3];
          Event& event = p.events[random() % 3];
          Communicator& on = random() % 2 == 0 ? p.all : p.part;
          const std::size_t count = 1 + random() % 5000;
          if (what < 6) p.reduce(on, count, stream);
          if (what == 6) EXPECT_OK(event.record(stream));
          if (what == 7) EXPECT_OK(stream.wait(event));
          if (what == 8) EXPECT_OK(wait(on.barrier()));
          if (what == 9) EXPECT_OK(stream.query().status());
        }
        for (Stream& stream : p.streams) ASSERT_OK(stream.synchronize());
        ASSERT_OK(p.part.destroy());
      },
      300);
}

}  // namespace
}  // namespace anyccl::test
