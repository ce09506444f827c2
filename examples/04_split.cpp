// Split: one world of ranks becomes the groups of tensor, pipeline and data parallelism.
//   anyccl run -n 8 -- 04_split            2 x 2 x 2
//   anyccl run -n 16 -- 04_split 4 2 2     tensor 4, pipeline 2, data 2
// Each rank is in one group of each kind. Neighbours in rank form a tensor group, as these groups
// communicate most; the replicas that add up gradients are furthest apart.

#include <numeric>
#include <string>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::ReduceOp;
using anyccl::view, anyccl::wait;
using example::expect, example::must;
using Numbers = std::vector<int>;

struct Grid {
  int tensor = 2, pipeline = 2, data = 2;
  int ranks() const { return tensor * pipeline * data; }
};

/// The place of a rank of the world in the grid.
struct Place {
  Place(const Grid& grid, int rank)
      : tensor(rank % grid.tensor),
        pipeline(rank / grid.tensor % grid.pipeline),
        data(rank / grid.tensor / grid.pipeline) {}
  int rank(const Grid& grid) const {
    return (data * grid.pipeline + pipeline) * grid.tensor + tensor;
  }
  int tensor, pipeline, data;
};

/// The same color on ranks that differ in one coordinate only: the first rank of their line.
int color(const Grid& grid, Place place, int Place::*along) {
  place.*along = 0;
  return place.rank(grid);
}

/// The world's ranks in `group`, in its order.
Numbers members(Communicator& group, int world_rank) {
  const Numbers mine = {world_rank};
  Numbers all(static_cast<std::size_t>(group.size()));
  must(wait(group.all_gather(view(mine), view(all))));
  return all;
}

Numbers expected_members(const Grid& grid, Place place, int Place::*along, int size) {
  Numbers all;
  for (place.*along = 0; place.*along < size; ++(place.*along)) all.push_back(place.rank(grid));
  return all;
}

std::string text(const Numbers& numbers) {
  std::string text;
  for (const int number : numbers) text.append(" ").append(std::to_string(number));
  return text;
}

/// One step of training in miniature. Each rank holds one number of the model.
void train(Communicator& tensor, Communicator& pipeline, Communicator& data, int rank) {
  // Tensor parallel: each rank computes a part of a layer, and the parts are added up.
  Numbers layer = {rank};
  must(wait(tensor.all_reduce(view(layer), view(layer), ReduceOp::sum)));
  const Numbers in_layer = members(tensor, rank);
  expect(layer[0] == std::accumulate(in_layer.begin(), in_layer.end(), 0), "the layer's sum");

  // Pipeline parallel: a stage adds its layer to the message of the stage before it.
  const int stage = index(pipeline.rank());
  Numbers from_before = {0};
  if (stage > 0) must(wait(pipeline.recv(view(from_before), Rank{stage - 1})));
  Numbers activation = {from_before[0] + layer[0]};
  if (stage + 1 < pipeline.size()) must(wait(pipeline.send(view(activation), Rank{stage + 1})));
  expect(activation[0] >= layer[0], "the activation");

  // Data parallel: replicas of the same part average their gradients.
  std::vector<float> gradient = {static_cast<float>(index(data.rank()))};
  must(wait(data.all_reduce(view(gradient), view(gradient), ReduceOp::avg)));
  expect(gradient[0] == static_cast<float>(data.size() - 1) / 2, "the mean gradient");
}

}  // namespace

int main(int argc, char** argv) {
  Grid grid;
  if (argc == 4) grid = {std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])};

  auto world = must(Communicator::from_env());
  const int rank = index(world.rank());
  expect(grid.ranks() == world.size(), "the grid has another number of ranks than the world");

  const Place place(grid, rank);
  const auto split = [&](int Place::*along) {
    return must(world.split(color(grid, place, along), rank));
  };
  auto tensor = split(&Place::tensor);
  auto pipeline = split(&Place::pipeline);
  auto data = split(&Place::data);

  const auto check = [&](Communicator& group, int Place::*along, int size) {
    const Numbers found = members(group, rank);
    expect(found == expected_members(grid, place, along, size), "the members of a group");
    return text(found);
  };
  const std::string t = check(tensor, &Place::tensor, grid.tensor);
  const std::string p = check(pipeline, &Place::pipeline, grid.pipeline);
  const std::string d = check(data, &Place::data, grid.data);
  std::printf("rank %2d: tensor%s | pipeline%s | data%s\n", rank, t.c_str(), p.c_str(), d.c_str());

  train(tensor, pipeline, data, rank);
  for (Communicator* comm : {&tensor, &pipeline, &data, &world}) must(comm->destroy());
}
