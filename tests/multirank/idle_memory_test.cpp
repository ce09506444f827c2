// Communicators give idle memory back while they are used, by ranks that are threads.

#include "multirank/idle_memory.hpp"

#include "support/effort.hpp"

namespace anyccl::test {
namespace {

TEST(IdleMemory, is_given_back_between_operations_of_threads) {
  const Environment staged(Environment::Variables{{"ANYCCL_SHM_COPY", "staged"}});
  for (const int ranks : {2, 4})
    run_ranks(ranks, [](Communicator& comm) {
      reduce_while_memory_is_given_back(comm, effort(40, 100, 100));
    });
}

}  // namespace
}  // namespace anyccl::test
