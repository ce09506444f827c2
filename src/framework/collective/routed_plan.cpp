#include "framework/collective/routed_plan.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/round_up.hpp"

namespace anyccl {
namespace {

/// At least one; too many to count are the largest number.
std::uint32_t count_tiles(std::size_t bytes, std::size_t tile_bytes) {
  const std::size_t tiles = bytes / tile_bytes + (bytes % tile_bytes != 0 ? 1 : 0);
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(tiles, 1, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

Geometry Geometry::of_vector(const Contract& contract, std::size_t bytes, std::size_t tile_bytes) {
  Geometry g;
  g.chunks_per_block_ = contract.chunks_per_block();
  g.bytes_ = contract.has_bytes() ? bytes : 0;
  g.tile_bytes_ = tile_bytes;
  g.tiles_ = count_tiles(g.bytes_, tile_bytes);
  g.scratch_chunk_ = round_up(
      (std::min(g.bytes_, tile_bytes) + g.chunks_per_block_ - 1) / g.chunks_per_block_, 64);
  return g;
}

Geometry Geometry::of_blocks(const Contract& contract, const Call& call, Rank me,
                             std::size_t tile_bytes) {
  Geometry g;
  g.varies_ = true;
  g.sized_ = contract.private_sizes();
  g.pairs_ = contract.pairs();
  g.size_ = static_cast<std::uint32_t>(contract.shape().size);
  g.me_ = uindex(me);
  g.element_ = bytes_of(call.dtype);
  g.own_count_ = call.count;
  const bool at_root = call.root == me;
  if (has_blocks_apart(call.collective, at_root, Space::input))
    g.send_counts_ = call.send_counts, g.send_displs_ = call.send_displs;
  if (has_blocks_apart(call.collective, at_root, Space::output))
    g.recv_counts_ = call.recv_counts, g.recv_displs_ = call.recv_displs;
  g.tile_bytes_ = tile_bytes;
  std::size_t most = call.count;
  for (const std::size_t* counts : {g.send_counts_, g.recv_counts_})
    if (counts != nullptr) most = std::max(most, *std::max_element(counts, counts + g.size_));
  most *= g.element_;
  g.tiles_ = count_tiles(most, tile_bytes);
  g.scratch_chunk_ = round_up(std::min(most, tile_bytes), 64);
  return g;
}

std::size_t Geometry::tile_bytes(std::uint32_t tile) const {
  return std::min(tile_bytes_, bytes_ - std::min(bytes_, std::size_t{tile} * tile_bytes_));
}

std::uint64_t Geometry::total(Origin origin) const {
  if (pairs_) {  // origin = from * size + to
    const std::uint32_t from = origin / size_, to = origin % size_;
    if (from == me_) return send_counts_[to] * element_;
    return to == me_ ? recv_counts_[from] * element_ : 0;
  }
  const std::size_t* const counts = recv_counts_ != nullptr ? recv_counts_ : send_counts_;
  if (counts != nullptr) return counts[origin] * element_;
  return origin == me_ ? own_count_ * element_ : 0;
}

std::size_t Geometry::bytes(std::uint32_t tile, Origin origin) const {
  if (varies_) {
    const std::size_t whole = total(origin), begin = std::size_t{tile} * tile_bytes_;
    return whole <= begin ? 0 : std::min(tile_bytes_, whole - begin);
  }
  const std::size_t here = tile_bytes(tile),
                    chunk = round_up((here + chunks_per_block_ - 1) / chunks_per_block_, 64);
  const std::size_t begin = std::min(here, (origin % chunks_per_block_) * chunk);
  return std::min(here, begin + chunk) - begin;
}

std::size_t Geometry::offset(std::uint32_t tile, const Schedule& schedule, Space space,
                             std::uint32_t chunk) const {
  if (space == Space::scratch) return chunk * scratch_chunk_;
  const Origin origin = schedule.origin(space, chunk);
  if (varies_) {
    const std::size_t begin = std::size_t{tile} * tile_bytes_;
    const std::size_t* const displs = space == Space::input ? send_displs_ : recv_displs_;
    if (displs == nullptr) return begin;  // one block
    const std::uint32_t peer = space == Space::input ? origin % size_ : origin / size_;
    return displs[pairs_ ? peer : origin] * element_ + begin;
  }
  const std::size_t here = tile_bytes(tile),
                    size = round_up((here + chunks_per_block_ - 1) / chunks_per_block_, 64);
  const std::size_t block =
      chunk % schedule.chunks(space) / chunks_per_block_;  // 0 where there are no blocks
  return block * bytes_ + std::min(here, (origin % chunks_per_block_) * size);
}

namespace {

/// Binds the steps of one tile, one after the other.
class Binder {
 public:
  Binder(const RoutedPlan& routed, const Geometry& geometry, Labels labels, std::uint32_t tile,
         BoundPlan& into)
      : routed_(routed),
        plan_(routed.plan),
        geometry_(geometry),
        labels_(labels),
        tile_(tile),
        into_(into) {}

  void run() {
    into_ = BoundPlan{};
    for (const PlanStep& step : plan_.steps) into_.steps.push_back(bind(step));
    const ReaderOf* next = into_.readers.data();  // which moves no more
    for (Outgoing& out : into_.outs) {
      out.readers = {next, out.readers.size()};
      next += out.readers.size();
    }
  }

 private:
  BoundStep bind(const PlanStep& step) {
    BoundStep bound;
    bound.first_extent = static_cast<std::uint32_t>(into_.extents.size());
    first_extent_ = into_.extents.size();
    bound.first_wanted = static_cast<std::uint32_t>(into_.wanted.size());
    for (std::uint32_t k = 0; k < step.operands; ++k)
      into_.wanted.push_back(wanted(step.first_ref + k, step.count));
    if (step.flags & PlanStep::publish) publish(step, bound);
    out_ = 0;
    if (step.flags & PlanStep::combine)
      combine(step);
    else
      for (std::uint32_t k = 0; k < step.operands; ++k) move(step, k);
    bound.extents = static_cast<std::uint32_t>(into_.extents.size()) - bound.first_extent;
    return bound;
  }

  bool own(const PlanStep& step, std::uint32_t k) const {
    return plan_.refs[step.first_ref + k].rank == uindex(plan_.schedule.rank);
  }
  std::size_t offset(Space space, std::uint32_t chunk) const {
    return geometry_.offset(tile_, plan_.schedule, space, chunk);
  }
  std::size_t bytes_at(Space space, std::uint32_t chunk) const {
    return geometry_.bytes(tile_, plan_.schedule.origin(space, chunk));
  }
  std::size_t bytes_of_origins(const std::vector<Origin>& origins, std::size_t from,
                               std::size_t to) const {
    std::size_t bytes = 0;
    for (std::size_t i = from; i < std::min(to, origins.size()); ++i)
      bytes += geometry_.bytes(tile_, origins[i]);
    return bytes;
  }

  /// Returns which bytes of a peer's publication the operand is; of an own one, the rank alone.
  Incoming wanted(std::uint32_t ref, std::uint32_t count) const {
    const std::vector<Origin>& origins = plan_.read_from[ref];
    Incoming in;
    in.rank = plan_.refs[ref].rank;
    if (in.rank == uindex(plan_.schedule.rank)) return in;
    const std::uint32_t first = plan_.refs[ref].offset;
    in.number = plan_.refs[ref].publication;
    in.digest = labels_.digest;
    in.line_bytes = labels_.line_bytes;
    in.offset = bytes_of_origins(origins, 0, first);
    in.bytes = bytes_of_origins(origins, first, first + count);
    in.whole = bytes_of_origins(origins, 0, origins.size());
    in.sized = geometry_.sized();
    if (in.sized) in.total = geometry_.total(origins[0]);
    return in;
  }

  void publish(const PlanStep& step, BoundStep& bound) {
    const std::vector<Origin>& origins = plan_.published[step.publication];
    Outgoing out;
    out.number = step.publication;
    out.digest = labels_.digest;
    out.line_bytes = labels_.line_bytes;
    out.bytes = bound.out_bytes = bytes_of_origins(origins, 0, origins.size());
    out.sized = geometry_.sized();
    if (out.sized) out.total = geometry_.total(origins[0]);
    bound.first_out = static_cast<std::uint32_t>(into_.outs.size());
    for (const RoutedPlan::Route& route : routed_.routes[step.publication]) {
      for (const Reader& r : route.readers)
        into_.readers.push_back({r.rank, r.tick, bytes_of_origins(origins, 0, r.offset),
                                 bytes_of_origins(origins, r.offset, r.offset + r.count)});
      out.readers = {into_.readers.data(), route.readers.size()};  // run() says where
      into_.outs.push_back(out);
    }
    find_direct(step, bound);
  }

  /// Whether what is published lies, in its order, contiguously in own memory.
  void find_direct(const PlanStep& step, BoundStep& bound) const {
    const bool stored = step.flags & PlanStep::store, combined = step.flags & PlanStep::combine;
    if (combined && !stored) return;
    bound.direct_space = static_cast<Space>(stored ? step.dst_space : step.src_space);
    const std::uint32_t first = stored ? step.dst : step.src,
                        stride = stored ? step.dst_stride : step.src_stride;
    std::size_t end = 0;
    bool any = false;
    for (std::uint32_t k = 0; k < (combined ? 1U : step.operands); ++k)
      for (std::uint32_t i = 0; i < step.count; ++i) {
        const std::uint32_t chunk = first + k * stride + i;
        const std::size_t bytes = bytes_at(bound.direct_space, chunk),
                          at = offset(bound.direct_space, chunk);
        if (bytes == 0) continue;
        if (any && at != end) return;
        if (!any) bound.direct = at;
        any = true;
        end = at + bytes;
      }
    bound.contiguous = true;
  }

  void combine(const PlanStep& step) {
    const auto dst = static_cast<Space>(step.dst_space), src = static_cast<Space>(step.src_space);
    std::size_t read = 0;  // bytes of the peers' publications so far
    for (std::uint32_t i = 0; i < step.count; ++i) {
      const std::size_t bytes = bytes_at(dst, step.dst + i);
      if (bytes == 0) continue;
      std::vector<std::size_t>& sources = scratch_;
      sources.clear();
      if (step.flags & PlanStep::accumulate) sources.push_back(offset(dst, step.dst + i));
      for (std::uint32_t k = 0; k < step.operands; ++k)
        sources.push_back(own(step, k) ? offset(src, step.src + k * step.src_stride + i) : read);
      add(0, bytes, offset(dst, step.dst + i), sources);
      read += bytes;
    }
  }

  void move(const PlanStep& step, std::uint32_t k) {
    const bool store = step.flags & PlanStep::store;
    const auto dst = static_cast<Space>(step.dst_space), src = static_cast<Space>(step.src_space);
    std::size_t read = 0;
    for (std::uint32_t i = 0; i < step.count; ++i) {
      const std::uint32_t to = step.dst + k * step.dst_stride + i,
                          from = step.src + k * step.src_stride + i;
      const std::size_t bytes = store ? bytes_at(dst, to) : bytes_at(src, from);
      if (bytes == 0) continue;
      if (!store && !is_read(step, k * step.count + i)) {  // nobody wants this chunk: leave a hole
        out_ += bytes;
        continue;
      }
      scratch_.assign(1, own(step, k) ? offset(src, from) : read);
      add(k, bytes, store ? offset(dst, to) : 0, scratch_);
      read += bytes;
    }
  }

  /// Whether a peer reads that chunk of what the step publishes.
  bool is_read(const PlanStep& step, std::uint32_t chunk) const {
    const std::vector<Reader>& readers = plan_.readers[step.publication];
    return std::any_of(readers.begin(), readers.end(), [&](const Reader& r) {
      return chunk >= r.offset && chunk < r.offset + r.count;
    });
  }

  /// Appends an extent, or lengthens the last one if everything goes on where it ends.
  void add(std::uint32_t operand, std::size_t bytes, std::size_t dst,
           const std::vector<std::size_t>& sources) {
    const std::size_t out = out_;
    out_ += bytes;
    if (into_.extents.size() > first_extent_) {
      Extent& last = into_.extents.back();
      bool follows =
          last.operand == operand && last.dst + last.bytes == dst && last.out + last.bytes == out;
      for (std::size_t k = 0; follows && k < sources.size(); ++k)
        follows = into_.sources[last.first_source + k] + last.bytes == sources[k];
      if (follows) {
        last.bytes += bytes;
        return;
      }
    }
    into_.extents.push_back(
        {operand, static_cast<std::uint32_t>(into_.sources.size()), bytes, dst, out});
    into_.sources.insert(into_.sources.end(), sources.begin(), sources.end());
  }

  const RoutedPlan& routed_;
  const Plan& plan_;
  const Geometry& geometry_;
  const Labels labels_;
  std::uint32_t tile_;
  BoundPlan& into_;
  std::size_t out_ = 0, first_extent_ = 0;
  std::vector<std::size_t> scratch_;
};

}  // namespace

void bind(const RoutedPlan& routed, const Geometry& geometry, Labels labels, std::uint32_t tile,
          BoundPlan& into) {
  Binder(routed, geometry, labels, tile, into).run();
}

namespace {

/// Chunks that a step publishes.
std::uint32_t chunks_published(const Step& step) {
  if (step.op != Op::send) return 0;
  return step.src.count *
         (step.src.stride == 0 ? 1U : static_cast<std::uint32_t>(step.peers.size()));
}

}  // namespace

Result<std::unique_ptr<RoutedPlan>> make_routed_plan(const Algorithm& algorithm, const Shape& shape,
                                                     Rank me,
                                                     const std::vector<Publications*>& route,
                                                     std::uint32_t slots) {
  std::uint32_t most_published = 0, most_together = 0;
  const auto build = [&](Rank rank) {
    Schedule schedule = algorithm.build(shape, rank);
    std::uint32_t all = 0;
    for (const Step& step : schedule.steps) {
      all += chunks_published(step);
      most_together = std::max(most_together, chunks_published(step));
    }
    most_published = std::max(most_published, all);
    return schedule;
  };
  ANYCCL_TRY(Plan plan, lower(build, shape.size, me, slots));
  auto routed = std::make_unique<RoutedPlan>(&algorithm, std::move(plan));
  routed->most_published = most_published;
  routed->most_together = most_together;
  for (const PlanStep& step : routed->plan.steps)
    routed->most_operands = std::max<std::uint32_t>(routed->most_operands, step.operands);
  for (const std::vector<Reader>& readers : routed->plan.readers) {
    std::vector<RoutedPlan::Route>& routes = routed->routes.emplace_back();
    for (const Reader& reader : readers) {
      Publications* const publications = route[reader.rank];
      const auto known =
          std::find_if(routes.begin(), routes.end(),
                       [&](const RoutedPlan::Route& r) { return r.publications == publications; });
      if (known == routes.end())
        routes.push_back({publications, {reader}});
      else
        known->readers.push_back(reader);
    }
    if (routes.size() > kMostRoutes)
      return error(Code::unsupported,
                   "rank {} reaches its peers over {} transports; {} are the most", index(me),
                   routes.size(), kMostRoutes);
  }
  return routed;
}

}  // namespace anyccl
