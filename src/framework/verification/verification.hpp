#pragma once
// The verification of one collective call at one rank. Before the call starts, each rank takes a
// summary of its input, and when it is there, of its result; in a collective of its own, the check,
// ranks give each other their summaries, and each compares. docs/adr/0060 says why results that are
// right pass.

#include <memory>
#include <string>
#include <vector>

#include "framework/call/around_call.hpp"
#include "framework/verification/rounding.hpp"
#include "framework/verification/summary.hpp"

namespace anyccl {

/// What is verified, as ranks name it.
struct VerifiedCall {
  Call call;  ///< Its buffers stay where they are until the verification ends.
  Rank me{0};
  int size = 1;
  std::uint64_t sequence = 0;  ///< The call's.
  std::uint64_t secret = 0;    ///< Equal on all ranks, and another one in other communicators.
  Method method;               ///< That of contributions.
  DType output = DType::f32;   ///< The type of the result.
  std::size_t parts = 1;       ///< Those of the input: see leaves_of_rank().
  Roundings roundings;         ///< Those of sums of floats.
  std::shared_ptr<const Operator> op = nullptr;  ///< If the program created it.
};

class Verification {
 public:
  /// `name_of`: "rank 2 (host n7, pid 4711)"; borrowed.
  Verification(const VerifiedCall& call, const RankNamer& name_of);
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;

  AroundCall& around_call() { return around_call_; }
  /// The check: a collective of bytes, and what is around it. Its buffers belong to this.
  Call check() const;
  AroundCall& around_check() { return around_check_; }

  void take_input();
  /// Also completes what this rank gives in the check: after take_input().
  void take_result();
  /// After the check. Errors: internal, which names elements and ranks.
  Status compare() const;

 private:
  /// A vector or block in the memory of the program.
  struct Piece {
    const std::byte* at = nullptr;
    std::size_t elements = 0;
    bool exists = false;
  };
  /// The words of a block of the check. Words of summaries follow.
  enum Head : std::size_t { kSelf, kRoute, kElements, kHash, kResult, kHeadWords };

  struct AtCall final : AroundCall {
    explicit AtCall(Verification& v) : all(v) {}
    void before() override { all.take_input(); }
    Status after() override { return all.take_result(), Status(); }
    Verification& all;
  };
  struct AtCheck final : AroundCall {
    explicit AtCheck(Verification& v) : all(v) {}
    void before() override {}
    Status after() override { return all.compare(); }
    Verification& all;
  };

  std::size_t n() const { return static_cast<std::size_t>(call_.size); }
  bool is_root() const { return call_.call.root == call_.me; }
  Piece input_for(std::size_t to) const;
  Piece result_of(std::size_t from) const;
  Piece block(const std::byte* base, std::size_t r, const std::size_t* counts,
              const std::size_t* displs) const;
  std::size_t most_elements() const;
  const std::byte* part_of_input(const Piece& piece, std::size_t k) const;
  void summarize_input(const Piece& piece, std::uint64_t* words) const;
  std::size_t first_not_above(const Piece& result) const;
  bool is_summand(std::size_t r) const;
  bool has_result() const;
  /// Whether ranks have the same results.
  bool is_alike() const;
  /// Returns the giver and the reader of a block as one number; of a block for all, the giver.
  std::uint64_t route(std::size_t from, std::size_t to) const;
  std::uint64_t self_hash(const std::uint64_t* block) const;
  const std::uint64_t* given_by(std::size_t r) const;
  bool hears_from(std::size_t r) const;
  void scale_by_factor(std::uint64_t* words) const;

  /// Fails if the words that came from rank `r` are damaged or were for another rank: then the
  /// check itself went wrong.
  Status check_block(std::size_t r) const;
  Status compare_moved() const;
  Status compare_sums() const;
  Status compare_floats(std::size_t set) const;
  Status compare_words(std::size_t set) const;
  Status compare_alike() const;
  Status wrong(const std::string& how) const;
  /// Returns "elements 0..63 at rank 2 (host n7, pid 4711)".
  std::string elements_of(std::size_t set) const;
  std::string name(std::size_t r) const { return name_of_(Rank{static_cast<std::int32_t>(r)}); }
  std::string what() const;

  struct FloatLane;
  FloatLane lane_of(std::size_t set, std::size_t b) const;
  std::string fault_of_floats(const std::vector<FloatLane>& wrong) const;
  double sum_or_norm(const std::uint64_t* words, std::size_t set, std::size_t b,
                     std::size_t which) const;
  const KeptCall kept_;
  VerifiedCall call_;
  const Method of_result_;
  const RankNamer name_of_;
  const std::uint64_t seed_;
  const Hasher hash_;
  Collective exchange_;
  std::size_t block_words_ = 0;
  std::vector<std::uint64_t> given_, got_, result_;
  std::vector<std::uint64_t> hashes_;        // of what came from each rank
  std::size_t not_above_ = ~std::size_t{0};  // of this rank's input: see first_not_above()
  AtCall around_call_{*this};
  AtCheck around_check_{*this};
};

}  // namespace anyccl
