// Calls on memory of a device come to the same bytes as the same calls on memory of the host, those
// that they must not touch included.

#include "device/device_trial.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

const std::vector<Sides> kAllSides{
    {true, true}, {true, false, Form::prepared}, {false, true, Form::issued}};

class CollectivesOnDevices : public testing::TestWithParam<Collective> {};

TEST_P(CollectivesOnDevices, bytes_are_those_of_the_host) {
  const Collective what = GetParam();
  const CurrentDevice current(0);
  for (const int ranks : effort<std::vector<int>>({2}, {1, 2, 3}, {1, 2, 3, 4}))
    run_ranks(ranks, [&](Communicator& comm) {
      const CurrentDevice device(device_of(comm));
      const DeviceQueue queue = *device->make_queue(false);
      auto stream = Stream::wrap(device->number(), queue);
      ASSERT_OK(stream.status());
      const OneRank rank{comm, device, stream->handle()};
      for (const DType type : {DType::f32, DType::bf16, DType::u8, DType::i64})
        for (const std::size_t count :
             effort<Counts>({13}, {0, 1, 13, 4099}, {0, 1, 13, 4099, 70001}))
          for (const int root : {0, ranks - 1})
            for (const bool in_place : {false, true}) {
              SCOPED_TRACE(fmt::format("{} of {} {}, root {}, in place {}", name(what), count,
                                       name_of(type), root, in_place));
              if (!testing::Test::HasFailure())
                compare_with_host(rank, what, type, count, in_place, root, kAllSides);
            }
    });
}

TEST(CollectivesOnDevice, random_calls_of_threads_are_right) {
  const CurrentDevice current(0);
  for (const int ranks : effort<std::vector<int>>({2, 3}, {2, 3}, {2, 3, 4}))
    run_ranks(ranks, [](Communicator& comm) {
      const CurrentDevice device(device_of(comm));
      const DeviceQueue queue = *device->make_queue(false);
      auto stream = Stream::wrap(device->number(), queue);
      ASSERT_OK(stream.status());
      make_calls({comm, device, stream->handle()}, 20261201, effort(100, 100, 2000));
    });
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesOnDevices, testing::ValuesIn(scheduled()),
                         [](const auto& made) { return std::string(name(made.param)); });

}  // namespace
}  // namespace anyccl::test
