// Trains a small network on handwritten digits with several processes, and proves the result:
//   anyccl run -n 4 -- digits digits.csv.gz
// Each process computes the gradients of its share of every batch, and all_reduce adds them up.
#include <algorithm>
#include <anyccl/anyccl.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data.hpp"
#include "network.hpp"
#include "train.hpp"

namespace {

using anyccl::Communicator;
using anyccl::Rank;
using anyccl::ReduceOp;
using anyccl::Result;
using anyccl::Status;
using digits::DataSet;
using digits::Network;
using digits::Share;
using Clock = std::chrono::steady_clock;

constexpr digits::Recipe kRecipe;
constexpr std::uint32_t kSeed = 7;
constexpr float kWantedAccuracy = 0.95F;
constexpr double kTolerance = 1e-4;  // of weights and losses, against training in one process

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Share share_of(const Communicator& comm) {
  return {anyccl::index(comm.rank()), comm.size()};
}

Status add_up(Communicator& comm, std::vector<float>& values) {
  return anyccl::wait(comm.all_reduce(anyccl::view(values), anyccl::view(values), ReduceOp::sum));
}

Status share_rank_0s(Communicator& comm, std::vector<float>& values) {
  return anyccl::wait(comm.broadcast(anyccl::view(values), anyccl::view(values), Rank{0}));
}

void print_epoch(int epoch, float loss) {
  const std::string done(static_cast<std::size_t>(epoch + 1), '#');
  std::printf("epoch %2d/%d [%-*s] loss %.4f\n", epoch + 1, kRecipe.epochs, kRecipe.epochs,
              done.c_str(), static_cast<double>(loss));
}

/// Prints a fact that was checked; returns whether it holds.
bool report(bool holds, const std::string& fact) {
  std::printf("%s  %s\n", holds ? "ok   " : "WRONG", fact.c_str());
  return holds;
}

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Trains on all ranks; prints the progress and where the time went on rank 0.
Result<std::vector<float>> train_together(Communicator& comm, const DataSet& data,
                                          Network& network) {
  const bool speaks = comm.rank() == Rank{0};
  double communicating_s = 0;
  int calls = 0;
  const auto sum = [&](std::vector<float>& values) {
    const Clock::time_point start = Clock::now();
    Status status = add_up(comm, values);
    communicating_s += seconds_since(start);
    ++calls;
    return status;
  };
  const auto tell = [speaks](int epoch, float loss) {
    if (speaks) print_epoch(epoch, loss);
  };
  const Clock::time_point start = Clock::now();
  Result<std::vector<float>> losses =
      digits::train(network, data.train, kRecipe, share_of(comm), sum, tell);
  if (speaks && losses.ok()) {
    std::printf("trained in %.2f s; %d all_reduce calls of %.1f KiB took %.2f s of it on rank 0\n",
                seconds_since(start), calls, (Network::kParameters + 1) * sizeof(float) / 1024.0,
                communicating_s);
  }
  return losses;
}

struct Facts {
  float different_ranks = 0;  // ranks whose weights are not, bit for bit, those of rank 0
  float correct = 0;          // test images that were classified correctly
};

/// The findings of all ranks; each rank classifies its share of the test images.
Result<Facts> examine(Communicator& comm, const DataSet& data, const Network& network) {
  std::vector<float> of_rank_0 = network.weights();
  if (Status s = share_rank_0s(comm, of_rank_0); !s.ok()) return s;
  const bool same = std::memcmp(of_rank_0.data(), network.weights().data(),
                                of_rank_0.size() * sizeof(float)) == 0;
  std::vector<float> sums = {same ? 0.0F : 1.0F, 0.0F};
  const auto [rank, size] = share_of(comm);
  for (std::size_t i = static_cast<std::size_t>(rank); i < data.test.size();
       i += static_cast<std::size_t>(size)) {
    if (network.classify(data.test, i) == data.test.labels[i]) sums[1] += 1;
  }
  if (Status s = add_up(comm, sums); !s.ok()) return s;
  return Facts{sums[0], sums[1]};
}

/// Infinite if any value is not a number: that must not pass as equal.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;
    if (std::isnan(largest)) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

/// Trains once more in this process alone, over the same batches, and compares.
bool matches_one_process(const DataSet& data, const Network& network,
                         const std::vector<float>& losses) {
  Network alone;
  alone.initialise(kSeed);
  const Result<std::vector<float>> expected = digits::train(
      alone, data.train, kRecipe, Share{}, [](std::vector<float>&) { return Status(); },
      [](int, float) {});
  const double weights = largest_difference(network.weights(), alone.weights());
  const double loss = largest_difference(losses, *expected);
  return report(weights <= kTolerance && loss <= kTolerance,
                "against training in one process: weights differ by " + number("%.1e", weights) +
                    ", losses by " + number("%.1e", loss) + " at most (1e-4 allowed)");
}

/// Prints the verdict on rank 0 and makes it known to all; returns whether all facts hold.
Result<bool> judge(Communicator& comm, const DataSet& data, const Network& network,
                   const std::vector<float>& losses, const Facts& facts) {
  std::vector<float> verdict = {0.0F};
  if (comm.rank() == Rank{0}) {
    const float accuracy = facts.correct / static_cast<float>(data.test.size());
    const bool accurate =
        report(accuracy >= kWantedAccuracy,
               "test accuracy " + number("%.2f", 100.0 * static_cast<double>(accuracy)) + " % of " +
                   std::to_string(data.test.size()) + " images (95 % wanted)");
    const bool equal =
        report(facts.different_ranks == 0.0F,
               "weights are bitwise equal on all " + std::to_string(comm.size()) + " ranks");
    const bool same = matches_one_process(data, network, losses);
    verdict[0] = accurate && equal && same ? 1.0F : 0.0F;
  }
  if (Status s = share_rank_0s(comm, verdict); !s.ok()) return s;
  return verdict[0] == 1.0F;
}

Result<bool> run(const std::string& path) {
  Result<Communicator> made = Communicator::from_env();
  if (!made.ok()) return made.status();
  Communicator comm = *std::move(made);
  const Result<DataSet> data = digits::load(path);
  if (!data.ok()) return data.status();

  if (comm.rank() == Rank{0}) {
    std::printf("%d ranks, %zu images to learn from, %zu to test with, %zu parameters\n",
                comm.size(), (*data).train.size(), (*data).test.size(), Network::kParameters);
  }
  Network network;
  if (comm.rank() == Rank{0}) network.initialise(kSeed);
  if (Status s = share_rank_0s(comm, network.weights()); !s.ok()) return s;

  const Result<std::vector<float>> losses = train_together(comm, *data, network);
  if (!losses.ok()) return losses.status();
  const Result<Facts> facts = examine(comm, *data, network);
  if (!facts.ok()) return facts.status();
  return judge(comm, *data, network, *losses, *facts);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: anyccl run -n RANKS -- digits digits.csv.gz\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF,
               0);  // a line appears when it is printed, also through a pipe
  const Result<bool> good = run(argv[1]);
  if (!good.ok()) {
    const Status why = good.status();
    std::fprintf(stderr, "digits: %.*s\n", static_cast<int>(why.message().size()),
                 why.message().data());
    return 1;
  }
  return *good ? 0 : 1;
}
