#include "base/error.hpp"
#include "simulate/simgrid.hpp"

namespace anyccl::cli {

Result<ReplayResult> replay_by_simgrid(const RankPrograms&, const Network&, const Machine&, double,
                                       const std::vector<std::uint32_t>&) {
  return error(
      Code::unsupported,
      "--engine simgrid needs a build with SimGrid, and this one has none: install libsimgrid-dev "
      "(Debian), and build with -DANYCCL_WITH_SIMGRID=ON");
}

}  // namespace anyccl::cli
