// The C interface: codecs, and AllReduce with one.

#include "platform/reduce/codec.hpp"

#include "base/error.hpp"
#include "c/calls.hpp"
#include "c/creation.hpp"
#include "c/device/device_calls.hpp"
#include "ext/coded/coded.hpp"
#include "platform/reduce/isa.hpp"

struct anycclCoded {
  std::unique_ptr<anyccl::CodedAllReduce> all_reduce;
  std::shared_ptr<anyccl::DeviceCopies> copies;  // of its communicator; null: it has no device
};

namespace anyccl {
namespace {

static_assert(kCodecs == anycclNumCodecs && static_cast<int>(Codec::int4) == anycclCodecInt4);

Result<CodecVector> vector_of(Codec codec, const void* x, std::size_t count, anycclDataType_t type,
                              const char* name) {
  ANYCCL_CHECK(need_vector(x, count, name));
  const auto dtype = static_cast<DType>(as_byte(type));
  ANYCCL_CHECK(check_codec_type(codec, dtype));
  return CodecVector{const_cast<void*>(x), count, dtype};
}

Status need_bytes(Codec codec, std::size_t count, std::size_t bytes) {
  if (bytes == payload_bytes(codec, count)) return {};
  return error(Code::invalid_argument, "bytes is {}, but {} elements with codec {} have {}", bytes,
               count, info_of(codec).name, payload_bytes(codec, count));
}

Status need_apart(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  if (!overlap(static_cast<const std::byte*>(a), a_bytes, static_cast<const std::byte*>(b),
               b_bytes))
    return {};
  return error(Code::invalid_argument, "vectors or payloads of one call overlap");
}

/// Payloads of the caller, apart from the `bytes_there` bytes at `there`.
Result<std::vector<const std::byte*>> payloads_of(const void* const* payloads, std::size_t sources,
                                                  std::size_t bytes, const void* there,
                                                  std::size_t bytes_there) {
  if (sources == 0) return error(Code::invalid_argument, "sources is 0");
  ANYCCL_CHECK(need(payloads, "payloads"));
  std::vector<const std::byte*> all;
  for (std::size_t k = 0; k < sources; ++k) {
    if (payloads[k] == nullptr && bytes > 0)
      return error(Code::invalid_argument, "payloads[{}] is NULL and bytes is {}", k, bytes);
    ANYCCL_CHECK(need_apart(payloads[k], bytes, there, bytes_there));
    all.push_back(static_cast<const std::byte*>(payloads[k]));
  }
  return all;
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclCodecFromName(const char* name, anycclCodec_t* codec) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(name, "name"));
    ANYCCL_CHECK(need(codec, "codec"));
    ANYCCL_TRY(const Codec found, codec_named(name));
    *codec = static_cast<anycclCodec_t>(found);
    return {};
  });
}

anycclResult_t anycclCodecBytes(anycclCodec_t codec, size_t count, size_t* bytes) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(bytes, "bytes"));
    ANYCCL_CHECK(need_vector(bytes, count, "bytes"));
    ANYCCL_TRY(const Codec known, codec_of(static_cast<int>(codec)));
    *bytes = payload_bytes(known, count);
    return {};
  });
}

anycclResult_t anycclCodecEncode(anycclCodec_t codec, const void* x, size_t count,
                                 anycclDataType_t datatype, void* payload, size_t bytes) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_TRY(const Codec known, codec_of(static_cast<int>(codec)));
    ANYCCL_TRY(const CodecVector from, vector_of(known, x, count, datatype, "x"));
    ANYCCL_CHECK(need_bytes(known, count, bytes));
    if (bytes > 0) ANYCCL_CHECK(need(payload, "payload"));
    ANYCCL_CHECK(need_apart(x, count * bytes_of(from.type), payload, bytes));
    ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
    encode(*kernels->codecs, known, from, static_cast<std::byte*>(payload));
    return {};
  });
}

anycclResult_t anycclCodecDecode(anycclCodec_t codec, const void* const payloads[], size_t sources,
                                 size_t bytes, void* y, size_t count, anycclDataType_t datatype) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_TRY(const Codec known, codec_of(static_cast<int>(codec)));
    ANYCCL_TRY(const CodecVector to, vector_of(known, y, count, datatype, "y"));
    ANYCCL_CHECK(need_bytes(known, count, bytes));
    ANYCCL_TRY(const auto from,
               payloads_of(payloads, sources, bytes, y, count * bytes_of(to.type)));
    ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
    decode(*kernels->codecs, known, from, to);
    return {};
  });
}

anycclResult_t anycclCodecSum(anycclCodec_t codec, const void* const payloads[], size_t sources,
                              size_t bytes, void* payload, size_t count) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_TRY(const Codec known, codec_of(static_cast<int>(codec)));
    ANYCCL_CHECK(need_vector(payload, count, "payload"));
    ANYCCL_CHECK(need_bytes(known, count, bytes));
    ANYCCL_TRY(const auto from, payloads_of(payloads, sources, bytes, payload, bytes));
    ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
    recode(*kernels->codecs, known, from, count, static_cast<std::byte*>(payload));
    return {};
  });
}

anycclResult_t anycclCodedCreate(anycclCoded_t* coded, anycclCodec_t codec, int everywhere,
                                 int ifSlow, anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need(coded, "coded"));
    *coded = nullptr;
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(check_wait({.comm = comm->comm.get()}));
    ANYCCL_CHECK(need_no_group("anycclCodedCreate"));
    const CodedAllReduce::Use use{everywhere != 0, ifSlow != 0};
    ANYCCL_TRY(auto made,
               CodedAllReduce::create(*comm->comm, static_cast<int>(codec), use, comm->name));
    *coded = new anycclCoded{std::move(made), comm->copies};
    return {};
  });
}

anycclResult_t anycclCodedUsesCodec(anycclCoded_t coded, anycclDataType_t datatype, int* is) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(coded, "coded"));
    ANYCCL_CHECK(need(is, "is"));
    ANYCCL_TRY(const bool uses,
               coded->all_reduce->uses_codec(static_cast<DType>(as_byte(datatype))));
    *is = uses ? 1 : 0;
    return {};
  });
}

anycclResult_t anycclCodedAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                    anycclDataType_t datatype, anycclRedOp_t op,
                                    anycclCoded_t coded) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(coded, "coded"));
    ANYCCL_CHECK(check_wait({}));
    ANYCCL_CHECK(need_no_group("anycclCodedAllReduce"));
    ANYCCL_CHECK(need_host_memory(coded->copies.get(), {sendbuff, recvbuff}));
    return coded->all_reduce->run(make_call(Collective::all_reduce, sendbuff, recvbuff, count,
                                            datatype, 0, number_of(op, nullptr)));
  });
}

anycclResult_t anycclCodedDestroy(anycclCoded_t coded) {
  return guarded(nullptr, [&]() -> Status {
    const std::unique_ptr<anycclCoded> ended(coded);
    return ended == nullptr ? Status() : ended->all_reduce->destroy();
  });
}
