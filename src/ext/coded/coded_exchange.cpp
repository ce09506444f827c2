#include "ext/coded/coded_exchange.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {
namespace {

CodecVector part_of(const CodecVector& x, std::size_t first, std::size_t count) {
  return {static_cast<std::byte*>(x.data) + first * bytes_of(x.type), count, x.type};
}

Call bytes_call(Collective collective, const std::byte* input, std::byte* output,
                std::size_t bytes) {
  Call call;
  call.collective = collective;
  call.dtype = DType::u8;
  call.count = bytes;
  call.input = input;
  call.output = output;
  return call;
}

}  // namespace

CodedExchange::CodedExchange(CommPtr comm, Codec codec, const CodecKernels& kernels)
    : comm_(std::move(comm)), codec_(codec), kernels_(kernels) {}

void CodedExchange::Slots::resize(std::size_t ranks, std::size_t bytes_each) {
  bytes = bytes_each;
  const std::size_t lines = ranks * bytes_each / sizeof(Line);
  if (memory.size() < lines) memory.resize(lines);
}

std::vector<const std::byte*> CodedExchange::Slots::all(std::size_t ranks) {
  std::vector<const std::byte*> payloads;
  for (std::size_t r = 0; r < ranks; ++r) payloads.push_back((*this)[r]);
  return payloads;
}

std::size_t CodedExchange::chunk_elements(const Piece& piece) const {
  const std::size_t grains = (piece.count + kCodecGrain - 1) / kCodecGrain;
  return (grains + ranks() - 1) / ranks() * kCodecGrain;
}

CodedExchange::Chunk CodedExchange::chunk(const Piece& piece, std::size_t rank) const {
  const std::size_t each = chunk_elements(piece), first = std::min(rank * each, piece.count);
  return {piece.first + first, std::min(each, piece.count - first)};
}

void CodedExchange::begin(const CodecVector& x, const CodecVector& y, std::uint32_t divisor,
                          std::size_t piece_elements) {
  x_ = x, y_ = y, divisor_ = divisor, piece_elements_ = piece_elements;
}

/// All ranks come to the steps in this order, and so to the calls of the communicator.
Status CodedExchange::turn(std::size_t turn) {
  for (std::size_t number = 0; number <= lag(ranks()); ++number) {
    if (turn < number || turn - number >= pieces()) continue;
    Piece& piece = pieces_[(turn - number) % pieces_.size()];
    if (number == 0) {
      piece.first = turn * piece_elements_;
      piece.count = std::min(piece_elements_, x_.count - piece.first);
    }
    ANYCCL_CHECK(step(number, piece));
  }
  return {};
}

Status CodedExchange::step(std::size_t number, Piece& piece) {
  if (number > 0) ANYCCL_CHECK(comm_->wait(*piece.operation));
  if (ranks() == 2) return number == 0 ? send_all(piece) : decode_both(piece);
  if (number == 0) return send_chunks(piece);
  return number == 1 ? add_chunk(piece) : decode_sums(piece);
}

/// Begins to give this rank's slot to all.
Status CodedExchange::start_gather(Slots& slots, Piece& piece) {
  ANYCCL_TRY(piece.operation,
             comm_->issue(bytes_call(Collective::all_gather, slots[me()], slots[0], slots.bytes)));
  return {};
}

Status CodedExchange::send_all(Piece& piece) {
  piece.sums.resize(ranks(), payload_bytes(codec_, piece.count));
  encode(kernels_, codec_, part_of(x_, piece.first, piece.count), piece.sums[me()]);
  return start_gather(piece.sums, piece);
}

Status CodedExchange::decode_both(Piece& piece) {
  decode(kernels_, codec_, piece.sums.all(ranks()), part_of(y_, piece.first, piece.count),
         divisor_);
  return {};
}

Status CodedExchange::send_chunks(Piece& piece) {
  const std::size_t bytes = payload_bytes(codec_, chunk_elements(piece));
  for (Slots* slots : {&piece.sent, &piece.received, &piece.sums}) slots->resize(ranks(), bytes);
  for (std::size_t r = 0; r < ranks(); ++r) {
    const Chunk theirs = chunk(piece, r);
    encode(kernels_, codec_, part_of(x_, theirs.first, theirs.count), piece.sent[r]);
  }
  ANYCCL_TRY(piece.operation, comm_->issue(bytes_call(Collective::all_to_all, piece.sent[0],
                                                      piece.received[0], bytes)));
  return {};
}

/// Adds up the payloads of this rank's chunk, and starts to give their sum to all ranks.
Status CodedExchange::add_chunk(Piece& piece) {
  recode(kernels_, codec_, piece.received.all(ranks()), chunk(piece, me()).count, piece.sums[me()],
         divisor_);
  return start_gather(piece.sums, piece);
}

Status CodedExchange::decode_sums(Piece& piece) {
  for (std::size_t r = 0; r < ranks(); ++r) {
    const Chunk theirs = chunk(piece, r);
    const std::byte* const payload[] = {piece.sums[r]};
    decode(kernels_, codec_, payload, part_of(y_, theirs.first, theirs.count));
  }
  return {};
}

}  // namespace anyccl
