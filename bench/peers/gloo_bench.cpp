// Measures an operation of Gloo, with each algorithm it has for it, over TCP on loopback, the only
// transport that Debian's build has.
//   gloo_bench RANK RANKS FOLDER OPERATION CALLS BUDGET_MS OFFSET BYTES...      FOLDER: empty, the meeting
//   place of the ranks
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

#include "measure.hpp"

namespace {

using Algorithm = gloo::AllreduceOptions::Algorithm;
using Context = std::shared_ptr<gloo::Context>;
using Function = void (*)(void*, const void*, const void*, std::size_t);
using peers::Call;
using peers::Case;

template <typename T>
void all_reduce(const Context& context, Algorithm algorithm, T* in, T* out, std::size_t count,
                Function function) {
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
    all_reduce(context_, Algorithm::RING, values.data(), values.data(), values.size(),
               Function(&gloo::max<double>));
  }

 private:
  Context context_;
};

Call reduce(const Context& context, const Case& c, float* in, float* out) {
  // Ranks other than the root also need an output of the same size.
  const auto scratch = std::make_shared<std::vector<float>>(c.output_count() == 0 ? c.count : 0);
  float* const result = scratch->empty() ? out : scratch->data();
  return {[=] {
    (void)scratch;
    gloo::ReduceOptions options(context);
    options.setRoot(peers::kRoot);
    options.setInput(in, c.count);
    options.setOutput(result, c.count);
    options.setReduceFunction(Function(&gloo::sum<float>));
    gloo::reduce(options);
  }};
}

Call send_recv(const Context& context, const Case& c, float* in, float* out) {
  const std::size_t bytes = c.count * sizeof(float);
  const std::shared_ptr<gloo::transport::UnboundBuffer> from =
      context->createUnboundBuffer(in, bytes);
  const std::shared_ptr<gloo::transport::UnboundBuffer> to =
      context->createUnboundBuffer(out, bytes);
  constexpr std::uint64_t kSlot = 1 << 20;  // no other call uses it
  return {[=] {
    to->recv(c.before(), kSlot);
    from->send(c.next(), kSlot);
    to->waitRecv();
    from->waitSend();
  }};
}

Call simple(const Context& context, const Case& c, float* in, float* out) {
  if (c.is("all_gather"))
    return {[=] {
      gloo::AllgatherOptions options(context);
      options.setInput(in, c.count);
      options.setOutput(out, c.all());
      gloo::allgather(options);
    }};
  if (c.is("all_to_all"))
    return {[=] {
      gloo::AlltoallOptions options(context);
      options.setInput(in, c.all());
      options.setOutput(out, c.all());
      gloo::alltoall(options);
    }};
  if (c.is("broadcast"))
    return {[=] {
              gloo::BroadcastOptions options(context);
              options.setRoot(peers::kRoot);
              options.setOutput(in, c.count);
              gloo::broadcast(options);
            },
            true};
  if (c.is("barrier"))
    return {[=] {
      gloo::BarrierOptions options(context);
      gloo::barrier(options);
    }};
  if (c.is("reduce")) return reduce(context, c, in, out);
  if (c.is("send_recv")) return send_recv(context, c, in, out);
  return {};
}

peers::MakeCall all_reduce_with(const Context& context, Algorithm algorithm) {
  return [=](const Case& c, float* in, float* out) -> Call {
    return {[=] { all_reduce(context, algorithm, in, out, c.count, Function(&gloo::sum<float>)); }};
  };
}

Call all_reduce_halving_doubling(const Context& context, const Case& c, float* in, float*) {
  const auto op = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
      context, std::vector<float*>{in}, static_cast<int>(c.count));
  return {[op] { op->run(); }, true};
}

Call reduce_scatter_halving_doubling(const Context& context, const Case& c, float* in, float*) {
  const std::vector<int> counts(static_cast<std::size_t>(c.ranks), static_cast<int>(c.count));
  const auto op = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
      context, std::vector<float*>{in}, static_cast<int>(c.all()), counts);
  return {[op] { op->run(); }, true};
}

struct Named {
  const char* name;
  peers::MakeCall make;
};

std::vector<Named> ways(const Context& context, const std::string& op) {
  const auto with = [&context](auto make) {
    return [=](const Case& c, float* in, float* out) { return make(context, c, in, out); };
  };
  if (op == "all_reduce")
    return {{"halving_doubling", with(all_reduce_halving_doubling)},
            {"bcube", all_reduce_with(context, Algorithm::BCUBE)},
            {"ring", all_reduce_with(context, Algorithm::RING)}};
  if (op == "reduce_scatter") return {{"halving_doubling", with(reduce_scatter_halving_doubling)}};
  return {{"default", with(simple)}};
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
  for (const Case& c : wanted.cases(world.rank(), world.size())) {
    double best_us = 0;
    for (const Named& way : ways(context, wanted.op))
      peers::measure(world, way.name, c, wanted.limits, way.make, best_us);
  }
  world.barrier();
}
