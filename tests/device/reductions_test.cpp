// Kernels of a device come to the bits of the host's reductions, whatever is in the vectors.

#include <cstring>
#include <random>

#include "base/types.hpp"
#include "device/device_memory.hpp"
#include "framework/collective/portions.hpp"
#include "platform/reduce/reduce.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

using Vectors = std::vector<std::vector<std::byte>>;

/// Any bits, in every third element a number that is near to others, in every fifth a zero with
/// either sign, of floats.
Vectors random_vectors(DType type, std::size_t vectors, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  const std::size_t element = bytes_of(type);
  Vectors all(vectors, std::vector<std::byte>(count * element));
  for (auto& vector : all)
    for (std::size_t i = 0; i < vector.size(); ++i) {
      const bool is_plain = (i / element) % 3 == 0, is_zero = (i / element) % 5 == 1;
      vector[i] = static_cast<std::byte>(is_plain && i % 2 == 1 ? 0x3c + random() % 8 : random());
      if (is_zero) vector[i] &= static_cast<std::byte>((i + 1) % element == 0 ? 0x80 : 0);
    }
  return all;
}

/// As a step of a call does it: small types are added up and divided in f32.
Portions average_on_host(DType type, std::size_t sources) {
  Portions portions;
  const bool is_small =
      type == DType::f16 || type == DType::bf16 || type == DType::f8e4m3 || type == DType::f8e5m2;
  const DType sum = is_small ? DType::f32 : type;
  if (is_small) {
    portions.widen = converter(type, sum);
    portions.narrow = converter(sum, type);
    portions.growth = bytes_of(sum) / bytes_of(type);
  }
  portions.kernel = *reduce_kernel(sum, ReduceOp::sum);
  portions.divide = *divide_kernel(sum);
  portions.divisor = static_cast<std::uint32_t>(sources) + 1;
  portions.element = bytes_of(type);
  return portions;
}

std::vector<std::byte> on_host(const Portions& portions, const Vectors& sources,
                               std::size_t count) {
  std::vector<const void*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  std::vector<std::byte> result(sources[0].size()), room(portions.room(sources.size()));
  std::vector<const void*> addresses(sources.size());
  portions.run(result.data(), pointers.data(), static_cast<std::uint32_t>(sources.size()), count,
               room.data(), addresses.data());
  return result;
}

std::vector<std::byte> on_host(ReduceFn kernel, const Vectors& sources, std::size_t count) {
  std::vector<const void*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  std::vector<std::byte> result(sources[0].size());
  kernel(result.data(), nullptr, pointers.data(), pointers.size(), count);
  return result;
}

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

std::vector<DType> all_types() {
  std::vector<DType> all;
  for (std::size_t type = 0; type < kDTypes; ++type) all.push_back(static_cast<DType>(type));
  return all;
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
