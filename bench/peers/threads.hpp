// Ranks that are threads of one program, each bound to a core, for loops without a library.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "cores.hpp"
#include "measure.hpp"

namespace peers {

/// The state shared by the threads.
struct Team {
  explicit Team(int n) : size(n), inputs(n), outputs(n) {}
  const int size;
  alignas(128) std::atomic<int> arrived{0};
  alignas(128) std::atomic<int> rounds{0};
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  int agreed = 0;
  std::mutex mutex;
  std::vector<double> maxima;

  void barrier() {
    const int round = rounds.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
      arrived.store(0, std::memory_order_relaxed);
      // Pairs with the load below: all threads see all earlier writes.
      rounds.store(round + 1, std::memory_order_release);
    }
    while (rounds.load(std::memory_order_acquire) == round) {
    }
  }
};

class Member final : public Group {
 public:
  Member(Team& team, int rank) : team_(team), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return team_.size; }
  void barrier() override { team_.barrier(); }
  int agree(int value) override {
    if (rank_ == 0) team_.agreed = value;
    barrier();
    const int agreed = team_.agreed;
    barrier();
    return agreed;
  }
  void maximum(std::vector<double>& values) override {
    if (rank_ == 0) team_.maxima = values;
    barrier();
    {
      const std::lock_guard<std::mutex> lock(team_.mutex);
      for (std::size_t i = 0; i < values.size(); ++i)
        team_.maxima[i] = std::max(team_.maxima[i], values[i]);
    }
    barrier();
    values = team_.maxima;
    barrier();
  }

 private:
  Team& team_;
  int rank_;
};

/// Runs `work(rank)` in a thread of its own for each rank, on a core of its own.
inline void on_threads(int ranks, const std::vector<int>& cores,
                       const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      pin(cores[r]);
      work(r);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace peers
