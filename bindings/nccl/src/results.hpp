#pragma once
// Results of calls as NCCL numbers them, and the words of ncclGetLastError.

#include <string>

#include "anyccl/anyccl.h"
#include "nccl.h"

namespace anyccl::nccl {

/// ncclTimeout, which NCCL has since 2.30.
inline constexpr auto kTimeout = static_cast<ncclResult_t>(8);

/// The number of a result in NCCL, where Unsupported, Timeout and Aborted are none of their own.
ncclResult_t to_nccl(anycclResult_t result);

/// Returns what a call of anyccl has returned, as to_nccl() does. The words of an error are
/// anyccl's: those that refuse() has kept are forgotten.
ncclResult_t passed_on(anycclResult_t result);

/// Returns `code` for a call that does not reach anyccl, and keeps the words in this thread for
/// ncclGetLastError of `comm` (null: of any). A group that the call is in fails.
ncclResult_t refuse(ncclComm_t comm, ncclResult_t code, std::string words);

/// The words of the last error, see ncclGetLastError.
const char* last_words(ncclComm_t comm);

/// After anycclGroupStart. The group of this thread, or one inside it, has begun.
void group_has_begun();
/// After anycclGroupEnd, which has returned `result`: the result of the group. That is the first
/// error in it, whether of refuse() or of anyccl.
ncclResult_t group_has_ended(anycclResult_t result);

}  // namespace anyccl::nccl
