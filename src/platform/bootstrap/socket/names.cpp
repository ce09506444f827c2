#include "platform/bootstrap/socket/names.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/condition.hpp"
#include "base/error.hpp"
#include "base/signals.hpp"

namespace anyccl::bootstrap {
namespace {

/// `flags`: of getaddrinfo().
Result<std::vector<Address>> look_up(const std::string& host, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* head = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), nullptr, &wanted, &head);
  if (problem != 0) {
    const bool may_pass = problem == EAI_AGAIN || problem == EAI_SYSTEM || problem == EAI_MEMORY;
    const Code code = may_pass ? Code::system_error : Code::invalid_argument;
    return error(code, "cannot find the address of {}: {}", host, ::gai_strerror(problem));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(head, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* i = list.get(); i != nullptr; i = i->ai_next) {
    const Address address = to_address(*i->ai_addr);
    const bool fresh = std::find(addresses.begin(), addresses.end(), address) == addresses.end();
    if (address.family != 0 && fresh) addresses.push_back(address);
  }
  if (addresses.empty()) return error(Code::invalid_argument, "{} has no internet address", host);
  return addresses;
}

/// Shared with the thread that looks the name up, which may outlive its caller.
struct LookUp {
  std::string host;
  std::mutex mutex;
  Condition found;
  std::optional<Result<std::vector<Address>>> result;
};

Status start_look_up(const std::shared_ptr<LookUp>& lookup) {
  const SignalsBlocked blocked;
  try {
    std::thread([lookup] {
      ::pthread_setname_np(::pthread_self(), "anyccl-names");
      auto result = look_up(lookup->host, 0);
      const std::lock_guard lock(lookup->mutex);
      lookup->result = std::move(result);
      lookup->found.notify_all();
    }).detach();
    return {};
  } catch (const std::system_error& problem) {
    return system_error(problem.code().value(), "starting a thread that looks up {}", lookup->host);
  }
}

Result<std::vector<Address>> look_up_until(const std::string& host, Deadline deadline) {
  const auto lookup = std::make_shared<LookUp>();
  lookup->host = host;
  ANYCCL_CHECK(start_look_up(lookup));
  std::unique_lock lock(lookup->mutex);
  while (!lookup->result) {
    if (deadline.passed())
      return error(Code::timeout,
                   "cannot find the address of {}: the name service did not answer in time", host);
    lookup->found.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms(60000)));
  }
  return *std::move(lookup->result);
}

}  // namespace

bool is_numeric(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port,
                                     Deadline deadline) {
  Result<std::vector<Address>> found = look_up(host, AI_NUMERICHOST);  // asks nobody
  if (!found.ok()) found = look_up_until(host, deadline);
  if (!found.ok()) return found;
  for (Address& address : *found) address.port = port;
  return found;
}

}  // namespace anyccl::bootstrap
