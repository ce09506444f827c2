#include "base/callback.hpp"

namespace anyccl {

thread_local constinit Callback detail::callback_here = Callback::none;

}  // namespace anyccl
