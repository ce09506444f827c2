// Streams: while one layer's gradients are added up over all ranks, the next layer's are computed.
//   anyccl run -n 2 -- 06_streams
// A stream runs its work in order, concurrently with the program. An event is a place in a stream:
// the program can query it, and another stream can wait for it.

#include <array>
#include <future>

#include "example.hpp"

namespace {

using anyccl::Communicator, anyccl::Event, anyccl::ReduceOp, anyccl::Stream;
using anyccl::view;
using example::expect, example::must;

constexpr int kLayers = 4;
constexpr std::size_t kWeights = 1 << 18;

struct Layer {
  std::vector<float> gradient = std::vector<float>(kWeights);
  Event computed = must(Event::create()), summed = must(Event::create());
};

/// An event is not complete before the work in front of it is.
void ask() {
  auto stream = must(Stream::create());
  auto event = must(Event::create());
  std::promise<void> door;
  must(stream.run([open = door.get_future().share()] { open.wait(); }));
  must(event.record(stream));

  expect(!must(event.query()), "the event is complete while its stream is held up");
  std::printf("event: not ready\n");
  door.set_value();
  must(event.synchronize());
  expect(must(event.query()), "the event is not complete after it was waited for");
  std::printf("event: ready\n");
}

}  // namespace

int main() {
  ask();

  auto comm = must(Communicator::from_env());
  auto computing = must(Stream::create()), communicating = must(Stream::create());
  const float ranks = static_cast<float>(comm.size());
  std::array<Layer, kLayers> layers;
  int overlapped = 0;  // written in `computing`, read after it was waited for

  // Nothing here waits: these calls only put work into the streams.
  for (int i = 0; i < kLayers; ++i) {
    Layer& layer = layers[static_cast<std::size_t>(i)];
    Layer* const before = i > 0 ? &layers[static_cast<std::size_t>(i - 1)] : nullptr;
    must(computing.run([&layer, before, i, &overlapped] {
      layer.gradient.assign(kWeights, static_cast<float>(i + 1));
      // To prove the overlap, this computation does not end before the sum of the layer before it
      // is there. A real one would not wait.
      if (before != nullptr && before->summed.synchronize().ok()) ++overlapped;
    }));
    must(layer.computed.record(computing));
    must(communicating.wait(layer.computed));
    must(comm.all_reduce(view(layer.gradient), view(layer.gradient), ReduceOp::sum, communicating)
             .status());
    must(layer.summed.record(communicating));
  }

  // The optimizer's step follows in the first stream, when the last sum is complete.
  must(computing.wait(layers.back().summed));
  float smallest = ranks * kLayers;
  must(computing.run([&] {
    for (const Layer& layer : layers) smallest = std::min(smallest, layer.gradient.back());
  }));
  must(computing.synchronize());

  for (int i = 0; i < kLayers; ++i)
    expect(layers[static_cast<std::size_t>(i)].gradient ==
               std::vector<float>(kWeights, ranks * static_cast<float>(i + 1)),
           "the sum of a layer");
  expect(smallest == ranks, "the sums at the optimizer");
  expect(overlapped == kLayers - 1, "sums that were ready during the next computation");
  std::printf("rank %d: %d of %d sums were ready while the next layer was computed; %.2f ms\n",
              index(comm.rank()), overlapped, kLayers,
              static_cast<double>(must(elapsed_ms(layers.front().computed, layers.back().summed))));
  must(comm.destroy());
}
