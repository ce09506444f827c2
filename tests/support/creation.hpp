#pragma once
// What becomes of communicators that are created with these configurations.

#include <string>
#include <thread>
#include <vector>

#include "support/ranks.hpp"

namespace anyccl::test {

/// By rank, each in a thread of its own: configs[r] is that of rank r. Its communicator ends at
/// once.
inline std::vector<Status> created(const std::vector<anycclConfig_t>& configs) {
  const auto id = UniqueId::create();
  if (!id.ok()) return {configs.size(), id.status()};
  std::vector<Status> outcomes(configs.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < configs.size(); ++r)
    threads.emplace_back([&, r] {
      const auto comm = Communicator::from_unique_id(*id, Rank{static_cast<int>(r)},
                                                     static_cast<int>(configs.size()), configs[r]);
      outcomes[r] = comm.status();
    });
  for (std::thread& t : threads) t.join();
  return outcomes;
}

/// It is an error with all of these in its message.
inline void expect_words(const Status& status, const std::vector<std::string>& words) {
  EXPECT_FALSE(status.ok());
  for (const std::string& word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << word << ": " << status.message();
}

}  // namespace anyccl::test
