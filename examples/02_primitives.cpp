// Primitives: every collective once, on four ranks, and the data of each rank before and after it.
//   02_primitives
// The ranks are threads of one process here, so that one table can show them all.

#include <numeric>
#include <string>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::BlockLayout, anyccl::Rank, anyccl::ReduceOp;
using anyccl::view, anyccl::wait;
using example::expect, example::must;
using Numbers = std::vector<int>;
using Sizes = std::vector<std::size_t>;

constexpr int kRanks = 4;
constexpr Rank kRoot{1};

struct Line {
  std::string what;
  Numbers before, after;
};

/// The calls of one rank.
class Table {
 public:
  void add(std::string what, const Numbers& before, const Numbers& after, const Numbers& wanted) {
    expect(after == wanted, what);
    lines_.push_back({std::move(what), before, after});
  }
  const std::vector<Line>& lines() const { return lines_; }

 private:
  std::vector<Line> lines_;
};

/// value(0), value(1), ... for all ranks.
template <typename Value>
Numbers for_each_rank(const Value& value) {
  Numbers numbers;
  for (int r = 0; r < kRanks; ++r) numbers.push_back(value(r));
  return numbers;
}

/// Blocks of one element, or the whole vector: rank r starts with 10 r, 10 r + 1, 10 r + 2, ...
void equal_blocks(Communicator& comm, Table& table) {
  const int me = index(comm.rank());
  const bool root = comm.rank() == kRoot;
  const Numbers row = for_each_rank([&](int i) { return 10 * me + i; });
  const Numbers sums = for_each_rank([](int i) { return 60 + 4 * i; });
  const Numbers one = {10 * me};
  const Numbers tens = for_each_rank([](int r) { return 10 * r; });
  const Numbers nothing;
  Numbers out(kRanks);

  must(wait(comm.all_reduce(view(row), view(out), ReduceOp::sum)));
  table.add("all_reduce, sum", row, out, sums);

  must(wait(comm.broadcast(view(row), view(out), kRoot)));
  table.add("broadcast from 1", root ? row : nothing, out, {10, 11, 12, 13});

  out.resize(root ? kRanks : 0);
  must(wait(comm.reduce(view(row), view(out), ReduceOp::sum, kRoot)));
  table.add("reduce to 1, sum", row, out, root ? sums : nothing);

  must(wait(comm.gather(view(one), view(out), kRoot)));
  table.add("gather to 1", one, out, root ? tens : nothing);

  out.resize(kRanks);
  must(wait(comm.all_gather(view(one), view(out))));
  table.add("all_gather", one, out, tens);

  must(wait(comm.all_to_all(view(row), view(out))));
  table.add("all_to_all", row, out, for_each_rank([&](int r) { return 10 * r + me; }));

  out.resize(1);
  must(wait(comm.reduce_scatter(view(row), view(out), ReduceOp::sum)));
  table.add("reduce_scatter, sum", row, out, {60 + 4 * me});

  must(wait(comm.scan(view(one), view(out), ReduceOp::sum)));
  table.add("scan, sum", one, out, {std::accumulate(tens.begin(), tens.begin() + me + 1, 0)});

  out.resize(me == 0 ? 0 : 1);
  must(wait(comm.exscan(view(one), view(out), ReduceOp::sum)));
  const Numbers before{std::accumulate(tens.begin(), tens.begin() + me, 0)};
  table.add("exscan, sum", one, out, me == 0 ? nothing : before);

  out.resize(1);
  must(wait(comm.scatter(view(row), view(out), kRoot)));
  table.add("scatter from 1", root ? row : nothing, out, {10 + me});
}

/// The forms with blocks of different sizes: here rank r's block has r elements.
void unequal_blocks(Communicator& comm, Table& table) {
  const int me = index(comm.rank());
  const bool root = comm.rank() == kRoot;
  const Sizes counts = {0, 1, 2, 3}, displs = {0, 0, 1, 3};  // in elements
  const BlockLayout layout{counts, displs};
  const Numbers mine(counts[static_cast<std::size_t>(me)], me);  // r, r times
  const Numbers all = {1, 2, 2, 3, 3, 3};
  const Numbers nothing;
  Numbers out(all.size());

  must(wait(comm.all_gather_v(view(mine), view(out), layout)));
  table.add("all_gather_v", mine, out, all);

  out.resize(root ? all.size() : 0);
  must(wait(comm.gather_v(view(mine), view(out), layout, kRoot)));
  table.add("gather_v to 1", mine, out, root ? all : nothing);

  out.resize(mine.size());
  must(wait(comm.scatter_v(view(all), layout, view(out), kRoot)));
  table.add("scatter_v from 1", root ? all : nothing, out, mine);

  must(wait(comm.reduce_scatter_v(view(all), layout, view(out), ReduceOp::max)));
  table.add("reduce_scatter_v, max", all, out, mine);

  // Each rank sends j elements to rank j, so rank r receives r elements from each.
  const Numbers row(all.size(), 10 * me);
  const auto r = static_cast<std::size_t>(me);
  const Sizes each(kRanks, r), places = {0, r, 2 * r, 3 * r};
  Numbers wanted;
  for (int from = 0; from < kRanks; ++from) wanted.insert(wanted.end(), r, 10 * from);
  out.resize(kRanks * r);
  must(wait(comm.all_to_all_v(view(row), layout, view(out), {each, places})));
  table.add("all_to_all_v", row, out, wanted);
}

void the_rest(Communicator& comm, Table& table) {
  const int me = index(comm.rank());
  const int left = (me + kRanks - 1) % kRanks, right = (me + 1) % kRanks;
  const Numbers mine = {10 * me};
  Numbers out(1);

  // Both are issued before either is waited for, so a circle of ranks cannot deadlock.
  auto sent = must(comm.send(view(mine), Rank{right}));
  auto received = must(comm.recv(view(out), Rank{left}));
  must(sent.wait());
  must(received.wait());
  table.add("send right, recv left", mine, out, {10 * left});

  must(wait(comm.barrier()));
  table.add("barrier", {}, {}, {});
}

std::string text(const Numbers& numbers) {
  std::string text;
  for (const int number : numbers)
    text.append(text.empty() ? "" : " ").append(std::to_string(number));
  return text.empty() ? "-" : text;
}

}  // namespace

int main() {
  std::vector<Table> tables(kRanks);
  example::as_threads(kRanks, [&](Communicator& comm) {
    Table& table = tables[static_cast<std::size_t>(index(comm.rank()))];
    equal_blocks(comm, table);
    unequal_blocks(comm, table);
    the_rest(comm, table);
  });

  for (std::size_t i = 0; i < tables[0].lines().size(); ++i) {
    std::printf("%s\n", tables[0].lines()[i].what.c_str());
    for (int r = 0; r < kRanks; ++r) {
      const Line& line = tables[static_cast<std::size_t>(r)].lines()[i];
      std::printf("  rank %d  %-18s ->  %s\n", r, text(line.before).c_str(),
                  text(line.after).c_str());
    }
  }
}
