// The C interface: collectives with a configuration of their own.

#include <algorithm>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "c/calls.hpp"
#include "c/creation.hpp"
#include "framework/communicator/planning.hpp"
#include "framework/tuning/order_needs.hpp"

namespace anyccl {
namespace {

/// A field that is a type; absent: not set.
Result<std::optional<DType>> type_in(int value, std::string_view field) {
  if (value == ANYCCL_CONFIG_UNDEF_INT) return std::optional<DType>();
  const auto type = static_cast<DType>(value);
  if (value >= 0 && bytes_of(type) > 0) return std::optional(type);
  return error(Code::invalid_argument, "{} is {}, which is no datatype", field, value);
}

/// The number of leaves that sums over all ranks are made of; 0: not set.
Result<std::uint32_t> leaves_in(int value) {
  constexpr int kMost = 4096;
  if (value == ANYCCL_CONFIG_UNDEF_INT) return std::uint32_t{0};
  if (value >= 1 && value <= kMost) return static_cast<std::uint32_t>(value);
  return error(Code::invalid_argument, "config->leaves is {} instead of 1 to {}", value, kMost);
}

/// The fields that this library uses, as CallSettingsTable takes them; the others are accepted as
/// they are.
Result<CallSettingsTable::Text> settings_text_of(const anycclCollConfig_t& config) {
  constexpr anycclCollConfig_t kInitial = ANYCCL_COLLCONFIG_INITIALIZER;
  if (config.size != kInitial.size || config.magic != kInitial.magic)
    return error(Code::invalid_argument,
                 "config was not set to ANYCCL_COLLCONFIG_INITIALIZER, or for another version");
  CallSettingsTable::Text text{.algorithms = config.algSelection, .protocols = config.proto};
  const int force = config.forceAlgSelection;
  if (force != 0 && force != 1 && force != ANYCCL_CONFIG_UNDEF_INT)
    return error(Code::invalid_argument, "config->forceAlgSelection is {} instead of 0 or 1",
                 force);
  text.forced = force != 0;
  text.tag = config.userProfilerTag;
  ANYCCL_TRY(const int level, level_in(config.reproducible));
  text.level = std::max(0, level);
  ANYCCL_TRY(text.output, type_in(config.outputType, "config->outputType"));
  ANYCCL_TRY(text.accumulate, type_in(config.accumulateType, "config->accumulateType"));
  ANYCCL_TRY(text.leaves, leaves_in(config.leaves));
  if (text.leaves > 0) text.level = std::max(text.level, kLevelOfLeaves);
  if (config.chunkBytes == ANYCCL_CONFIG_UNDEF_INT) return text;
  if (config.chunkBytes < 0)
    return error(Code::invalid_argument, "config->chunkBytes is {} bytes", config.chunkBytes);
  text.chunk_bytes = static_cast<std::size_t>(config.chunkBytes);
  ANYCCL_CHECK(check_size("config->chunkBytes", text.chunk_bytes, kChunkLimits));
  return text;
}

anycclResult_t launch_configured(Call call, const anycclCollConfig_t* config, anycclComm_t comm,
                                 anycclStream_t stream) noexcept {
  const anycclResult_t result = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    return configure(config, comm, call);
  });
  return result != anycclSuccess ? result : launch(call, comm, stream);
}

}  // namespace

Status configure(const anycclCollConfig_t* config, anycclComm_t comm, Call& call) {
  if (config == nullptr) return {};
  if (call.is_point_to_point())
    return error(Code::invalid_argument, "config is for collectives, and this is a {}",
                 name(call.collective));
  ANYCCL_TRY(const CallSettingsTable::Text text, settings_text_of(*config));
  ANYCCL_TRY(call.settings, Planning(*comm->comm).settings_of_call(text));
  if (text.tag != 0 && log_enabled(LogLevel::trace))
    log(LogSubsystem::coll, "rank {}: {} of {} {}, tag {}", index(comm->comm->rank()),
        name(call.collective), call.count, name_of(call.dtype), text.tag);
  return {};
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count,
                                     anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                                     anycclStream_t stream, const anycclCollConfig_t* config) {
  return launch_configured(make_call(Collective::all_reduce, sendbuff, recvbuff, count, datatype, 0,
                                     number_of(op, comm)),
                           config, comm, stream);
}

anycclResult_t anycclBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count,
                                     anycclDataType_t datatype, int root, anycclComm_t comm,
                                     anycclStream_t stream, const anycclCollConfig_t* config) {
  return launch_configured(
      make_call(Collective::broadcast, sendbuff, recvbuff, count, datatype, root), config, comm,
      stream);
}

anycclResult_t anycclReduceConfig(const void* sendbuff, void* recvbuff, size_t count,
                                  anycclDataType_t datatype, anycclRedOp_t op, int root,
                                  anycclComm_t comm, anycclStream_t stream,
                                  const anycclCollConfig_t* config) {
  return launch_configured(
      make_call(Collective::reduce, sendbuff, recvbuff, count, datatype, root, number_of(op, comm)),
      config, comm, stream);
}

anycclResult_t anycclReduceScatterConfig(const void* sendbuff, void* recvbuff, size_t recvcount,
                                         anycclDataType_t datatype, anycclRedOp_t op,
                                         anycclComm_t comm, anycclStream_t stream,
                                         const anycclCollConfig_t* config) {
  return launch_configured(make_call(Collective::reduce_scatter, sendbuff, recvbuff, recvcount,
                                     datatype, 0, number_of(op, comm)),
                           config, comm, stream);
}

anycclResult_t anycclAllGatherConfig(const void* sendbuff, void* recvbuff, size_t sendcount,
                                     anycclDataType_t datatype, anycclComm_t comm,
                                     anycclStream_t stream, const anycclCollConfig_t* config) {
  return launch_configured(
      make_call(Collective::all_gather, sendbuff, recvbuff, sendcount, datatype), config, comm,
      stream);
}

anycclResult_t anycclAllToAllConfig(const void* sendbuff, void* recvbuff, size_t count,
                                    anycclDataType_t datatype, anycclComm_t comm,
                                    anycclStream_t stream, const anycclCollConfig_t* config) {
  return launch_configured(make_call(Collective::all_to_all, sendbuff, recvbuff, count, datatype),
                           config, comm, stream);
}

anycclResult_t anycclGatherConfig(const void* sendbuff, void* recvbuff, size_t count,
                                  anycclDataType_t datatype, int root, anycclComm_t comm,
                                  anycclStream_t stream, const anycclCollConfig_t* config) {
  return launch_configured(make_call(Collective::gather, sendbuff, recvbuff, count, datatype, root),
                           config, comm, stream);
}

anycclResult_t anycclScatterConfig(const void* sendbuff, void* recvbuff, size_t count,
                                   anycclDataType_t datatype, int root, anycclComm_t comm,
                                   anycclStream_t stream, const anycclCollConfig_t* config) {
  return launch_configured(
      make_call(Collective::scatter, sendbuff, recvbuff, count, datatype, root), config, comm,
      stream);
}
