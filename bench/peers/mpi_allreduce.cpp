// Measures MPI_Allreduce; compiled once with each MPI library.
//   mpirun -np RANKS mpi_allreduce CALLS BUDGET_MS BYTES...
#include <mpi.h>

#include "measure.hpp"

namespace {

class World final : public peers::Group {
 public:
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  int agree(int value) override {
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return value;
  }
  void maximum(std::vector<double>& values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0, size_ = 0;
};

peers::AllReduce make(float* in, float* out, std::size_t count) {
  return {
      [=] { MPI_Allreduce(in, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
      false};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const peers::Arguments wanted = peers::arguments(argc, argv, 1);
  World world;
  for (const std::size_t bytes : wanted.sizes) {
    peers::measure(world, "default", bytes, wanted.limits, make);
  }
  MPI_Finalize();
}
