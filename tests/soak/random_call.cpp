#include "soak/random_call.hpp"

#include <algorithm>
#include <cmath>

namespace anyccl::soak {
namespace {

constexpr Collective kCollectives[] = {Collective::all_reduce,
                                       Collective::broadcast,
                                       Collective::all_to_all_v,
                                       Collective::barrier,
                                       Collective::send,
                                       Collective::reduce,
                                       Collective::reduce_scatter,
                                       Collective::all_gather,
                                       Collective::gather,
                                       Collective::scatter,
                                       Collective::all_to_all,
                                       Collective::all_gather_v,
                                       Collective::reduce_scatter_v,
                                       Collective::gather_v,
                                       Collective::scatter_v,
                                       Collective::scan,
                                       Collective::exscan};
constexpr const char* kNames[] = {
    "all_reduce",   "broadcast",        "all_to_all_v", "barrier",   "send",    "recv",
    "reduce",       "reduce_scatter",   "all_gather",   "gather",    "scatter", "all_to_all",
    "all_gather_v", "reduce_scatter_v", "gather_v",     "scatter_v", "scan",    "exscan"};

bool is_reduction(Collective c) {
  return c == Collective::all_reduce || c == Collective::reduce || c == Collective::scan ||
         c == Collective::exscan || c == Collective::reduce_scatter ||
         c == Collective::reduce_scatter_v;
}
bool is_prefix(Collective c) {
  return c == Collective::scan || c == Collective::exscan;
}
bool is_v_form(Collective c) {
  return c == Collective::all_gather_v || c == Collective::reduce_scatter_v ||
         c == Collective::gather_v || c == Collective::scatter_v;
}

/// Small numbers as often as large ones; 0 now and then.
std::size_t draw_count(Random& random, std::size_t largest) {
  if (below(random, 16) == 0) return 0;
  const double share = static_cast<double>(below(random, 1000)) / 1000;
  return static_cast<std::size_t>(std::pow(static_cast<double>(largest), share));
}

/// Where blocks lie: in rank order or backwards, with gaps.
struct Blocks {
  Blocks(std::vector<std::size_t> sizes, std::uint64_t seed)
      : counts(std::move(sizes)), displs(counts.size()) {
    const std::size_t n = counts.size();
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t block = seed % 2 == 0 ? i : n - 1 - i;
      displs[block] = end;
      end += counts[block] + mix(seed + i) % 3;
    }
  }
  Piece piece(int block, std::size_t base) const {
    return {base + displs[static_cast<std::size_t>(block)],
            counts[static_cast<std::size_t>(block)]};
  }
  std::vector<std::size_t> counts, displs;
  std::size_t end = 0;
};

/// Builds the layout of one rank.
class LayoutBuilder {
 public:
  LayoutBuilder(const RandomCall& call, int me)
      : call_(call),
        me_(me),
        n_(call.elements.ranks),
        c_(call.count),
        seed_(mix(call.elements.seed + static_cast<std::uint64_t>(me))),
        in_place_(seed_ % 3 == 0),
        gap_((seed_ >> 8) % 4),
        root_(me == call.root) {}

  CallLayout build() {
    switch (call_.collective) {
      case Collective::barrier:
        break;
      case Collective::send:
        message();
        break;
      case Collective::reduce_scatter:
      case Collective::reduce_scatter_v:
        blocks_to_vector(true);
        break;
      case Collective::scatter:
      case Collective::scatter_v:
        blocks_to_vector(root_);
        break;
      case Collective::all_gather:
      case Collective::all_gather_v:
        vector_to_blocks(true);
        break;
      case Collective::gather:
      case Collective::gather_v:
        vector_to_blocks(root_);
        break;
      case Collective::all_to_all:
        all_to_all();
        break;
      case Collective::all_to_all_v:
        all_to_all_v();
        break;
      default:
        vectors();
    }
    layout_.elements += gap_;
    return std::move(layout_);
  }

 private:
  std::size_t mine() const {
    return is_v_form(call_.collective) ? call_.counts[static_cast<std::size_t>(me_)] : c_;
  }
  Blocks blocks() const {
    if (is_v_form(call_.collective)) return {call_.counts, seed_ >> 16};
    Blocks equal(std::vector<std::size_t>(static_cast<std::size_t>(n_), c_), 0);
    for (std::size_t r = 0; r < equal.displs.size(); ++r) equal.displs[r] = r * c_;
    equal.end = static_cast<std::size_t>(n_) * c_;
    return equal;
  }
  void send_at(std::size_t at, std::size_t count) {
    layout_.sends = true;
    layout_.in = at;
    layout_.elements = std::max(layout_.elements, at + count);
  }
  void receive_at(std::size_t at, std::size_t count) {
    layout_.receives = true;
    layout_.out = at;
    layout_.elements = std::max(layout_.elements, at + count);
  }
  void give(Piece where, int block) {
    where.first = where.last = me_;
    where.block = block;
    layout_.given.push_back(where);
  }
  void want(Piece where, int first, int last, int block) {
    where.first = first;
    where.last = last;
    where.block = block;
    layout_.wanted.push_back(where);
  }

  void message() {
    layout_.takes_part = root_ || me_ == call_.to;
    if (root_) {
      send_at(gap_, c_);
      give({gap_, c_}, 0);
    } else if (layout_.takes_part) {
      receive_at(gap_, c_);
      want({gap_, c_}, call_.root, call_.root, 0);
    }
  }

  /// One vector in, one out.
  void vectors() {
    const bool everywhere = call_.collective != Collective::broadcast;
    send_at(0, c_);
    receive_at(in_place_ ? 0 : c_ + gap_, c_);
    if (everywhere || root_) give({0, c_}, 0);
    const Piece out{layout_.out, c_};
    if (call_.collective == Collective::broadcast) return want(out, call_.root, call_.root, 0);
    if (call_.collective == Collective::reduce && !root_) return;
    const int last = call_.collective == Collective::scan     ? me_
                     : call_.collective == Collective::exscan ? me_ - 1
                                                              : n_ - 1;
    if (last >= 0) want(out, 0, last, 0);
  }

  /// A vector of one block per rank in, where `sends`; one block out.
  void blocks_to_vector(bool sends) {
    const bool reduces = call_.elements.reduces;
    if (sends) {
      const Blocks in = blocks();
      send_at(0, in.end);
      for (int b = 0; b < n_; ++b) give(in.piece(b, 0), b);
      if (is_v_form(call_.collective)) layout_.sent = in.counts, layout_.sent_at = in.displs;
    }
    const bool inside = in_place_ && sends;
    receive_at(inside ? blocks().piece(me_, 0).at : layout_.elements + gap_, mine());
    want({layout_.out, mine()}, reduces ? 0 : call_.root, reduces ? n_ - 1 : call_.root, me_);
  }

  /// One block in; a vector of one per rank out, where `receives`.
  void vector_to_blocks(bool receives) {
    if (receives) {
      const Blocks out = blocks();
      receive_at(0, out.end);
      for (int r = 0; r < n_; ++r) want(out.piece(r, 0), r, r, 0);
      if (is_v_form(call_.collective))
        layout_.received = out.counts, layout_.received_at = out.displs;
    }
    const bool inside = in_place_ && receives;
    send_at(inside ? blocks().piece(me_, 0).at : layout_.elements + gap_, mine());
    give({layout_.in, mine()}, 0);
  }

  void all_to_all() {
    const Blocks both = blocks();
    send_at(0, both.end);
    receive_at(in_place_ ? 0 : both.end + gap_, both.end);
    for (int r = 0; r < n_; ++r) {
      give(both.piece(r, 0), r);
      want(both.piece(r, layout_.out), r, r, me_);
    }
  }

  void all_to_all_v() {
    std::vector<std::size_t> to, from;
    for (int r = 0; r < n_; ++r) {
      to.push_back(call_.counts[static_cast<std::size_t>(me_ * n_ + r)]);
      from.push_back(call_.counts[static_cast<std::size_t>(r * n_ + me_)]);
    }
    const Blocks in(to, seed_ >> 16), out(from, seed_ >> 17);
    send_at(0, in.end);
    receive_at(in.end + gap_ + 1, out.end);  // also where both are empty
    for (int r = 0; r < n_; ++r) {
      give(in.piece(r, 0), r);
      want(out.piece(r, layout_.out), r, r, me_);
    }
    layout_.sent = in.counts, layout_.sent_at = in.displs;
    layout_.received = out.counts, layout_.received_at = out.displs;
  }

  const RandomCall& call_;
  const int me_, n_;
  const std::size_t c_;
  const std::uint64_t seed_;
  const bool in_place_;
  const std::size_t gap_;
  const bool root_;
  CallLayout layout_;
};

}  // namespace

RandomCall RandomCall::draw(Random& random, int ranks, std::size_t largest, int tag) {
  RandomCall call;
  do call.collective = kCollectives[below(random, std::size(kCollectives))];
  while (call.collective == Collective::send && ranks == 1);
  Elements& e = call.elements;
  e.seed = random();
  e.ranks = ranks;
  e.reduces = is_reduction(call.collective);
  do {
    e.dtype = static_cast<DType>(below(random, 17));
    e.op = static_cast<ReduceOp>(below(random, 11));
  } while (e.reduces &&
           (!is_defined(e.op, e.dtype) || (e.op == ReduceOp::avg && is_prefix(call.collective))));
  const auto n = static_cast<std::size_t>(ranks);
  if (call.collective != Collective::barrier) call.count = draw_count(random, largest);
  if (is_v_form(call.collective))
    for (std::size_t r = 0; r < n; ++r) call.counts.push_back(draw_count(random, largest));
  if (call.collective == Collective::all_to_all_v)
    for (std::size_t r = 0; r < n * n; ++r) call.counts.push_back(draw_count(random, largest / n));
  call.root = static_cast<int>(below(random, n));
  if (ranks > 1)
    call.to =
        static_cast<int>((static_cast<std::size_t>(call.root) + 1 + below(random, n - 1)) % n);
  call.tag = tag;
  call.config = static_cast<int>(below(random, 64));
  return call;
}

std::string RandomCall::text() const {
  std::string text = kNames[static_cast<std::size_t>(collective)];
  text += " of " + std::to_string(count) + " elements of type " +
          std::to_string(static_cast<int>(elements.dtype));
  if (elements.reduces) text += ", operator " + std::to_string(static_cast<int>(elements.op));
  text += ", root or sender " + std::to_string(root) + ", of " + std::to_string(elements.ranks) +
          " ranks";
  return text;
}

CallLayout layout_of(const RandomCall& call, int me) {
  return LayoutBuilder(call, me).build();
}

}  // namespace anyccl::soak
