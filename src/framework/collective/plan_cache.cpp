#include "framework/collective/plan_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "algorithm/loaded/loaded_algorithm.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/round_up.hpp"
#include "framework/collective/call_digest.hpp"
#include "framework/collective/fusion.hpp"
#include "framework/collective/tiling.hpp"
#include "framework/tuning/order_needs.hpp"

namespace anyccl {
namespace {

constexpr std::uint32_t kMostTiles = 1U << 31;  // so that adding lanes to a tile does not overflow

std::uint64_t plan_identity(const PreparedCall& prepared, const ElementTypes& types) {
  std::uint64_t h = mix(mix(prepared.tile_bytes, prepared.lanes), prepared.line_bytes);
  const Algorithm& algorithm = *prepared.routed->algorithm;
  for (const char c : id(algorithm)) h = mix(h, static_cast<unsigned char>(c));
  if (!types.are_one())
    h = mix(mix(h, static_cast<std::uint64_t>(types.sum)),
            static_cast<std::uint64_t>(types.output) << 8 | prepared.portions.stored_growth());
  if (const CallSettings* const settings = prepared.settings;
      settings != nullptr && settings->leaves > 0)
    h = mix(h, settings->leaves);
  return algorithm.loaded == nullptr ? h : mix(h, algorithm.loaded->hash());
}

/// The sizes that every rank knows: all of a call with equal blocks.
struct KnownSizes {
  std::size_t average = 0;  ///< Elements per block; 0: no rank knows all.
  std::uint64_t hash = 0;
};
/// Returns the count of equal blocks; of a v-form whose sizes all ranks know, their average and
/// hash.
KnownSizes known_sizes(const Call& call, int size) {
  KnownSizes known;
  if (has_equal_blocks(call.collective)) return {call.count, 0};
  if (!has_known_sizes(call.collective)) return known;
  const bool sends = has_blocks_apart(call.collective, false, Space::input);
  const std::size_t* const counts = sends ? call.send_counts : call.recv_counts;
  for (int r = 0; r < size; ++r) {
    known.average += counts[r];
    known.hash = mix(known.hash, counts[r]);
  }
  known.average /= static_cast<std::size_t>(size);
  return known;
}

/// The largest tile of whole elements whose publications fit slots of `line_bytes`, where that is
/// possible. The same on all ranks.
std::size_t tile_for_lines(const RoutedPlan& routed, std::size_t line_bytes, std::size_t element) {
  const std::size_t chunk = line_bytes / std::max(1U, routed.most_together) / 64 * 64;
  if (chunk == 0) return kLineBytes / element * element;
  return chunk * routed.plan.schedule.contract.chunks_per_block();
}

/// As ranks compare it.
ReduceOp name_of_operator(ReduceOp op, const Operator* created) {
  if (created == nullptr) return op;
  return created->function == nullptr ? kPreMulSum : kUserOp;
}

/// Where each of `size` blocks begins, and the last one ends.
std::vector<std::size_t> packed_offsets(const std::size_t* counts, int size) {
  std::vector<std::size_t> begins{0};
  for (int r = 0; r < size; ++r) begins.push_back(begins.back() + counts[r]);
  return begins;
}

/// That of the largest publication, where there are slots.
Protocol protocol_of(const PreparedCall& prepared) {
  const Protocols& may = prepared.protocols;
  const bool lines = may.has(Protocol::ll) || may.has(Protocol::ll128);
  if (!lines || prepared.geometry.sized() || prepared.largest > prepared.line_bytes)
    return Protocol::simple;
  return may.has(Protocol::ll) && prepared.largest <= kLineBytes ? Protocol::ll : Protocol::ll128;
}

RecordedCall recorded_as(const Call& call, const Algorithm& algorithm, const PreparedCall& prepared,
                         int ranks) {
  return Recorder::like(call, {.algorithm = &algorithm,
                               .protocol = static_cast<std::uint8_t>(protocol_of(prepared)),
                               .parts = prepared.record.parts,
                               .ranks = ranks});
}

}  // namespace

Status PlanCache::check(const Call& call) const {
  ANYCCL_TRY(const BufferShape shape, shape_of(call));
  ANYCCL_CHECK(check_call(call, shape, me_.rank, me_.size, operators_));
  return types_of(call).status();
}

Result<BufferShape> PlanCache::shape_of(const Call& call) const {
  const CallSettings* const settings = settings_.at(call.settings);
  const DType result = settings == nullptr ? call.dtype : settings->output.value_or(call.dtype);
  ANYCCL_TRY(const std::uint32_t leaves, leaves_of_rank(settings, me_.size));
  return BufferShape{result, leaves};
}

void PlanCache::forget() {
  ++generation_;
  last_key_ = {};
  last_ = nullptr;
  recent_.drop_if([](const PreparedCall&) { return true; });
}

std::size_t PlanCache::count_fusible(std::span<const Call* const> calls) {
  if (!me_.fuses) return 1;
  if (const auto types = types_of(*calls[0]); !types.ok() || !types->are_one()) return 1;
  if (const auto* const settings = settings_.at(calls[0]->settings);
      settings != nullptr && settings->leaves > 0)
    return 1;
  std::size_t count = count_alike(calls, me_, settings_);
  while (count > 1 && !keeps_bits(calls.first(count))) count /= 2;
  return count;
}

Result<double> PlanCache::predict(const Call& call) const {
  const std::size_t bytes = call.count * bytes_of(call.dtype);
  if (call.is_point_to_point()) return predict_message(bytes, me_.network);
  const std::size_t known = known_sizes(call, me_.size).average * bytes_of(call.dtype);
  ANYCCL_TRY(const Choice choice, choose_algorithm(call, known));
  return predict_us(*choice.algorithm, query_of(call, known));
}

bool PlanCache::keeps_bits(std::span<const Call* const> calls) {
  const Call& first = *calls[0];
  if (!reduces(first.collective)) return true;
  if (is_exact(first.dtype, first.op)) return true;
  const bool sums = first.op == ReduceOp::sum || first.op == ReduceOp::avg;
  if (sums && me_.size <= 2) return true;  // a + b is b + a
  Call whole = first;
  whole.count = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    whole.count += calls[i]->count;
    const bool seen = i > 0 && calls[i]->count == calls[i - 1]->count;
    if (!seen && !is_canonical(*calls[i])) return false;
  }
  return is_canonical(whole);
}

/// Whether a call like this adds up by the aligned tree.
bool PlanCache::is_canonical(const Call& call) {
  const auto choice = choose_algorithm(call, call.count * bytes_of(call.dtype));
  return choice.ok() && meets(*choice->algorithm, query_of(call, 0).shape, tree_for(call.dtype));
}

Result<std::shared_ptr<const PreparedCall>> PlanCache::find(const Call& call, const CallKey& key,
                                                            FusedParts parts) {
  if (key == last_key_) return last_;
  last_key_ = {};
  ANYCCL_TRY(last_, plan(call, key, parts));
  use(call, key, last_);
  return last_;
}

Result<std::shared_ptr<const PreparedCall>> PlanCache::plan(const Call& call, const CallKey& key,
                                                            FusedParts parts) {
  if (!has_equal_blocks(call.collective)) return prepare(call, parts);
  const auto* const known = recent_.find(key);
  if (known != nullptr && (*known)->op == operators_.find(call.op)) return *known;
  ANYCCL_TRY(std::shared_ptr<const PreparedCall> made, prepare(call, parts));
  recent_.add(key, made);
  return made;
}

void PlanCache::use(const Call& call, const CallKey& key,
                    const std::shared_ptr<const PreparedCall>& plan) {
  last_ = plan;
  // The number of an operator of the program may mean another one the next time.
  const bool stays = has_equal_blocks(call.collective) && !Operators::is_created(call.op);
  last_key_ = stays ? key : CallKey();
}

Status PlanCache::choose_kernels(const Call& call, PreparedCall& prepared) const {
  if (!reduces(call.collective) && call.collective != Collective::barrier) return {};
  prepared.op = operators_.find(call.op);
  if (prepared.op != nullptr && prepared.op->function != nullptr) return {};
  if (prepared.op != nullptr) {
    if (prepared.op->dtype != call.dtype)
      return error(Code::invalid_usage, "op {} multiplies {}, but the call is of {}",
                   static_cast<int>(call.op), name_of(prepared.op->dtype), name_of(call.dtype));
    ANYCCL_TRY(prepared.input.multiply, reduce_kernel(call.dtype, ReduceOp::prod));
  }
  const bool sums = prepared.op != nullptr || call.op == ReduceOp::avg;
  ANYCCL_TRY(prepared.kernel, reduce_kernel(call.dtype, sums ? ReduceOp::sum : ReduceOp{call.op}));
  ANYCCL_TRY(prepared.result.divide, division_kernel(call));
  return {};
}

Result<const RoutedPlan*> PlanCache::routed_plan(const Algorithm& algorithm, const Call& call,
                                                 bool in_place) {
  const Rank root = is_rooted(call.collective) ? call.root : Rank{0};
  for (const Known& known : routed_plans_)
    if (known.plan->algorithm == &algorithm && known.root == root && known.in_place == in_place)
      return known.plan.get();
  const Shape shape{call.collective, me_.size, root, in_place, me_.near_of};
  if (algorithm.loaded != nullptr) ANYCCL_CHECK(algorithm.loaded->check(shape, slots_));
  ANYCCL_TRY(std::unique_ptr<RoutedPlan> made,
             make_routed_plan(algorithm, shape, me_.rank, route_, slots_));
  routed_plans_.push_back({root, in_place, std::move(made)});
  return routed_plans_.back().plan.get();
}

TunerQuery PlanCache::query_of(const Call& call, std::size_t known_bytes) const {
  return {{call.collective, me_.size, call.root, false, me_.near_of},
          known_bytes,
          me_.network,
          me_.ranks_per_core,
          need_of(call)};
}

/// Returns Order::position, unless the level of reproducibility asks for trees and the operator
/// rounds. A function of the program rounds whatever step it is called in.
Order PlanCache::need_of(const Call& call) const {
  if (!reduces(call.collective)) return Order::position;
  if (level_of(me_.policy, settings_.at(call.settings)) < kLevelOfTrees) return Order::position;
  const std::shared_ptr<const Operator> created = operators_.find(call.op);
  if (created == nullptr)
    return is_exact(call.dtype, call.op) ? Order::position : tree_for(call.dtype);
  if (created->function != nullptr) return Order::tree;
  return is_exact(call.dtype, ReduceOp::sum) ? Order::position : tree_for(call.dtype);
}

Result<Choice> PlanCache::choose_algorithm(const Call& call, std::size_t known_bytes,
                                           Order least) const {
  TunerQuery query = query_of(call, known_bytes);
  query.need = std::max(query.need, least);
  return select_algorithm(query, me_.policy, settings_.at(call.settings));
}

/// How much of a publication may be in its slot. Sizes that readers do not know are told elsewhere.
void PlanCache::choose_lines(const Protocols& allowed, PreparedCall& prepared) const {
  prepared.protocols = allowed;
  const std::size_t most = allowed.has(Protocol::ll128) ? me_.line_bytes
                           : allowed.has(Protocol::ll)  ? kLineBytes
                                                        : 0;
  prepared.line_bytes = static_cast<std::uint16_t>(most);
  prepared.only_lines =
      !allowed.has(Protocol::simple) && !prepared.routed->plan.schedule.contract.private_sizes();
}

/// Tiles that fit the ring and the slots, and how many of them are in flight.
void PlanCache::choose_tiling(const Call& call, std::size_t wanted_tile_bytes,
                              PreparedCall& prepared) const {
  const Plan& plan = prepared.routed->plan;
  const bool varies = !has_equal_blocks(call.collective);
  const std::uint32_t chunks_per_block = varies ? 1 : plan.schedule.contract.chunks_per_block();
  const Tiling tiling = anyccl::choose_tiling(
      *prepared.routed, {slots_, me_.ring_bytes, chunks_per_block, me_.network, me_.tile_bytes},
      wanted_tile_bytes);
  prepared.lanes = tiling.lanes;
  std::size_t tile = tiling.tile_bytes;
  if (prepared.only_lines)
    tile = std::min(tile, tile_for_lines(*prepared.routed, prepared.line_bytes, prepared.element));
  Call read = call;  // as the plan finds its input: multiplied blocks lie side by side
  if (prepared.input.multiply != nullptr && call.collective == Collective::reduce_scatter_v) {
    prepared.input.begins = packed_offsets(call.send_counts, me_.size);
    read.send_displs = prepared.input.begins.data();
  }
  const std::size_t bytes = call.count * prepared.element;
  prepared.geometry = varies ? Geometry::of_blocks(plan.schedule.contract, read, me_.rank, tile)
                             : Geometry::of_vector(plan.schedule.contract, bytes, tile);
  prepared.tile_bytes = tile;
}

/// The record that ranks compare. `known_sizes`: a hash of the sizes of a v-form that all know.
void PlanCache::fill_record(const Call& call, std::uint64_t known_sizes, FusedParts parts,
                            const ElementTypes& types, PreparedCall& prepared) const {
  const bool varies = !has_equal_blocks(call.collective);
  prepared.record = {0,
                     static_cast<std::uint8_t>(call.collective),
                     static_cast<std::uint8_t>(call.dtype),
                     static_cast<std::uint8_t>(name_of_operator(call.op, prepared.op.get())),
                     static_cast<std::uint8_t>(std::min(parts.number, 255U)),
                     index(call.root),
                     varies ? 0 : call.count,
                     mix(plan_identity(prepared, types), known_sizes ^ parts.hash)};
  prepared.digest = digest_of(prepared.record);
}

/// `needs_landing`: operands may lie in memory of peers, and some transport must copy them before
/// they can be combined or passed on.
void PlanCache::plan_scratch(bool needs_landing, PreparedCall& prepared) const {
  const RoutedPlan& routed = *prepared.routed;
  const std::size_t chunk = prepared.geometry.scratch_chunk();
  ScratchLayout layout;
  layout.add(prepared.lanes * routed.plan.schedule.scratch.size() * chunk);
  prepared.input.element = prepared.element;
  prepared.input.plan(layout, prepared.bytes.input);
  prepared.result.plan(layout, prepared.bytes.output);
  prepared.portions.at = layout.add(prepared.portions.room(routed.most_operands + 1));
  if (needs_landing) {
    std::uint32_t chunks = 0;
    for (const PlanStep& step : routed.plan.steps) chunks = std::max(chunks, step.count);
    prepared.landing.bytes = chunks * chunk;
    prepared.landing.at =
        layout.add(prepared.lanes * routed.most_operands * prepared.landing.bytes);
  }
  prepared.scratch_bytes = layout.bytes();
}

/// ANYCCL_DEBUG=INFO: the first choice for each collective and size class, and for calls with a
/// configuration, by rank 0.
void PlanCache::report(const Call& call, const Choice& choice, const PreparedCall& prepared) {
  if (me_.rank != Rank{0} || !log_enabled(LogSubsystem::coll)) return;
  const std::size_t bytes = call.count * bytes_of(call.dtype);
  std::uint64_t& reported = reported_[static_cast<std::size_t>(call.collective)];
  const std::uint64_t bit = std::uint64_t{1} << (std::bit_width(bytes) & 63);
  const CallSettings* const settings = prepared.settings;
  if (settings == nullptr && (reported & bit) != 0) return;
  if (settings == nullptr) reported |= bit;
  const std::uint64_t tag = settings == nullptr ? 0 : settings->tag.load(std::memory_order_relaxed);
  log(LogSubsystem::coll, "{} of {} bytes on {} ranks: {} {} ({}){}", name(call.collective), bytes,
      me_.size, choice.algorithm->name, name_of(prepared.protocol()), reason(choice),
      tag == 0 ? "" : fmt::format(", tag {}", tag));
}

Result<std::shared_ptr<const PreparedCall>> PlanCache::prepare(const Call& given,
                                                               FusedParts parts) {
  const bool varies = !has_equal_blocks(given.collective);
  auto prepared = std::make_shared<PreparedCall>();
  ANYCCL_TRY(ElementTypes types, types_of(given));
  ANYCCL_TRY(prepared->input.folding.leaves,
             leaves_of_rank(settings_.at(given.settings), me_.size));
  const KnownSizes sizes = known_sizes(given, me_.size);
  ANYCCL_TRY(const Choice choice, choose_for(given, sizes.average, types, *prepared));
  Call call = given;  // of the elements that the plan moves
  call.dtype = types.sum;
  ANYCCL_CHECK(choose_kernels(call, *prepared));
  // An input that is multiplied, converted or folded first is read where that was done.
  const bool is_read_there = types.are_one() && prepared->input.is_empty();
  ANYCCL_TRY(prepared->routed,
             routed_plan(*choice.algorithm, call, is_read_there && call.in_place(me_.rank)));
  call.dtype = choose_conversions(given, types, *prepared);
  choose_division(call, *prepared);
  prepared->element = bytes_of(call.dtype);
  const std::size_t bytes = call.count * prepared->element;
  const BufferBytes buffers = buffer_bytes(call, me_.rank, me_.size);
  const std::uint32_t leaves = prepared->input.folding.leaves;
  prepared->bytes = {.input = buffers.input,
                     .output = buffers.output,
                     .given = buffers.input / prepared->element * bytes_of(types.input) * leaves,
                     .result = buffers.output / prepared->element * bytes_of(types.output)};
  prepared->settings = settings_.at(call.settings);
  choose_lines(choice.protocols.allowed, *prepared);
  choose_tiling(call, me_.tile_bytes > 0 ? tile_in_queues(bytes) : choice.tile_bytes, *prepared);
  const Plan& plan = prepared->routed->plan;
  const Geometry& geometry = prepared->geometry;
  if (geometry.tiles() > kMostTiles)
    return error(Code::unsupported,
                 "the call would need more than {} tiles of {} bytes: ANYCCL_PROTO=Simple makes "
                 "them larger",
                 kMostTiles, prepared->tile_bytes);
  if (!varies) prepared->lanes = std::min(prepared->lanes, geometry.tiles());
  fill_record(given, sizes.hash, parts, types, *prepared);
  // A rank that lends waits for its readers' progress, and so does one that needs a slot again in
  // this operation.
  prepared->posts_each = plan.posts_each && (varies || bytes >= kLendFrom ||
                                             most_publications(plan) * geometry.tiles() > slots_);
  prepared->only_gives = plan.ticks == 0 && me_.size > 1;
  const auto some = [&](bool Publications::Abilities::*ability) {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const Publications* p) { return p->abilities().*ability; });
  };
  prepared->consumes = some(&Publications::Abilities::takes_any_memory);
  const bool may_be_lent = varies || bytes * static_cast<std::size_t>(me_.size) >= kLendFrom;
  plan_scratch(may_be_lent && some(&Publications::Abilities::needs_landing), *prepared);
  prepared->largest = largest_publication(plan, geometry);
  prepared->recorded = recorded_as(given, *choice.algorithm, *prepared, me_.size);
  report(call, choice, *prepared);
  if (!varies) {
    const std::uint32_t last = geometry.tiles() - 1;
    bind(*prepared->routed, geometry, prepared->labels(), last, prepared->last);
    if (last > 0) bind(*prepared->routed, geometry, prepared->labels(), 0, prepared->full);
  }
  return std::shared_ptr<const PreparedCall>(std::move(prepared));
}

}  // namespace anyccl
