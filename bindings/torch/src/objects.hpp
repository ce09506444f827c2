#pragma once
// How pickled objects travel between the ranks of a group.

#include <pybind11/pybind11.h>

#include "backend.hpp"

namespace anyccl::torch {

/// Exchanges objects as bytes, as the operation `name`. `what`: broadcast, all-gather, gather or
/// scatter. `pickle`() returns a list of plain tensors of bytes, the payloads of this rank: one, or
/// as the root of a scatter one for each rank, or none; other ranks hear of its exception. Returns
/// the payloads that come to this rank, bytes or tensors: those of all ranks in an all-gather and
/// at the root of a gather, none at the root of a broadcast and elsewhere in a gather, else one.
/// Raises the exception of pickle(), and failures. After an interrupt the exchange goes on by
/// itself, as other ranks count on this one.
pybind11::list exchange_objects(Backend& backend, const std::string& name, anycclCollective_t what,
                                const pybind11::function& pickle, int root);

}  // namespace anyccl::torch
