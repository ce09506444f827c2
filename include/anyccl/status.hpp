#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace anyccl {

/// Why something failed. The values are those of anycclResult_t: append only.
enum class Code : int {
  ok = 0,
  device_error = 1,      ///< A function of a device's driver failed; the message names it.
  system_error = 2,      ///< A system or library call failed, there is no memory, or a file cannot
                         ///< be written; the message says which.
  internal = 3,          ///< An anyccl invariant broke: please report it. Or verification has found
                         ///< a wrong result.
  invalid_argument = 4,  ///< An argument broke a documented precondition. The call has started
                         ///< nothing, but others of its group() or issue_all() may run, and
                         ///< sparse::pack() may have moved elements.
  invalid_usage = 5,     ///< Mostly, the calls do not fit together: other ranks called something
                         ///< else, or one came at a wrong time, as after a fork. Also, a function
                         ///< of a stream threw.
  remote_error = 6,      ///< A peer failed or disconnected; the message names its rank if known.
  in_progress = 7,       ///< Not finished yet. Not an error.
  unsupported = 8,       ///< Valid, but no algorithm, transport or device here can do it.
  timeout = 9,           ///< The deadline passed with work outstanding.
  aborted = 10,          ///< The communicator was aborted, revoked or shrunk, here or by a peer, or
                         ///< the program ended the wait of the call.
};

/// A code and, unless ok, words for a person. Copies share the words, so copying never throws; an
/// ok Status allocates nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : code_(code), message_(std::make_shared<const std::string>(std::move(message))) {}
  bool ok() const noexcept { return code_ == Code::ok; }
  Code code() const noexcept { return code_; }
  std::string_view message() const noexcept {
    return message_ ? std::string_view(*message_) : std::string_view();
  }

 private:
  Code code_ = Code::ok;
  std::shared_ptr<const std::string> message_;
};

/// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const noexcept { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Status status() const { return ok() ? Status{} : std::get<1>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace anyccl
