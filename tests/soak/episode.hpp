#pragma once
// A short job under random faults: what is drawn for it, and what each of its ranks does.

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace anyccl::soak {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Everything follows from the seed and the options.
struct Episode {
  struct Options {
    std::string transport;  ///< "": drawn.
    std::string chaos;      ///< Of ANYCCL_CHAOS; kDrawn: drawn; "": none.
    int ranks = 0;          ///< 0: drawn.
    bool kills = true;      ///< Whether a rank may be killed.
  };
  static constexpr const char* kDrawn = "random";
  static Episode draw(std::uint64_t seed, const Options& options);

  std::uint64_t seed = 0;
  std::string transport, chaos;
  bool checksums = false;  ///< ANYCCL_CHECKSUM.
  bool reconnects =
      false;  ///< ANYCCL_RECONNECT: connections that are cut or damage data are replaced.
  int ranks = 2, steps = 0;
  int victim = -1, killed_at = 0;  ///< The rank that is killed, and in which step; -1: none.

  /// Whether connections may fail.
  bool breaks_links() const;
  /// A lost frame shows by the next one on its connection, which may never come, as all ranks wait:
  /// until the time limit of an operation.
  bool loses_frames() const { return has_any({"drop"}); }
  /// For the environment of a rank.
  Environment variables() const;
  /// Whether one of these is in `chaos`.
  bool has_any(std::initializer_list<std::string_view> faults) const;
};

/// What a rank tells the process that watches it, in memory that both have.
struct RankReport {
  // Relaxed: they count, and what they count is read when the rank has ended.
  std::atomic<std::uint64_t> calls{0};  ///< Whose results were right.
  std::atomic<int> step{0};
  std::atomic<bool> has_failed{false};  ///< By an error that was to be expected.
  enum class Finding { right, wrong_result, wrong_error } finding = Finding::right;
  char text[1000] = {};  ///< Of what is wrong.
};

/// A rank's part, in a process of its own with the episode's environment.
void run_rank(const Episode& episode, RankReport& report);

}  // namespace anyccl::soak
