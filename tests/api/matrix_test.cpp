// Every collective with every type and operator gives the right result or is refused by name. With
// ANYCCL_SUPPORT_PAGE set, what was found out is written to that file, which is
// docs/generated/support.md.

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "algorithm/schedule/contract.hpp"
#include "base/types.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 13;  // of each block

std::vector<DType> all_types() {
  std::vector<DType> all;
  for (int t = 0; t < anycclNumTypes; ++t) all.push_back(static_cast<DType>(t));
  return all;
}
std::vector<ReduceOp> all_ops() {
  std::vector<ReduceOp> all;
  for (int op = 0; op < anycclNumOps; ++op) all.push_back(static_cast<ReduceOp>(op));
  return all;
}

/// Small numbers that every type has, and their results with every operator.
double input(int rank, std::size_t i) {
  return static_cast<double>((i + static_cast<std::size_t>(rank)) % 4);
}

bool is_integer(DType type) {
  switch (type) {
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64:
      return true;
    default:
      return false;
  }
}

/// Bits of a float of this layout that has `value`.
std::uint64_t float_bits(double value, int mantissa, int bias) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 0.5 <= fraction < 1
  const auto digits = static_cast<std::uint64_t>((fraction * 2 - 1) * std::ldexp(1.0, mantissa));
  return static_cast<std::uint64_t>(exponent - 1 + bias) << mantissa | digits;
}

std::vector<std::byte> element(DType type, double value) {
  std::vector<std::byte> bytes(bytes_of(type));
  const auto put = [&](const auto& x) { std::memcpy(bytes.data(), &x, sizeof x); };
  switch (type) {
    case DType::f16:
      put(static_cast<std::uint16_t>(float_bits(value, 10, 15)));
      break;
    case DType::bf16:
      put(static_cast<std::uint16_t>(float_bits(value, 7, 127)));
      break;
    case DType::f8e4m3:
      put(static_cast<std::uint8_t>(float_bits(value, 3, 7)));
      break;
    case DType::f8e5m2:
      put(static_cast<std::uint8_t>(float_bits(value, 2, 15)));
      break;
    case DType::f32:
    case DType::complex64:  // the imaginary part stays 0
      put(static_cast<float>(value));
      break;
    case DType::f64:
    case DType::complex128:
      put(value);
      break;
    default: {  // integers and bool; little endian
      const auto whole = static_cast<std::uint64_t>(value);
      std::memcpy(bytes.data(), &whole, bytes.size());
    }
  }
  return bytes;
}

double reduced(DType type, ReduceOp op, std::size_t i) {
  const double a = input(0, i), b = input(1, i);
  const auto x = static_cast<unsigned>(a), y = static_cast<unsigned>(b);
  const bool logical = type == DType::boolean;
  switch (op) {
    case ReduceOp::sum:
      return logical ? (x || y) : a + b;
    case ReduceOp::prod:
      return logical ? (x && y) : a * b;
    case ReduceOp::max:
      return logical ? (x || y) : std::max(a, b);
    case ReduceOp::min:
      return logical ? (x && y) : std::min(a, b);
    case ReduceOp::avg:
      return is_integer(type) ? std::floor((a + b) / 2) : (a + b) / 2;
    case ReduceOp::land:
      return x && y;
    case ReduceOp::lor:
      return x || y;
    case ReduceOp::lxor:
      return (x != 0) != (y != 0);
    case ReduceOp::band:
      return logical ? (x && y) : x & y;
    case ReduceOp::bor:
      return logical ? (x || y) : x | y;
    case ReduceOp::bxor:
      return logical ? (x != 0) != (y != 0) : x ^ y;
  }
  return 0;
}

/// What one contribution alone becomes.
double of_one(DType type, ReduceOp op, double value) {
  const bool logical =
      type == DType::boolean || op == ReduceOp::land || op == ReduceOp::lor || op == ReduceOp::lxor;
  return logical ? static_cast<double>(value != 0) : value;
}

std::vector<std::byte> memory(DType type, std::size_t count,
                              const std::function<double(std::size_t)>& value) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<std::byte> one = element(type, value(i));
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

/// One call with everything in it, as data.
struct Case {
  Collective collective;
  DType type;
  ReduceOp op = ReduceOp::sum;
};

/// What rank `me` must have afterwards, element i of its output.
double expected(const Case& c, int me, std::size_t i) {
  const std::size_t block = i / kCount;
  const auto mine = static_cast<std::size_t>(me) * kCount;
  switch (c.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return reduced(c.type, c.op, i);
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      return reduced(c.type, c.op, mine + i);
    case Collective::scan:
      return me == 0 ? of_one(c.type, c.op, input(0, i)) : reduced(c.type, c.op, i);
    case Collective::exscan:
      return of_one(c.type, c.op, input(0, i));
    case Collective::broadcast:
      return input(0, i);
    case Collective::scatter:
    case Collective::scatter_v:
      return input(0, mine + i);
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return input(static_cast<int>(block), mine + i % kCount);
    case Collective::send:
    case Collective::recv:
      return input(1 - me, i);
    default:  // gathers
      return input(static_cast<int>(block), i % kCount);
  }
}

std::size_t blocks(const Case& c, bool at_root, Space side) {
  if (c.collective == Collective::send) return side == Space::input ? 1 : 0;
  if (c.collective == Collective::recv) return side == Space::output ? 1 : 0;
  return blocks_held(c.collective, kRanks, at_root, side);
}

/// Makes the call at one rank; its status, or a failure if the result is wrong.
Status run(Communicator& comm, const Case& c) {
  const int me = index(comm.rank());
  const bool at_root = me == 0;
  const std::size_t in = blocks(c, at_root, Space::input) * kCount,
                    out = blocks(c, at_root, Space::output) * kCount;
  const auto x = memory(c.type, in, [&](std::size_t i) { return input(me, i); });
  std::vector<std::byte> y(out * bytes_of(c.type));
  const std::size_t counts[] = {kCount, kCount}, displs[] = {0, kCount};
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = static_cast<anycclCollective_t>(c.collective);
  call.sendbuff = x.data();
  call.recvbuff = y.data();
  call.count = c.collective == Collective::all_to_all_v ? 0 : kCount;
  call.datatype = static_cast<anycclDataType_t>(c.type);
  call.op = static_cast<anycclRedOp_t>(c.op);
  if (c.collective == Collective::send || c.collective == Collective::recv) call.root = 1 - me;
  call.sendcounts = call.recvcounts = counts;
  call.sdispls = call.rdispls = displs;
  anycclWork_t work = nullptr;
  Status status = detail::status_of(anycclIssue(&call, comm.handle(), &work), comm.handle());
  if (!status.ok()) return status;
  status = detail::status_of(anycclWorkWait(work));
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  if (status.ok()) {
    EXPECT_EQ(y, memory(c.type, out, [&](std::size_t i) { return expected(c, me, i); }))
        << name(c.collective) << " of " << name_of(c.type) << ", " << name_of(c.op) << ", rank "
        << me;
  }
  return status;
}

/// Whether it works; else it must have been refused by name, without harm.
bool works(Communicator& comm, const Case& c) {
  const Status status = run(comm, c);
  if (status.ok()) return true;
  EXPECT_EQ(status.code(), Code::unsupported) << status.message();
  for (const std::string_view word : {name_of(c.type), name_of(c.op)})
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  EXPECT_OK(comm.failure());
  return false;
}

/// Which operators each type has, by collective; a type that is only moved has none.
using Found = std::map<Collective, std::map<DType, std::set<ReduceOp>>>;

std::vector<Collective> with_data() {
  std::vector<Collective> all;
  for (int c = 0; c < anycclNumCollectives; ++c)
    if (static_cast<Collective>(c) != Collective::barrier)
      all.push_back(static_cast<Collective>(c));
  return all;
}

Found find_out() {
  Found found;
  run_ranks(kRanks, [&](Communicator& comm) {
    Found mine;
    for (const Collective collective : with_data())
      for (const DType type : all_types()) {
        if (collective == Collective::recv) continue;  // with its send
        if (collective == Collective::send) {
          const Case first{comm.rank() == Rank{0} ? Collective::send : Collective::recv, type};
          const Case second{comm.rank() == Rank{0} ? Collective::recv : Collective::send, type};
          EXPECT_TRUE(works(comm, first) && works(comm, second)) << name_of(type);
          mine[Collective::send][type] = mine[Collective::recv][type] = {};
        } else if (!reduces(collective)) {
          EXPECT_TRUE(works(comm, {collective, type})) << name(collective) << name_of(type);
          mine[collective][type] = {};
        } else {
          for (const ReduceOp op : all_ops())
            if (works(comm, {collective, type, op})) mine[collective][type].insert(op);
        }
      }
    if (comm.rank() == Rank{0}) found = mine;
  });
  return found;
}

std::string page(const Found& found) {
  std::ostringstream out;
  out << "# What works with what\n\n"
         "Written by tests/api/matrix_test.cpp (`make docs`) from what it found to work: every "
         "cell "
         "is a call whose result\nwas compared, or that was refused by name and did no harm.\n\n"
         "## Operators by type\n\nThe same for";
  const char* comma = " ";
  for (const auto& [collective, types] : found)
    if (reduces(collective)) out << std::exchange(comma, ", ") << name(collective);
  out << ".\n\n| |";
  for (const ReduceOp op : all_ops()) out << ' ' << name_of(op) << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < all_ops().size(); ++i) out << ":-:|";
  for (const DType type : all_types()) {
    out << "\n| " << name_of(type) << " |";
    for (const ReduceOp op : all_ops())
      out << (found.at(Collective::all_reduce).at(type).contains(op) ? " yes |" : " |");
  }
  out << "\n\nscan and exscan have no avg. Pre-multiplied sums (`anycclRedOpCreatePreMulSum`) are "
         "there wherever sum and prod are, but\nfor bool; operators of your own "
         "(`anycclRedOpCreate`) for every type.\n\n"
         "## Collectives that move every type\n\n";
  comma = "";
  for (const auto& [collective, types] : found)
    if (!reduces(collective)) out << std::exchange(comma, ", ") << name(collective);
  out << ".\n";
  return out.str();
}

TEST(Support, every_cell_works_or_is_refused_by_name) {
  const Found found = find_out();
  const auto& all_reduce = found.at(Collective::all_reduce);
  for (const auto& [collective, types] : found) {
    EXPECT_EQ(types.size(), all_types().size()) << name(collective);
    if (reduces(collective)) {
      auto wanted = all_reduce;
      for (auto& [type, ops] : wanted)
        if (is_prefix(collective)) ops.erase(ReduceOp::avg);
      EXPECT_EQ(types, wanted) << name(collective);
    }
  }
  // What nobody should have to look up.
  for (const auto& [type, ops] : all_reduce)
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod})
      EXPECT_TRUE(ops.contains(op)) << name_of(type) << " has no " << name_of(op);
  if (const char* file = std::getenv("ANYCCL_SUPPORT_PAGE")) {
    std::ofstream out(file);
    out << page(found);
    EXPECT_TRUE(out.flush().good()) << file;
  }
}

}  // namespace
}  // namespace anyccl::test
