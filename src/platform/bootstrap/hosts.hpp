#pragma once

#include <span>
#include <vector>

#include "platform/bootstrap/hello.hpp"

namespace anyccl::bootstrap {

/// For each hello the number of its host, as same_host() tells hosts apart: from 0, in order of
/// appearance. Takes time in proportion to the hellos.
std::vector<int> number_hosts(std::span<const Hello> hellos);

/// The number of hellos from the machine of `mine`, but from other network namespaces: containers.
long count_in_containers_beside(const Hello& mine, std::span<const Hello> hellos);

}  // namespace anyccl::bootstrap
