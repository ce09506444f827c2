#pragma once
// All collectives and messages of one communicator.

#include "conformance/run_collective.hpp"

namespace anyccl::test {

inline const Environment::Variables kEncrypted{{"ANYCCL_TRANSPORT", "tcp"}, {"ANYCCL_TLS", "1"}};

/// Every algorithm that fits, in a communicator of its own over the same connections; then
/// messages.
inline void run_all(Communicator& all) {
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!algorithm->supports({algorithm->collective, all.size(), Rank{0}, false, {}})) continue;
    SCOPED_TRACE(id(*algorithm));
    const std::string name(algorithm->name);
    CommunicatorConfig config;
    config.fields.algo = name.c_str();
    auto comm = all.split(0, index(all.rank()), config);
    ASSERT_OK(comm.status());
    for (const std::size_t count : {1UL, 257UL, 20000UL})
      if (!testing::Test::HasFailure()) run_once(*comm, algorithm->collective, count);
  }
  for (const Collective collective : {Collective::all_reduce, Collective::send})
    for (const std::size_t count : {0UL, 1UL, 257UL, 20000UL, 2000003UL})
      if (!testing::Test::HasFailure()) run_once(all, collective, count);
}

}  // namespace anyccl::test
