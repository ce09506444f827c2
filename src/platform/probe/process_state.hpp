#pragma once
// Reports of waits and dumps of communicators name the peers whose processes are stopped: the
// function here finds that out.

namespace anyccl::probe {

/// Whether the process is stopped by a signal (SIGSTOP, SIGTSTP) or a debugger, as /proc tells;
/// false if it tells nothing of it.
bool is_stopped(int pid);

}  // namespace anyccl::probe
