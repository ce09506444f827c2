#pragma once
// Sums over ranks whose vectors travel as payloads of a codec.

#include <array>
#include <memory>
#include <vector>

#include "platform/reduce/codec.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {

/// Over the ranks of one communicator. Two of them send each other their vectors, and both decode
/// both. More have a chunk each: they send the chunks of others to these, add up their own, and
/// send the sum to all, which decode it, its owner too. So all have the same bits, an element is
/// encoded once or twice, and what it becomes depends on its block alone, not on the length of the
/// vector. Long vectors go in pieces: one is encoded while another one is under way.
///
/// Threads: one at a time.
class CodedExchange {
 public:
  CodedExchange(CommPtr comm, Codec codec, const CodecKernels& kernels);
  /// y = the sum of `x` over all ranks, divided by `divisor`, in pieces of so many elements, a
  /// multiple of kCodecGrain. `y` may be `x`.
  void begin(const CodecVector& x, const CodecVector& y, std::uint32_t divisor,
             std::size_t piece_elements);
  std::size_t pieces() const { return (x_.count + piece_elements_ - 1) / piece_elements_; }
  /// In turn t, from 0 on, piece t of `x` is sent, and piece t - lag(ranks) of `y` is complete.
  /// Errors: failures on the way.
  Status turn(std::size_t number);
  static std::size_t lag(std::size_t ranks) { return ranks == 2 ? 1 : 2; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  /// Payloads of equal length, one for each rank.
  struct Slots {
    void resize(std::size_t ranks, std::size_t bytes_each);
    std::byte* operator[](std::size_t rank) {
      return reinterpret_cast<std::byte*>(memory.data()) + rank * bytes;
    }
    std::vector<const std::byte*> all(std::size_t ranks);
    std::size_t bytes = 0;
    std::vector<Line> memory;
  };
  /// A part of the vector that is under way.
  struct Piece {
    std::size_t first = 0, count = 0;
    Slots sent, received, sums;
    std::shared_ptr<Operation> operation;
  };
  /// The share of a rank of a piece.
  struct Chunk {
    std::size_t first, count;
  };

  std::size_t ranks() const { return static_cast<std::size_t>(comm_->size()); }
  std::size_t me() const { return uindex(comm_->rank()); }
  std::size_t chunk_elements(const Piece& piece) const;
  Chunk chunk(const Piece& piece, std::size_t rank) const;
  /// Waits for what the step before has issued, then does step `number` of the piece.
  Status step(std::size_t number, Piece& piece);
  Status send_all(Piece& piece);
  /// Writes the sum of both payloads, divided, to `y`.
  Status decode_both(Piece& piece);
  Status send_chunks(Piece& piece);
  Status add_chunk(Piece& piece);
  Status decode_sums(Piece& piece);
  Status start_gather(Slots& slots, Piece& piece);

  const CommPtr comm_;
  const Codec codec_;
  const CodecKernels& kernels_;
  std::array<Piece, 3> pieces_;
  CodecVector x_, y_;
  std::uint32_t divisor_ = 1;
  std::size_t piece_elements_ = 1;
};

}  // namespace anyccl
