// Files about machines, as `anyccl simulate` and `anyccl plan` read them: networks, constants and
// fits of machines, models, clusters. The first byte says which.

#include "input.hpp"
#include "plan/read.hpp"
#include "simulate/machine.hpp"
#include "simulate/read_network.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  switch (input.take<std::uint8_t>() % 6) {
    case 0: {
      const std::uint32_t ranks = input.take<std::uint8_t>() + 1U;
      const auto network = cli::read_network(input.text(), ranks);
      if (network.ok()) static_cast<void>(cli::to_json(*network));
      return;
    }
    case 1: {
      const auto calibration = cli::read_calibration(input.text(), "file");
      if (calibration.ok()) static_cast<void>(cli::to_json(*calibration));
      return;
    }
    case 2:
      return static_cast<void>(cli::read_machine(input.text(), "file"));
    case 3:
      return static_cast<void>(cli::read_device_costs(input.text(), "file"));
    case 4:
      return static_cast<void>(cli::parse_model(input.text(), "file"));
    default:
      return static_cast<void>(cli::parse_cluster(input.text(), "file"));
  }
}

}  // namespace anyccl::fuzz
