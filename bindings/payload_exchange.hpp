#pragma once
// Bytes of any length between all ranks, of which the receivers know nothing before: how objects of
// Python travel, in both packages.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/anyccl.h"
#include "sequence_limit.hpp"

namespace anyccl::bindings {

/// One exchange. In the first round go blocks of one size, in which small payloads travel whole; in
/// the second one longer ones. Both are one sequence of the communicator: calls of other threads
/// come before or after. A thread that has to leave hands it over to another one, as other ranks
/// count on this one. One thread at a time; nothing here needs an interpreter.
class PayloadExchange {
 public:
  struct Settings {
    anycclCollective_t what;  ///< Broadcast, all-gather, gather or scatter.
    int rank, size, root;
    unsigned timeout_ms;  ///< For each round, as that of a call.
  };
  /// `payloads`: what this rank gives; they must outlive the exchange. One, as the root of a
  /// scatter one for each rank, or none where nothing is given. `failed`: each is the text of an
  /// error, of which all ranks get the beginning.
  PayloadExchange(const Settings& settings, std::vector<std::string_view> payloads, bool failed);
  ~PayloadExchange();
  PayloadExchange(const PayloadExchange&) = delete;
  PayloadExchange& operator=(const PayloadExchange&) = delete;

  /// Goes on for about `ms`; true: all is over. `comm`: null where it has ended, in which case this
  /// fails when nothing uses memory of it any more. Throws std::bad_alloc.
  bool go_on(anycclComm_t comm, unsigned ms);
  /// From now on another thread goes on, which begins with take().
  void hand_over(anycclComm_t comm) const;
  void take(anycclComm_t comm) const;
  /// Fails here, and revokes the communicator, so that no rank waits for this one.
  void give_up(anycclComm_t comm, const char* why);

  bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  // When it is over:
  anycclResult_t result() const { return result_; }
  const std::string& message() const { return message_; }
  /// Payloads that came to this rank: of each rank in a gather or all-gather, else one. The root of
  /// a gather alone has the long ones; those of other ranks are empty.
  std::size_t arrived() const { return received_.size() / kBlock; }
  /// The rank that payload `i` is of.
  int source(std::size_t i) const { return gathers() ? static_cast<int>(i) : settings_.root; }
  /// Whether `i` is the text of an error; then only the texts are whole.
  bool is_error(std::size_t i) const { return head_of(i).failed != 0; }
  /// The text of an error, with question marks in the place of control characters.
  std::string text(std::size_t i) const;
  /// Payload `i`, in memory of this exchange, or this rank's own where it was given.
  std::string_view payload(std::size_t i) const;

 private:
  static constexpr std::size_t kBlock = 512;
  struct Head {
    std::uint64_t longest;  // bytes of the longest payload that its sender has
    std::uint64_t size;     // of this one
    std::uint64_t failed;   // 1: it is the text of an error
  };
  static constexpr std::size_t kInline = kBlock - sizeof(Head);
  /// Blocks of one buffer that begins at the first of them, wherever they are.
  struct Blocks {
    const char* base = nullptr;
    std::vector<std::size_t> counts, displs;
  };

  /// Bytes of a payload that travel in the second round.
  static std::size_t later(std::size_t size) { return size > kInline ? size : 0; }
  /// Describes the parts where they lie: sizes, and distances from the lowest address.
  static Blocks blocks_of(const std::vector<std::string_view>& parts);
  bool gathers() const {
    return settings_.what == anycclCollAllGather || settings_.what == anycclCollGather;
  }
  bool is_root() const { return settings_.rank == settings_.root; }
  /// The part of the second round that is this rank's own payload; -1: none.
  std::ptrdiff_t own_part() const;
  Head head_of(std::size_t block) const;
  /// Fills the blocks of the first round: small payloads whole, of long ones the size alone.
  void prepare_first(bool failed);
  bool prepare_second();
  void receive_second();
  void send_second();
  bool end(anycclComm_t comm, anycclResult_t result, const char* message);

  const Settings settings_;
  const std::vector<std::string_view> payloads_;
  std::vector<char> sent_, received_;     // blocks of the first round
  std::vector<char> memory_;              // the bytes of the second one
  std::vector<std::string_view> coming_;  // where that is
  Blocks sends_, receives_;
  anycclCall_t call_{};
  anycclWork_t work_ = nullptr;
  bool has_sequence_ = false, is_second_ = false;
  SequenceLimit turn_;  // where another thread is in a sequence
  anycclResult_t result_ = anycclSuccess;
  std::string message_;
  std::atomic<bool> is_over_{false};
};

}  // namespace anyccl::bindings
