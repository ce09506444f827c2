#pragma once
// Communicators, operations in progress, and the owners of their arrays.

#include <memory>
#include <optional>
#include <vector>

#include "error.hpp"
#include "result.hpp"

namespace anyccl::python {

/// An operation that was issued, and the arrays that belong to it until it is complete.
struct Operation {
  Operation(Array in, Result out) : input(std::move(in)), result(std::move(out)) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() { static_cast<void>(anycclWorkFree(work)); }

  anycclWork_t work = nullptr;
  Array input;
  Result result;
};

/// One rank's communicator. Everything here is called with the interpreter lock held, which guards
/// the members, and releases it around calls that may take long.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// `make` calls the library, which writes the handle.
  template <typename Make>
  static std::shared_ptr<Communicator> made(const Make& make) {
    anycclComm_t handle = nullptr;
    raise_unless_ok(unlocked([&] { return make(&handle); }));
    return handle == nullptr ? nullptr : std::make_shared<Communicator>(handle);
  }
  explicit Communicator(anycclComm_t handle);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_destroyed() const { return handle_ == nullptr; }

  /// Runs `call` and returns the result; or, if `async`, issues it and returns a Work.
  nb::object run(anycclCall_t call, Array input, Result result, bool async);
  std::shared_ptr<Communicator> split(int color, int key);
  /// The exception that operations raise from now on, or None. Any thread.
  nb::object failure() const;
  std::string last_plan();
  /// Of the operations that are called from now on, in seconds; none: they wait for ever.
  std::optional<double> timeout() const;
  void set_timeout(std::optional<double> seconds);
  anycclRedOp_t create_pre_mul_sum(DType dtype, const void* factor);

  void destroy();
  void abort();

  /// Keeps an operation whose Work was dropped until it is complete.
  void adopt(std::unique_ptr<Operation> operation) {
    if (handle_ != nullptr) dropped_.push_back(std::move(operation));
  }
  /// Frees the operator at the next call.
  void retire(anycclRedOp_t op) { retired_.push_back(op); }

 private:
  class Call;  // one at a time

  void sweep();

  anycclComm_t handle_;
  int rank_ = 0, size_ = 0;
  unsigned int timeout_ms_ = 0;
  bool busy_ = false;
  const char* ended_ = "";
  std::vector<std::unique_ptr<Operation>> dropped_;
  std::vector<anycclRedOp_t> retired_;
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

/// An operation that was issued by run(). Any thread.
class Work {
 public:
  Work(CommunicatorPtr comm, std::unique_ptr<Operation> operation)
      : comm_(std::move(comm)), operation_(std::move(operation)) {}
  Work(Work&&) = default;
  ~Work();
  nb::object wait();
  bool test();
  bool done();
  /// The rank that a received message came from.
  int source();

 private:
  Outcome look();

  CommunicatorPtr comm_;
  std::unique_ptr<Operation> operation_;
  bool complete_ = false;
};

/// An operator of one communicator: each rank's input times its factor is summed.
struct PreMulSum {
  PreMulSum(CommunicatorPtr c, DType type, const void* factor)
      : comm(std::move(c)), dtype(type), op(comm->create_pre_mul_sum(type, factor)) {}
  PreMulSum(const PreMulSum&) = delete;
  PreMulSum& operator=(const PreMulSum&) = delete;
  ~PreMulSum() { comm->retire(op); }

  CommunicatorPtr comm;
  DType dtype;
  anycclRedOp_t op;
};

}  // namespace anyccl::python
