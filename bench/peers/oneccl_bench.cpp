// Measures an operation of oneCCL, over Intel MPI.
//   mpiexec.hydra -np RANKS oneccl_bench OPERATION CALLS BUDGET_MS OFFSET BYTES...
#include <oneapi/ccl.hpp>

#include "mpi_group.hpp"

// The static library was built to be profiled; null: no profiler.
extern "C" {
#define NOT_PROFILED(name) void* __itt_##name##_ptr__3_0
NOT_PROFILED(domain_create);
NOT_PROFILED(event_create);
NOT_PROFILED(event_end);
NOT_PROFILED(event_start);
NOT_PROFILED(metadata_add);
NOT_PROFILED(string_handle_create);
NOT_PROFILED(task_begin);
NOT_PROFILED(task_end);
NOT_PROFILED(thread_set_name);
#undef NOT_PROFILED
}

namespace {

using peers::Call;
using peers::Case;

ccl::communicator join(const peers::Group& world) {
  ccl::shared_ptr_class<ccl::kvs> store;
  ccl::kvs::address_type address;
  if (world.rank() == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (world.rank() != 0) store = ccl::create_kvs(address);
  return ccl::create_communicator(world.size(), world.rank(), store);
}

Call make(const ccl::communicator& comm, const Case& c, float* in, float* out) {
  const std::size_t n = c.count;
  constexpr auto kSum = ccl::reduction::sum;
  if (c.is("all_reduce")) return {[=, &comm] { ccl::allreduce(in, out, n, kSum, comm).wait(); }};
  if (c.is("all_gather")) return {[=, &comm] { ccl::allgather(in, out, n, comm).wait(); }};
  if (c.is("all_to_all")) return {[=, &comm] { ccl::alltoall(in, out, n, comm).wait(); }};
  if (c.is("reduce_scatter"))
    return {[=, &comm] { ccl::reduce_scatter(in, out, n, kSum, comm).wait(); }};
  if (c.is("broadcast"))
    return {[=, &comm] { ccl::broadcast(in, n, peers::kRoot, comm).wait(); }, true};
  if (c.is("reduce"))
    return {[=, &comm] { ccl::reduce(in, out, n, kSum, peers::kRoot, comm).wait(); }};
  if (c.is("barrier")) return {[&comm] { ccl::barrier(comm).wait(); }};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  ccl::init();
  MPI_Init(&argc, &argv);
  const peers::Arguments wanted = peers::arguments(argc, argv, 1);
  peers::MpiGroup world;
  {
    const ccl::communicator comm = join(world);
    const auto with_comm = [&](const Case& c, float* in, float* out) {
      return make(comm, c, in, out);
    };
    for (const Case& c : wanted.cases(world.rank(), world.size()))
      peers::measure(world, c, wanted.limits, with_comm);
  }
  MPI_Finalize();
}
