// OpenMP: the threads of each rank compute a product together, and add it up over all ranks
// together, without leaving their parallel region. This is how inference engines split a model over
// the sockets of a machine: each rank has some columns of each matrix.
//   OMP_NUM_THREADS=2 anyccl run -n 2 -- 10_openmp

#include <omp.h>

#include <cmath>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::ReduceOp, anyccl::view;
using example::expect, example::must;
using Vector = std::vector<float>;

constexpr std::size_t kRows = 8192, kColumns = 256, kSteps = 4;

/// Small whole numbers: sums of them are exact in any order.
float weight(std::size_t row, std::size_t column) {
  return static_cast<float>((3 * row + 5 * column) % 7) - 3;
}
/// The next input, from some of the last output.
float feed_back(const Vector& y, std::size_t column) {
  return std::fmod(y[column * (kRows / kColumns)], 5.0F);
}

/// Row `row` of the product, of columns [begin, end).
float product(const Vector& x, std::size_t row, std::size_t begin, std::size_t end) {
  float sum = 0;
  for (std::size_t j = begin; j < end; ++j) sum += weight(row, j) * x[j];
  return sum;
}

/// The result of one process alone.
Vector alone() {
  Vector x(kColumns, 1), y(kRows);
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < kRows; ++i) y[i] = product(x, i, 0, kColumns);
    for (std::size_t j = 0; j < kColumns; ++j) x[j] = feed_back(y, j);
  }
  return y;
}

Vector together(Communicator& comm, int threads) {
  const auto rank = static_cast<std::size_t>(index(comm.rank()));
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::size_t begin = kColumns * rank / ranks, end = kColumns * (rank + 1) / ranks;
  Vector x(kColumns, 1), y(kRows);
#pragma omp parallel num_threads(threads)
  for (std::size_t step = 0; step < kSteps; ++step) {
#pragma omp for  // ends with a barrier: the values that a thread adds up below are computed
    for (std::size_t i = 0; i < kRows; ++i) y[i] = product(x, i, begin, end);
    must(comm.all_reduce_part(view(y), view(y), ReduceOp::sum, omp_get_thread_num(),
                              omp_get_num_threads()));
#pragma omp barrier  // now the whole sum is complete
#pragma omp for
    for (std::size_t j = begin; j < end; ++j) x[j] = feed_back(y, j);
  }
  return y;
}

}  // namespace

int main() {
  auto comm = must(Communicator::from_env());
  const int threads = omp_get_max_threads();
  must(comm.make_parts(threads));  // once; on all ranks the same number
  expect(together(comm, threads) == alone(), "the product");
  std::printf("rank %d: %d threads, the same product as one process\n", index(comm.rank()),
              threads);
  must(comm.destroy());
}
