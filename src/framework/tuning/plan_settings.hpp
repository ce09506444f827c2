#pragma once
// The environment, the configuration of a communicator and that of a call say in this form how
// plans are made. The tuner reads all three.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "framework/tuning/algorithm_rules.hpp"
#include "framework/tuning/protocol_rules.hpp"

namespace anyccl {

/// What a user says about plans in one place: the environment, a communicator's configuration, or
/// the configuration of a call.
struct PlanSettings {
  AlgorithmRules algorithms = {};
  ProtocolRules protocols = {};
  std::size_t chunk_bytes = 0;  ///< At most this much of a vector or block at a time; 0: any.
  int level = 0;                ///< The least level of reproducibility.
};

/// The configuration of calls.
struct CallSettings : PlanSettings {
  bool forced = true;  ///< A choice that cannot be done is an error; else another one is taken.
  std::optional<DType> output, accumulate;  ///< See ElementTypes; absent: that of the call.
  std::uint32_t leaves = 0;           ///< Those of all ranks, see leaves_of_rank(); 0: not set.
  bool changes_plans = true;          ///< False: it is a tag and nothing else.
  std::atomic<std::uint64_t> tag{0};  ///< The last such call's, for profilers; 0: none.
};

/// The different configurations of calls of one communicator, so that a call carries a number and
/// its text is parsed once.
///
/// Threads: any.
class CallSettingsTable {
 public:
  /// A configuration as a call has it. Texts may be null.
  struct Text {
    const char* algorithms = nullptr;
    const char* protocols = nullptr;
    std::size_t chunk_bytes = 0;
    int level = 0;
    bool forced = true;
    std::optional<DType> output = {}, accumulate = {};
    std::uint32_t leaves = 0;
    std::uint64_t tag = 0;
  };
  static constexpr std::size_t kMost = 63;

  CallSettingsTable() = default;
  ~CallSettingsTable();
  CallSettingsTable(const CallSettingsTable&) = delete;
  CallSettingsTable& operator=(const CallSettingsTable&) = delete;

  /// Its number from 1 on; 0: it says nothing. The tag is remembered, but makes no difference.
  /// Errors: invalid_argument, what is wrong with a text (not if `forced` is false: then it does
  /// not count); invalid_usage for more than kMost.
  Result<std::uint8_t> number_of(const Text& text);
  /// Null for 0.
  const CallSettings* at(std::uint8_t number) const {
    return number == 0 ? nullptr : &entries_[number - 1U].load(std::memory_order_acquire)->settings;
  }
  /// Whether calls of both numbers are done alike.
  bool are_alike(std::uint8_t a, std::uint8_t b) const {
    return a == b || (!changes_plans(a) && !changes_plans(b));
  }

 private:
  bool changes_plans(std::uint8_t number) const { return number != 0 && at(number)->changes_plans; }
  struct Entry {
    std::string algorithms, protocols;
    CallSettings settings;
  };
  /// Returns the place of the entry, of the first `count`, that is equal but for the tag; else
  /// `count`.
  std::size_t find(const Text& text, std::size_t count) const;
  static Status parse(const Text& text, Entry& into);

  std::mutex mutex_;  // of additions
  /// Stored with release when an entry is complete; pairs with the acquire of who looks for it.
  std::array<std::atomic<Entry*>, kMost> entries_{};
  std::atomic<std::size_t> count_{0};  // stored after its entries
};

}  // namespace anyccl
