// Pipeline: a chain of stages, and micro-batches that flow through it. In each step a stage works
// on one micro-batch; then it sends that on and receives the next one, both in one group, so that
// no stage waits for another to make room.
//   anyccl run -n 4 -- 05_pipeline

#include <string>

#include "example.hpp"

namespace {

using anyccl::Communicator;
using example::expect, example::must;

constexpr int kMicroBatches = 6;
constexpr std::size_t kElements = 1000;

/// The work of a stage on each element.
int work(int value, int stage) {
  return 3 * value + stage;
}

/// The result of the last stage.
int expected(int micro_batch, int stages) {
  int value = micro_batch;
  for (int stage = 0; stage < stages; ++stage) value = work(value, stage);
  return value;
}

bool exists(int micro_batch) {
  return 0 <= micro_batch && micro_batch < kMicroBatches;
}

}  // namespace

int main() {
  auto chain = must(Communicator::from_env());
  const int stage = index(chain.rank()), stages = chain.size();
  const bool first = stage == 0, last = stage + 1 == stages;
  const anyccl::Stream none;  // so a group returns when all in it is complete
  std::vector<int> now(kElements), next(kElements);
  std::string done;

  // Stage s works on micro-batch m in step s + m; in step -1 the first one only gets data.
  for (int step = -1; step < stages + kMicroBatches - 1; ++step) {
    const int mine = step - stage;
    if (exists(mine)) {
      for (int& value : now) value = work(value, stage);
      if (last) expect(now == std::vector<int>(kElements, expected(mine, stages)), "a result");
    }
    done.append(" ").append(exists(mine) ? std::to_string(mine) : ".");

    // The two interfaces mix: groups are calls of the C interface, on the C handle.
    must(anycclGroupStart(), nullptr);
    if (!last && exists(mine))
      anycclSend(now.data(), kElements, anycclInt, stage + 1, chain.handle(), none.handle());
    if (!first && exists(mine + 1))
      anycclRecv(next.data(), kElements, anycclInt, stage - 1, chain.handle(), none.handle());
    must(anycclGroupEnd(), nullptr);  // also the first error of the calls in the group

    if (first) next.assign(kElements, mine + 1);  // the first stage reads the data
    std::swap(now, next);
  }
  std::printf("stage %d works on micro-batch%s\n", stage, done.c_str());
  must(chain.destroy());
}
