// Every kernel of every instruction set that this CPU has, against the definition, bit by bit.

#include "platform/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "platform/reduce/copy.hpp"
#include "platform/reduce/isa.hpp"
#include "reference.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 333, 1031};
constexpr std::size_t kMostSources = 9;
constexpr unsigned char kUntouched = 0xa5;
constexpr std::uint64_t kSeed = 20240229;

/// Memory at an address that is `misaligned` bytes past a multiple of 64, with untouched bytes
/// around it.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misaligned)
      : bytes_(bytes), memory_(bytes_ + 4 * kMargin, kUntouched) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data()) + kMargin;
    before_ = kMargin + (64 - at % 64) % 64 + misaligned;
  }
  Buffer(const Memory& content, std::size_t misaligned) : Buffer(content.size(), misaligned) {
    std::copy(content.begin(), content.end(), begin());
  }
  bool has(const Memory& content) { return std::equal(content.begin(), content.end(), begin()); }
  void* data() { return memory_.data() + before_; }
  bool margins_untouched() {
    const auto untouched = [](unsigned char byte) { return byte == kUntouched; };
    return std::all_of(memory_.begin(), begin(), untouched) &&
           std::all_of(begin() + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), untouched);
  }

 private:
  static constexpr std::size_t kMargin = 64;
  Memory::iterator begin() { return memory_.begin() + static_cast<std::ptrdiff_t>(before_); }

  std::size_t bytes_, before_ = 0;
  Memory memory_;
};

struct Case {
  Isa isa;
  DType type;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Isa& isa : supported_isas())
    for (const DType type : all_types()) cases.push_back({isa, type});
  return cases;
}

std::string name(const Case& c) {
  std::string name(c.isa.name);
  std::ranges::replace(name, '-', '_');
  return name.append("_").append(name_of(c.type));
}

void PrintTo(const Case& c, std::ostream* out) {
  *out << name(c);
}

class Kernels : public testing::TestWithParam<Case> {
 protected:
  const Isa& isa() const { return GetParam().isa; }
  DType type() const { return GetParam().type; }
  enum class Also { no, yes };
  static constexpr std::size_t kNoAlias = ~std::size_t{0};

  /// Calls check() for each operator, with inputs of `sources` sources and what the definition
  /// makes of them.
  template <typename Check>
  void for_each_operator(std::size_t sources, std::size_t count, Check check) {
    std::mt19937_64 random(kSeed + sources * 10000 + count);
    inputs_.clear();
    for (std::size_t k = 0; k < sources; ++k)
      inputs_.push_back(random_elements(type(), count, random));
    for (const ReduceOp op : operators(isa(), type())) {
      op_ = op;
      expected_ = reduced(type(), op, inputs_);
      check();
    }
  }

  /// Runs the kernel with dst == src[alias], source k misaligned by k * misaligned.
  void expect_right(std::size_t alias, std::size_t misaligned, Also also) {
    const std::size_t bytes = expected_.size(), count = bytes / bytes_of(type());
    SCOPED_TRACE(testing::Message()
                 << name_of(op_) << " of " << inputs_.size() << " sources of " << count
                 << ", dst is source " << alias << ", misaligned by " << misaligned << ", also "
                 << (also == Also::yes) << ", seed " << kSeed);
    std::vector<Buffer> sources;
    std::vector<const void*> pointers;
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      sources.emplace_back(inputs_[k], (k + 1) * misaligned % 64);
    for (Buffer& source : sources) pointers.push_back(source.data());
    Buffer separate(bytes, misaligned), second(bytes, 5 * misaligned % 64);
    Buffer& dst = alias == kNoAlias ? separate : sources[alias];

    kernel(isa(), type(), op_)(dst.data(), also == Also::yes ? second.data() : nullptr,
                               pointers.data(), pointers.size(), count);

    EXPECT_TRUE(dst.has(expected_));
    EXPECT_TRUE(dst.margins_untouched() && second.margins_untouched());
    EXPECT_TRUE(also == Also::no || second.has(expected_));
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (k == alias) continue;
      EXPECT_TRUE(sources[k].has(inputs_[k])) << "source " << k << " changed";
    }
  }

  std::vector<Memory> inputs_;
  ReduceOp op_ = ReduceOp::sum;
  Memory expected_;
};

TEST_P(Kernels, give_the_bits_of_the_definition) {
  for (std::size_t sources = 1; sources <= kMostSources; ++sources) {
    for (const std::size_t count : kCounts) {
      for_each_operator(sources, count, [&] {
        for (const std::size_t misaligned : kSanitized ? std::vector<std::size_t>{0, 13}
                                                       : std::vector<std::size_t>{0, 1, 2, 8, 13})
          expect_right(kNoAlias, misaligned, misaligned % 2 == 0 ? Also::no : Also::yes);
      });
      if (HasFailure()) return;
    }
  }
}

TEST_P(Kernels, may_write_over_any_source) {
  const std::size_t step = effort(4U, 1U, 1U);
  for (std::size_t sources = 1; sources <= kMostSources; sources += step) {
    for (const std::size_t count : kCounts) {
      for_each_operator(sources, count, [&] {
        for (std::size_t alias = 0; alias < sources; ++alias) {
          expect_right(alias, 0, Also::no);
          expect_right(alias, 1, Also::yes);
        }
      });
      if (HasFailure()) return;
    }
  }
}

TEST_P(Kernels, are_right_for_every_short_count) {
  for (const std::size_t sources :
       kSanitized ? std::vector<std::size_t>{2, 8} : std::vector<std::size_t>{2, 3, 4, 5, 8}) {
    for (std::size_t count = 0; count * bytes_of(type()) <= 136; ++count) {
      for_each_operator(sources, count, [&] {
        expect_right(kNoAlias, 3, Also::no);
        expect_right(sources - 1, 0, Also::yes);
      });
      if (HasFailure()) return;
    }
  }
}

/// Nodes of the tree beyond what loops of their own are made for.
TEST_P(Kernels, fold_many_sources_by_the_tree) {
  for (const std::size_t sources : {10U, 12U, 13U, 15U, 16U, 17U, 24U, 31U, 32U, 63U, 65U}) {
    for (const std::size_t count : {1U, 5U, 33U, 150U}) {
      for_each_operator(sources, count, [&] {
        expect_right(kNoAlias, 0, Also::yes);
        expect_right(sources / 2, 3, Also::no);
      });
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reduce, Kernels, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return name(test.param); });

TEST(AllKernels, take_null_pointers_when_there_is_nothing_to_do) {
  const void* const none[] = {nullptr, nullptr, nullptr};
  for (const auto& [isa, type] : all_cases())
    for (const ReduceOp op : operators(isa, type))
      for (std::size_t sources = 1; sources <= 3; ++sources)
        kernel(isa, type, op)(nullptr, nullptr, none, sources, 0);
}

TEST(AllKernels, exist_for_what_makes_sense) {
  for (const auto& [isa, type] : all_cases()) {
    for (std::size_t i = 0; i < kReduceOps; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      EXPECT_EQ(kernel(isa, type, op) != nullptr, makes_sense(type, op))
          << isa.name << " " << name_of(type) << " " << name_of(op);
    }
    EXPECT_EQ(kernels(isa, type).divide != nullptr, type != DType::boolean) << isa.name;
  }
}

TEST(ReduceKernel, is_that_of_the_best_instruction_set_or_refused) {
  const Isa best = supported_isas().at(0);
  for (const DType type : all_types()) {
    for (std::size_t i = 0; i < kReduceOps; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      const Result<ReduceFn> found = reduce_kernel(type, op);
      if (makes_sense(type, op)) {
        ASSERT_TRUE(found.ok()) << found.status().message();
        EXPECT_EQ(*found, kernel(best, type, op));
      } else {
        EXPECT_EQ(found.status().code(), Code::unsupported);
      }
    }
  }
}

TEST(ReduceKernel, names_what_it_has_not_and_what_it_has) {
  EXPECT_EQ(reduce_kernel(DType::complex64, ReduceOp::max).status().message(),
            "max of complex64 is not supported; of complex64 there are sum, prod, avg");
}

TEST(DivideKernel, is_refused_for_bool) {
  EXPECT_TRUE(divide_kernel(DType::f32).ok());
  EXPECT_EQ(divide_kernel(DType::boolean).status().code(), Code::unsupported);
}

TEST(Copy, takes_null_pointers_when_there_is_nothing_to_do) {
  copy_bytes(nullptr, nullptr, 0);
}

TEST(Copy, copies_any_length_at_any_alignment_and_nothing_beyond) {
  std::vector<CopyFn> copies = {copy_bytes};
  for (const Isa& isa : instruction_sets())
    if (isa.supported) copies.push_back(isa.kernels->copy);
  std::string from(kFarCopyFrom + 100, ' ');
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i % 251);
  for (const CopyFn copy : copies)
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{64},
                                    std::size_t{65}, std::size_t{4097}, kFarCopyFrom + 1})
      for (const std::size_t shift : {0U, 1U, 16U, 63U}) {
        std::string to(from.size() + 64, '!'), expected = to;
        expected.replace(shift, bytes, from, 3, bytes);
        copy(to.data() + shift, from.data() + 3, bytes);
        EXPECT_TRUE(to == expected) << bytes << " bytes, shifted by " << shift;
      }
}

TEST(Copy, is_right_at_every_distance_within_a_page) {
  constexpr std::size_t kPage = 4096, kBytes = 3 * kPage / 2;
  alignas(kPage) static std::array<char, kBytes> from;
  alignas(kPage) static std::array<char, kBytes + kPage> to;
  for (std::size_t i = 0; i < kBytes; ++i) from[i] = static_cast<char>(i % 251);
  for (std::size_t ahead = 0; ahead < 130; ++ahead) {
    to.fill('!');
    copy_bytes(to.data() + ahead, from.data(), kBytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + ahead)) << ahead;
    EXPECT_EQ(to[ahead + kBytes], '!') << ahead;
  }
}

TEST(Copy, copies) {
  const std::string from = "any alignment";
  std::string to(from.size() - 1, ' ');
  copy_bytes(to.data(), from.data() + 1, to.size());
  EXPECT_EQ(to, from.substr(1));
}

}  // namespace
}  // namespace anyccl::test
