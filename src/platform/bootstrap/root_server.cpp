#include "platform/bootstrap/root_server.hpp"

#include <pthread.h>
#include <sys/eventfd.h>

#include <new>
#include <system_error>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "platform/bootstrap/root_loop.hpp"

namespace anyccl::bootstrap {

Result<std::unique_ptr<RootServer>> RootServer::start(std::vector<UniqueFd> listeners,
                                                      const Secret& secret, Trust trust,
                                                      RelayTree tree) {
  UniqueFd stop_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_event) return system_error(errno, "eventfd");
  ANYCCL_TRY(SocketSet sockets, SocketSet::make());
  const SignalsBlocked blocked;
  try {
    std::thread thread([loop = RootLoop(std::move(listeners), std::move(sockets), secret, trust,
                                        tree, stop_event.get())]() mutable {
      ::pthread_setname_np(::pthread_self(), "anyccl-root");
      try {
        loop.run();
      } catch (const std::bad_alloc&) {  // the ranks hear of it when their connections end
        log_text(LogLevel::warn, "rank 0 has no memory to bring the ranks together");
      }
    });
    return std::unique_ptr<RootServer>(new RootServer(std::move(stop_event), std::move(thread)));
  } catch (const std::system_error& problem) {
    return system_error(problem.code().value(), "starting the root server's thread");
  }
}

void RootServer::end(bool when_told) {
  if (!thread_.joinable()) return;
  if (::getpid() != owner_) {
    thread_.detach();  // It does not exist in this process.
    return;
  }
  const std::uint64_t how = when_told ? RootLoop::kStopWhenTold : RootLoop::kStopNow;
  // Cannot fail: the counter is far from its limit.
  [[maybe_unused]] const ssize_t written = ::write(stop_event_.get(), &how, sizeof how);
  thread_.join();
}

}  // namespace anyccl::bootstrap
