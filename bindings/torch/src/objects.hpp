#pragma once
// How pickled objects travel between the ranks of a group.

#include <pybind11/pybind11.h>

#include "backend.hpp"

namespace anyccl::torch {

/// Exchanges objects as bytes, as the operation `name`. `what`: broadcast, all-gather, gather or
/// scatter. `pickle`() returns a list of plain tensors of bytes, what this rank gives: one, or as
/// the root of a scatter one for each rank, or none; other ranks hear of what it raises. Returns
/// what comes to this rank, bytes or tensors: of every rank to the root of a gather and in an
/// all-gather, else one; nothing at the root of a broadcast and elsewhere in a gather. Raises what
/// pickle() has raised, and failures. After an interrupt it goes on by itself, as other ranks count
/// on this one.
pybind11::list exchange_objects(Backend& backend, const std::string& name, anycclCollective_t what,
                                const pybind11::function& pickle, int root);

}  // namespace anyccl::torch
