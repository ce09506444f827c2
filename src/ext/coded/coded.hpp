#pragma once
// AllReduce with a codec between hosts: docs/adr/0061.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "c/handle.hpp"
#include "ext/coded/coded_exchange.hpp"
#include "ext/coded/host_sums.hpp"

namespace anyccl {

/// Ranks of one host add up in f32 what they have, each of them one slice of it; the slices go
/// between hosts as payloads; then each host puts them together again. With one host nothing is
/// coded, and with `if_slow` only elements of a size whose sums are faster with the codec, as was
/// measured when it was created.
///
/// Threads: any, one call at a time.
class CodedAllReduce {
 public:
  struct Use {
    bool everywhere;  ///< Each rank counts as a host of its own.
    bool if_slow;
  };
  /// Collective over `parent`. `codec`: its number, which may be wrong. Errors: unsupported codecs;
  /// invalid_usage naming two ranks whose arguments differ; unsupported at a level that
  /// contradicts; those of a split.
  static Result<std::unique_ptr<CodedAllReduce>> create(Comm& parent, int codec, Use use,
                                                        const std::string& name);
  ~CodedAllReduce();
  /// An all_reduce. Errors: of its arguments, on this rank alone; what else goes wrong is one on
  /// all ranks, and of all later calls.
  Status run(const Call& call);
  /// Whether elements of this type travel as payloads. Errors: unsupported.
  Result<bool> uses_codec(DType dtype) const;
  /// Completes, and takes leave of the others. Returns Ok after a call that failed: that has
  /// returned the error.
  Status destroy();

 private:
  /// Some ranks, and a communicator of them if this one is among them and they need one.
  struct Group {
    anycclComm_t handle = nullptr;
    std::vector<int> ranks;  // of the parent, by their ranks here
  };
  struct Times {
    double coded, plain;  // seconds of a call
  };

  /// Finds the host of each rank: one of its own with `use.everywhere`; without a network all have
  /// the same.
  CodedAllReduce(const Comm& parent, Codec codec, const KernelTable& kernels, Use use);
  Status make(Comm& parent, Use use, const std::string& name);
  /// Splits `parent`, so all its ranks call it. There is no sums_ if each host has one rank, and no
  /// exchange_ at a rank whose place in its host the smallest host does not have.
  Status make_groups(Comm& parent, const std::string& name);
  Status measure();
  Result<Times> measure_times(DType dtype);
  static std::size_t place_of(DType dtype) { return bytes_of(dtype) == 4 ? 0 : 1; }

  Status check(const Call& call) const;
  Status check_same_call(const Group& group, const Call& call) const;
  Status run_between_hosts(const Call& call);
  void fail(const Status& why);

  const Codec codec_;
  const KernelTable& kernels_;
  const int me_, size_;
  std::vector<int> host_of_;  // by rank
  std::size_t hosts_ = 1;
  bool is_coded_[2] = {true, true};  // elements of 4 and of 2 bytes
  Group host_, across_;              // with several hosts: those of this one, and one of each
  Group all_;                        // if something is not coded
  std::unique_ptr<HostSums> sums_;   // null: each host has one rank
  std::unique_ptr<CodedExchange> exchange_;  // null: this rank has no slice
  std::mutex mutex_;                         // of a call
  Status failure_;
};

}  // namespace anyccl
