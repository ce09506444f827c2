#include "results.hpp"

#include <utility>

#include "config.hpp"
#include "handles.hpp"
#include "second_name.hpp"

namespace anyccl::nccl {
namespace {

constexpr int kVersionWithTimeout = 23000;

/// An error that was found here, and not by anyccl.
struct Refusal {
  ncclComm_t comm = nullptr;
  ncclResult_t code = ncclSuccess;  ///< Success: there is none.
  std::string words;
};

/// What this thread has heard last, and its groups.
struct Heard {
  Refusal last;             ///< None, if the last error was anyccl's.
  int groups = 0;           ///< Groups inside each other that have begun.
  bool has_failed = false;  ///< Whether a call of the group has.
  Refusal first;            ///< The first error of the group; none, if it was anyccl's.
};

thread_local Heard heard;

void note_in_group(const Refusal& error) {
  if (heard.groups == 0 || heard.has_failed) return;
  heard.has_failed = true;
  heard.first = error;
}

}  // namespace

ncclResult_t to_nccl(anycclResult_t result) {
  if (result == anycclUnsupported) return ncclInvalidUsage;
  if (result == anycclTimeout)
    return program_version() < kVersionWithTimeout ? ncclRemoteError : kTimeout;
  if (result == anycclAborted) return ncclInternalError;
  return static_cast<ncclResult_t>(result);
}

ncclResult_t passed_on(anycclResult_t result) {
  if (result == anycclSuccess) return ncclSuccess;
  heard.last = {};
  if (result != anycclInProgress) note_in_group({});
  return to_nccl(result);
}

ncclResult_t refuse(ncclComm_t comm, ncclResult_t code, std::string words) {
  anycclCommCount(nullptr, nullptr);  // an error of anyccl, too, so that its group fails
  heard.last = {comm, code, std::move(words)};
  note_in_group(heard.last);
  return code;
}

const char* last_words(ncclComm_t comm) {
  const Refusal& last = heard.last;
  const bool is_asked_for = comm == nullptr || last.comm == nullptr || comm == last.comm;
  if (last.code != ncclSuccess && is_asked_for) return last.words.c_str();
  return anycclGetLastError(to_anyccl(comm));
}

void group_has_begun() {
  ++heard.groups;
}

ncclResult_t group_has_ended(anycclResult_t result) {
  if (heard.groups > 0) --heard.groups;
  if (heard.groups > 0) return passed_on(result);
  const Refusal first = std::exchange(heard.first, {});
  heard.has_failed = false;
  if (result == anycclSuccess || first.code == ncclSuccess) return passed_on(result);
  heard.last = first;
  return first.code;
}

}  // namespace anyccl::nccl

using namespace anyccl::nccl;

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "a device call failed";
    case ncclSystemError:
      return "a system call failed";
    case ncclInternalError:
      return "the communicator was aborted, or an internal check failed";
    case ncclInvalidArgument:
      return "an argument is invalid";
    case ncclInvalidUsage:
      return "the call is not supported, came at a wrong time, or was another one on other ranks";
    case ncclRemoteError:
      return "a peer failed or went away, or did not come in time";
    case ncclInProgress:
      return "not finished yet";
    case ncclNumResults:  // kTimeout
      return "the time limit has passed";
  }
  return "an unknown result code";
}
ANYCCL_SECOND_NAME(ncclGetErrorString);

const char* ncclGetLastError(ncclComm_t comm) {
  return last_words(comm);
}
ANYCCL_SECOND_NAME(ncclGetLastError);

void ncclResetDebugInit() {}
ANYCCL_SECOND_NAME(ncclResetDebugInit);

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return refuse(nullptr, ncclInvalidArgument, "version is NULL");
  *version = program_version();
  return ncclSuccess;
}
ANYCCL_SECOND_NAME(ncclGetVersion);
