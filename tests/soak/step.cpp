#include "soak/step.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "algorithm/catalog/algorithm.hpp"

namespace anyccl::soak {
namespace {

constexpr std::size_t kMostCalls = 8;  // in a step

enum class Mode { blocking, issued, group, issue_all };

Mode draw_mode(Random& random) {
  const std::size_t share = below(random, 10);
  return share < 5   ? Mode::blocking
         : share < 7 ? Mode::issued
         : share < 9 ? Mode::group
                     : Mode::issue_all;
}

std::size_t draw_largest(Random& random, Mode mode) {
  if (mode != Mode::blocking) return 3000;
  const std::size_t share = below(random, 100);
  return share == 0 ? 400'000 : share < 12 ? 30'000 : 1500;
}

/// An algorithm for each collective: "all_reduce:ring;broadcast:flat".
std::string draw_algorithms(Random& random) {
  std::string rules;
  const auto all = all_algorithms();
  for (int c = 0; c < anycclNumCollectives; ++c) {
    std::vector<const Algorithm*> some;
    for (const Algorithm* one : all)
      if (one->collective == static_cast<Collective>(c)) some.push_back(one);
    const std::size_t which = below(random, some.size() + 1);
    if (which == some.size()) continue;  // any
    const std::string name = id(*some[which]);
    const std::size_t slash = name.find('/');
    rules += (rules.empty() ? "" : ";") + name.substr(0, slash) + ":" + name.substr(slash + 1);
  }
  return rules;
}

Status status_of(anycclResult_t result, anycclComm_t comm) {
  return detail::status_of(result, comm);
}

Status run_blocking(Communicator& comm, std::deque<CallUnderTest>& calls) {
  Status first;
  for (CallUnderTest& one : calls)
    if (first.ok()) first = status_of(anycclRun(&one.call(), comm.handle()), comm.handle());
  return first;
}

/// In an order of this rank's own.
Status wait_for_all(std::vector<Work> works, Random& random) {
  Status first;
  std::shuffle(works.begin(), works.end(), random);
  for (Work& work : works)
    if (const Status status = work.wait(); first.ok()) first = status;
  return first;
}

Status run_issued(Communicator& comm, std::deque<CallUnderTest>& calls, Random& random) {
  std::vector<Work> works;
  Status failed;
  for (CallUnderTest& one : calls) {
    Result<Work> work = comm.issue(one.call());
    if (!work.ok()) {
      failed = work.status();
      break;
    }
    works.push_back(*std::move(work));
  }
  const Status waited = wait_for_all(std::move(works), random);
  return failed.ok() ? waited : failed;
}

Status run_group(Communicator& comm, std::deque<CallUnderTest>& calls) {
  return group([&] {
    for (CallUnderTest& one : calls) static_cast<void>(comm.issue(one.call()));
  });
}

Status run_issue_all(Communicator& comm, std::deque<CallUnderTest>& calls, Random& random) {
  std::vector<anycclCall_t> all;
  for (CallUnderTest& one : calls) all.push_back(one.call());
  Result<std::vector<Work>> works = comm.issue_all(all);
  if (!works.ok()) return works.status();
  return wait_for_all(*std::move(works), random);
}

Status run_calls(Communicator& comm, std::deque<CallUnderTest>& calls, Mode mode, Random& own) {
  switch (mode) {
    case Mode::blocking:
      return run_blocking(comm, calls);
    case Mode::issued:
      return run_issued(comm, calls, own);
    case Mode::group:
      return run_group(comm, calls);
    default:
      return run_issue_all(comm, calls, own);
  }
}

}  // namespace

CallConfigs::CallConfigs(Random& random) {
  constexpr const char* kProtocols[] = {"", "LL", "LL128", "Simple"};
  constexpr std::size_t kConfigs = 16;
  for (std::size_t i = 0; i < kConfigs; ++i) {
    anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
    config.algSelection = texts_.emplace_back(draw_algorithms(random)).c_str();
    config.forceAlgSelection = 0;
    config.proto = kProtocols[below(random, std::size(kProtocols))];
    if (below(random, 2) == 0) config.chunkBytes = 4096 << below(random, 6);
    configs_.push_back(config);
  }
}

CallUnderTest::CallUnderTest(const RandomCall& call, int me, const anycclCollConfig_t& config)
    : random_call_(call), layout_(layout_of(call, me)) {
  constexpr std::byte kUntouched{0xA5};
  const Elements& e = random_call_.elements;
  const std::size_t size = bytes_of(e.dtype);
  buffer_.assign(layout_.elements * size, kUntouched);
  for (const Piece& piece : layout_.given) write(e, piece, buffer_.data());
  want_ = buffer_;
  for (const Piece& piece : layout_.wanted) write(e, piece, want_.data());

  const bool is_message = call.collective == Collective::send;
  c_call_.size = sizeof c_call_;
  c_call_.collective = static_cast<anycclCollective_t>(
      is_message && !layout_.sends ? Collective::recv : call.collective);
  if (layout_.sends) c_call_.sendbuff = buffer_.data() + layout_.in * size;
  if (layout_.receives) c_call_.recvbuff = buffer_.data() + layout_.out * size;
  if (call.collective != Collective::all_to_all_v)
    c_call_.count = call.counts.empty() ? call.count : call.counts[static_cast<std::size_t>(me)];
  c_call_.datatype = static_cast<anycclDataType_t>(e.dtype);
  if (e.reduces) c_call_.op = static_cast<anycclRedOp_t>(e.op);
  c_call_.root = is_message && layout_.sends ? call.to : call.root;
  c_call_.sendcounts = layout_.sent.data(), c_call_.sdispls = layout_.sent_at.data();
  c_call_.recvcounts = layout_.received.data(), c_call_.rdispls = layout_.received_at.data();
  c_call_.tag = call.tag;
  if (!is_message) c_call_.config = &config;
}

std::string CallUnderTest::problem() const {
  const auto [got, want] = std::mismatch(buffer_.begin(), buffer_.end(), want_.begin());
  if (got == buffer_.end()) return "";
  const auto at = static_cast<std::size_t>(got - buffer_.begin());
  std::ostringstream text;
  text << random_call_.text() << ": byte " << at % bytes_of(random_call_.elements.dtype)
       << " of element " << at / bytes_of(random_call_.elements.dtype) << " of the "
       << layout_.elements << " in the buffer is " << std::hex << static_cast<int>(*got)
       << " instead of " << static_cast<int>(*want) << std::dec << " (sends from " << layout_.in
       << ", receives at " << layout_.out << ")";
  return text.str();
}

StepOutcome run_step(Communicator& comm, Random random, const CallConfigs& configs, int number) {
  const Mode mode = draw_mode(random);
  const std::size_t count = mode == Mode::blocking ? 1 : 1 + below(random, kMostCalls);
  const std::size_t largest = draw_largest(random, mode);
  std::deque<CallUnderTest> calls;
  for (std::size_t i = 0; i < count; ++i) {
    const int tag =
        static_cast<int>((static_cast<std::size_t>(number) * kMostCalls + i) % ANYCCL_MAX_TAG);
    const RandomCall call = RandomCall::draw(random, comm.size(), largest, tag);
    calls.emplace_back(call, index(comm.rank()), configs.at(call.config));
    if (!calls.back().takes_part()) calls.pop_back();
  }
  Random own(random() + uindex(comm.rank()));
  StepOutcome outcome;
  outcome.status = run_calls(comm, calls, mode, own);
  if (!outcome.status.ok()) return outcome;
  for (const CallUnderTest& one : calls) {
    outcome.wrong = one.problem();
    if (!outcome.wrong.empty()) return outcome;
    ++outcome.calls;
  }
  return outcome;
}

}  // namespace anyccl::soak
