#include "platform/link/chaos.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace anyccl::link {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::uint64_t Chaos::Dice::roll() {
  std::uint64_t x = state_ += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

bool Chaos::Dice::happens(double probability) {
  return probability > 0 && static_cast<double>(roll() >> 11) * 0x1p-53 < probability;
}

std::uint64_t Chaos::Dice::roll_failures(double probability) {
  constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  if (probability <= 0) return kNever;
  if (probability >= 1) return 0;
  const double share = (static_cast<double>(roll() >> 11) + 1) * 0x1p-53;  // in (0, 1]
  const double count = std::log(share) / std::log1p(-probability);
  return count < 0x1p63 ? static_cast<std::uint64_t>(count) : kNever;
}

Chaos::Chaos(const ChaosPlan& plan)
    : plan_(plan),
      frames_(plan.seed),
      writes_(frames_.roll()),
      reads_(writes_.roll()),
      flips_(reads_.roll()),
      cuts_(flips_.roll()),
      until_cut_(cuts_.roll_failures(plan.cut)),
      until_flip_(flips_.roll_failures(plan.corrupt)) {}

int Chaos::roll_copies() {
  if (frames_.happens(plan_.drop)) return 0;
  return frames_.happens(plan_.duplicate) ? 2 : 1;
}

std::size_t Chaos::roll_part_of(std::size_t bytes, Dice& dice) {
  if (bytes < 2 || !dice.happens(plan_.partial)) return bytes;
  return 1 + dice.roll() % (bytes - 1);
}

void Chaos::note_connected() {
  if (until_cut_ == 0) until_cut_ = cuts_.roll_failures(plan_.cut);
  ended_ = false;
}

ssize_t Chaos::write(int fd, const msghdr& message) {
  const std::span<const iovec> all(message.msg_iov, message.msg_iovlen);
  std::size_t bytes = 0;
  for (const iovec& part : all) bytes += part.iov_len;
  std::size_t left = std::min<std::uint64_t>(roll_part_of(bytes, writes_), until_cut_);
  if (left == 0 && bytes > 0) {
    ::shutdown(fd, SHUT_RDWR);
    errno = EPIPE;
    return -1;
  }
  std::vector<iovec> some(all.size());
  msghdr limited = message;
  limited.msg_iov = some.data();
  limited.msg_iovlen = 0;
  for (const iovec& part : all) {
    if (left == 0) break;
    some[limited.msg_iovlen++] = {part.iov_base, std::min(part.iov_len, left)};
    left -= std::min(part.iov_len, left);
  }
  const ssize_t n = ::sendmsg(fd, &limited, MSG_NOSIGNAL);
  if (n > 0) until_cut_ -= static_cast<std::uint64_t>(n);
  // What the peer said last comes before the end of the connection, so it is late no more.
  ended_ |= n < 0 && (errno == EPIPE || errno == ECONNRESET);
  return n;
}

bool Chaos::holds_back() const {
  return !ended_ && readable_ != Clock::time_point{} && Clock::now() < readable_;
}

/// To what may be read.
void Chaos::shorten(std::span<iovec> parts) {
  std::size_t most = 0;
  for (const iovec& part : parts) most += part.iov_len;
  most = roll_part_of(most, reads_);
  for (iovec& part : parts) {
    part.iov_len = std::min(part.iov_len, most);
    most -= part.iov_len;
  }
}

ssize_t Chaos::send(int fd, std::span<const std::byte> bytes) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return write(fd, message);
}

ssize_t Chaos::receive(int fd, std::span<std::byte> into) {
  iovec part{into.data(), into.size()};
  return read({&part, 1}, [&] { return ::recv(fd, part.iov_base, part.iov_len, 0); });
}

void Chaos::has_read(std::span<const iovec> parts, std::size_t bytes) {
  std::chrono::duration<double> pause{0};
  if (reads_.happens(plan_.delay)) pause += plan_.delay_time;
  if (plan_.slow > 0)
    pause +=
        std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(plan_.slow));
  if (pause.count() > 0)
    readable_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause);
  for (const iovec& part : parts) {
    const std::size_t here = std::min(part.iov_len, bytes);
    flip_bits({static_cast<std::byte*>(part.iov_base), here});
    bytes -= here;
  }
}

void Chaos::flip_bits(std::span<std::byte> bytes) {
  while (until_flip_ < bytes.size()) {
    bytes[until_flip_] ^= std::byte{1} << (flips_.roll() % 8);
    bytes = bytes.subspan(until_flip_ + 1);
    until_flip_ = flips_.roll_failures(plan_.corrupt);
  }
  until_flip_ -= bytes.size();
}

}  // namespace anyccl::link
