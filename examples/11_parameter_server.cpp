// Parameter server: rank 0 has the weights, the others the data. In each step a worker pushes its
// gradient (Reduce to rank 0), the server takes a step of descent, and everyone pulls the new
// weights (Broadcast). The data is dealt out and the residuals are collected by Scatter and Gather
// that are written here with Send and Recv, as the textbooks begin.
//   anyccl run -n 4 -- 11_parameter_server

#include <algorithm>
#include <cmath>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::ReduceOp, anyccl::view;
using example::expect, example::must;

constexpr Rank kServer{0};
constexpr std::size_t kPoints = 50;  // of each worker
constexpr int kSteps = 400;
constexpr double kRate = 0.5;

/// A line with one point for each x in [0, 1).
struct Line {
  double at(double x) const { return offset + slope * x; }
  double offset = 0, slope = 0;
};
constexpr Line kTrue{-1, 3};

using Points = std::vector<double>;  // x, y, x, y ...

/// Block r of `all`, which only the server has, becomes `mine` of rank r.
void scatter(Communicator& comm, const Points& all, Points& mine) {
  if (comm.rank() != kServer) {
    must(must(comm.recv(view(mine), kServer)).wait());
    return;
  }
  std::vector<anyccl::Work> sends;
  for (int r = 1; r < comm.size(); ++r) {
    const auto first = static_cast<std::size_t>(r) * mine.size();
    sends.push_back(must(comm.send(view(std::span(all).subspan(first, mine.size())), Rank{r})));
  }
  std::copy_n(all.begin(), mine.size(), mine.begin());
  for (anyccl::Work& send : sends) must(send.wait());
}

/// The reverse: the server gets everybody's `mine`, in rank order.
void gather(Communicator& comm, const Points& mine, Points& all) {
  if (comm.rank() != kServer) {
    must(must(comm.send(view(mine), kServer)).wait());
    return;
  }
  std::vector<anyccl::Work> receives;
  for (int r = 1; r < comm.size(); ++r) {
    const auto first = static_cast<std::size_t>(r) * mine.size();
    receives.push_back(must(comm.recv(view(std::span(all).subspan(first, mine.size())), Rank{r})));
  }
  std::copy_n(mine.begin(), mine.size(), all.begin());
  for (anyccl::Work& receive : receives) must(receive.wait());
}

/// Of the mean squared error of these points, with respect to offset and slope.
std::vector<double> gradient(const Line& line, const Points& points) {
  std::vector<double> g(2);
  for (std::size_t i = 0; i < points.size(); i += 2) {
    const double error = line.at(points[i]) - points[i + 1];
    g[0] += 2 * error / kPoints;
    g[1] += 2 * error * points[i] / kPoints;
  }
  return g;
}

}  // namespace

int main() {
  auto comm = must(Communicator::from_env());
  const int workers = comm.size() - 1;
  const bool serves = comm.rank() == kServer;
  if (workers == 0) example::fail("a server needs workers: run it with -n 2 or more");

  const std::size_t points = static_cast<std::size_t>(comm.size()) * kPoints;  // the server's own
  Points all(serves ? 2 * points : 0), mine(2 * kPoints);                      // are left out
  for (std::size_t i = 0; i < all.size(); i += 2) {
    all[i] = static_cast<double>(i / 2 * 7 % points) / static_cast<double>(points);
    all[i + 1] = kTrue.at(all[i]);
  }
  scatter(comm, all, mine);

  std::vector<double> weights(2), pushed(2);
  for (int step = 0; step < kSteps; ++step) {
    const Line line{weights[0], weights[1]};
    const std::vector<double> own = serves ? std::vector<double>(2) : gradient(line, mine);
    must(must(comm.reduce(view(own), view(pushed), ReduceOp::sum, kServer)).wait());  // push
    if (serves)
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= kRate * pushed[i] / workers;
    must(must(comm.broadcast(view(weights), view(weights), kServer)).wait());  // pull
  }

  Points residuals;
  for (std::size_t i = 0; i < mine.size(); i += 2)
    residuals.push_back(weights[0] + weights[1] * mine[i] - mine[i + 1]);
  Points everybody(serves ? points : 0);
  gather(comm, residuals, everybody);
  for (const double residual : everybody) expect(std::abs(residual) < 1e-6, "a residual");
  if (serves) std::printf("%d workers found y = %.3f + %.3f x\n", workers, weights[0], weights[1]);
  must(comm.destroy());
}
