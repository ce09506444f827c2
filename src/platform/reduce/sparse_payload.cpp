// The large elements of a vector as bytes: a header, then blocks of 65,536 elements, each in the
// container that takes least: places, a bitmap, or all values. The containers are those of Roaring
// bitmaps (Chambi, Lemire, Kaser and Godin, "Better bitmap performance with Roaring bitmaps",
// Software: Practice and Experience 46(5), 2016), without runs. Which one it is follows from the
// numbers of entries and elements.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "platform/reduce/sparse.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kMostElements = std::size_t{1} << 46;

/// The first bytes of a payload.
struct Header {
  std::array<char, 3> name;
  std::uint8_t values;  // a DType
  std::uint64_t count;
  static constexpr std::array<char, 3> kName = {'a', 'S', 1};
  static constexpr std::size_t kBytes = 12;
};
constexpr std::size_t kBlockHeader = sizeof(std::uint32_t);  // the entries of a block

/// How the values travel.
struct Values {
  std::size_t kernel;  // of SparseKernels
  std::size_t bytes;
};
Result<Values> values_of(DType type) {
  if (type == DType::f32) return Values{0, 4};
  if (type == DType::bf16) return Values{1, 2};
  if (type == DType::f16) return Values{2, 2};
  return error(Code::unsupported,
               "values of datatype {}: they travel as float32, bfloat16 or float16",
               static_cast<int>(type));
}

enum class Container { places, bitmap, all };

/// A block of `count` elements of which `entries` travel.
struct Block {
  Block(std::size_t elements, std::size_t taken, std::size_t value)
      : count(elements), entries(taken), value_bytes(value) {
    if (entries * sizeof(std::uint16_t) <= bitmap_bytes())
      container = Container::places;
    else if (bitmap_bytes() + entries * value_bytes < count * value_bytes)
      container = Container::bitmap;
    else
      container = Container::all;
  }
  std::size_t bitmap_bytes() const { return (count + 7) / 8; }
  /// In front of the values.
  std::size_t index_bytes() const {
    if (container == Container::places) return entries * sizeof(std::uint16_t);
    return container == Container::bitmap ? bitmap_bytes() : 0;
  }
  std::size_t bytes() const {
    return index_bytes() + (container == Container::all ? count : entries) * value_bytes;
  }
  std::size_t words() const { return (count + kWordBits - 1) / kWordBits; }

  std::size_t count, entries, value_bytes;
  Container container;
};

void mark(SparseMarks& marks, std::size_t i) {
  marks[i / kWordBits] |= std::uint64_t{1} << (i % kWordBits);
}
bool is_marked(const SparseMarks& marks, std::size_t i) {
  return (marks[i / kWordBits] >> (i % kWordBits) & 1) != 0;
}

// --- out of a vector ----------------------------------------------------------------------------

/// Marks what a cut takes, block after block.
class Taker {
 public:
  Taker(const SparseKernels& kernels, const anycclSparseCut_t& cut)
      : kernels_(kernels), cut_(cut), ties_(cut.ties) {}

  std::size_t mark_block(SparseMarks& marks, const float* x, std::size_t count) {
    std::size_t found = kernels_.mark(marks, x, count, cut_.least);
    for (std::size_t i = 0; found != 0 && i < count; i += kWordBits)
      for (std::uint64_t word = marks[i / kWordBits]; word != 0; word &= word - 1) {
        const std::uint64_t lowest = word & (~word + 1);
        if (!is_tie(x, i + static_cast<std::size_t>(std::countr_zero(word)))) continue;
        if (ties_ > 0) {
          --ties_;
        } else {
          marks[i / kWordBits] &= ~lowest;
          --found;
        }
      }
    return found;
  }

 private:
  bool is_tie(const float* x, std::size_t i) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(x) + i * sizeof bits, sizeof bits);
    return (bits & 0x7fffffff) == cut_.least;
  }

  const SparseKernels& kernels_;
  const anycclSparseCut_t& cut_;
  std::size_t ties_;
};

/// Writes the place of each marked element in the block, 16 bits each.
void write_places(std::byte* to, const SparseMarks& marks, std::size_t words) {
  for (std::size_t i = 0; i < words; ++i)
    for (std::uint64_t word = marks[i]; word != 0; word &= word - 1) {
      const auto place = static_cast<std::uint16_t>(
          i * kWordBits + static_cast<std::size_t>(std::countr_zero(word)));
      std::memcpy(to, &place, sizeof place);
      to += sizeof place;
    }
}

/// Moves the values of the entries, which lie at the front, to their places, from the end on, and
/// puts -0 between them: added to any number it changes nothing, not even the sign of a zero.
void spread(std::byte* values, const SparseMarks& marks, const Block& block) {
  std::array<std::byte, sizeof(float)> negative_zero{};
  negative_zero[block.value_bytes - 1] = std::byte{0x80};
  std::size_t left = block.entries;
  for (std::size_t i = block.count; i-- > 0;) {
    std::byte* const to = values + i * block.value_bytes;
    if (is_marked(marks, i))
      std::memmove(to, values + --left * block.value_bytes, block.value_bytes);
    else
      std::memcpy(to, negative_zero.data(), block.value_bytes);
  }
}

// --- into a vector ------------------------------------------------------------------------------

/// The blocks of a payload that a peer may have written.
class Reader {
 public:
  static Result<Reader> open(std::span<const std::byte> payload, std::size_t count) {
    Header header{};
    if (payload.size() < Header::kBytes)
      return error(Code::invalid_argument, "a sparse payload of {} bytes has no header",
                   payload.size());
    std::memcpy(header.name.data(), payload.data(), 3);
    std::memcpy(&header.values, payload.data() + 3, 1);
    std::memcpy(&header.count, payload.data() + 4, sizeof header.count);
    const Result<Values> values = values_of(static_cast<DType>(header.values));
    if (header.name != Header::kName || !values.ok())
      return error(Code::invalid_argument,
                   "these {} bytes are no sparse payload, or one of another version of anyccl",
                   payload.size());
    if (header.count != count)
      return error(Code::invalid_argument,
                   "the sparse payload is of {} elements, and the vector has {}", header.count,
                   count);
    return Reader(payload.subspan(Header::kBytes), count, *values);
  }

  bool at_end() const { return first_ == count_; }
  std::size_t first() const { return first_; }
  const Values& values() const { return values_; }

  /// The next block; `marks` become its entries. Errors: invalid_argument if it is malformed.
  Result<Block> next(SparseMarks& marks, const std::byte*& values) {
    const std::size_t count = SparseVector{nullptr, count_}.block(first_);
    std::uint32_t entries = 0;
    if (left_.size() < kBlockHeader) return wrong("ends before it");
    std::memcpy(&entries, left_.data(), sizeof entries);
    if (entries > count) return wrong("has more entries than elements");
    const Block block(count, entries, values_.bytes);
    left_ = left_.subspan(kBlockHeader);
    if (left_.size() < block.bytes()) return wrong("is cut off");
    if (!read_index(block, marks)) return wrong("has places out of order or beyond its end");
    values = left_.data() + block.index_bytes();
    left_ = left_.subspan(block.bytes());
    first_ += count;
    return block;
  }

 private:
  Reader(std::span<const std::byte> blocks, std::size_t count, Values values)
      : left_(blocks), count_(count), values_(values) {}

  bool read_index(const Block& block, SparseMarks& marks) const {
    std::fill_n(marks, block.words(), block.container == Container::all ? ~std::uint64_t{0} : 0);
    const std::size_t beyond = block.words() * kWordBits - block.count;
    const std::uint64_t last = beyond == 0 ? ~std::uint64_t{0} : ~std::uint64_t{0} >> beyond;
    if (block.container == Container::all) {
      marks[block.words() - 1] = last;
      return true;
    }
    if (block.container == Container::bitmap) {
      std::memcpy(marks, left_.data(), block.bitmap_bytes());
      std::size_t found = 0;
      for (std::size_t i = 0; i < block.words(); ++i)
        found += static_cast<std::size_t>(std::popcount(marks[i]));
      return found == block.entries && (marks[block.words() - 1] & ~last) == 0;
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < block.entries; ++i) {
      std::uint16_t place = 0;
      std::memcpy(&place, left_.data() + i * sizeof place, sizeof place);
      if (place < next || place >= block.count) return false;
      mark(marks, place);
      next = std::size_t{place} + 1;
    }
    return true;
  }

  Status wrong(const char* what) const {
    return error(Code::invalid_argument, "block {} of the sparse payload {}", first_ / kSparseBlock,
                 what);
  }

  std::span<const std::byte> left_;
  std::size_t count_, first_ = 0;
  Values values_;
};

}  // namespace

Result<std::size_t> sparse_bound(std::size_t count, std::size_t entries, DType values) {
  ANYCCL_TRY(const Values value, values_of(values));
  if (count > kMostElements)
    return error(Code::invalid_argument, "a sparse vector of {} elements is larger than any memory",
                 count);
  if (entries > count)
    return error(Code::invalid_argument, "{} entries of {} elements", entries, count);
  const std::size_t blocks = (count + kSparseBlock - 1) / kSparseBlock;
  const std::size_t listed = entries * (sizeof(std::uint16_t) + value.bytes);
  return Header::kBytes + blocks * kBlockHeader + std::min(listed, count * value.bytes);
}

Result<std::size_t> sparse_pack(const SparseKernels& kernels, SparseVector residual,
                                float* momentum, const anycclSparseCut_t& cut, DType values,
                                std::span<std::byte> payload) {
  ANYCCL_TRY(const Values value, values_of(values));
  ANYCCL_TRY(const std::size_t bound, sparse_bound(residual.count, cut.entries, values));
  if (payload.size() < bound)
    return error(Code::invalid_argument,
                 "the sparse payload has room for {} bytes, and {} entries may take {}",
                 payload.size(), cut.entries, bound);
  const std::uint64_t count = residual.count;
  std::byte* to = payload.data();
  std::memcpy(to, Header::kName.data(), 3);
  to[3] = static_cast<std::byte>(values);
  std::memcpy(to + 4, &count, sizeof count);
  to += Header::kBytes;
  SparseMarks marks;
  Taker taker(kernels, cut);
  std::size_t left = cut.entries;
  for (std::size_t first = 0; first < residual.count; first += kSparseBlock) {
    const std::size_t elements = residual.block(first);
    float* const from = residual.data + first;
    const Block block(elements, taker.mark_block(marks, from, elements), value.bytes);
    if (block.entries > left)
      return error(Code::invalid_argument,
                   "more elements than the {} entries of the cut: the vector has changed since",
                   cut.entries);
    left -= block.entries;
    const auto entries = static_cast<std::uint32_t>(block.entries);
    std::memcpy(to, &entries, sizeof entries);
    to += kBlockHeader;
    if (block.container == Container::places) write_places(to, marks, block.words());
    if (block.container == Container::bitmap) std::memcpy(to, marks, block.bitmap_bytes());
    to += block.index_bytes();
    kernels.take[value.kernel](to, from, momentum == nullptr ? nullptr : momentum + first, marks,
                               elements);
    if (block.container == Container::all) spread(to, marks, block);
    to += block.bytes() - block.index_bytes();
  }
  return static_cast<std::size_t>(to - payload.data());
}

Status sparse_add(const SparseKernels& kernels, std::span<const std::byte> payload,
                  SparseVector into) {
  SparseMarks marks;
  const std::byte* values = nullptr;
  ANYCCL_TRY(const Reader begin, Reader::open(payload, into.count));
  // All of it is checked before any of it is added.
  for (Reader reader = begin; !reader.at_end();)
    if (const auto block = reader.next(marks, values); !block.ok()) return block.status();
  for (Reader reader = begin; !reader.at_end();) {
    const std::size_t first = reader.first();
    ANYCCL_TRY(const Block block, reader.next(marks, values));
    kernels.add[reader.values().kernel](into.data + first, values, marks, block.count);
  }
  return {};
}

}  // namespace anyccl
