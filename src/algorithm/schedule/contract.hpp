#pragma once
// The contract of a collective says what each chunk of each rank means, and a Shape what a call is
// for an algorithm. Builders, checks, lowering and the executor all go by them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "anyccl/types.hpp"

namespace anyccl {

/// The request as an algorithm sees it: no buffers, no bytes.
struct Shape {
  Collective collective = Collective::all_reduce;
  int size = 1;
  Rank root{0};
  /// Input and output of *this* rank are one memory. Ranks may differ in it, so nothing that a peer
  /// sees (messages, their order, their chunks) may depend on it.
  bool in_place = false;
  /// Host of each rank or, on one host, what it has near it, like a cache; empty: all the same.
  std::vector<int> host_of = {};
  /// False: Step::after stays empty. Deriving it takes time and memory for every chunk, which
  /// whoever follows the order of the steps, on many ranks, need not spend.
  bool with_dependencies = true;
};

enum class Space : std::uint8_t { input, output, scratch };

/// Number of a chunk in the collective's own vector: of blocks, block *
/// chunks_per_block + i; of all_to_all and all_to_all_v, (from * n + to) * chunks_per_block + i.
/// Bytes are bound to origins at launch, by one table per side.
using Origin = std::uint32_t;

/// How the contributions of several ranks become one chunk.
enum class Combine : std::uint8_t {
  none,     ///< A chunk comes from one rank.
  sum,      ///< Each rank that is in it is in it exactly once.
  gathers,  ///< Once or more: the order and the number do not matter.
};

/// Which ranks are in a result that combines.
enum class Summands : std::uint8_t {
  all,
  up_to,   ///< The rank that gets it, and the ranks before it.
  before,  ///< The ranks before it.
};

/// The meaning of the collective: which origin each chunk of a rank is and who must be in it. The
/// one definition that builder, checker, lowering and byte binding read.
class Contract {
 public:
  /// `shape.collective` is one that is scheduled (see is_scheduled), `chunks_per_block` > 0 the
  /// chunks per block, or of the whole vector where the collective has no blocks.
  Contract(const Shape& shape, std::uint32_t chunks_per_block);
  const Shape& shape() const { return shape_; }
  std::uint32_t chunks_per_block() const { return chunks_per_block_; }

  std::uint32_t chunks(Rank r, Space side) const;                ///< Input or output.
  Origin origin(Rank r, Space side, std::uint32_t chunk) const;  ///< chunk < chunks(r, side).
  /// Where a chunk lies when input and output are one memory: equal places are one chunk.
  std::uint32_t place(Rank r, Space side, std::uint32_t chunk) const;
  std::uint32_t origins() const;  ///< They are 0..origins()-1.
  Combine combine() const;
  /// Whether the contribution of `from` is in the result of rank `r`, if combine() is not none.
  bool combines(Rank r, Rank from) const;
  /// Whether chunks of one origin are the same result on all ranks that have them.
  bool same_everywhere() const;
  Rank contributor(Origin origin) const;  ///< Where an origin comes from, if combine() is none.
  bool has_bytes() const;                 ///< False: chunks have zero bytes.
  /// False: a v-form, whose blocks differ in size. It has one chunk per block.
  bool equal_blocks() const;
  /// Some ranks do not know the size of some blocks.
  bool private_sizes() const;
  bool knows_size(Rank r, Origin origin) const;
  /// A block for each pair of ranks, instead of one for each rank.
  bool pairs() const;
  /// Origins of equal class have equally many bytes whatever is bound. The classes of a vector's
  /// chunks differ, because its last chunks may be shorter.
  std::uint32_t size_class(Origin origin) const;
  /// Every rank's result depends on every rank's input.
  bool everyone() const;

 private:
  Shape shape_;
  std::uint32_t chunks_per_block_, n_;
};

/// Whether there are algorithms for it: all but send and recv.
bool is_scheduled(Collective collective);
/// Whether Shape::root means something.
bool is_rooted(Collective collective);
/// Whether elements of several ranks are combined by an operator.
bool reduces(Collective collective);
/// Whether each rank's result is of the ranks before it, with or without itself.
bool is_prefix(Collective collective);
/// How many blocks of the call's count of elements a rank's input or output has; 0 if none is used.
std::uint32_t blocks_held(Collective collective, int size, bool at_root, Space side);
/// Whether a rank's input or output is several blocks that differ in size.
bool has_blocks_apart(Collective collective, bool at_root, Space side);
bool has_equal_blocks(Collective collective);
/// A v-form of which every rank knows all sizes.
bool has_known_sizes(Collective collective);
std::string_view name(Collective collective);
/// The v-form of a collective that has blocks: with blocks of different sizes.
Collective v_form(Collective collective);

}  // namespace anyccl
