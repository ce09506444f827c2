#include "platform/link/resend.hpp"

#include <utility>

namespace anyccl::link {

bool Resend::note_acknowledged(std::uint64_t received) {
  if (received > begin_ + kept_.size()) return false;
  if (received < begin_ + dropped_) return true;
  dropped_ = static_cast<std::size_t>(received - begin_);
  // Moving the rest costs as much as was sent since.
  if (dropped_ < kept_.size() / 2) return true;
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(dropped_));
  begin_ += std::exchange(dropped_, 0);
  return true;
}

std::optional<std::vector<std::byte>> Resend::take_rest(std::uint64_t received) {
  if (received < begin_ + dropped_ || !note_acknowledged(received)) return std::nullopt;
  std::vector<std::byte> rest = std::exchange(kept_, {});
  rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(dropped_));
  begin_ += std::exchange(dropped_, 0);
  return rest;
}

}  // namespace anyccl::link
