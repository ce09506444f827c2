// Carrying on after a failure: all ranks agree on a number by descent; the last one dies on the way,
// and the others make a communicator of those that are left, go back to the last step that all of them
// have done, and finish.
//   anyccl run -n 4 -- 14_carry_on

#include <cmath>
#include <cstdlib>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::index, anyccl::ReduceOp, anyccl::Status, anyccl::view;
using example::expect, example::must;

constexpr std::size_t kSteps = 100, kDeath = 40;
constexpr double kRate = 0.3;

/// The mean of `value` over the ranks.
Status mean_of(Communicator& comm, double& value) {
  std::vector<double> one{value};
  auto work = comm.all_reduce(view(one), view(one), ReduceOp::avg);
  const Status status = work.ok() ? work->wait() : work.status();
  value = one[0];
  return status;
}

/// The descent, with what each step has come to: a rank may be a step ahead of another one.
struct Descent {
  std::vector<double> values{0};
  std::size_t first = 0;    // step of this communicator
  std::uint64_t begun = 0;  // collectives of this communicator before that

  void step_to(double value) { values.push_back(value); }
  /// A step has one collective.
  void go_back(std::uint64_t completed) {
    first += static_cast<std::size_t>(completed - begun);
    values.resize(first + 1);
  }
};

}  // namespace

int main() {
  auto comm = must(Communicator::from_env());
  const int me = index(comm.rank()), last = comm.size() - 1;
  if (last == 0) example::fail("somebody must be left: run it with -n 2 or more");

  Descent descent;
  while (descent.values.size() <= kSteps) {
    if (me == last && descent.values.size() == kDeath) std::_Exit(0);  // without a word: a crash
    double gradient = descent.values.back() - me;
    const Status status = mean_of(comm, gradient);
    if (status.ok()) {
      descent.step_to(descent.values.back() - kRate * gradient);
      continue;
    }
    Communicator left = must(comm.shrink({}, {}, ANYCCL_SHRINK_ABORT));
    descent.go_back(must(comm.completed()).everywhere);
    if (left.rank() == anyccl::Rank{0})
      std::printf("%s\n%d ranks carry on from step %zu\n", std::string(status.message()).c_str(),
                  left.size(), descent.first);
    comm = std::move(left);
    descent.begun = must(comm.completed()).here;
  }
  expect(comm.size() == last, "one rank has died");
  const double mean = (last - 1) / 2.0;  // of 0, 1, ... without the last one
  expect(std::abs(descent.values.back() - mean) < 1e-6, "the result of those that are left");
  must(comm.destroy());
}
