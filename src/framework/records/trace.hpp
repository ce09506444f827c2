#pragma once
// A communicator writes its recorded operations as a trace here, where ANYCCL_TRACE asks for one.

#include <string>

#include "framework/call/recorder.hpp"
#include "framework/membership/membership.hpp"

namespace anyccl {

/// The operations of one rank in one communicator as Chrome's trace events, which Perfetto shows
/// and `anyccl trace` puts beside those of other ranks; docs/observe/trace.md has the fields.
std::string trace_text(const Membership& me, const RecordedCalls& calls);

}  // namespace anyccl
