#pragma once
// Groups of calls (anyccl.hpp includes this).

#include <string>
#include <type_traits>
#include <utility>

#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"

namespace anyccl {

namespace detail {
/// A group() that is under way in this thread.
struct OpenGroup {
  Status error;        ///< The first one of its calls that the library did not hear of.
  bool ended = false;  ///< By GroupEnd or GroupSimulateEnd.
  OpenGroup* const outer = nullptr;
};
inline thread_local constinit OpenGroup* open_group = nullptr;

/// An error that came before the library was called; in a group(), nothing starts then.
inline Status refused(Status error) {
  if (open_group != nullptr && open_group->error.ok()) open_group->error = error;
  return error;
}
inline Status refused(Code code, std::string message) {
  return refused(Status(code, std::move(message)));
}

/// Runs nothing of the thread's group.
inline void discard_group() {
  anycclSimInfo_t info = ANYCCL_SIM_INFO_INITIALIZER;
  static_cast<void>(anycclGroupSimulateEnd(&info));
}

/// Opens a group and, whatever happens, closes it.
class GroupScope {
 public:
  GroupScope() : state_{{}, false, open_group} {
    static_cast<void>(anycclGroupStart());
    open_group = &state_;
  }
  ~GroupScope() {
    open_group = state_.outer;
    if (state_.ended) return;
    if (open_group != nullptr)  // which the calls of this one were a part of
      static_cast<void>(refused(Code::invalid_usage, "a group in the group ended by an exception"));
    discard_group();
  }
  GroupScope(const GroupScope&) = delete;
  GroupScope& operator=(const GroupScope&) = delete;

  /// Calls `function`, whose own Status, if it returns one, counts as that of a call.
  template <typename Function>
  void run(Function& function) {
    if constexpr (std::is_void_v<std::invoke_result_t<Function&>>) {
      function();
    } else {
      const Status status = function();
      if (!status.ok()) static_cast<void>(refused(status));
    }
  }
  /// The first error of its calls that the library did not hear of; an outer group has it, too.
  Status error() const {
    if (state_.outer != nullptr && state_.outer->error.ok()) state_.outer->error = state_.error;
    return state_.error;
  }
  bool is_inner() const { return state_.outer != nullptr; }
  Status end() {
    state_.ended = true;
    const Status failed = error();
    if (!failed.ok()) {
      discard_group();
      return failed;
    }
    const anycclResult_t result = anycclGroupEnd();
    return result == anycclInProgress ? Status{} : status_of(result);  // ready() says when
  }
  Result<float> predict() {
    state_.ended = true;
    anycclSimInfo_t info = ANYCCL_SIM_INFO_INITIALIZER;
    const Status status = status_of(anycclGroupSimulateEnd(&info));
    if (const Status failed = error(); !failed.ok()) return failed;
    if (!status.ok()) return status;
    return info.estimatedTime;
  }

 private:
  OpenGroup state_;
};
}  // namespace detail

/// Issues all calls of function() together, when it has returned: sends and receives among them
/// cannot wait for each other, also of several communicators or of several ranks of this thread,
/// and small collectives may travel as one. Returns when all without a stream are complete; those
/// with streams go to the ends of these. See anycclGroupStart.
///
/// The calls return an empty Work: the end of the group is what there is to wait for. A group in a
/// group is a part of it: the outer one returns the errors that the library finds in it. Not for
/// make_parts(), nor for what gives a value, as from_unique_id() and split(): there are join() and
/// split_into(). These begin at once: start(), calls on streams, from_env(), init_all(), revoke(),
/// destroy(), abort(), and what makes a communicator without blocking.
/// Errors: the first one that a call returned, one that headers find, such as shapes that do not
///         fit, before others, or what function() returns, if that is a Status; then nothing was
///         started, nor after an exception. What the library finds at the end of the group, such as
///         a rank that does not exist, is returned, too.
template <typename Function>
Status group(Function&& function) {
  detail::GroupScope scope;
  scope.run(function);
  return scope.end();
}

/// Starts none of the calls of function() but those that begin at once, see group(), and says how
/// many microseconds the others should take, by the model of `anyccl explain`. See
/// anycclGroupSimulateEnd.
///
/// Errors: as group(); invalid_usage inside a group(). Not after anycclGroupStart.
template <typename Function>
Result<float> simulate_group(Function&& function) {
  if (detail::open_group != nullptr)
    return detail::refused(Code::invalid_usage, "simulate_group: not inside a group");
  detail::GroupScope scope;
  scope.run(function);
  return scope.predict();
}

}  // namespace anyccl
