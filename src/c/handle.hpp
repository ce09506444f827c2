#pragma once
// The opaque handles of the C interface, and the codes of errors.

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "anyccl/anyccl.h"
#include "base/callback.hpp"
#include "base/fork.hpp"
#include "base/per_process.hpp"
#include "c/background.hpp"
#include "c/in_call.hpp"
#include "framework/communicator/call_sequence.hpp"
#include "framework/communicator/team.hpp"
#include "framework/device/device_copies.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {
class DeviceQueues;
class NewDevice;

/// Work of other threads.
struct UnderWay {
  std::shared_ptr<Background> own;   ///< It creates or finalizes the communicator.
  std::shared_ptr<Background> made;  ///< It creates another one of this one, for another handle.
};
/// The device of a communicator.
struct UsedDevice {
  int number = 0;  ///< The program's number of it.
  /// From now on calls are done in them. Other threads may be in calls.
  void set_queues(std::shared_ptr<DeviceQueues> made) {
    owned = std::move(made);
    queues.store(owned.get(), std::memory_order_release);  // pairs with the acquire in is_queued()
  }

  std::atomic<DeviceQueues*> queues{nullptr};  ///< Its calls are done by copies if this is null.
  std::shared_ptr<DeviceQueues> owned;
  std::shared_ptr<NewDevice> coming;  ///< It comes with the communicator; null: it has come.
};
}  // namespace anyccl

/// Belongs to its communicator's handle.
struct anycclWindow {
  const anycclComm* comm;
  std::uint32_t number;
  void* at;
  std::atomic<bool> open{true};
};

/// One rank's handle.
struct anycclComm {
  /// Gives the handle a communicator, with a new team, and opens it for calls unless its end has
  /// begun. With the mutex. Null: no thread is in a call, see await_calls().
  void set(anyccl::CommPtr made);

  /// From now on calls take memory of its device; null: of none. No thread is in a call.
  void set_device(std::shared_ptr<anyccl::DeviceCopies> used) {
    copies = std::move(used);
    device.number = copies == nullptr ? 0 : copies->device().number();
  }

  /// Whether it belongs to the parent of this process: a thread of that may have held the mutex at
  /// the fork.
  bool is_inherited() const { return generation != anyccl::fork_generation(); }

  const std::uint64_t generation = (anyccl::watch_forks(), anyccl::fork_generation());
  // A call that finds it open may use `comm` and `team` without the mutex until it returns.
  std::atomic<bool> open{false};
  std::atomic<bool> is_left_over{false};           // see empty_left_over()
  anyccl::CommPtr comm;                            // null until it is created, and after its end
  std::shared_ptr<anyccl::DeviceCopies> copies;    // of its device; null: it has none
  std::shared_ptr<anyccl::Team> team;              // of comm, and null with it
  std::shared_ptr<anyccl::Agreement> agreement;    // of who is left of comm; null with it
  std::shared_ptr<anyccl::CallSequence> sequence;  // of comm; null: the program is in none
  enum class Stage : std::uint8_t { used, ending, gone };
  Stage stage = Stage::used;  // with the mutex; gone: destroyed or aborted, see bury()
  std::mutex mutex;           // of the rest, which any thread may come to
  std::string last_error;
  anyccl::UsedDevice device;
  std::string name;
  bool blocking = true, finalized = false;
  std::atomic<bool> background_progress = false;      // has been asked for
  anyccl::UnderWay background;                        // if it is not blocking
  anyccl::Status failure;                             // of what was under way
  std::map<const void*, std::size_t> registered;      // buffers, and how often
  std::deque<std::unique_ptr<anycclWindow>> windows;  // also the last that were deregistered
};

struct anycclWork {
  anyccl::CommPtr comm;
  std::shared_ptr<anyccl::Operation> operation;
  anyccl::Collective collective;
};

struct anycclStream {
  bool is_destroyed() const { return stream == nullptr && device == nullptr; }

  std::shared_ptr<anyccl::HostStream> stream;  // null: it is one of a device, or was destroyed
  std::shared_ptr<anyccl::Device> device;      // whose it is; or null
  anyccl::DeviceQueue native = nullptr;        // of the device
};

struct anycclEvent {
  anyccl::HostEvent event;
  bool destroyed = false;
};

namespace anyccl {

/// Takes over the result of the background, if it is there; a failure, or the end of finalizing,
/// closes the handle.
void adopt(anycclComm& handle);
/// From now on no call begins on the handle: frees its communicator, unless a call of another
/// thread does not return soon, which then keeps it. False: so it is.
bool close_communicator(anycclComm& handle);
/// Closes handles that were kept by calls when they were destroyed or aborted.
void empty_left_over();

/// Ends the call. If its handle was destroyed or aborted meanwhile and kept for its calls, the last
/// of them closes it.
inline InCall::~InCall() {
  if (handle_ == nullptr) return;
  const bool is_left_over = handle_->is_left_over.load(std::memory_order_relaxed);
  // Pairs with the acquire in await_calls(): the call is over there, too.
  calls_here->handles[--calls_here->depth].store(nullptr, std::memory_order_release);
  if (is_left_over) empty_left_over();
}

/// Remembers the message for anycclGetLastError, in `handle` if there is one, and gives the code.
/// Inside a group, the first error is also that of anycclGroupEnd.
anycclResult_t report(const Status& status, anycclComm_t handle);
/// Runs `body` and turns what must not cross the C interface (out of memory) into a code. Until it
/// returns, this thread is in a call on `handle`, whose communicator is not freed meanwhile.
template <typename Body>
anycclResult_t guarded(anycclComm_t handle, const Body& body) noexcept {
  const InCall in_call(handle);
  try {
    const Status status = body();
    return status.ok() ? anycclSuccess : report(status, handle);
  } catch (const std::exception& e) {
    try {
      return report(Status(Code::system_error, e.what()), handle);
    } catch (...) {
      return anycclSystemError;
    }
  }
}

/// Keeps a handle that was given back for a while, so that a call that still has it hears of that
/// and does not crash.
template <typename Handle>
void bury(std::unique_ptr<Handle> handle) {
  constexpr std::size_t kMostKept = 256;
  struct Graves {
    std::mutex mutex;
    std::deque<std::unique_ptr<Handle>> kept;
  };
  Graves& graves = per_process<Graves>();
  const std::lock_guard lock(graves.mutex);
  graves.kept.push_back(std::move(handle));
  if (graves.kept.size() > kMostKept) graves.kept.pop_front();
}

/// A value that does not fit becomes another one that does not exist.
inline std::uint8_t as_byte(int value) {
  return value < 0 || value > 255 ? 255 : static_cast<std::uint8_t>(value);
}

Status need(const void* pointer, const char* what);
/// A vector of the program, NULL only if it is empty.
Status need_vector(const void* x, std::size_t count, const char* what);
/// `call` waits, so it is not in a group.
Status need_no_group(const char* call);
/// The tag of a message: one of a program's, or of the layers above this library.
Status check_tag(int tag);
/// Ok if it is of this process and ready for use. First takes over the result of its background.
Status need_comm(anycclComm_t comm);
/// check_wait() of a thread that is in a function of the program.
Status check_wait_in_callback(const Awaited& awaited);
/// Ok, or why this thread, which is in a function of the program that the library has called,
/// cannot wait for that. Before anything that waits, or needs a communicator for itself.
inline Status check_wait(const Awaited& awaited) {
  if (callback_here() == Callback::none) [[likely]]
    return {};
  return check_wait_in_callback(awaited);
}
/// Returns an error unless it is not NULL, not destroyed, and of this process.
Status need_stream(anycclStream_t stream);

/// The call that a program describes. Errors: of what only the C interface can get wrong.
Result<Call> read_call(const anycclCall_t* asked, anycclComm_t comm);
/// The handle of an operation that was issued without a stream, which goes on in the background.
Result<anycclWork_t> make_work(const CommPtr& comm, std::shared_ptr<Operation> operation,
                               Collective collective);

/// The calls of this thread between anycclGroupStart and anycclGroupEnd.
bool in_group();
/// `stream` may be NULL.
void add_to_group(anycclComm_t handle, const Call& call, anycclStream_t stream);
void add_to_group(anycclComm_t handle, const OneSidedCall& call, anycclStream_t stream);
/// At the end of the group, before its calls; those with the same `owner` in their order, others
/// side by side, as they wait for each other.
void add_to_group(const void* owner, std::function<Status()> job);
/// After its calls.
void add_after_group(std::function<Status()> job);
/// When all jobs of add_to_group() have ended, also after an error; before the group's calls.
void add_between_in_group(std::function<Status()> job);
/// An error of a call inside a group: anycclGroupEnd returns the first one.
void note_in_group(const Status& status);

}  // namespace anyccl
