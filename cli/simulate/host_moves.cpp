#include "simulate/host_moves.hpp"

namespace anyccl::cli {

Moved& Moved::operator+=(const Moved& other) {
  user_read += other.user_read;
  user_write += other.user_write;
  scratch_read += other.scratch_read;
  scratch_write += other.scratch_write;
  ring_read += other.ring_read;
  ring_write += other.ring_write;
  line_read += other.line_read;
  line_write += other.line_write;
  reads += other.reads;
  publications += other.publications;
  return *this;
}

void StepMoves::add_read(std::uint32_t operand, double bytes, Moved& moved) const {
  if (!is_of_peer(operand)) {
    (Space{step_.src_space} == Space::scratch ? moved.scratch_read : moved.user_read) += bytes;
    return;
  }
  const Incoming& in = bound_.wanted[at_.first_wanted + operand];
  (in.whole <= line_bytes_ ? moved.line_read : moved.ring_read) += bytes;
}

void StepMoves::add_write(double bytes, Moved& moved) const {
  if (step_.flags & PlanStep::store)
    (Space{step_.dst_space} == Space::scratch ? moved.scratch_write : moved.user_write) += bytes;
  if (step_.flags & PlanStep::publish)
    (at_.out_bytes <= line_bytes_ ? moved.line_write : moved.ring_write) += bytes;
}

Moved StepMoves::of_operand(std::uint32_t operand) const {
  Moved moved;
  for (std::uint32_t i = 0; i < at_.extents; ++i) {
    const Extent& extent = bound_.extents[at_.first_extent + i];
    if (extent.operand != operand) continue;
    add_read(operand, static_cast<double>(extent.bytes), moved);
    add_write(static_cast<double>(extent.bytes), moved);
  }
  moved.reads = is_of_peer(operand) ? 1 : 0;
  return moved;
}

Moved StepMoves::of_all() const {
  Moved moved;
  moved.publications = step_.flags & PlanStep::publish ? 1 : 0;
  if (!(step_.flags & PlanStep::combine)) {
    for (std::uint32_t k = 0; k < step_.operands; ++k) moved += of_operand(k);
    return moved;
  }
  for (std::uint32_t k = 0; k < step_.operands; ++k) moved.reads += is_of_peer(k) ? 1 : 0;
  for (std::uint32_t i = 0; i < at_.extents; ++i) {
    const auto bytes = static_cast<double>(bound_.extents[at_.first_extent + i].bytes);
    for (std::uint32_t k = 0; k < step_.operands; ++k) add_read(k, bytes, moved);
    if (step_.flags & PlanStep::accumulate)
      (Space{step_.dst_space} == Space::scratch ? moved.scratch_read : moved.user_read) += bytes;
    add_write(bytes, moved);
  }
  return moved;
}

}  // namespace anyccl::cli
