#pragma once
// A LoadedAlgorithm is made of the text of a file (form.hpp) by load.hpp. Calls are planned with it
// only once check() has proved it right for their shape.

#include <memory>
#include <string>

#include "algorithm/loaded/form.hpp"

namespace anyccl {

/// An algorithm that a text describes, as one of the catalog: its text is replayed through Builder.
/// Programs are written for root 0; for another root the ranks, and the blocks, are turned.
///
/// Threads: any. Must outlive whatever uses algorithm().
class LoadedAlgorithm {
 public:
  /// `file`: where it comes from, for messages.
  LoadedAlgorithm(WrittenAlgorithm text, std::string file);
  ~LoadedAlgorithm();
  LoadedAlgorithm(const LoadedAlgorithm&) = delete;
  LoadedAlgorithm& operator=(const LoadedAlgorithm&) = delete;

  const Algorithm& algorithm() const { return algorithm_; }
  const WrittenAlgorithm& text() const { return text_; }
  const std::string& file() const { return file_; }
  /// Equal for all texts that say the same.
  std::uint64_t hash() const { return hash_; }

  bool supports(const Shape& shape) const { return find(shape) != nullptr; }
  /// A shape that it supports. If the program is right only out of place, a call in place first
  /// copies its input. The first build in place checks the program, if nothing has yet.
  Schedule build(const Shape& shape, Rank me) const;
  /// The order for a shape that it supports, as check() finds it; with another root than 0, for
  /// which terms are turned, it is Order::position. With root 0 it checks the program, if nothing
  /// has yet.
  Order order(const Shape& shape) const;
  /// Whether it may run: results, matching, deadlocks, races, in place, and whether `slots` per
  /// bank suffice. The first call for a number of ranks and hosts takes as long as `anyccl check`
  /// does; the process remembers the outcome. Errors: invalid_argument, naming file, rank, step and
  /// chunk; unsupported for more ranks than can be checked.
  Status check(const Shape& shape, std::uint32_t slots) const;

 private:
  struct Proof {
    Status status = {};
    std::uint32_t slots = 0;  ///< That suffice.
    bool copies_input = false;
    Order order = Order::position;
  };
  struct Proofs;

  /// The steps to replay for a shape: those written for just its hosts, if no root other than 0
  /// turns the ranks, else those for any hosts. Null: there are none.
  const WrittenSize* find(const Shape& shape) const;
  Schedule replay(const WrittenSize& size, const Shape& shape, Rank me, bool copies_input) const;
  Proof proof_of(const WrittenSize& size) const;
  /// Checks the program for root 0 and, if that fails, again with the input copied first in place.
  /// If both fail, the status says why the first did.
  Proof make_proof(const WrittenSize& size) const;

  const WrittenAlgorithm text_;
  const std::string file_, needs_;
  const std::uint64_t hash_;
  const Algorithm algorithm_;
};

}  // namespace anyccl
