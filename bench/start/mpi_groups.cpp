// Measures groups of MPI.
//   mpirun -np RANKS mpi_groups [COUNT [RANKS FOLDER]]
#include <mpi.h>

#include "groups.hpp"

namespace {

class Group {
 public:
  Group() { MPI_Init(nullptr, nullptr); }

  int rank() const {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    return rank;
  }
  void use() {
    float x = 1;
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_FLOAT, MPI_SUM, comm_);
  }
  void maximum(std::vector<double>& values) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                  comm_);
  }
  Group next() {
    MPI_Comm next = MPI_COMM_NULL;
    MPI_Comm_split(comm_, 0, rank(), &next);
    return Group(next);
  }

 private:
  explicit Group(MPI_Comm comm) : comm_(comm) {}
  MPI_Comm comm_ = MPI_COMM_WORLD;
};

}  // namespace

int main(int argc, char** argv) {
  const int result = bench::measure<Group>(argc, argv);
  MPI_Finalize();
  return result;
}
