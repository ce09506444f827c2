#include "framework/device/enqueuer.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"

namespace anyccl {
namespace {

/// Tiles that are sent ahead: the first ones arrive while the rest is put into the queues.
constexpr std::uint32_t kMostAhead = 3;

bool is_send(const PlanStep& step) {  // publishes own memory as it is
  return (step.flags & (PlanStep::combine | PlanStep::store | PlanStep::publish)) ==
         PlanStep::publish;
}

/// A step that makes a result of an average divides it, or else steps make sums.
Reduction reduction_of(const PreparedCall& call) {
  Reduction what{static_cast<DType>(call.record.dtype), static_cast<ReduceOp>(call.record.op)};
  if (call.portions.divide != nullptr)
    what.divisor = call.portions.divisor;
  else if (what.op == ReduceOp::avg)
    what.op = ReduceOp::sum;
  return what;
}

}  // namespace

Enqueuer::Enqueuer(Device& device, const Wires& wires, QueueState& state, const PreparedCall& call,
                   Rank me, const Buffers& buffers, const Pause& pause)
    : device_(device),
      wires_(wires),
      state_(state),
      call_(call),
      plan_(call.routed->plan),
      me_(uindex(me)),
      buffers_(buffers),
      pause_(pause),
      combine_(reduction_of(call)),
      leading_(leading_sends()),
      data_(state.numbers.size()),
      reads_(state.numbers.size()) {
  note_last_reads();
}

void Enqueuer::note_last_reads() {
  last_reads_.resize(plan_.refs.size());
  std::set<std::pair<std::uint32_t, std::uint32_t>> later;  // rank and publication
  for (std::size_t i = plan_.steps.size(); i-- > 0;) {
    const PlanStep& s = plan_.steps[i];
    for (std::uint32_t k = s.operands; k-- > 0;) {
      const Ref& ref = plan_.refs[s.first_ref + k];
      last_reads_[s.first_ref + k] =
          ref.rank != me_ && later.emplace(ref.rank, ref.publication).second;
    }
  }
}

std::size_t Enqueuer::leading_sends() const {
  const auto first = std::find_if_not(plan_.steps.begin(), plan_.steps.end(), is_send);
  return static_cast<std::size_t>(first - plan_.steps.begin());
}

/// Commands that a tile puts into the queue that gets more of them, at most.
std::uint32_t Enqueuer::commands_of_tile() const {
  std::uint32_t out = 0, in = 0;
  for (const PlanStep& s : plan_.steps) {
    const std::uint32_t copies = s.operands + 2;  // with moments
    const bool publishes = is_read(s);
    const std::uint32_t words =
        publishes ? 2 * static_cast<std::uint32_t>(plan_.readers[s.publication].size()) : 0;
    if (!is_send(s)) in += 2 * s.operands + copies;
    (publishes && !is_send(s) && (s.flags & PlanStep::store) == 0 ? in : out) +=
        publishes ? copies + words : 0;
  }
  return std::max(out, in);
}

/// A rank that publishes P times per tile sends so many tiles ahead that all of them fit its slots:
/// then what goes ahead waits for readers of earlier tiles only, which nothing in a queue holds up.
Status Enqueuer::run() {
  const std::uint32_t tiles = call_.geometry.tiles(), commands = commands_of_tile(),
                      published = std::max(1U, plan_.publications[me_]);
  const std::uint32_t ahead =
      std::min({tiles, kMostAhead, std::max(1U, Wires::kSlots / published) - 1});
  for (std::uint32_t t = 0; t < tiles + ahead; ++t) {
    ANYCCL_CHECK(pause_(commands));
    if (t < tiles) ANYCCL_CHECK(put_tile(t, 0, leading_));
    if (t >= ahead) ANYCCL_CHECK(put_tile(t - ahead, leading_, plan_.steps.size()));
  }
  for (std::size_t r = 0; r < plan_.publications.size(); ++r)
    state_.numbers[r] += tiles * plan_.publications[r];
  if (call_.result.divide != nullptr) ANYCCL_CHECK(divide_result());
  return wires_.device_slots() == nullptr ? Status() : await_readers();
}

/// A call with slots of the device is over when peers have read what it has published: the process
/// may end then, and its memory with it.
Status Enqueuer::await_readers() {
  for (QueueState::Slot& slot : state_.slots) {
    for (const std::uint32_t reader : slot.readers)
      ANYCCL_CHECK(await(state_.out, reader, wires_.consumed(me_, reader, slot.number), slot.number,
                         reads_));
    slot.readers.clear();
  }
  return {};
}

/// Makes averages of the sums that the plan has left in the output.
Status Enqueuer::divide_result() {
  const std::size_t bytes = call_.bytes.output;
  if (bytes == 0) return {};
  ANYCCL_CHECK(before_write(buffers_.output, bytes));
  const void* const sums[] = {buffers_.output};
  return device_.reduce(state_.in, {combine_.dtype, ReduceOp::avg, call_.result.divisor},
                        buffers_.output, sums, bytes / call_.element);
}

Status Enqueuer::put_tile(std::uint32_t tile, std::size_t first, std::size_t last) {
  const Geometry& geometry = call_.geometry;
  tile_ = tile;
  bound_ = tile + 1 == geometry.tiles() ? &call_.last : &call_.full;
  const std::size_t begin = geometry.tile_begin(tile);
  const auto at = [](std::byte* buffer, std::size_t offset) {
    return buffer == nullptr ? nullptr : buffer + offset;
  };
  base_[0] = at(const_cast<std::byte*>(buffers_.input), begin);  // no plan writes its input
  base_[1] = at(buffers_.output, begin);
  base_[2] = at(buffers_.scratch,
                tile % call_.lanes * plan_.schedule.scratch.size() * geometry.scratch_chunk());
  for (std::size_t i = first; i < last; ++i) {
    const PlanStep& s = plan_.steps[i];
    const BoundStep& b = bound_->steps[i];
    if (!is_send(s)) {
      ANYCCL_CHECK(receive(s, b));
    } else if (i < leading_) {
      ANYCCL_CHECK(publish(s, b));  // of what no step has written
    } else {
      ANYCCL_CHECK(publish_written(s, b));
    }
  }
  return {};
}

std::uint32_t Enqueuer::number_of(const Ref& ref) const {
  return state_.numbers[ref.rank] + tile_ * plan_.publications[ref.rank] + ref.publication;
}

std::uint32_t Enqueuer::own_number(const PlanStep& s) const {
  return state_.numbers[me_] + tile_ * plan_.publications[me_] + s.publication;
}

/// Where operand k of a step lies: own memory, or the part of a peer's slot that is wanted.
const std::byte* Enqueuer::operand(const PlanStep& s, const BoundStep& b, std::uint32_t k) const {
  const Ref& ref = plan_.refs[s.first_ref + k];
  if (ref.rank == me_) return base_[s.src_space];
  return wires_.slot(ref.rank, number_of(ref)) + bound_->wanted[b.first_wanted + k].offset;
}

/// The queue waits until the word speaks of that publication.
Status Enqueuer::await(DeviceQueue queue, std::uint32_t rank, std::uint32_t* word,
                       std::uint32_t number, std::vector<WordOfRank>& waits) {
  waits[rank] = {rank, word, number + 1};
  return device_.wait_word(queue, word, number + 1);
}

std::vector<WordOfRank> Enqueuer::last_waits() const {
  std::vector<WordOfRank> waits;
  for (const auto* const all : {&data_, &reads_})
    for (const WordOfRank& wait : *all)
      if (wait.word != nullptr) waits.push_back(wait);
  return waits;
}

Status Enqueuer::copy(DeviceQueue queue, std::byte* to, const std::byte* from, std::size_t bytes) {
  return bytes == 0 || to == from ? Status() : device_.copy(queue, to, from, bytes);
}

/// Whether a step publishes something that a peer reads.
bool Enqueuer::is_read(const PlanStep& s) const {
  if ((s.flags & PlanStep::publish) == 0) return false;
  const std::vector<Reader>& readers = plan_.readers[s.publication];
  return std::any_of(readers.begin(), readers.end(),
                     [&](const Reader& reader) { return reader.rank != me_; });
}

/// The queue waits until all readers of the publication in this rank's slot have read it.
Status Enqueuer::await_slot(DeviceQueue queue, const PlanStep& s) {
  const std::uint32_t number = own_number(s);
  QueueState::Slot& slot = state_.slots[number % Wires::kSlots];
  for (const std::uint32_t reader : slot.readers)
    ANYCCL_CHECK(
        await(queue, reader, wires_.consumed(me_, reader, slot.number), slot.number, reads_));
  slot.number = number;
  slot.readers.clear();
  for (const Reader& reader : plan_.readers[s.publication])
    if (reader.rank != me_) slot.readers.push_back(reader.rank);
  return {};
}

Status Enqueuer::tell_readers(DeviceQueue queue, const PlanStep& s) {
  const std::uint32_t number = own_number(s);
  for (const std::uint32_t reader : state_.slots[number % Wires::kSlots].readers)
    ANYCCL_CHECK(device_.write_word(queue, wires_.published(reader, me_, number), number + 1));
  return {};
}

/// Publishes what `in` has written.
Status Enqueuer::publish_written(const PlanStep& s, const BoundStep& b) {
  ANYCCL_CHECK(device_.record(state_.in, state_.written));
  ANYCCL_CHECK(device_.wait(state_.out, state_.written));
  return publish(s, b);
}

/// Publishes own memory: what a step sends, or has stored.
Status Enqueuer::publish(const PlanStep& s, const BoundStep& b) {
  if (!is_read(s)) return {};
  ANYCCL_CHECK(await_slot(state_.out, s));
  const std::uint32_t slot = own_number(s) % Wires::kSlots;
  for (std::uint32_t i = 0; i < b.extents; ++i) {
    const Extent& extent = bound_->extents[b.first_extent + i];
    const std::byte* const from = is_send(s)
                                      ? base_[s.src_space] + bound_->sources[extent.first_source]
                                      : base_[s.dst_space] + extent.dst;
    ANYCCL_CHECK(copy(state_.out, own_slot(s) + extent.out, from, extent.bytes));
    readings_.push_back({from, extent.bytes, slot});
  }
  ANYCCL_CHECK(tell_readers(state_.out, s));
  return device_.record(state_.out, state_.slots[slot].filled);
}

Status Enqueuer::receive(const PlanStep& s, const BoundStep& b) {
  for (std::uint32_t k = 0; k < s.operands; ++k) {
    const Ref& ref = plan_.refs[s.first_ref + k];
    if (ref.rank == me_) continue;
    const std::uint32_t number = number_of(ref);
    ANYCCL_CHECK(
        await(state_.in, ref.rank, wires_.published(me_, ref.rank, number), number, data_));
  }
  const bool stores = s.flags & PlanStep::store, publishes = is_read(s);
  Target target;
  if (stores) target.own = base_[s.dst_space];
  if (publishes && !stores) {
    ANYCCL_CHECK(await_slot(state_.in, s));
    target.slot = own_slot(s);
  }
  ANYCCL_CHECK(s.flags & PlanStep::combine ? combine(s, b, target) : move(s, b, target));
  ANYCCL_CHECK(tell_owners(s));
  if (!publishes) return {};
  return stores ? publish_written(s, b) : tell_readers(state_.in, s);
}

/// To the owners of what no later step of this rank reads.
Status Enqueuer::tell_owners(const PlanStep& s) {
  for (std::uint32_t k = 0; k < s.operands; ++k) {
    if (!last_reads_[s.first_ref + k]) continue;
    const Ref& ref = plan_.refs[s.first_ref + k];
    const std::uint32_t number = number_of(ref);
    ANYCCL_CHECK(device_.write_word(state_.in, wires_.consumed(ref.rank, me_, number), number + 1));
  }
  return {};
}

/// `in` waits while `out` reads there.
Status Enqueuer::before_write(const std::byte* to, std::size_t bytes) {
  for (std::size_t i = readings_.size(); i-- > 0;) {
    const Reading& reading = readings_[i];
    if (!overlap(reading.begin, reading.bytes, to, bytes)) continue;
    const DeviceMoment filled = state_.slots[reading.slot].filled;
    // Those before it have been read by then, too.
    readings_.erase(readings_.begin(), readings_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return device_.wait(state_.in, filled);
  }
  return {};
}

Status Enqueuer::combine(const PlanStep& s, const BoundStep& b, const Target& target) {
  for (std::uint32_t i = 0; i < b.extents; ++i) {
    const Extent& extent = bound_->extents[b.first_extent + i];
    if (extent.bytes == 0) continue;
    const std::size_t* offset = bound_->sources.data() + extent.first_source;
    sources_.clear();
    if (s.flags & PlanStep::accumulate) sources_.push_back(base_[s.dst_space] + *offset++);
    for (std::uint32_t k = 0; k < s.operands; ++k) sources_.push_back(operand(s, b, k) + *offset++);
    std::byte* const to =
        target.own == nullptr ? target.slot + extent.out : target.own + extent.dst;
    if (target.own != nullptr) ANYCCL_CHECK(before_write(to, extent.bytes));
    const bool is_copy = sources_.size() == 1 && combine_.op != ReduceOp::avg;
    ANYCCL_CHECK(
        is_copy ? copy(state_.in, to, static_cast<const std::byte*>(sources_[0]), extent.bytes)
                : device_.reduce(state_.in, combine_, to, sources_, extent.bytes / call_.element));
  }
  return {};
}

Status Enqueuer::move(const PlanStep& s, const BoundStep& b, const Target& target) {
  for (std::uint32_t i = 0; i < b.extents; ++i) {
    const Extent& extent = bound_->extents[b.first_extent + i];
    const std::byte* const from =
        operand(s, b, extent.operand) + bound_->sources[extent.first_source];
    std::byte* const to =
        target.own == nullptr ? target.slot + extent.out : target.own + extent.dst;
    if (target.own != nullptr && to != from) ANYCCL_CHECK(before_write(to, extent.bytes));
    ANYCCL_CHECK(copy(state_.in, to, from, extent.bytes));
  }
  return {};
}

}  // namespace anyccl
