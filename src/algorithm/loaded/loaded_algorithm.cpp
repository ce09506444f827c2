#include "algorithm/loaded/loaded_algorithm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "algorithm/verify/check.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/per_process.hpp"

namespace anyccl {
namespace {

/// The numbers of ranks that there are, for people.
std::string needs_of(const WrittenAlgorithm& text, const std::string& file) {
  std::vector<std::string> sizes;
  for (const WrittenSize& size : text.sizes)
    sizes.push_back(size.host_of.empty()
                        ? std::to_string(size.ranks)
                        : fmt::format("{} (hosts {})", size.ranks, fmt::join(size.host_of, " ")));
  std::string last = std::move(sizes.back());
  sizes.pop_back();
  return fmt::format("{}{}{} ranks, for which {} has it", fmt::join(sizes, ", "),
                     sizes.empty() ? "" : " or ", last, file);
}

/// A program for root 0, as it is for another one.
class Turned {
 public:
  Turned(const Contract& contract, Rank me)
      : contract_(contract),
        n_(contract.shape().size),
        by_(index(contract.shape().root)),
        me_(me) {}

  /// The rank that does in the text what this one does.
  Rank written() const { return wrap(index(me_) - by_, n_); }
  PeerList peers(const PeerList& written) const {
    PeerList turned = written;
    if (by_ != 0)
      for (Rank& peer : turned) peer = wrap(index(peer) + by_, n_);
    return turned;
  }
  Origin origin(Origin written) const {
    return has_blocks(contract_.origins()) ? (written + offset()) % contract_.origins() : written;
  }
  Slice slice(Slice written) const {
    if (written.space != Space::scratch && has_blocks(contract_.chunks(me_, written.space)))
      written.first += offset();
    return written;
  }

 private:
  std::uint32_t offset() const {
    return static_cast<std::uint32_t>(by_) * contract_.chunks_per_block();
  }
  bool has_blocks(std::uint32_t chunks) const { return chunks > contract_.chunks_per_block(); }

  const Contract& contract_;
  const int n_, by_;
  const Rank me_;
};

/// The input's place in scratch memory, where a call in place has copied it. Slices of the input
/// may go beyond its end, those of scratch memory may not, so the copy goes on with the input's
/// begin.
class CopiedInput {
 public:
  /// `already`: scratch chunks that the program has.
  CopiedInput(const WrittenRank& rank, const Turned& turned, std::uint32_t already)
      : begin_(already) {
    for (const Step& step : rank.steps) {
      if (step.src.space != Space::input) continue;
      const Slice slice = turned.slice(step.src);
      const auto pieces = static_cast<std::uint32_t>(step.peers.size());
      end_ = std::max(end_, slice.first + (pieces - 1) * slice.stride + slice.count);
    }
  }

  void make(Builder& b, const Contract& contract, Rank me) const {
    const std::uint32_t room = contract.chunks(me, Space::input);
    for (std::uint32_t at = 0; at < end_; ++at)
      b.scratch(contract.origin(me, Space::input, at % room));
    for (std::uint32_t at = 0; at < end_; at += room) {
      const std::uint32_t count = std::min(room, end_ - at);
      b.copy({Space::input, 0, count}, {Space::scratch, begin_ + at, count});
    }
  }
  Slice slice(Slice written) const {
    if (written.space != Space::input) return written;
    return {Space::scratch, begin_ + written.first, written.count, written.stride};
  }

 private:
  std::uint32_t begin_, end_ = 0;
};

void replay_step(Builder& b, const Step& step, PeerList peers, Slice src, Slice dst) {
  switch (step.op) {
    case Op::copy:
      b.copy(src, dst);
      break;
    case Op::reduce:
      b.reduce(src, dst);
      break;
    case Op::send:
      b.send(std::move(peers), src);
      break;
    case Op::recv:
      b.recv(std::move(peers), dst, src);
      break;
    case Op::recv_reduce:
      b.recv_reduce(std::move(peers), src, dst);
      break;
  }
}

}  // namespace

/// Each process has its own: a child that is forked while another thread checks has none yet.
struct LoadedAlgorithm::Proofs {
  std::mutex mutex;
  std::map<const WrittenSize*, Proof> by_size;
};

LoadedAlgorithm::LoadedAlgorithm(WrittenAlgorithm text, std::string file)
    : text_(std::move(text)),
      file_(std::move(file)),
      needs_(needs_of(text_, file_)),
      hash_(hash_of(to_text(text_, true))),
      algorithm_{.name = text_.name,
                 .collective = text_.collective,
                 .supports = {this,
                              [](const void* me, const Shape& shape) {
                                return static_cast<const LoadedAlgorithm*>(me)->supports(shape);
                              }},
                 .cost = nullptr,
                 .build = {this,
                           [](const void* me, const Shape& shape, Rank rank) {
                             return static_cast<const LoadedAlgorithm*>(me)->build(shape, rank);
                           }},
                 .order = {this,
                           [](const void* me, const Shape& shape) {
                             return static_cast<const LoadedAlgorithm*>(me)->order(shape);
                           }},
                 .needs = needs_,
                 .loaded = this} {}

const WrittenSize* LoadedAlgorithm::find(const Shape& shape) const {
  if (shape.collective != text_.collective) return nullptr;
  const WrittenSize* any_hosts = nullptr;
  for (const WrittenSize& size : text_.sizes) {
    if (size.ranks != shape.size) continue;
    if (size.host_of.empty()) {
      any_hosts = &size;
    } else if (size.host_of == renumber_hosts(shape.host_of, shape.size)) {
      const bool turns = is_rooted(shape.collective) && shape.root != Rank{0};
      if (!turns) return &size;  // turned, its hosts would be others
    }
  }
  return any_hosts;
}

Schedule LoadedAlgorithm::build(const Shape& shape, Rank me) const {
  const WrittenSize& size = *find(shape);
  return replay(size, shape, me, shape.in_place && proof_of(size).copies_input);
}

Schedule LoadedAlgorithm::replay(const WrittenSize& size, const Shape& shape, Rank me,
                                 bool copies_input) const {
  const Contract contract(shape, size.chunks_per_block);
  const Turned turned(contract, me);
  const WrittenRank& rank = size.each[uindex(turned.written())];
  Builder b(shape, me, size.chunks_per_block);
  for (const Origin origin : rank.scratch) b.scratch(turned.origin(origin));
  const CopiedInput copied(rank, turned, static_cast<std::uint32_t>(rank.scratch.size()));
  if (copies_input) copied.make(b, contract, me);
  for (std::size_t i = 0; i < rank.steps.size(); ++i) {
    const Step& step = rank.steps[i];
    const Slice src = turned.slice(step.src);
    b.set_place(i < rank.places.size() ? rank.places[i] : "");
    replay_step(b, step, turned.peers(step.peers), copies_input ? copied.slice(src) : src,
                turned.slice(step.dst));
  }
  return std::move(b).finish();
}

Order LoadedAlgorithm::order(const Shape& shape) const {
  const bool turned = is_rooted(shape.collective) && shape.root != Rank{0};
  return turned ? Order::position : proof_of(*find(shape)).order;
}

LoadedAlgorithm::~LoadedAlgorithm() {
  Proofs& proofs = per_process<Proofs>();
  const std::lock_guard lock(proofs.mutex);
  for (const WrittenSize& size : text_.sizes) proofs.by_size.erase(&size);
}

LoadedAlgorithm::Proof LoadedAlgorithm::make_proof(const WrittenSize& size) const {
  struct Variant {
    const LoadedAlgorithm& loaded;
    const WrittenSize& size;
    bool copies_input;
  };
  const Shape shape{text_.collective, size.ranks, Rank{0}, false, size.host_of};
  Proof first;
  for (const bool copies_input : {false, true}) {
    const Variant variant{*this, size, copies_input};
    Algorithm algorithm = algorithm_;
    algorithm.order = by_position;  // which promises nothing
    algorithm.build = {&variant, [](const void* data, const Shape& s, Rank me) {
                         const auto& v = *static_cast<const Variant*>(data);
                         return v.loaded.replay(v.size, s, me, v.copies_input && s.in_place);
                       }};
    const auto checked = verify::check_shapes(algorithm, {&shape, 1});
    if (checked.ok())
      return {.slots = checked->sizes[0].slots,
              .copies_input = copies_input,
              .order = checked->sizes[0].order};
    if (!copies_input) first.status = checked.status();
  }
  const Code code =
      first.status.code() == Code::unsupported ? Code::unsupported : Code::invalid_argument;
  first.status = error(code, "{}: {}", file_, first.status.message());
  return first;
}

LoadedAlgorithm::Proof LoadedAlgorithm::proof_of(const WrittenSize& size) const {
  Proofs& proofs = per_process<Proofs>();
  const std::lock_guard lock(proofs.mutex);  // while it is made: ranks may be threads
  const auto known = proofs.by_size.find(&size);
  if (known != proofs.by_size.end()) return known->second;
  return proofs.by_size.emplace(&size, make_proof(size)).first->second;
}

Status LoadedAlgorithm::check(const Shape& shape, std::uint32_t slots) const {
  const WrittenSize* const size = find(shape);
  if (size == nullptr)
    return error(Code::unsupported, "{} does not support {} ranks: it needs {}", id(algorithm_),
                 shape.size, needs_);
  const Proof proof = proof_of(*size);
  ANYCCL_CHECK(proof.status);
  if (proof.slots <= slots) return {};
  return error(Code::unsupported,
               "{}: {} needs {} slots and a communicator of {} ranks has {}: send fewer, larger "
               "messages or receive earlier",
               file_, id(algorithm_), proof.slots, shape.size, slots);
}

}  // namespace anyccl
