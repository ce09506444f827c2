// The C interface: sparse vectors.

#include "platform/reduce/sparse.hpp"

#include <initializer_list>

#include "base/error.hpp"
#include "c/handle.hpp"
#include "framework/call/call.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl {
namespace {

/// A vector of the caller. It is only read where the function says so.
Result<SparseVector> vector_of(const float* x, std::size_t count, const char* name) {
  ANYCCL_CHECK(need_vector(x, count, name));
  return SparseVector{const_cast<float*>(x), count};
}

Status need_bytes(const void* at, std::size_t bytes, const char* name) {
  if (at != nullptr || bytes == 0) return {};
  return error(Code::invalid_argument, "{} is NULL and has {} bytes", name, bytes);
}

struct Extent {
  const void* at;
  std::size_t bytes;
  const std::byte* begin() const { return static_cast<const std::byte*>(at); }
};
Status need_apart(std::initializer_list<Extent> all) {
  for (const Extent& a : all)
    for (const Extent& b : all)
      if (&a != &b && overlap(a.begin(), a.bytes, b.begin(), b.bytes))
        return error(Code::invalid_argument, "vectors or payloads of one call overlap");
  return {};
}

using Select = Result<anycclSparseCut_t> (*)(const SparseKernels&, SparseVector, std::size_t);

anycclResult_t select(Select how, const float* x, std::size_t count, std::size_t wanted,
                      anycclSparseCut_t* cut) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(cut, "cut"));
    ANYCCL_TRY(const SparseVector vector, vector_of(x, count, "x"));
    ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
    ANYCCL_TRY(*cut, how(kernels->sparse, vector, wanted));
    return {};
  });
}

DType dtype_of(anycclDataType_t values) {
  return static_cast<DType>(as_byte(values));
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclSparseThreshold(const float* x, size_t count, size_t keep,
                                     anycclSparseCut_t* cut) {
  return select(sparse_threshold, x, count, keep, cut);
}

anycclResult_t anycclSparseTopK(const float* x, size_t count, size_t k, anycclSparseCut_t* cut) {
  return select(sparse_top_k, x, count, k, cut);
}

anycclResult_t anycclSparseBound(size_t count, size_t entries, anycclDataType_t values,
                                 size_t* bytes) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(bytes, "bytes"));
    ANYCCL_TRY(*bytes, sparse_bound(count, entries, dtype_of(values)));
    return {};
  });
}

anycclResult_t anycclSparsePack(float* residual, float* momentum, size_t count,
                                const anycclSparseCut_t* cut, anycclDataType_t values,
                                void* payload, size_t capacity, size_t* bytes) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(cut, "cut"));
    ANYCCL_CHECK(need(bytes, "bytes"));
    ANYCCL_CHECK(need_bytes(payload, capacity, "payload"));
    ANYCCL_TRY(const SparseVector vector, vector_of(residual, count, "residual"));
    const std::size_t vector_bytes = count * sizeof(float);
    ANYCCL_CHECK(need_apart({{residual, vector_bytes},
                             {momentum, momentum == nullptr ? 0 : vector_bytes},
                             {payload, capacity}}));
    ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
    ANYCCL_TRY(*bytes, sparse_pack(kernels->sparse, vector, momentum, *cut, dtype_of(values),
                                   {static_cast<std::byte*>(payload), capacity}));
    return {};
  });
}

anycclResult_t anycclSparseAdd(const void* payload, size_t bytes, float* into, size_t count) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need_bytes(payload, bytes, "payload"));
    ANYCCL_TRY(const SparseVector vector, vector_of(into, count, "into"));
    ANYCCL_CHECK(need_apart({{payload, bytes}, {into, count * sizeof(float)}}));
    ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
    return sparse_add(kernels->sparse, {static_cast<const std::byte*>(payload), bytes}, vector);
  });
}

anycclResult_t anycclSparseMomentum(float* momentum, float* residual, const float* gradient,
                                    size_t count, float factor) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(vector_of(momentum, count, "momentum").status());
    ANYCCL_CHECK(vector_of(residual, count, "residual").status());
    ANYCCL_CHECK(vector_of(gradient, count, "gradient").status());
    const std::size_t bytes = count * sizeof(float);
    ANYCCL_CHECK(need_apart({{momentum, bytes}, {residual, bytes}, {gradient, bytes}}));
    ANYCCL_TRY(const KernelTable* const kernels, best_kernels());
    kernels->sparse.momentum(momentum, residual, gradient, count, factor);
    return {};
  });
}
