#pragma once
// Communicators, and the owners of the arrays of operations that nobody else keeps.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operation.hpp"

namespace anyccl::python {

/// How a communicator is created.
struct Creation {
  std::optional<std::string> name;
  bool wait = true;
  Seconds timeout;
  std::optional<int> reproducible = std::nullopt, verify = std::nullopt;
  std::optional<bool> verify_later = std::nullopt;
};

/// One rank's communicator. Everything here is called with the interpreter lock held, which guards
/// the members, and releases it around calls that may take long. The lock must be released around
/// all that waits for the progress of the library, too, as a thread that makes progress may want it
/// for an operator's function.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// One thread's turn: what it calls finds the communicator alive.
  class Call;

  explicit Communicator(anycclComm_t handle);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Destroys it, which waits for issued operations, or aborts it if nobody has seen the end of its
  /// creation. Leaves it to the end of the process once the interpreter ends.
  ~Communicator();

  static CommunicatorPtr from_env(const Creation& how);
  static CommunicatorPtr from_unique_id(const anycclUniqueId& id, int rank, int size,
                                        const Creation& how);
  static std::vector<CommunicatorPtr> init_all(int size);
  /// With color ANYCCL_SPLIT_NOCOLOR, returns null if `how` waits, else one that can only be
  /// destroyed once it is created.
  CommunicatorPtr split(int color, int key, const Creation& how);
  /// `after_failure`: with ANYCCL_SHRINK_ABORT.
  CommunicatorPtr shrink(std::vector<int> excluded, bool after_failure, const Creation& how);
  /// `id`: on one rank.
  CommunicatorPtr grow(int size, const anycclUniqueId* id, const Creation& how);

  int rank();
  int size();
  /// For people: what it is.
  std::string text() const;
  /// Whether it is created, or finalized if finalize() was called. Raises why it cannot be.
  bool is_ready();
  void wait_until_ready(Seconds timeout);
  /// Returns the exception that operations raise from now on, or None; raises InvalidUsage if the
  /// communicator has ended. Any thread.
  nb::object failure() const;
  /// Returns a text for people, how the last collective ran; see anycclCommLastPlan.
  std::string last_plan();
  /// JSON.
  std::string metrics();
  void dump(const std::string& path);
  /// Returns how many collectives this rank has completed, and how many all ranks that are left
  /// have: 0 until they have shrunk it after a failure.
  std::pair<std::uint64_t, std::uint64_t> completed();
  /// Ranks of this communicator, in the order of the one that they have made.
  std::vector<int> survivors();
  /// Returns the time limit of operations that are called from now on. None: ANYCCL_OP_TIMEOUT has
  /// it, or it is half an hour; infinity: they wait for ever.
  Seconds timeout() const;
  void set_timeout(Seconds seconds) { timeout_ms_ = milliseconds(seconds); }

  /// Runs the request and returns the result; or a Work, if `options.async`; or, with a stream or
  /// in a group, the result that will be there later.
  nb::object run(Request&& request, const Options& options);

  /// Completes the issued operations, and returns before that if it was created without waiting.
  /// Raises InvalidUsage while another thread is in a call.
  void finalize(Seconds timeout);
  /// Completes the issued operations, then frees the communicator. Raises InvalidUsage while
  /// another thread is in a call.
  void destroy();
  void abort();
  void revoke();

  /// Keeps an operation until it is complete.
  void adopt(OperationPtr operation) {
    if (handle_ != nullptr) kept_.push_back(std::move(operation));
  }
  /// Keeps the array of a window, into which peers put, until it is released or nobody can put.
  void keep_window(anycclWindow_t window, Array array) {
    windows_.insert_or_assign(window, std::move(array));
  }
  void release_window(anycclWindow_t window) { windows_.erase(window); }
  /// Calls that were issued before, for one that is issued now.
  IssuedOperations& issued() { return issued_; }
  /// Gives up the complete ones of all operations that it keeps, or of a few, and frees the retired
  /// operators.
  void drop_complete_operations(bool all);

  /// Creates an operator of the library by `make`(op, handle), and returns it for retire() to free.
  template <typename Make>
  anycclRedOp_t create_operator(const Make& make);
  /// Frees the operator at the next call.
  void retire(anycclRedOp_t op) { retired_.push_back(op); }
  /// The function of an operator has raised `exception`: all that is computed with it is wrong.
  void note_operator_failure(nb::object exception);
  /// Raises what an operator's function has raised, and ends the communicator for it.
  void check_operators();

 private:
  template <typename Make>
  static CommunicatorPtr create_by(const Creation& how, Communicator* parent, const Make& make);
  nb::object run_blocking(Request& request);
  nb::object run_in_stream(Request&& request, const Options& options);
  bool is_created();
  void check_usable();
  anycclComm_t end(std::string why);
  void release_arrays();
  void keep_arrays_forever();

  anycclComm_t handle_;
  int rank_ = -1, size_ = -1;
  unsigned int timeout_ms_ = 0;
  bool creating_ = false, finalized_ = false, waits_ = true;
  int inside_ = 0;  // threads in a call
  std::string ended_;
  std::weak_ptr<Communicator> splitting_;  // the communicator that is being split from this one
  std::deque<OperationPtr> kept_;
  IssuedOperations issued_;
  std::map<anycclWindow_t, Array> windows_;
  std::vector<anycclRedOp_t> retired_;
  nb::object operator_failure_;
};

class Communicator::Call {
 public:
  /// Raises why no call is possible, if so. While it lives, destroy() and finalize() raise.
  explicit Call(Communicator& comm);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  Call(Call&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)), handle(other.handle) {}
  ~Call() {
    if (comm_ != nullptr) --comm_->inside_;
  }

 private:
  Communicator* comm_;

 public:
  const anycclComm_t handle;  // abort() may be called meanwhile
};

template <typename Make>
anycclRedOp_t Communicator::create_operator(const Make& make) {
  const Call turn(*this);
  anycclRedOp_t op{};
  raise_unless_ok(unlocked([&] { return make(&op, turn.handle); }));
  return op;
}

}  // namespace anyccl::python
