// Every algorithm over encrypted connections, between threads: what ThreadSanitizer sees.

#include "conformance/run_all.hpp"

namespace anyccl::test {
namespace {

TEST(OverTls, collectives_of_threads_are_right) {
  const Environment env(kEncrypted);
  for (const int ranks : kSanitized ? std::vector{3} : std::vector{2, 3, 4})
    run_ranks(ranks, run_all, 300);
}

}  // namespace
}  // namespace anyccl::test
