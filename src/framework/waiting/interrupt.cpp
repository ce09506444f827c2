#include "framework/waiting/interrupt.hpp"

namespace anyccl {

thread_local constinit InterruptCheck interrupt_check_of_thread;

}  // namespace anyccl
