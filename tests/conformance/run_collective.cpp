#include "conformance/run_collective.hpp"

#include <bit>
#include <cstring>

namespace anyccl::test {

thread_local bool in_arena = false;

namespace {

constexpr std::uint64_t kFromArena = 0x616e79636c2d6172;

/// Of anycclMemAlloc, or of the heap: as it was when it was allocated.
template <typename T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <typename U>
  Allocator(const Allocator<U>&) {}
  T* allocate(std::size_t count) {
    void* at = nullptr;
    const std::size_t bytes = count * sizeof(T) + kHead;
    if (in_arena)
      EXPECT_EQ(anycclMemAlloc(&at, bytes), anycclSuccess) << anycclGetLastError(nullptr);
    else
      at = ::operator new(bytes);
    const std::uint64_t from = in_arena ? kFromArena : 0;
    std::memcpy(at, &from, sizeof from);
    return reinterpret_cast<T*>(static_cast<std::byte*>(at) + kHead);
  }
  void deallocate(T* first, std::size_t) {
    void* const at = reinterpret_cast<std::byte*>(first) - kHead;
    std::uint64_t from = 0;
    std::memcpy(&from, at, sizeof from);
    if (from == kFromArena)
      EXPECT_EQ(anycclMemFree(at), anycclSuccess);
    else
      ::operator delete(at);
  }
  bool operator==(const Allocator&) const { return true; }
  static constexpr std::size_t kHead = 64;
};
template <typename T>
using Buffer = std::vector<T, Allocator<T>>;
template <typename T>
View view_of(Buffer<T>& x) {
  return view(std::span<T>(x));
}

std::uint16_t to_bf16(float x) {  // exact for the values used here
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}
template <typename T>
T element(long value) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return {to_bf16(static_cast<float>(value))};
  else
    return static_cast<T>(value);
}
void fill(std::span<float> x, int rank) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(input(rank, i));
}

template <typename T>
bool equal(T a, T b) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return a.bits == b.bits;
  else
    return a == b;
}
template <typename T, typename Want>
void expect_all(const Buffer<T>& got, Want want, const std::string& what) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!equal(got[i], element<T>(want(i)))) {
      ADD_FAILURE() << what << " is wrong at element " << i << " of " << got.size();
      return;
    }
}

template <typename T>
void all_reduce(Communicator& comm, std::size_t count, ReduceOp op, bool in_place) {
  const int n = comm.size(), me = index(comm.rank());
  Buffer<T> x(count), y(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = element<T>(input(me, i));
  const View out = in_place ? view_of(x) : view_of(y);
  ASSERT_OK(wait(comm.all_reduce(view_of(x), out, op)));
  const auto want = [&](std::size_t i) {
    long result = 0;
    for (int r = 0; r < n; ++r)
      result = op == ReduceOp::sum ? result + input(r, i) : std::max(result, input(r, i));
    return result;
  };
  expect_all(in_place ? x : y, want, "the result");
  if (!in_place)
    expect_all(
        x, [&](std::size_t i) { return input(me, i); }, "the input afterwards");
}

void broadcast(Communicator& comm, std::size_t count, int root, bool in_place) {
  const int me = index(comm.rank());
  Buffer<float> x(count), y(count, -1.0F);
  fill(x, me);
  const View out = in_place ? view_of(x) : view_of(y);
  ASSERT_OK(wait(comm.broadcast(view_of(x), out, Rank{root})));
  expect_all(
      in_place ? x : y, [&](std::size_t i) { return input(root, i); }, "the result");
}

std::size_t pair_count(int from, int to, std::size_t scale) {
  return static_cast<std::size_t>((from * 3 + to * 5) % 7) * scale / 3;
}

void all_to_all_v(Communicator& comm, std::size_t scale) {
  const int n = comm.size(), me = index(comm.rank());
  std::vector<std::size_t> sent, sent_at, received, received_at;
  std::size_t sent_all = 0, received_all = 0;
  for (int r = 0; r < n; ++r) {
    sent.push_back(pair_count(me, r, scale));
    sent_at.push_back(sent_all);
    sent_all += sent.back() + 1;  // with gaps
    received.push_back(pair_count(r, me, scale));
    received_at.push_back(received_all);
    received_all += received.back() + 2;
  }
  Buffer<std::int64_t> x(sent_all, -1), y(received_all, -2);
  for (int r = 0; r < n; ++r)
    for (std::size_t i = 0; i < sent[static_cast<std::size_t>(r)]; ++i)
      x[sent_at[static_cast<std::size_t>(r)] + i] =
          me * 1000000 + r * 10000 + static_cast<long>(i % 9999);
  ASSERT_OK(
      wait(comm.all_to_all_v(view_of(x), {sent, sent_at}, view_of(y), {received, received_at})));
  Buffer<std::int64_t> want(received_all, -2);  // gaps stay as they were
  for (int r = 0; r < n; ++r)
    for (std::size_t i = 0; i < received[static_cast<std::size_t>(r)]; ++i)
      want[received_at[static_cast<std::size_t>(r)] + i] =
          r * 1000000 + me * 10000 + static_cast<long>(i % 9999);
  EXPECT_TRUE(y == want) << "all_to_all_v";
}

template <typename T>
View part_of(Buffer<T>& x, std::size_t first, std::size_t count) {
  return view(std::span<T>(x).subspan(first, count));
}

void reduce(Communicator& comm, std::size_t count, int root, bool in_place) {
  const int n = comm.size(), me = index(comm.rank());
  Buffer<float> x(count), y(count, -1.0F);
  fill(x, me);
  const View out = in_place ? view_of(x) : view_of(y);
  ASSERT_OK(wait(comm.reduce(view_of(x), out, ReduceOp::sum, Rank{root})));
  if (me != root)
    return expect_all(
        y, [](std::size_t) { return -1; }, "elsewhere");
  const auto want = [&](std::size_t i) {
    long sum = 0;
    for (int r = 0; r < n; ++r) sum += input(r, i);
    return sum;
  };
  expect_all(in_place ? x : y, want, "the result");
}

/// With this rank's own vector, or without it.
void scan(Communicator& comm, std::size_t count, bool with_own, ReduceOp op, bool in_place) {
  const int me = index(comm.rank());
  Buffer<std::int64_t> x(count), y(count, -1);
  for (std::size_t i = 0; i < count; ++i) x[i] = input(me, i);
  const View out = in_place ? view_of(x) : view_of(y);
  ASSERT_OK(wait(with_own ? comm.scan(view_of(x), out, op) : comm.exscan(view_of(x), out, op)));
  const int end = with_own ? me + 1 : me;
  if (end == 0)
    return expect_all(
        in_place ? x : y, [&](std::size_t i) { return in_place ? input(me, i) : -1; },
        "untouched by rank 0");
  const auto want = [&](std::size_t i) {
    long result = input(0, i);
    for (int r = 1; r < end; ++r)
      result = op == ReduceOp::sum ? result + input(r, i) : std::max(result, input(r, i));
    return result;
  };
  expect_all(in_place ? x : y, want, "the result");
}

void reduce_scatter(Communicator& comm, std::size_t count, bool in_place) {
  const int ranks = comm.size(), rank = index(comm.rank());
  const auto n = static_cast<std::size_t>(ranks), me = static_cast<std::size_t>(rank);
  Buffer<std::int64_t> x(n * count), y(count, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = input(rank, i);
  ASSERT_OK(wait(comm.reduce_scatter(
      view_of(x), in_place ? part_of(x, me * count, count) : view_of(y), ReduceOp::sum)));
  if (in_place) std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(me * count), count, y.begin());
  const auto want = [&](std::size_t i) {
    long sum = 0;
    for (int r = 0; r < ranks; ++r) sum += input(r, me * count + i);
    return sum;
  };
  expect_all(y, want, "the result");
}

/// Everywhere, or at `root` only.
void all_gather(Communicator& comm, std::size_t count, bool in_place, int root = -1) {
  const auto n = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  Buffer<float> x(count), y(n * count, -1.0F);
  fill(x, static_cast<int>(me));
  if (in_place) std::copy(x.begin(), x.end(), y.begin() + static_cast<std::ptrdiff_t>(me * count));
  const View in = in_place ? part_of(y, me * count, count) : view_of(x);
  const Buffer<float> before = y;
  ASSERT_OK(
      wait(root < 0 ? comm.all_gather(in, view_of(y)) : comm.gather(in, view_of(y), Rank{root})));
  if (root >= 0 && comm.rank() != Rank{root}) {
    EXPECT_EQ(y, before) << "elsewhere";
    return;
  }
  const auto want = [&](std::size_t i) {
    return count == 0 ? 0 : input(static_cast<int>(i / count), i % count);
  };
  expect_all(y, want, "the result");
}

void scatter(Communicator& comm, std::size_t count, int root, bool in_place) {
  const auto n = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  const bool at_root = comm.rank() == Rank{root};
  Buffer<float> x(at_root ? n * count : 0), y(count, -1.0F);
  fill(x, root);
  const bool inside = in_place && at_root;
  ASSERT_OK(wait(
      comm.scatter(view_of(x), inside ? part_of(x, me * count, count) : view_of(y), Rank{root})));
  if (inside) std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(me * count), count, y.begin());
  expect_all(
      y, [&](std::size_t i) { return input(root, me * count + i); }, "the result");
}

void all_to_all(Communicator& comm, std::size_t count, bool in_place) {
  const auto n = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  Buffer<float> x(n * count), y(n * count, -1.0F);
  fill(x, static_cast<int>(me));
  ASSERT_OK(wait(comm.all_to_all(view_of(x), in_place ? view_of(x) : view_of(y))));
  const auto want = [&](std::size_t i) {
    return count == 0 ? 0 : input(static_cast<int>(i / count), me * count + i % count);
  };
  expect_all(in_place ? x : y, want, "the result");
}

/// Blocks of different sizes, some empty, apart and backwards in their buffer.
struct Apart {
  Apart(int ranks, std::size_t scale) {
    for (int r = 0; r < ranks; ++r)
      counts.push_back(static_cast<std::size_t>((r * 5 + 2) % 4) * scale / 2);
    displs.resize(counts.size());
    for (std::size_t r = counts.size(); r-- > 0;) {
      displs[r] = all + r;
      all = displs[r] + counts[r];
    }
  }
  BlockLayout layout() const { return {counts, displs}; }
  std::size_t count(int rank) const { return counts[static_cast<std::size_t>(rank)]; }
  template <typename T>
  std::span<T> block(Buffer<T>& x, int rank) const {
    return std::span<T>(x).subspan(displs[static_cast<std::size_t>(rank)], count(rank));
  }
  std::vector<std::size_t> counts, displs;
  std::size_t all = 0;
};

/// Everywhere, or at `root` only, where alone the arrays are there.
void all_gather_v(Communicator& comm, std::size_t scale, bool in_place, int root = -1) {
  const Apart apart(comm.size(), scale);
  const int me = index(comm.rank());
  const bool receives = root < 0 || me == root;
  Buffer<float> x(apart.count(me)), y(receives ? apart.all : 0, -1.0F), want = y;
  const std::span<float> in = in_place && receives ? apart.block(y, me) : std::span<float>(x);
  fill(in, me);
  for (int r = 0; r < comm.size() && receives; ++r) fill(apart.block(want, r), r);
  if (root < 0)
    ASSERT_OK(wait(comm.all_gather_v(view(in), view_of(y), apart.layout())));
  else
    ASSERT_OK(wait(comm.gather_v(view(in), view_of(y), receives ? apart.layout() : BlockLayout{},
                                 Rank{root})));
  EXPECT_TRUE(y == want) << "of size " << scale << (in_place ? ", in place" : "");
}

void reduce_scatter_v(Communicator& comm, std::size_t scale, bool in_place, ReduceOp op) {
  const Apart apart(comm.size(), scale);
  const int me = index(comm.rank()), n = comm.size();
  Buffer<float> x(apart.all), y(apart.count(me), -1.0F);
  for (int r = 0; r < n; ++r) fill(apart.block(x, r), me + r);
  const std::span<float> out = in_place ? apart.block(x, me) : std::span<float>(y);
  ASSERT_OK(wait(comm.reduce_scatter_v(view_of(x), apart.layout(), view(out), op)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    float sum = 0;
    for (int r = 0; r < n; ++r) sum += static_cast<float>(input(r + me, i));
    ASSERT_EQ(out[i], op == ReduceOp::avg ? sum / static_cast<float>(n) : sum) << i;
  }
}

void scatter_v(Communicator& comm, std::size_t scale, int root, bool in_place) {
  const Apart apart(comm.size(), scale);
  const int me = index(comm.rank());
  const bool sends = me == root;
  Buffer<float> x(sends ? apart.all : 0), y(apart.count(me), -1.0F), want(y.size());
  for (int r = 0; r < comm.size() && sends; ++r) fill(apart.block(x, r), r);
  const std::span<float> out = in_place && sends ? apart.block(x, me) : std::span<float>(y);
  ASSERT_OK(wait(
      comm.scatter_v(view_of(x), sends ? apart.layout() : BlockLayout{}, view(out), Rank{root})));
  fill(want, me);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), want.begin(), want.end())) << "of size " << scale;
}

/// To the rank `distance` further; what was sent is overwritten at once.
void messages(Communicator& comm, std::size_t count, int distance, bool grouped) {
  const int n = comm.size(), me = index(comm.rank());
  const int to = (me + distance) % n, from = (me + n - distance) % n;
  Buffer<float> x(count), y(count, -1.0F);
  fill(x, me);
  if (grouped) {
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    EXPECT_EQ(anycclRecv(y.data(), count, anycclFloat32, from, comm.handle(), nullptr),
              anycclSuccess);
    EXPECT_EQ(anycclSend(x.data(), count, anycclFloat32, to, comm.handle(), nullptr),
              anycclSuccess);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
  } else {
    auto sent = comm.send(view_of(x), Rank{to});
    ASSERT_OK(sent.status());
    ASSERT_OK(wait(comm.recv(view_of(y), Rank{from})));
    ASSERT_OK(sent->wait());
  }
  std::fill(x.begin(), x.end(), -2.0F);
  expect_all(
      y, [&](std::size_t i) { return input(from, i); }, "received");
}

}  // namespace

void run_once(Communicator& comm, Collective collective, std::size_t count) {
  SCOPED_TRACE(testing::Message() << "rank " << index(comm.rank()) << " of " << comm.size()
                                  << ", count " << count);
  const int n = comm.size();
  // Of a block; the large ones still are several tiles.
  const std::size_t block = count > 4099 ? count / static_cast<std::size_t>(n) : count;
  switch (collective) {
    case Collective::all_reduce:
      for (const bool in_place : {false, true}) {
        all_reduce<float>(comm, count, ReduceOp::sum, in_place);
        all_reduce<std::int64_t>(comm, count, ReduceOp::max, in_place);
      }
      if (count <= 4099)
        all_reduce<BFloat16>(comm, count, ReduceOp::sum, index(comm.rank()) % 2 == 0);
      break;
    case Collective::broadcast:
      for (const int root : {0, n / 2, n - 1})
        broadcast(comm, count, root, index(comm.rank()) % 2 == 0);
      break;
    case Collective::reduce:
      for (const int root : {0, n / 2, n - 1}) reduce(comm, count, root, root % 2 == 0);
      break;
    case Collective::scan:
    case Collective::exscan:
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max})
        for (const bool in_place : {false, true, index(comm.rank()) % 2 == 0})
          scan(comm, count, collective == Collective::scan, op, in_place);
      break;
    case Collective::reduce_scatter:
      for (const bool in_place : {false, true, index(comm.rank()) % 2 == 0})
        reduce_scatter(comm, block, in_place);
      break;
    case Collective::all_gather:
      for (const bool in_place : {false, true, index(comm.rank()) % 2 == 0})
        all_gather(comm, block, in_place);
      break;
    case Collective::gather:
      for (const int root : {0, n / 2, n - 1}) all_gather(comm, block, root % 2 == 0, root);
      break;
    case Collective::scatter:
      for (const int root : {0, n / 2, n - 1}) scatter(comm, block, root, root % 2 == 0);
      break;
    case Collective::all_to_all:
      for (const bool in_place : {false, true, index(comm.rank()) % 2 == 0})
        all_to_all(comm, block, in_place);
      break;
    case Collective::all_to_all_v:
      all_to_all_v(comm, count);
      break;
    case Collective::all_gather_v:
      for (const bool in_place : {false, true, index(comm.rank()) % 2 == 0})
        all_gather_v(comm, block, in_place);
      break;
    case Collective::reduce_scatter_v:
      for (const bool in_place : {false, true, index(comm.rank()) % 2 == 0})
        reduce_scatter_v(comm, block, in_place, count % 2 == 0 ? ReduceOp::avg : ReduceOp::sum);
      break;
    case Collective::gather_v:
      for (const int root : {0, n / 2, n - 1}) all_gather_v(comm, block, root % 2 == 0, root);
      break;
    case Collective::scatter_v:
      for (const int root : {0, n / 2, n - 1}) scatter_v(comm, block, root, root % 2 == 0);
      break;
    case Collective::send:
      for (const bool grouped : {false, true})
        for (const int distance : {1, n - 1}) messages(comm, count, distance, grouped);
      break;
    case Collective::barrier:
      ASSERT_OK(wait(comm.barrier()));
      break;
    default:
      FAIL() << "no test for this collective";
  }
}

}  // namespace anyccl::test
