#include "simulate/devices/command_log.hpp"

namespace anyccl::cli {
namespace {

/// Handles are numbers from 1.
template <typename Handle>
Handle handle_of(std::size_t number) {
  return reinterpret_cast<Handle>(number);
}
template <typename Handle>
std::size_t number_of(Handle handle) {
  return reinterpret_cast<std::size_t>(handle);
}

}  // namespace

Result<DeviceQueue> CommandLog::make_queue(bool) {
  return handle_of<DeviceQueue>(++queues_);
}

Result<DeviceMoment> CommandLog::make_moment() {
  moments_.push_back(0);
  return handle_of<DeviceMoment>(moments_.size());
}

Status CommandLog::add(DeviceQueue queue, Command command) {
  command.queue = static_cast<std::uint32_t>(number_of(queue) - 1);
  commands_.push_back(command);
  return {};
}

Status CommandLog::copy(DeviceQueue queue, void* to, const void* from, std::size_t bytes) {
  const auto size = static_cast<double>(bytes);
  Command command{.begin_s = costs_.copy_s};
  if (is_own(to) && is_own(from))
    command.compute_s = 2 * size / costs_.device_bytes_per_s;
  else
    (is_own(to) ? command.from_s : command.to_s) = size / costs_.link_bytes_per_s;
  return add(queue, command);
}

/// All element types of a call take 4 bytes here.
Status CommandLog::reduce(DeviceQueue queue, Reduction, void* dst,
                          std::span<const void* const> sources, std::size_t count) {
  const double size = 4 * static_cast<double>(count);
  Command command{.begin_s = costs_.kernel_s};
  const auto touch = [&](const void* at, double& link_s) {
    if (is_own(at))
      command.compute_s += size / costs_.device_bytes_per_s;
    else
      link_s += size / costs_.link_bytes_per_s;
  };
  touch(dst, command.to_s);
  for (const void* const source : sources) touch(source, command.from_s);
  constexpr double kLastRead = 1.2e-6, kLastWrite = 0.6e-6;  // over a link
  command.after_s = command.from_s > 0 ? kLastRead : command.to_s > 0 ? kLastWrite : 0;
  return add(queue, command);
}

Status CommandLog::wait_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t at_least) {
  return add(queue, {.kind = Command::wait_word, .number = at_least, .word = word});
}

Status CommandLog::write_word(DeviceQueue queue, std::uint32_t* word, std::uint32_t value) {
  return add(queue, {.kind = Command::write_word, .number = value, .word = word});
}

Status CommandLog::record(DeviceQueue queue, DeviceMoment moment) {
  moments_[number_of(moment) - 1] = ++places_;
  return add(queue, {.kind = Command::record, .number = places_});
}

Status CommandLog::wait(DeviceQueue queue, DeviceMoment moment) {
  return add(queue, {.kind = Command::wait, .number = moments_[number_of(moment) - 1]});
}

}  // namespace anyccl::cli
