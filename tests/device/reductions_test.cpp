// Kernels of a device come to the bits of the host's reductions, whatever is in the vectors.

#include "base/types.hpp"
#include "device/device_memory.hpp"
#include "device/host_reductions.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

/// The result goes to memory of its own, or in place of a source.
std::vector<std::byte> on_device(const CurrentDevice& device, Reduction what,
                                 const Vectors& sources, std::size_t count, bool in_place) {
  std::vector<std::unique_ptr<OnDevice>> there;
  std::vector<const void*> pointers;
  for (const auto& source : sources) {
    there.push_back(std::make_unique<OnDevice>(device, source));
    pointers.push_back(there.back()->at());
  }
  const OnDevice apart(device, std::vector<std::byte>(sources[0].size()));
  const OnDevice& result = in_place ? *there.back() : apart;
  const DeviceQueue queue = *device->make_queue(false);
  EXPECT_OK(device->reduce(queue, what, result.at(), pointers, count));
  device.await(queue);
  EXPECT_OK(device->drop_queue(queue));
  return result.bytes();
}

class OnDeviceReductions : public testing::TestWithParam<DType> {};

TEST_P(OnDeviceReductions, have_the_bits_of_the_host) {
  const CurrentDevice device(0);
  const DType type = GetParam();
  const auto counts = effort<std::vector<std::size_t>>({1, 700}, {1, 5000}, {1, 7, 1000, 200000});
  for (std::size_t op = 0; op < kReduceOps; ++op) {
    if (static_cast<ReduceOp>(op) == ReduceOp::avg) continue;  // below
    const Reduction what{type, static_cast<ReduceOp>(op)};
    const auto kernel = reduce_kernel(type, what.op);
    SCOPED_TRACE(std::string(name_of(what.op)));
    if (!kernel.ok()) {
      void* const nothing = nullptr;
      const void* const both[] = {nullptr, nullptr};
      EXPECT_EQ(device->reduce(nullptr, what, nothing, both, 0).code(), Code::unsupported);
      continue;
    }
    for (std::size_t sources = 2; sources <= Device::kMostSources; ++sources)
      for (const std::size_t count : counts) {
        const Vectors x =
            random_vectors(type, sources, count, static_cast<unsigned>(op * 9 + count));
        EXPECT_EQ(on_device(device, what, x, count, sources % 2 == 0), on_host(*kernel, x, count))
            << sources << " sources of " << count;
      }
  }
}

TEST_P(OnDeviceReductions, make_averages_with_the_bits_of_the_host) {
  const CurrentDevice device(0);
  const DType type = GetParam();
  const std::size_t count = effort<std::size_t>(700, 5000, 200000);
  if (!divide_kernel(type).ok()) {
    const void* const one[] = {nullptr};
    EXPECT_EQ(device->reduce(nullptr, {type, ReduceOp::avg}, nullptr, one, 0).code(),
              Code::unsupported);
    return;
  }
  for (std::size_t sources = 1; sources <= Device::kMostSources; ++sources) {
    const Portions portions = average_on_host(type, sources);
    const Vectors x = random_vectors(type, sources, count, static_cast<unsigned>(sources));
    EXPECT_EQ(on_device(device, {type, ReduceOp::avg, portions.divisor}, x, count, sources == 3),
              on_host(portions, x, count))
        << sources;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OnDeviceReductions, testing::ValuesIn(all_types()),
                         [](const auto& made) { return std::string(name_of(made.param)); });

TEST(OnDeviceReductions, too_few_and_too_many_sources_are_refused) {
  const CurrentDevice device(0);
  const std::vector<const void*> many(Device::kMostSources + 1);
  for (const std::size_t sources : {std::size_t{1}, many.size()})
    EXPECT_EQ(device
                  ->reduce(nullptr, {DType::f32, ReduceOp::sum}, nullptr,
                           std::span(many).first(sources), 0)
                  .code(),
              Code::internal);
}

}  // namespace
}  // namespace anyccl::test
