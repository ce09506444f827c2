#include "framework/communicator/comm_memory.hpp"

#include <algorithm>

namespace anyccl {

std::size_t CommMemory::bytes() {
  if (comm_.forked()) return 0;
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  return bytes_here();
}

std::size_t CommMemory::bytes_here() const {
  std::size_t sum = comm_.queue_.memory_bytes();
  for (Transport* t : comm_.routes_.transports) sum += t->memory_bytes();
  return sum;
}

GivenBack CommMemory::give_back() {
  if (comm_.forked() || comm_.failure_.happened()) return GivenBack::all;
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  if (!progress_lock.try_lock()) return GivenBack::unread;
  GivenBack worst = GivenBack::all;
  for (Transport* t : comm_.routes_.transports) worst = std::max(worst, t->give_back());
  return worst;
}

}  // namespace anyccl
