#pragma once
// The functions here put schedules into words. Errors of checks, lowering and loaded algorithms
// name steps and chunks by them.

#include <string>
#include <string_view>

#include "algorithm/schedule/schedule.hpp"

namespace anyccl {

/// The whole schedule, one line per step: "  3 recv_reduce  output[2] = input[2] + from 1".
std::string to_text(const Schedule& schedule);

// Words for messages, which all name rank, step and chunk.
std::string_view name(Op op);
std::string_view name(Space space);
/// "output chunk 4", or "output chunks 4..6": piece k of the slice.
std::string chunk_text(const Schedule& schedule, const Slice& slice, std::size_t k = 0);
/// The chunk that a memory cell is: "scratch chunk 1".
std::string cell_text(const Schedule& schedule, std::uint32_t cell);
/// "rank 2 step 5 (recv_reduce)", or with its place "rank 2 step 5 (recv_reduce, mine.py:12)"
std::string step_text(const Schedule& schedule, std::uint32_t step);

}  // namespace anyccl
