#include "config.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "results.hpp"

namespace anyccl::nccl {
namespace {

// Bytes of ncclConfig_t: 2.21 to 2.26, 2.27, 2.28, 2.29, 2.30. Fields are only added, at the end.
constexpr std::array<std::size_t, 5> kSizes = {48, 72, 80, 88, 96};
static_assert(sizeof(ncclConfig_t) == kSizes[3]);

// Relaxed: it is a number of its own, and any program has one version alone.
std::atomic<int> version_of_program{0};

bool is_of_a_version(std::size_t size) {
  return size > kSizes.back() || std::find(kSizes.begin(), kSizes.end(), size) != kSizes.end();
}

void note_version(unsigned int version) {
  constexpr unsigned int kFirst = NCCL_VERSION(2, 14, 0), kLast = 99999;
  if (version >= kFirst && version <= kLast)
    version_of_program.store(static_cast<int>(version), std::memory_order_relaxed);
}

}  // namespace

ncclResult_t read_config(const ncclConfig_t* given, ncclComm_t comm, CallConfig& config) {
  if (given == nullptr) return ncclSuccess;
  if (given->magic != NCCL_API_MAGIC)
    return refuse(comm, ncclInvalidArgument,
                  "config is not initialized: start from NCCL_CONFIG_INITIALIZER");
  if (!is_of_a_version(given->size))
    return refuse(comm, ncclInvalidArgument,
                  "config has " + std::to_string(given->size) +
                      " bytes, as it has in no version of NCCL since 2.21");
  note_version(given->version);
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  std::memcpy(&known, given, std::min(given->size, sizeof known));
  config.is_given = true;
  config.fields.blocking = known.blocking;
  config.fields.commName = known.commName;
  return ncclSuccess;
}

int program_version() {
  const int version = version_of_program.load(std::memory_order_relaxed);
  return version == 0 ? NCCL_VERSION_CODE : version;
}

}  // namespace anyccl::nccl
