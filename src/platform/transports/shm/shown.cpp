#include "platform/transports/shm/shown.hpp"

#include <mutex>
#include <unordered_map>

#include "base/error.hpp"
#include "base/per_process.hpp"

namespace anyccl::shm {
namespace {

/// What ranks that are threads of this process show each other, by its number.
class ShownToThreads {
 public:
  std::uint64_t add(const std::shared_ptr<const Shown>& shown) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& one) { return one.second.expired(); });
    all_.emplace(++last_, shown);
    return last_;
  }
  std::shared_ptr<const Shown> find(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(number);
    return found == all_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<const Shown>> all_;
  std::uint64_t last_ = 0;
};

}  // namespace

Result<std::shared_ptr<Shown>> Shown::make(std::size_t read_bytes, std::size_t written_bytes) {
  auto made = std::make_shared<Shown>();
  ANYCCL_TRY(made->read_, create_shared(read_bytes, false, "memory that peers read"));
  ANYCCL_TRY(made->written_, create_shared(written_bytes, true, "memory that peers write"));
  ANYCCL_CHECK(populate(made->read_, 0, read_bytes));
  ANYCCL_CHECK(populate(made->written_, 0, written_bytes));
  made->number_ = per_process<ShownToThreads>().add(made);
  return made;
}

Result<std::shared_ptr<const Shown>> Shown::take(const ControlMessage& message,
                                                 const Descriptors& fds, bool same_process) {
  if (same_process) {
    auto shown = per_process<ShownToThreads>().find(message.number);
    if (shown == nullptr) return error(Code::remote_error, "a peer has given up");
    return shown;
  }
  auto shown = std::make_shared<Shown>();
  ANYCCL_TRY(shown->read_.mapping,
             map_peer(fds[0].get(), message.bytes, Access::read, "memory that a peer shows"));
  ANYCCL_TRY(shown->written_.mapping, map_peer(fds[1].get(), message.position, Access::write,
                                               "memory that a peer lets others write"));
  return std::shared_ptr<const Shown>(std::move(shown));
}

Status Shown::tell(const std::shared_ptr<Shown>& mine, link::Channel& to, bool same_process) {
  ControlMessage message;
  message.kind = ControlMessage::shown;
  message.number = mine->number_;
  message.bytes = mine->read_.mapping.size();
  message.position = mine->written_.mapping.size();
  if (same_process) return send(to, message);
  return send(to, message, {mine->read_.fd.get(), mine->written_.fd.get()});
}

}  // namespace anyccl::shm
