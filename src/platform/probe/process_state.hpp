#pragma once

namespace anyccl::probe {

/// Whether the process is stopped by a signal (SIGSTOP, SIGTSTP) or a debugger, as /proc tells;
/// false if it tells nothing of it.
bool is_stopped(int pid);

}  // namespace anyccl::probe
