#pragma once
// A signal that the program does not use asks for dumps of all communicators (ANYCCL_DUMP_SIGNAL).

namespace anyccl {

/// The signal asks for dumps from now on. False: the program has a handler of its own for it, which
/// is logged.
bool take_dump_signal(int signal);
/// Whether the signal has come since the last call.
bool dumps_were_asked_for();

}  // namespace anyccl
