#include "perf/comm.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "c/handle.hpp"
#include "framework/communicator/planning.hpp"

namespace anyccl::cli {
namespace {

Status to_status(anycclResult_t result, anycclComm_t comm, std::string_view who,
                 std::string_view call) {
  if (result == anycclSuccess) return {};
  std::string_view reason = anycclGetLastError(comm);
  if (reason.empty()) reason = anycclGetErrorString(result);
  return error(static_cast<Code>(result), "{}{}: {}", who, call, reason);
}

}  // namespace

Result<Comm> Comm::wrap(anycclComm_t handle) {
  Comm comm(handle);
  ANYCCL_CHECK(comm.check(anycclCommUserRank(handle, &comm.rank_), "anycclCommUserRank"));
  ANYCCL_CHECK(comm.check(anycclCommCount(handle, &comm.ranks_), "anycclCommCount"));
  return comm;
}

Result<Comm> Comm::join() {
  anycclComm_t handle = nullptr;
  ANYCCL_CHECK(to_status(anycclCommInitEnv(&handle), nullptr, "", "anycclCommInitEnv"));
  return wrap(handle);
}

Result<std::vector<Comm>> Comm::make_all(int ranks) {
  std::vector<anycclComm_t> handles(static_cast<std::size_t>(ranks));
  ANYCCL_CHECK(to_status(anycclCommInitAll(handles.data(), ranks, nullptr), nullptr, "",
                         "anycclCommInitAll"));
  std::vector<Comm> comms;
  for (const anycclComm_t handle : handles) {
    ANYCCL_TRY(Comm comm, wrap(handle));
    comms.push_back(std::move(comm));
  }
  return comms;
}

Result<std::optional<Comm>> Comm::split(int color) const {
  anycclComm_t part = nullptr;
  ANYCCL_CHECK(
      check(anycclCommSplit(handle_, std::max(color, ANYCCL_SPLIT_NOCOLOR), rank_, &part, nullptr),
            "anycclCommSplit"));
  if (part == nullptr) return std::optional<Comm>();
  ANYCCL_TRY(Comm comm, wrap(part));
  return std::optional<Comm>(std::move(comm));
}

Comm::~Comm() {
  if (handle_ != nullptr) anycclCommDestroy(handle_);
}

void Comm::use(const Algorithm* algorithm) const {
  Planning(*handle_->comm).set_policy({.measured = algorithm});
}

void Comm::abort() {
  anycclCommAbort(std::exchange(handle_, nullptr));
}

Status Comm::check(anycclResult_t result, const char* call) const {
  if (result == anycclSuccess) return {};
  return to_status(result, handle_, fmt::format("rank {}: ", rank_), call);
}

Status Comm::barrier() const {
  return check(anycclBarrier(handle_, nullptr), "anycclBarrier");
}

Status Comm::reduce(std::span<std::int64_t> numbers, anycclRedOp_t redop) const {
  return check(anycclAllReduce(numbers.data(), numbers.data(), numbers.size(), anycclInt64, redop,
                               handle_, nullptr),
               "anycclAllReduce of the measurements");
}

Result<std::string> Comm::last_plan() const {
  const char* text = nullptr;
  ANYCCL_CHECK(check(anycclCommLastPlan(handle_, &text), "anycclCommLastPlan"));
  return std::string(text);
}

}  // namespace anyccl::cli
