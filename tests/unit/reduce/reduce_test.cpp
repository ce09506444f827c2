// Every kernel of every instruction set that this CPU has, against the definition, bit by bit.

#include "platform/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <string>

#include "platform/reduce/copy.hpp"
#include "reference.hpp"

namespace anyccl::test {
namespace {

using Elements = std::vector<std::uint64_t>;
constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 1000, 4099};
constexpr std::size_t kMostSources = 9;
constexpr unsigned char kUntouched = 0xa5;
constexpr std::uint64_t kSeed = 20240229;

/// Elements at an address that is `misaligned` bytes past a multiple of 64, with untouched bytes
/// around them.
class Buffer {
 public:
  Buffer(DType dtype, std::size_t count, std::size_t misaligned)
      : element_(bytes_of(dtype)),
        bytes_(count * element_),
        memory_(bytes_ + 4 * kMargin, kUntouched) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data()) + kMargin;
    begin_ = memory_.data() + kMargin + (64 - at % 64) % 64 + misaligned;
  }
  void fill(const Elements& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      std::memcpy(begin_ + i * element_, &values[i], element_);  // Little-endian, or 8 bytes.
  }
  Elements values() const {
    Elements all(bytes_ / element_);
    for (std::size_t i = 0; i < all.size(); ++i)
      std::memcpy(&all[i], begin_ + i * element_, element_);
    return all;
  }
  void* data() { return begin_; }
  bool margins_untouched() const {
    const unsigned char* const first = memory_.data();
    for (const unsigned char* p = first; p != first + memory_.size(); ++p)
      if ((p < begin_ || p >= begin_ + bytes_) && *p != kUntouched) return false;
    return true;
  }

 private:
  static constexpr std::size_t kMargin = 64;
  std::size_t element_, bytes_;
  std::vector<unsigned char> memory_;
  unsigned char* begin_;
};

struct Case {
  Isa isa;
  Kernel kernel;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Isa& isa : supported_isas())
    for (const Kernel& kernel : std::span(isa.kernels->first, isa.kernels->count))
      cases.push_back({isa, kernel});
  return cases;
}

std::string name(const Case& c) {
  std::string name(c.isa.name);
  std::ranges::replace(name, '-', '_');
  return name.append("_").append(name_of(c.kernel.dtype)).append("_").append(name_of(c.kernel.op));
}

void PrintTo(const Case& c, std::ostream* out) {
  *out << name(c);
}

class Kernels : public testing::TestWithParam<Case> {
 protected:
  DType dtype() const { return GetParam().kernel.dtype; }

  /// Inputs of `sources` sources and what the definition makes of them.
  void prepare(std::size_t sources, std::size_t count) {
    std::mt19937_64 random(kSeed + sources * 10000 + count);
    inputs_.assign(sources, Elements(count));
    for (Elements& input : inputs_)
      for (std::uint64_t& x : input) x = random_element(dtype(), random);
    expected_.resize(count);
    Elements column(sources);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < sources; ++k) column[k] = inputs_[k][i];
      expected_[i] = reference(dtype(), GetParam().kernel.op, column);
    }
  }

  enum class Also { no, yes };
  static constexpr std::size_t kNoAlias = kMostSources;

  /// Runs the kernel with dst == src[alias], source k misaligned by k * misaligned.
  void expect_right(std::size_t alias, std::size_t misaligned, Also also) {
    const std::size_t count = expected_.size();
    SCOPED_TRACE(testing::Message()
                 << inputs_.size() << " sources of " << count << ", dst is source " << alias
                 << ", misaligned by " << misaligned << ", also " << (also == Also::yes)
                 << ", seed " << kSeed);
    std::vector<Buffer> sources;
    std::vector<const void*> pointers;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      sources.emplace_back(dtype(), count, (k + 1) * misaligned % 64).fill(inputs_[k]);
    }
    for (Buffer& source : sources) pointers.push_back(source.data());
    Buffer separate(dtype(), count, misaligned), second(dtype(), count, 5 * misaligned % 64);
    Buffer& dst = alias == kNoAlias ? separate : sources[alias];

    GetParam().kernel.run(dst.data(), also == Also::yes ? second.data() : nullptr, pointers.data(),
                          pointers.size(), count);

    EXPECT_EQ(dst.values(), expected_);
    EXPECT_TRUE(dst.margins_untouched() && second.margins_untouched());
    if (also == Also::yes) {
      EXPECT_EQ(second.values(), expected_);
    }
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (k == alias) continue;
      EXPECT_EQ(sources[k].values(), inputs_[k]) << "source " << k << " changed";
    }
  }

  std::vector<Elements> inputs_;
  Elements expected_;
};

TEST_P(Kernels, give_the_bits_of_the_definition) {
  for (std::size_t sources = 1; sources <= kMostSources; ++sources) {
    for (const std::size_t count : kCounts) {
      prepare(sources, count);
      for (const Also also : {Also::no, Also::yes})
        for (const std::size_t misaligned : {0U, 1U, 2U, 8U, 13U})
          expect_right(kNoAlias, misaligned, also);
      if (HasFailure()) return;
    }
  }
}

TEST_P(Kernels, may_write_over_any_source) {
  for (std::size_t sources = 1; sources <= kMostSources; ++sources) {
    for (const std::size_t count : kCounts) {
      prepare(sources, count);
      for (std::size_t alias = 0; alias < sources; ++alias) {
        expect_right(alias, 0, Also::no);
        expect_right(alias, 1, Also::yes);
      }
      if (HasFailure()) return;
    }
  }
}

TEST_P(Kernels, are_right_for_every_short_count) {
  for (const std::size_t sources : {2U, 3U, 4U, 5U, 8U}) {
    for (std::size_t count = 0; count <= 160; ++count) {
      prepare(sources, count);
      expect_right(kNoAlias, 3, Also::no);
      expect_right(sources - 1, 0, Also::yes);
      if (HasFailure()) return;
    }
  }
}

TEST_P(Kernels, take_null_pointers_when_there_is_nothing_to_do) {
  const void* const none[] = {nullptr, nullptr, nullptr};
  for (std::size_t sources = 1; sources <= 3; ++sources)
    GetParam().kernel.run(nullptr, nullptr, none, sources, 0);
}

INSTANTIATE_TEST_SUITE_P(Reduce, Kernels, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return name(test.param); });

TEST(ReduceKernel, is_that_of_the_best_instruction_set) {
  const Isa best = supported_isas().at(0);
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      const Result<ReduceFn> found = reduce_kernel(dtype, op);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(*found, kernel(best, dtype, op));
    }
  }
}

TEST(ReduceKernel, names_what_it_has_not_and_what_it_has) {
  const Status status = reduce_kernel(DType::u8, ReduceOp::avg).status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find("u8 avg"), std::string_view::npos) << status.message();
  EXPECT_NE(status.message().find("bf16 sum"), std::string_view::npos) << status.message();
}

TEST(Copy, takes_null_pointers_when_there_is_nothing_to_do) {
  copy(nullptr, nullptr, 0);
}

TEST(Copy, copies) {
  const std::string from = "any alignment";
  std::string to(from.size() - 1, ' ');
  copy(to.data(), from.data() + 1, to.size());
  EXPECT_EQ(to, from.substr(1));
}

}  // namespace
}  // namespace anyccl::test
