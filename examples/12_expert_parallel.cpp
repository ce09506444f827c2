// Expert parallelism: a mixture-of-experts layer over data, expert and tensor parallel ranks.
//   anyccl run -n 16 -- 12_expert_parallel            data 2 x expert 4 x tensor 2
//   anyccl run -n 8 -- 12_expert_parallel 1 4 2
// One call per kind of parallelism makes its group from the world. Tokens differ along `data` and
// `expert`; each is sent to its two experts, which the ranks of an expert group have among them. Each
// expert is cut in two along `tensor`, so its parts are added up there. The result is compared with
// the whole layer computed by one process.

#include <string>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::Grid, anyccl::Rank, anyccl::ReduceOp, anyccl::Routing;
using anyccl::view, anyccl::wait;
using example::expect, example::must;
using Numbers = std::vector<double>;  // whole ones: sums are exact in any order

constexpr int kExperts = 8, kChoices = 2;
constexpr std::size_t kTokens = 6;  // of each rank
constexpr std::size_t kWidth = 4, kHidden = 8;

/// Expert e: width x hidden, relu, hidden x width. `from` and `to` are the part of the hidden layer
/// that is computed; the results of parts add up.
void add_expert(int e, std::size_t from, std::size_t to, const double* x, double* y) {
  for (std::size_t h = from; h < to; ++h) {
    double sum = 0;
    for (std::size_t i = 0; i < kWidth; ++i)
      sum += x[i] * static_cast<double>((static_cast<std::size_t>(e) + h * i) % 5) - 3;
    if (sum <= 0) continue;
    for (std::size_t i = 0; i < kWidth; ++i)
      y[i] += sum * static_cast<double>((static_cast<std::size_t>(e) * h + i) % 3);
  }
}

/// The tokens of one shard of the data, and which experts they choose.
struct Tokens {
  explicit Tokens(int shard) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t i = 0; i < kWidth; ++i)
        values.push_back(
            static_cast<double>((t * 7 + i * 3 + static_cast<std::size_t>(shard)) % 9));
      const int first = static_cast<int>(t * t + static_cast<std::size_t>(3 * shard)) % kExperts;
      experts.insert(experts.end(), {first, (first + 1 + shard % 5) % kExperts});
      weights.insert(weights.end(), {2, 1});
    }
  }
  Numbers values, weights;
  std::vector<int> experts;
};

/// What one process with all experts computes.
Numbers whole_layer(const Tokens& tokens) {
  Numbers out(tokens.values.size());
  for (std::size_t i = 0; i < tokens.experts.size(); ++i) {
    const std::size_t token = i / kChoices * kWidth;
    Numbers y(kWidth);
    add_expert(tokens.experts[i], 0, kHidden, &tokens.values[token], y.data());
    for (std::size_t c = 0; c < kWidth; ++c) out[token + c] += tokens.weights[i] * y[c];
  }
  return out;
}

/// The same by the ranks of an expert group, each with its experts, and of a tensor group, each with
/// its part of them. `taken`: how many tokens each expert here got.
Numbers layer(Communicator& expert, Communicator& tensor, const Tokens& tokens,
              std::vector<std::size_t>& taken) {
  anyccl::RoutingConfig config;
  config.experts = kExperts;
  config.choices = kChoices;
  Routing routing = must(Routing::create(expert, tokens.experts, config));
  taken = routing.tokens_of_experts();

  Numbers rows(routing.rows() * kWidth), results(rows.size()), out(tokens.values.size());
  must(routing.dispatch(expert, view(tokens.values), view(rows)));
  const std::size_t part = kHidden / static_cast<std::size_t>(tensor.size());
  const std::size_t from = part * static_cast<std::size_t>(tensor.rank());
  const int first = kExperts / expert.size() * index(expert.rank());
  std::size_t row = 0;
  for (std::size_t e = 0; e < taken.size(); ++e)
    for (const std::size_t end = row + taken[e]; row < end; ++row)
      add_expert(first + static_cast<int>(e), from, from + part, &rows[row * kWidth],
                 &results[row * kWidth]);
  must(wait(tensor.all_reduce(view(results), view(results), ReduceOp::sum)));
  must(routing.combine(expert, view(results), view(tokens.weights), view(out)));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  int sizes[] = {2, 4, 2};
  for (int i = 0; argc == 4 && i < 3; ++i) sizes[i] = std::atoi(argv[i + 1]);
  auto world = must(Communicator::from_env());
  const Grid grid =
      must(Grid::create(world, {{"data", sizes[0]}, {"expert", sizes[1]}, {"tensor", sizes[2]}}));
  auto data = must(grid.split(world, {"data"}));
  auto expert = must(grid.split(world, {"expert"}));
  auto tensor = must(grid.split(world, {"tensor"}));
  expect(kExperts % expert.size() == 0 && kHidden % static_cast<std::size_t>(tensor.size()) == 0,
         "8 experts and a hidden layer of 8 cannot be shared so");

  // Ranks that differ in `tensor` only have the same tokens.
  const int shard = index(world.rank()) / tensor.size(), shards = world.size() / tensor.size();
  const Tokens tokens(shard);
  std::vector<std::size_t> taken;
  const Numbers result = layer(expert, tensor, tokens, taken);
  expect(result == whole_layer(tokens), "the result is not that of one process");

  // Replicas of an expert are along `data`: their gradients are added up there. Here it is the number
  // of tokens that each has seen.
  std::vector<std::int64_t> seen(taken.begin(), taken.end()), all(kExperts);
  must(wait(data.all_reduce(view(seen), view(seen), ReduceOp::sum)));
  must(wait(expert.all_gather(view(seen), view(all))));
  for (int s = 0; s < shards; ++s)
    for (const int e : Tokens(s).experts) --all[static_cast<std::size_t>(e)];
  expect(all == std::vector<std::int64_t>(kExperts), "the numbers of tokens of all replicas");

  const auto place = must(grid.coords(world.rank()));
  std::string text;
  for (std::size_t e = 0; e < seen.size(); ++e)
    text += " " + std::to_string(seen[e]) + " by expert " +
            std::to_string(static_cast<std::size_t>(expert.rank()) * seen.size() + e);
  if (place[0] == 0 && place[2] == 0) std::printf("tokens seen:%s\n", text.c_str());
  for (Communicator* comm : {&tensor, &expert, &data, &world}) must(comm->destroy());
}
