// Measures an operation of MPI; compiled once with each MPI library.
//   mpirun -np RANKS mpi_bench OPERATION CALLS BUDGET_MS OFFSET BYTES...
#include "mpi_group.hpp"

namespace {

using peers::Call;
using peers::Case;

Call make(const Case& c, float* in, float* out) {
  const int n = static_cast<int>(c.count);
  const MPI_Comm all = MPI_COMM_WORLD;
  const int to = c.next(), from = c.before();
  if (c.is("all_reduce")) return {[=] { MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, all); }};
  if (c.is("all_gather")) return {[=] { MPI_Allgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, all); }};
  if (c.is("all_to_all")) return {[=] { MPI_Alltoall(in, n, MPI_FLOAT, out, n, MPI_FLOAT, all); }};
  if (c.is("reduce_scatter"))
    return {[=] { MPI_Reduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, all); }};
  if (c.is("broadcast")) return {[=] { MPI_Bcast(in, n, MPI_FLOAT, peers::kRoot, all); }, true};
  if (c.is("reduce"))
    return {[=] { MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, peers::kRoot, all); }};
  if (c.is("send_recv"))
    return {[=] {
      MPI_Sendrecv(in, n, MPI_FLOAT, to, 0, out, n, MPI_FLOAT, from, 0, all, MPI_STATUS_IGNORE);
    }};
  if (c.is("barrier")) return {[=] { MPI_Barrier(all); }};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const peers::Arguments wanted = peers::arguments(argc, argv, 1);
  peers::MpiGroup world;
  for (const Case& c : wanted.cases(world.rank(), world.size()))
    peers::measure(world, c, wanted.limits, make);
  MPI_Finalize();
}
