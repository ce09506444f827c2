// Measures Gloo's AllReduce algorithms over TCP on loopback, the only transport that Debian's build
// has.
//   gloo_allreduce RANK RANKS FOLDER CALLS BUDGET_MS BYTES...      FOLDER: empty, where the ranks
//   meet
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

#include "measure.hpp"

namespace {

using Context = std::shared_ptr<gloo::Context>;
using Function = void (*)(void*, const void*, const void*, std::size_t);

template <typename T>
void all_reduce(const Context& context, gloo::AllreduceOptions::Algorithm algorithm, T* in, T* out,
                std::size_t count, Function function) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setInput(in, count);
  options.setOutput(out, count);
  options.setReduceFunction(function);
  gloo::allreduce(options);
}

class World final : public peers::Group {
 public:
  explicit World(Context context) : context_(std::move(context)) {}
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  int agree(int value) override {
    gloo::BroadcastOptions options(context_);
    options.setRoot(0);
    options.setOutput(&value, 1);
    gloo::broadcast(options);
    return value;
  }
  void maximum(std::vector<double>& values) override {
    all_reduce(context_, gloo::AllreduceOptions::Algorithm::RING, values.data(), values.data(),
               values.size(), Function(&gloo::max<double>));
  }

 private:
  Context context_;
};

peers::MakeAllReduce with(const Context& context, gloo::AllreduceOptions::Algorithm algorithm) {
  return [=](float* in, float* out, std::size_t count) {
    const auto call = [=] {
      all_reduce(context, algorithm, in, out, count, Function(&gloo::sum<float>));
    };
    return peers::AllReduce{call, false};
  };
}

peers::MakeAllReduce with_halving_doubling(const Context& context) {
  return [=](float* in, float*, std::size_t count) {
    const auto op = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
        context, std::vector<float*>{in}, static_cast<int>(count));
    return peers::AllReduce{[op] { op->run(); }, true};
  };
}

}  // namespace

int main(int argc, char** argv) {
  const peers::Arguments wanted = peers::arguments(argc, argv, 4);
  const auto context =
      std::make_shared<gloo::rendezvous::Context>(std::atoi(argv[1]), std::atoi(argv[2]));
  gloo::rendezvous::FileStore store(argv[3]);
  auto loopback = gloo::transport::tcp::CreateDevice("127.0.0.1");
  context->connectFullMesh(store, loopback);

  World world(context);
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  for (const std::size_t bytes : wanted.sizes) {
    peers::measure(world, "ring", bytes, wanted.limits, with(context, Algorithm::RING));
    peers::measure(world, "bcube", bytes, wanted.limits, with(context, Algorithm::BCUBE));
    peers::measure(world, "halving_doubling", bytes, wanted.limits, with_halving_doubling(context));
  }
  world.barrier();
}
