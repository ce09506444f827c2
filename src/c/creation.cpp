// The C interface: what calls that create communicators have in common.

#include "c/creation.hpp"

#include "base/error.hpp"
#include "base/verify_limits.hpp"
#include "platform/device/devices.hpp"

namespace anyccl {
namespace {

/// A size of the configuration; 0: not set. What is wrong with it is found later, but for numbers
/// that are none.
Result<std::size_t> size_in(int bytes, const char* field) {
  if (bytes == ANYCCL_CONFIG_UNDEF_INT) return std::size_t{0};
  if (bytes > 0) return static_cast<std::size_t>(bytes);
  return error(Code::invalid_argument, "config->{} is {} bytes", field, bytes);
}

/// The time limit of operations; absent: the configuration says nothing of it.
Result<std::optional<std::chrono::milliseconds>> time_limit_in(int milliseconds) {
  if (milliseconds == ANYCCL_CONFIG_UNDEF_INT) return std::optional<std::chrono::milliseconds>();
  if (milliseconds >= 0) return std::optional(std::chrono::milliseconds(milliseconds));
  return error(Code::invalid_argument, "config->timeoutMs is {} ms", milliseconds);
}

/// The time limit of the creation; absent: the configuration says nothing of it.
Result<std::optional<std::chrono::milliseconds>> creation_limit_in(int milliseconds) {
  constexpr int kDay = 24 * 3600 * 1000;  // the most of ANYCCL_TIMEOUT, too
  if (milliseconds == ANYCCL_CONFIG_UNDEF_INT) return std::optional<std::chrono::milliseconds>();
  if (milliseconds >= 1 && milliseconds <= kDay)
    return std::optional(std::chrono::milliseconds(milliseconds));
  return error(Code::invalid_argument, "config->createTimeoutMs is {} ms instead of 1 to {}",
               milliseconds, kDay);
}

/// -1: the configuration says nothing of it.
Result<int> number_in(int number, const char* field, int most) {
  if (number == ANYCCL_CONFIG_UNDEF_INT) return -1;
  if (number >= 0 && number <= most) return number;
  return error(Code::invalid_argument, "config->{} is {} instead of 0 to {}", field, number, most);
}

/// Whether calls are to wait; `usual`: where the configuration does not say so. Errors: also where
/// it is no configuration of this version.
Result<bool> is_blocking(const anycclConfig_t& config, bool usual) {
  constexpr anycclConfig_t kInitial = ANYCCL_CONFIG_INITIALIZER;
  if (config.size != kInitial.size || config.magic != kInitial.magic)
    return error(Code::invalid_argument,
                 "config was not set to ANYCCL_CONFIG_INITIALIZER, or for another version");
  if (config.blocking == ANYCCL_CONFIG_UNDEF_INT) return usual;
  if (config.blocking != 0 && config.blocking != 1)
    return error(Code::invalid_argument, "config->blocking is {} instead of 0 or 1",
                 config.blocking);
  return config.blocking == 1;
}

/// With what is wrong with them.
CommSettings settings_in(const anycclConfig_t& config) {
  CommSettings settings;
  if (config.algo != nullptr) settings.algo = config.algo;
  if (config.proto != nullptr) settings.proto = config.proto;
  const auto chunk = size_in(config.chunkBytes, "chunkBytes");
  const auto buffer = size_in(config.buffSize, "buffSize");
  const auto time_limit = time_limit_in(config.timeoutMs);
  const auto creation_limit = creation_limit_in(config.createTimeoutMs);
  const auto level = level_in(config.reproducible);
  const auto verify = number_in(config.verify, "verify", kMostVerify);
  const auto later = number_in(config.verifyLater, "verifyLater", 1);
  const auto queues = number_in(config.deviceQueues, "deviceQueues", 1);
  for (const Status& status :
       {chunk.status(), buffer.status(), time_limit.status(), creation_limit.status(),
        level.status(), verify.status(), later.status(), queues.status()})
    if (settings.problem.ok()) settings.problem = status;
  if (settings.problem.ok()) {
    settings.level = *level;
    settings.verify = *verify;
    settings.verify_later = *later;
    settings.device_queues = *queues;
    settings.time_limit = *time_limit;
    settings.creation_limit = *creation_limit;
    settings.chunk_bytes = *chunk;
    settings.buffer_bytes = *buffer;
  }
  return settings;
}

}  // namespace

std::chrono::milliseconds creation_limit(const CommSettings& settings) {
  if (settings.creation_limit) return *settings.creation_limit;
  const auto read = settings.environment == nullptr ? read_config() : *settings.environment;
  const double seconds = read.ok() ? read->timeout_s : Config().timeout_s;
  return std::chrono::milliseconds(std::max(1L, static_cast<long>(seconds * 1000)));
}

Result<int> level_in(int level) {
  if (level == ANYCCL_CONFIG_UNDEF_INT) return -1;
  if (level >= 0 && level <= kMostLevel) return level;
  return error(Code::invalid_argument, "config->reproducible is {} instead of 0 to {}", level,
               kMostLevel);
}

Creation creation_in(const anycclConfig_t* config, Status problem, const anycclComm* parent) {
  Creation creation;
  creation.blocking = parent == nullptr || parent->blocking;
  if (config != nullptr) {
    const Result<bool> blocking = is_blocking(*config, creation.blocking);
    if (blocking.ok()) {
      creation.settings = settings_in(*config);
      creation.blocking = *blocking;
      if (config->commName != nullptr) creation.name = config->commName;
    } else {
      creation.settings.problem = blocking.status();
    }
  }
  creation.settings.environment = std::make_shared<const Result<Config>>(read_config());
  creation.device =
      std::make_shared<NewDevice>(parent == nullptr           ? device_in_use()
                                  : parent->copies != nullptr ? parent->copies->shared_device()
                                                              : nullptr,
                                  creation_limit(creation.settings));
  if (!problem.ok()) creation.settings.problem = std::move(problem);
  return creation;
}

anycclComm_t make_handle(CommPtr comm, std::string name, const NewDevice& device) {
  auto* handle = new anycclComm;
  handle->name = std::move(name);
  handle->set_device(device.copies());
  handle->device.set_queues(device.queues());
  const std::lock_guard lock(handle->mutex);
  handle->set(std::move(comm));
  return handle;
}

Status begin(anycclComm_t* comm, std::string name, std::shared_ptr<NewDevice> device,
             std::shared_ptr<Background> background) {
  auto handle = std::make_unique<anycclComm>();
  handle->name = std::move(name);
  handle->set_device(device->copies());
  handle->device.coming = std::move(device);
  handle->blocking = false;
  handle->background.own = std::move(background);
  *comm = handle.release();
  return Status(Code::in_progress, "the communicator is being created");
}

Result<std::shared_ptr<Team>> keep(anycclComm_t comm) {
  ANYCCL_CHECK(need_comm(comm));
  const std::lock_guard lock(comm->mutex);
  return comm->team;
}

}  // namespace anyccl
