// Trains the network of the digits by sending the largest 1 % of the gradients, beside all of them:
//   anyccl run -n 4 -- sparse_digits digits.csv.gz
// A rank keeps the elements that it does not send and adds them to its next gradient (error feedback), also its
// momentum ("Deep Gradient Compression", ICLR 2018). The third variant forgets what it does not send: it sends
// as few bytes, and shows what the feedback is for.
#include <algorithm>
#include <anyccl/anyccl.hpp>
#include <cstdio>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "data.hpp"
#include "network.hpp"
#include "train.hpp"

namespace {

using namespace anyccl;
using digits::Network;

constexpr std::size_t kKept = Network::kParameters / 100;
constexpr float kMomentum = 0.9F;
constexpr std::uint32_t kSeeds[] = {1, 2, 3, 4};

enum class Variant { dense, feedback, forgetful };
constexpr std::pair<Variant, const char*> kVariants[] = {
    {Variant::dense, "all of the gradients"},
    {Variant::feedback, "the largest 1 %, the rest later"},
    {Variant::forgetful, "the largest 1 %, the rest never"},
};

/// Adds up gradients over all ranks by sending the largest elements of what each has not sent yet.
class SparseSum {
 public:
  SparseSum(Communicator& comm, bool remembers) : comm_(comm), remembers_(remembers) {}

  /// `sums` are the gradients, and behind them the loss, which travels by itself.
  Status operator()(std::vector<float>& sums) {
    const auto gradients = std::span(sums).first(Network::kParameters);
    Status status = accumulate(gradients);
    if (status.ok()) status = send();
    if (!status.ok()) return status;
    const auto loss = std::span(sums).last(1);
    if (status = wait(comm_.all_reduce(loss, loss, ReduceOp::sum)); !status.ok()) return status;
    std::fill(gradients.begin(), gradients.end(), 0.0F);
    const std::span<const std::byte> all = everyones_;
    for (std::size_t first = 0; first < all.size(); first += mine_.size()) {
      status = sparse::add(all.subspan(first, mine_.size()), gradients);
      if (!status.ok()) return status;
    }
    return {};
  }
  std::size_t bytes_of_a_call() const {
    return mine_.size() * static_cast<std::size_t>(comm_.size() - 1);
  }

 private:
  Status accumulate(std::span<const float> gradients) {
    if (!remembers_) std::fill(residual_.begin(), residual_.end(), 0.0F);
    return sparse::momentum(momentum_, residual_, gradients, kMomentum);
  }
  Status send() {
    const Result<sparse::Cut> cut = sparse::top_k(residual_, kKept);
    if (!cut.ok()) return cut.status();
    // Equally many entries on all ranks: room for the most bytes that they can take, and no lengths to exchange.
    const Result<std::size_t> most = sparse::bound(residual_.size(), kKept);
    if (!most.ok()) return most.status();
    mine_.resize(*most);
    everyones_.resize(*most * static_cast<std::size_t>(comm_.size()));
    const Result<std::size_t> bytes = sparse::pack(residual_, momentum_, *cut, mine_);
    if (!bytes.ok()) return bytes.status();
    return wait(comm_.all_gather(View(mine_.data(), mine_.size(), DType::u8),
                                 View(everyones_.data(), everyones_.size(), DType::u8)));
  }

  Communicator& comm_;
  bool remembers_;
  std::vector<float> momentum_ = std::vector<float>(Network::kParameters);
  std::vector<float> residual_ = std::vector<float>(Network::kParameters);
  std::vector<std::byte> mine_, everyones_;
};

struct Finding {
  double percent = 0;     // of the unseen digits, the mean over the seeds
  std::size_t bytes = 0;  // that a rank sends for the gradients of a batch
};

double percent_right(const Network& network, const digits::Images& test) {
  int right = 0;
  for (std::size_t i = 0; i < test.size(); ++i)
    right += network.classify(test, i) == test.labels[i] ? 1 : 0;
  return 100.0 * right / static_cast<double>(test.size());
}

Result<Finding> train(Communicator& comm, const digits::DataSet& data, Variant variant) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  Finding finding;
  for (const std::uint32_t seed : kSeeds) {
    Network network;
    network.initialise(seed);
    digits::Recipe recipe;
    recipe.seed = seed;
    recipe.momentum = variant == Variant::dense ? kMomentum : 0.0F;  // else it is in what is sent
    SparseSum sparse_sum(comm, variant == Variant::feedback);
    digits::Sum sum = std::ref(sparse_sum);
    if (variant == Variant::dense)
      sum = [&](std::vector<float>& x) { return wait(comm.all_reduce(x, x, ReduceOp::sum)); };
    const auto losses = digits::train(network, data.train, recipe,
                                      {index(comm.rank()), comm.size()}, sum, [](int, float) {});
    if (!losses.ok()) return losses.status();
    finding.percent += percent_right(network, data.test) / std::size(kSeeds);
    // A ring's: each rank sends 2 (n - 1) parts of n.
    finding.bytes = variant == Variant::dense
                        ? 2 * (ranks - 1) * Network::kParameters * sizeof(float) / ranks
                        : sparse_sum.bytes_of_a_call();
  }
  return finding;
}

/// Whether the findings are what the comment above says.
bool judge(const Finding (&found)[3]) {
  const bool equal = found[1].percent >= found[0].percent - 0.5;
  const bool worse = found[2].percent < found[0].percent - 0.5;
  std::printf("%s  with feedback within 0.5 points of all\n", equal ? "ok   " : "WRONG");
  std::printf("%s  without feedback not\n", worse ? "ok   " : "WRONG");
  return equal && worse;
}

Result<bool> run(const char* path) {
  Result<Communicator> made = Communicator::from_env();
  if (!made.ok()) return made.status();
  Communicator comm = *std::move(made);
  const Result<digits::DataSet> data = digits::load(path);
  if (!data.ok()) return data.status();
  const bool speaks = comm.rank() == Rank{0};
  if (speaks)
    std::printf(
        "%d ranks, %zu parameters; digits recognised, and bytes that a rank sends per batch:\n",
        comm.size(), Network::kParameters);
  Finding found[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const auto [variant, name] = kVariants[i];
    const Result<Finding> finding = train(comm, *data, variant);
    if (!finding.ok()) return finding.status();
    found[i] = *finding;
    if (speaks) std::printf("%-32s %6.2f %%  %6zu\n", name, found[i].percent, found[i].bytes);
  }
  return !speaks || judge(found);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: anyccl run -n RANKS -- sparse_digits digits.csv.gz\n");
    return 2;
  }
  const Result<bool> good = run(argv[1]);
  if (good.ok()) return *good ? 0 : 1;
  const Status why = good.status();
  std::fprintf(stderr, "sparse_digits: %.*s\n", static_cast<int>(why.message().size()),
               why.message().data());
  return 1;
}
