// Levels of reproducibility: results by the aligned tree, bit for bit, whatever a call looks like
// and wherever ranks run; and what contradicts a level is refused.

#include <fmt/format.h>

#include <set>

#include "base/error.hpp"
#include "framework/tuning/order_needs.hpp"
#include "support/creation.hpp"
#include "support/effort.hpp"
#include "support/joined.hpp"
#include "support/streams.hpp"
#include "support/team.hpp"
#include "typed_sums.hpp"

namespace anyccl::test {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) {
  return random() % limit;
}

template <typename T, std::size_t kCount>
const T& one_of(Random& random, const T (&all)[kCount]) {
  return all[below(random, kCount)];
}

// --- random calls -------------------------------------------------------------------------------

constexpr Collective kSums[] = {Collective::all_reduce, Collective::reduce,
                                Collective::reduce_scatter, Collective::scan};
constexpr DType kTypes[] = {DType::f32,  DType::f32,       DType::f64,       DType::f16,
                            DType::bf16, DType::f8e4m3,    DType::complex64, DType::complex128,
                            DType::i32,  DType::complex64, DType::f8e5m2};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::sum, ReduceOp::prod, ReduceOp::avg,
                             ReduceOp::max};

/// How a call is made. In a group: as three calls one after the other, each with a part of it.
enum class Way { alone, stream, group, team };
constexpr Way kWays[] = {Way::alone, Way::alone,  Way::alone, Way::alone,
                         Way::alone, Way::stream, Way::group, Way::team};
constexpr const char* kWayNames[] = {"alone", "in a stream", "as a group of three", "by a team"};
constexpr int kMostThreads = 3;

/// By rank.
std::vector<int> numbers_of(const std::string& hosts) {
  return {hosts.begin(), hosts.end()};
}

/// A call that all ranks draw alike; `hosts`: a letter for the host of each.
struct Drawn {
  Drawn(Random& random, int n, const std::string& hosts)
      : collective(one_of(random, kSums)),
        type(one_of(random, kTypes)),
        op(one_of(random, kOps)),
        way(one_of(random, kWays)),
        threads(static_cast<int>(1 + below(random, kMostThreads))),
        count(below(random, std::size_t{1} << below(random, 13))),
        offset(below(random, 4)),
        root(static_cast<int>(below(random, static_cast<std::size_t>(n)))),
        in_place(below(random, 2) == 0),
        seed(random()) {
    const bool none = is_complex(type) && op == ReduceOp::max;
    if (none || (op == ReduceOp::avg && (collective == Collective::scan || is_complex(type))))
      op = ReduceOp::sum;
    if (way == Way::group && collective == Collective::reduce_scatter) way = Way::alone;
    if (way == Way::team && collective != Collective::all_reduce) way = Way::alone;
    if (way == Way::team && below(random, 2) == 0) count = below(random, 16384);  // several slices
    if (below(random, 128) == 0) count = below(random, 70000);                    // several tiles
    if (way == Way::team) return;  // has no choice of an algorithm
    constexpr const char* kProtocols[] = {"", "", "LL", "LL128", "Simple"};
    protocol = one_of(random, kProtocols);
    std::vector<std::string_view> names{""};
    const bool one = hosts.find_first_not_of(hosts[0]) == std::string::npos;
    const Shape shape{collective, n, Rank{root}, false,
                      one ? std::vector<int>() : numbers_of(hosts)};
    const Order need = is_exact(type, op) ? Order::position : tree_for(type);
    for (const Algorithm* a : all_algorithms())
      if (a->collective == collective && a->supports(shape) && meets(*a, shape, need))
        names.push_back(a->name);
    algorithm = names[below(random, names.size())];
  }

  Collective collective;
  DType type;
  ReduceOp op;
  Way way;
  int threads;  // of a team
  std::size_t count, offset;
  int root;
  bool in_place;
  std::uint64_t seed;
  std::string algorithm, protocol;

  std::string text() const {
    return fmt::format(
        "{} of {} {}, {}, {}, {} threads, offset {}, root {}, {}in place, algorithm '{}', protocol "
        "'{}'",
        name(collective), count, name_of(type), name_of(op), kWayNames[static_cast<int>(way)],
        threads, offset, root, in_place ? "" : "not ", algorithm, protocol);
  }
};

/// A drawn call as one rank makes it.
class Made {
 public:
  Made(const Drawn& call, int me, int n)
      : call_(call),
        me_(static_cast<std::size_t>(me)),
        n_(static_cast<std::size_t>(n)),
        element_(bytes_of(call.type)),
        skipped_(call.offset * element_) {
    Random random(call.seed);
    const bool blocks = call.collective == Collective::reduce_scatter;
    for (std::size_t r = 0; r < n_; ++r)
      inputs_.push_back(random_elements(call.type, call.count * (blocks ? n_ : 1), random));
    in_.resize(skipped_ + inputs_[me_].size());
    std::copy(inputs_[me_].begin(), inputs_[me_].end(), begin_of(in_));
    out_.resize(skipped_ + call.count * element_);
  }

  Status run(Communicator& comm, Stream& stream) {
    switch (call_.way) {
      case Way::alone:
        return run_part(comm, 0, call_.count);
      case Way::team:
        return run_team(comm);
      case Way::stream:
        ANYCCL_CHECK(run_part(comm, 0, call_.count, stream.handle()));
        return stream.synchronize();
      case Way::group:
        break;
    }
    return group([&]() -> Status {
      for (std::size_t i = 0; i < 3; ++i)
        ANYCCL_CHECK(run_part(comm, call_.count * i / 3, call_.count * (i + 1) / 3));
      return {};
    });
  }

  /// The first element that is not that of the definition; empty: there is none.
  std::string difference() {
    if (call_.collective == Collective::reduce && me_ != static_cast<std::size_t>(call_.root))
      return "";
    const Memory expected = definition();
    const auto [wanted, got] = std::mismatch(expected.begin(), expected.end(), result());
    if (wanted == expected.end()) return "";
    const std::size_t i = static_cast<std::size_t>(wanted - expected.begin()) / element_;
    const Memory all(result(), result() + expected.size());
    return fmt::format("element {} is {:#x} and not {:#x}", i, bits_at(all, element_, i),
                       bits_at(expected, element_, i));
  }

 private:
  /// Elements begin..end - 1 of the vector; of ReduceScatter all of them.
  Status run_part(Communicator& comm, std::size_t begin, std::size_t end,
                  anycclStream_t stream = nullptr) {
    anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
    config.algSelection = call_.algorithm.c_str();
    config.proto = call_.protocol.c_str();
    anycclCall_t c{};
    c.size = sizeof c;
    c.collective = static_cast<anycclCollective_t>(call_.collective);
    c.sendbuff = source() + begin * element_;
    c.recvbuff = result() + begin * element_;
    c.count = end - begin;
    c.datatype = static_cast<anycclDataType_t>(call_.type);
    c.op = static_cast<anycclRedOp_t>(call_.op);
    c.root = call_.root;
    c.stream = stream;
    c.config = &config;
    return detail::status_of(anycclRun(&c, comm.handle()));
  }
  Status run_team(Communicator& comm) {
    std::vector<Status> results(static_cast<std::size_t>(call_.threads));
    team(call_.threads, [&](int thread) {
      results[static_cast<std::size_t>(thread)] = detail::status_of(anycclAllReducePart(
          source(), result(), call_.count, static_cast<anycclDataType_t>(call_.type),
          static_cast<anycclRedOp_t>(call_.op), comm.handle(), thread, call_.threads));
    });
    for (const Status& status : results) ANYCCL_CHECK(status);
    return {};
  }

  Memory::iterator begin_of(Memory& memory) const {
    return memory.begin() + static_cast<std::ptrdiff_t>(skipped_);
  }
  unsigned char* source() { return in_.data() + skipped_; }
  unsigned char* result() {
    if (!call_.in_place) return out_.data() + skipped_;
    const bool blocks = call_.collective == Collective::reduce_scatter;
    return in_.data() + skipped_ + (blocks ? me_ * call_.count * element_ : 0);
  }
  Memory definition() const {
    std::vector<Memory> sources = inputs_;
    if (call_.collective == Collective::scan) sources.resize(me_ + 1);
    if (call_.collective == Collective::reduce_scatter)
      for (Memory& source : sources) {
        const auto first =
            source.begin() + static_cast<std::ptrdiff_t>(me_ * call_.count * element_);
        source = Memory(first, first + static_cast<std::ptrdiff_t>(call_.count * element_));
      }
    // An average of a small type is rounded once, after the division.
    const bool is_wide =
        call_.op == ReduceOp::avg && tree_for(call_.type) == Order::tree_in_one_step;
    return test::definition(sources, call_.type, is_wide ? DType::f32 : call_.type, call_.type,
                            call_.op);
  }

  const Drawn& call_;
  const std::size_t me_, n_, element_, skipped_;
  std::vector<Memory> inputs_;
  Memory in_, out_;
};

/// The ranks of a job, where they run and how they talk.
struct Job {
  explicit Job(std::uint64_t seed) : random(seed), ranks(static_cast<int>(1 + below(random, 9))) {
    constexpr const char* kTransports[] = {"", "", "tcp", "unix"};
    constexpr const char* kCopies[] = {"", "staged", "cma"};
    constexpr const char* kChunks[] = {"", "4096", "65536"};
    const std::size_t most = 1 + below(random, 3);
    for (int r = 0; r < ranks; ++r) hosts += static_cast<char>('a' + below(random, most));
    variables = {{"ANYCCL_REPRODUCIBLE", "3"},
                 {"ANYCCL_TRANSPORT", most > 1 ? "" : one_of(random, kTransports)},
                 {"ANYCCL_SHM_COPY", one_of(random, kCopies)},
                 {"ANYCCL_CHUNK_SIZE", one_of(random, kChunks)}};
  }
  std::string text() const {
    std::string text = fmt::format("{} ranks on hosts {}", ranks, hosts);
    for (const auto& [name, value] : variables) text += fmt::format(" {}={}", name, value);
    return text;
  }

  Random random;
  int ranks;
  std::string hosts;
  Environment::Variables variables;
};

void run_job(std::uint64_t seed, int calls) {
  const Job job(seed);
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, job.text()));
  const auto outcomes = run_processes(
      job.ranks,
      [&](Communicator& comm) {
        ASSERT_OK(comm.make_parts(kMostThreads));
        Stream stream = new_stream();
        Random random(seed + 1);
        std::set<std::string> choices;  // a communicator can have 63 configurations of calls
        for (int i = 0; i < calls; ++i) {
          Drawn call(random, comm.size(), job.hosts);
          if (choices.size() < 60)
            choices.insert(call.algorithm + " " + call.protocol);
          else if (!choices.contains(call.algorithm + " " + call.protocol))
            call.algorithm = call.protocol = "";
          Made made(call, index(comm.rank()), comm.size());
          ASSERT_OK(made.run(comm, stream));
          ASSERT_EQ(made.difference(), "") << "seed " << seed << ", call " << i << ": "
                                           << call.text() << " by " << comm.last_plan();
        }
      },
      [&](int r) {
        Environment::Variables all = job.variables;
        all.emplace_back("ANYCCL_HOSTID", job.hosts.substr(static_cast<std::size_t>(r), 1));
        return all;
      },
      is_long() ? 3600 : 300);
  expect_all_passed(outcomes);
}

/// The value of a variable, or else `other`.
std::uint64_t number_in(const char* variable, std::uint64_t other) {
  const char* const asked = std::getenv(variable);
  return asked == nullptr ? other : std::strtoull(asked, nullptr, 10);
}

TEST(LevelThree, has_the_bits_of_the_tree_in_every_call_and_wherever_ranks_run) {
  std::random_device device;
  const auto jobs = static_cast<int>(number_in("REPRODUCIBLE_JOBS", effort(2U, 6U, 40U)));
  const std::uint64_t first = number_in("REPRODUCIBLE_FIRST", is_long() ? device() : 20251125);
  const int calls = is_long() ? 1000 : 60;
  for (int i = 0; i < jobs && !testing::Test::HasFailure(); ++i)
    run_job(first + 2 * static_cast<std::uint64_t>(i), calls);
  if (!testing::Test::HasFailure())
    fmt::print("{} random calls of 1 to 9 processes, seeds from {}: 0 differing bits\n",
               jobs * calls, first);
}

// --- identities ---------------------------------------------------------------------------------

/// Numbers of many magnitudes: another order of additions gives other bits.
std::vector<float> wide_numbers(std::uint64_t seed, std::size_t count) {
  Random random(seed);
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i)
    numbers.push_back(std::ldexp(static_cast<float>(static_cast<int>(random() % 2000001) - 1000000),
                                 static_cast<int>(below(random, 20)) - 30));
  return numbers;
}

TEST(LevelThree, makes_all_reduce_the_same_as_its_parts) {
  const Environment env(Environment::Variables{{"ANYCCL_REPRODUCIBLE", "3"}});
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 9})
    run_ranks(ranks, [](Communicator& comm) {
      const auto n = static_cast<std::size_t>(comm.size());
      for (const std::size_t block : {1U, 33U, 5000U}) {
        const auto in = wide_numbers(static_cast<std::uint64_t>(index(comm.rank())), n * block);
        std::vector<float> once(in.size()), by_root(in.size()), by_parts(in.size()), part(block);
        ASSERT_OK(wait(comm.all_reduce(view(in), view(once), ReduceOp::sum)));
        const Rank root{comm.size() / 2};
        ASSERT_OK(wait(comm.reduce(view(in), view(by_root), ReduceOp::sum, root)));
        ASSERT_OK(wait(comm.broadcast(view(by_root), view(by_root), root)));
        ASSERT_OK(wait(comm.reduce_scatter(view(in), view(part), ReduceOp::sum)));
        ASSERT_OK(wait(comm.all_gather(view(part), view(by_parts))));
        EXPECT_EQ(once, by_root);
        EXPECT_EQ(once, by_parts);
        // Cut in two at any place.
        std::vector<float> cut(in.size());
        const std::size_t middle = in.size() / 3;
        ASSERT_OK(wait(comm.all_reduce(view(std::span(in).first(middle)),
                                       view(std::span(cut).first(middle)), ReduceOp::sum)));
        ASSERT_OK(wait(comm.all_reduce(view(std::span(in).subspan(middle)),
                                       view(std::span(cut).subspan(middle)), ReduceOp::sum)));
        EXPECT_EQ(once, cut);
      }
    });
}

// --- operators of programs ----------------------------------------------------------------------

TEST(LevelTwo, folds_operators_of_programs_by_the_tree_with_operands_in_rank_order) {
  const Environment env(Environment::Variables{{"ANYCCL_REPRODUCIBLE", "2"}});
  for (const int ranks : {1, 2, 3, 5, 6, 8, 9, 17})
    run_ranks(ranks, [](Communicator& comm) {
      const auto op = comm.create_operator(join, nullptr);
      ASSERT_TRUE(op.ok()) << op.status().message();
      const auto n = static_cast<std::size_t>(comm.size());
      for (const std::size_t count : {1U, 3000U}) {
        std::vector<std::uint32_t> x(count, static_cast<std::uint32_t>(index(comm.rank()) + 1));
        ASSERT_OK(wait(comm.all_reduce(view(x), view(x), *op)));
        const std::uint32_t expected = tree(
            0, n, [](std::size_t r) { return static_cast<std::uint32_t>(r + 1); }, joined);
        EXPECT_EQ(x, std::vector<std::uint32_t>(count, expected));
      }
    });
}

// --- what is refused ----------------------------------------------------------------------------

std::string said(const Communicator& comm) {
  return anycclGetLastError(comm.handle());
}

template <typename T>
anycclResult_t all_reduce(Communicator& comm, anycclDataType_t type,
                          const anycclCollConfig_t* config) {
  std::vector<T> x(100, T{});
  return anycclAllReduceConfig(x.data(), x.data(), x.size(), type, anycclSum, comm.handle(),
                               nullptr, config);
}

TEST(LevelTwo, refuses_an_algorithm_without_the_order_by_name_and_names_those_with_it) {
  const Environment env(
      Environment::Variables{{"ANYCCL_REPRODUCIBLE", "2"}, {"ANYCCL_ALGO", "ring"}});
  run_ranks(4, [](Communicator& comm) {
    EXPECT_EQ(all_reduce<float>(comm, anycclFloat32, nullptr), anycclUnsupported);
    for (const char* word : {"all_reduce/ring", "ANYCCL_ALGO", "ANYCCL_REPRODUCIBLE", "one_shot",
                             "two_shot", "aligned tree"})
      EXPECT_NE(said(comm).find(word), std::string::npos) << word << ": " << said(comm);
    // Integers are exact in any order.
    EXPECT_EQ(all_reduce<int>(comm, anycclInt32, nullptr), anycclSuccess) << said(comm);
    EXPECT_EQ(comm.last_plan().find("all_reduce/ring "), 0U) << comm.last_plan();
  });
}

TEST(Level, of_a_call_may_be_higher_than_that_of_its_communicator) {
  run_ranks(3, [](Communicator& comm) {
    anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
    config.reproducible = 3;
    EXPECT_EQ(all_reduce<float>(comm, anycclFloat32, &config), anycclSuccess) << said(comm);
    EXPECT_NE(comm.last_plan().find(", level 3"), std::string::npos) << comm.last_plan();
    config.algSelection = "ring";
    EXPECT_EQ(all_reduce<float>(comm, anycclFloat32, &config), anycclUnsupported);
    config.algSelection = "ring,two_shot";  // the first that has the order
    EXPECT_EQ(all_reduce<float>(comm, anycclFloat32, &config), anycclSuccess) << said(comm);
    EXPECT_EQ(comm.last_plan().find("all_reduce/two_shot "), 0U) << comm.last_plan();
    config.algSelection = "ring";
    config.reproducible = 1;
    EXPECT_EQ(all_reduce<float>(comm, anycclFloat32, &config), anycclSuccess) << said(comm);
    EXPECT_EQ(comm.last_plan().find("level"), std::string::npos) << comm.last_plan();
    for (const int wrong : {-1, 4}) {
      config.reproducible = wrong;
      EXPECT_EQ(all_reduce<float>(comm, anycclFloat32, &config), anycclInvalidArgument);
      EXPECT_NE(said(comm).find(fmt::format("config->reproducible is {}", wrong)),
                std::string::npos)
          << said(comm);
    }
  });
}

std::vector<Status> create_ranks(const std::vector<int>& levels) {
  std::vector<anycclConfig_t> configs;
  for (const int level : levels) {
    configs.push_back(ANYCCL_CONFIG_INITIALIZER);
    configs.back().reproducible = level;
  }
  return created(configs);
}

TEST(Level, that_ranks_have_not_alike_is_an_error_that_names_both) {
  for (const Status& outcome : create_ranks({3, 2}))
    expect_words(outcome, {"config->reproducible", "3", "2", "rank 0", "rank 1"});
  const auto outcomes = run_processes(
      2, [](Communicator&) {},
      [](int r) {
        return Environment::Variables{{"ANYCCL_REPRODUCIBLE", std::to_string(2 + r)}};
      });
  for (const Outcome& outcome : outcomes) {
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_NE(outcome.output.find("ANYCCL_REPRODUCIBLE"), std::string::npos) << outcome.output;
  }
}

TEST(Level, is_from_0_to_3) {
  expect_words(create_ranks({7})[0], {"config->reproducible is 7"});
  const Environment env(Environment::Variables{{"ANYCCL_REPRODUCIBLE", "4"}});
  expect_words(create_ranks({ANYCCL_CONFIG_UNDEF_INT})[0], {"ANYCCL_REPRODUCIBLE", "4", "3"});
}

}  // namespace
}  // namespace anyccl::test
