#pragma once
// One communicator, made safe for use by many threads.

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "anyccl/anyccl.h"
#include "waiting.hpp"

namespace anyccl::torch {

/// The bits of a group's results, and whether they are verified: as anycclConfig_t has them, and
/// anycclCollConfig_t the type of sums, here of floats of 16 bits.
struct Numbers {
  int reproducible = ANYCCL_CONFIG_UNDEF_INT, verify = ANYCCL_CONFIG_UNDEF_INT,
      verify_later = ANYCCL_CONFIG_UNDEF_INT, accumulate = ANYCCL_CONFIG_UNDEF_INT;
  /// Fields that are not set here are as in `others`.
  Numbers or_else(const Numbers& others) const;
};

/// Calls are in the order in which threads make them; none waits for another to end. After
/// close() or abort() they fail.
class SharedComm {
 public:
  /// Stands for a group that is to be configured; all calls fail.
  SharedComm() : open_(false), ended_with_(anycclInvalidUsage), wants_queues_(false) {}
  /// Starts to join; finished by wait_until_ready().
  SharedComm(const anycclUniqueId& id, int rank, int size, const Numbers& numbers);
  /// Takes a communicator that is being made; finished by wait_until_ready().
  explicit SharedComm(anycclComm_t begun);
  ~SharedComm();
  SharedComm(const SharedComm&) = delete;
  SharedComm& operator=(const SharedComm&) = delete;

  /// Returns when all ranks have joined. Throws after `deadline`, as an error of `name`, and what
  /// signals raise. `meanwhile`: called now and then until then, or null.
  void wait_until_ready(Clock::time_point deadline, std::string_view name,
                        const std::function<void()>& meanwhile = nullptr);
  /// A communicator of the ranks that are not `excluded`. After a failure: of those that are left;
  /// what runs ends. The limit is ANYCCL_TIMEOUT. See anycclCommShrink.
  std::shared_ptr<SharedComm> shrink(std::vector<int> excluded, bool after_failure,
                                     const Numbers& numbers);
  /// Ranks of this one that are left after a failure, once it is shrunk.
  std::vector<int> survivors(int size);

  /// Calls `use` with the communicator, without a lock: other threads may call it, too. Throws once
  /// it is closed or aborted, and what `use` throws.
  template <typename Use>
  void with(std::string_view name, const Use& use) {
    const User user(*this);
    if (!open_.load()) [[unlikely]]
      throw_closed(name);
    use(comm_.load());
  }

  /// Gives the communicator this device if it has none, and returns the one that it has. For that
  /// it waits until no other thread is in a call on it; throws after `deadline`, as an error of
  /// `name`, if there is no such device, and what signals raise. Not within with().
  c10::Device use_device(c10::Device device, std::string_view name, Clock::time_point deadline);
  /// Collective, before the first collective on the device: calls run in its queues from now on, if
  /// ANYCCL_DEVICE_QUEUES=1 asked for it when the group was made, and all ranks have such. `meet`
  /// returns when all ranks have come to this. Throws if the group has failed.
  void use_queues(std::string_view name, const std::function<void()>& meet);
  bool has_queues() const { return queues_.load(std::memory_order_acquire) == Queues::used; }

  /// Returns the code of the communicator's failure, also after its end; Success or InProgress if
  /// there is none.
  anycclResult_t error();
  /// Throws if the group has failed, or if `peer` is gone.
  void check_alive(std::string_view name, int peer);
  /// Completes the issued operations, leaves and frees the communicator. At `deadline` it aborts
  /// instead. `meanwhile`: as of wait_until_ready().
  void close(Clock::time_point deadline, const std::function<void()>& meanwhile = nullptr);
  /// All operations fail, here and at the peers. Never waits for a peer.
  void abort();

 private:
  class User {
   public:
    explicit User(SharedComm& shared_comm) : users_(shared_comm.users_) {
      if (users_.fetch_add(1) < 0) [[unlikely]]
        for (int users = users_.load(); users < 0; users = users_.load()) users_.wait(users);
    }
    ~User() { users_.fetch_sub(1, std::memory_order_release); }
    User(const User&) = delete;
    User& operator=(const User&) = delete;

   private:
    std::atomic<int>& users_;
  };

  /// The one user, as long as it lives: threads that come wait for its end.
  class OnlyUser;

  [[noreturn]] void throw_closed(std::string_view name) const;
  /// Returns when no thread calls the communicator; false if that takes longer.
  bool wait_unused(Clock::time_point deadline);

  // A thread that counts as a user and then sees `open_` finds the communicator; one that clears
  // `open_` and then sees no users has it alone. Hence all of them are sequentially consistent.
  // With kOnlyUser, and those that wait for its end, it is negative.
  static constexpr int kOnlyUser = std::numeric_limits<int>::min() / 2;
  std::atomic<int> users_ = 0;
  std::atomic<bool> open_ = true;
  std::atomic<anycclComm_t> comm_ = nullptr;  // null once it is closed or aborted
  std::atomic<anycclResult_t> ended_with_ = anycclSuccess;
  // Pairs with nothing: it changes once, while there is one user, and is looked at again then.
  std::atomic<c10::Device> device_ = c10::Device(c10::kCPU);
  const bool wants_queues_;  // on all ranks, as the library compares that
  enum class Queues : std::uint8_t { unasked, none, used };
  std::atomic<Queues> queues_ = Queues::unasked;
  std::timed_mutex closing_;
};

}  // namespace anyccl::torch
