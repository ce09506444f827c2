#pragma once
// The kinds of networks. Each makes one from its parameters, of which those that are not given
// follow from the number of ranks.

#include "simulate/network.hpp"
#include "simulate/network_params.hpp"

namespace anyccl::cli {

/// Every end has a cable to one switch.
Result<Network> make_flat(NetworkParams& params, std::uint32_t ranks);
/// Every end has a router of its own, and routers are connected to each other: in a circle,
Result<Network> make_ring(NetworkParams& params, std::uint32_t ranks);
/// in a tree with `arity` children for each, in the order of a heap,
Result<Network> make_tree(NetworkParams& params, std::uint32_t ranks);
/// in circles along each of the dimensions `dims`,
Result<Network> make_torus(NetworkParams& params, std::uint32_t ranks);
/// or, 2^dims of them, if their numbers differ in one bit.
Result<Network> make_hypercube(NetworkParams& params, std::uint32_t ranks);
/// Three levels of switches with k ports: k pods of k/2 edge switches, each with k/2 ends. Of the
/// cables above edge switches there is one in `taper`.
Result<Network> make_fat_tree(NetworkParams& params, std::uint32_t ranks);
/// Groups of `a` routers, each with p ends, h ports for cables to other groups, and a cable to each
/// router of its group. Each two groups have one cable.
Result<Network> make_dragonfly(NetworkParams& params, std::uint32_t ranks);
/// Groups of radix/2 leaf switches and as many spine switches, each leaf with radix/2 ends and a
/// cable to each spine of its group, each spine with radix/2 cables to other groups.
Result<Network> make_dragonfly_plus(NetworkParams& params, std::uint32_t ranks);
/// Hosts with `devices` ends on a switch of their own, of `inside` GB/s; device i of each host is
/// on rail i, too.
Result<Network> make_rails(NetworkParams& params, std::uint32_t ranks);

}  // namespace anyccl::cli
