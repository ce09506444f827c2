#pragma once
// Where the ranks of a benchmark run.

#include <cstdlib>
#include <thread>
#include <vector>

#include "anyccl/anyccl.hpp"
#include "must.hpp"

namespace bench {

/// With RANK in the environment this process is one rank (scripts/on-hosts); else it is all of them.
inline std::vector<anyccl::Communicator> ranks_of_this_process(int ranks) {
  if (std::getenv("RANK") == nullptr) {
    auto made = anyccl::Communicator::init_all(ranks);
    must(made.status());
    return *std::move(made);
  }
  auto joined = anyccl::Communicator::from_env();
  must(joined.status());
  std::vector<anyccl::Communicator> one;
  one.push_back(*std::move(joined));
  return one;
}

/// body(rank's communicator), each in a thread.
template <typename Body>
void run_ranks(std::vector<anyccl::Communicator>& ranks, const Body& body) {
  std::vector<std::thread> threads;
  for (anyccl::Communicator& comm : ranks) threads.emplace_back([&] { body(comm); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace bench
