#pragma once
// Sparse vectors: the large elements of a vector as bytes that ranks exchange (anyccl.hpp includes
// this).
//
//   sparse::momentum(u, v, gradient, 0.9F);         // or v += gradient
//   const auto cut = sparse::top_k(v, v.size() / 100);
//   const auto payload = sparse::pack(v, u, *cut);  // v keeps the rest, for the next step
//   ... all_gather ...
//   for (each rank, in order) sparse::add(its_payload, sum);
//
// There is no communicator in here, and no state: residuals and momentum belong to the program.
// docs/numbers/sparse-gradients.md says what each way of choosing costs, and how to train with it.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/group.hpp"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/types.hpp"

namespace anyccl::sparse {

/// Which elements of a vector are taken, and how many (`entries`).
using Cut = anycclSparseCut_t;

/// About `keep` elements of `x` with the largest magnitudes, by an estimate from every 61st element
/// (from all, up to 8,192) and one pass: the same elements in every run. Of a vector that is unlike
/// its sample there are more or fewer; zeros are never taken. Infinities and NaNs count as largest.
///
/// Shapes: keep <= x.size().
/// Threads: any, as for all functions here.
/// Errors: invalid_argument, system_error (no memory for the sample).
inline Result<Cut> threshold(std::span<const float> x, std::size_t keep) {
  Cut cut{};
  const Status status = detail::status_of(anycclSparseThreshold(x.data(), x.size(), keep, &cut));
  if (!status.ok()) return status;
  return cut;
}

/// Exactly the `k` elements of `x` with the largest magnitude, the first ones of equal ones.
/// Infinities and NaNs count as largest. With the error feedback of pack() this is Stich,
/// Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018.
///
/// Shapes: k <= x.size().
/// Memory: while it runs 4 bytes for each element of such a sample as that of threshold(), and for
///         some 2 (k + 1,000) more, or for all if x is unlike its sample.
/// Errors: invalid_argument, system_error (no memory).
inline Result<Cut> top_k(std::span<const float> x, std::size_t k) {
  Cut cut{};
  const Status status = detail::status_of(anycclSparseTopK(x.data(), x.size(), k, &cut));
  if (!status.ok()) return status;
  return cut;
}

/// The most bytes that a payload with `entries` of `count` elements has, values being f32, bf16 or
/// f16. Ranks that take equally many can all_gather payloads of this size: what lies behind the end
/// of a payload is ignored.
///
/// Errors: invalid_argument (entries > count, or count > 2^46), unsupported (values).
inline Result<std::size_t> bound(std::size_t count, std::size_t entries,
                                 DType values = DType::f32) {
  std::size_t bytes = 0;
  const Status status = detail::status_of(
      anycclSparseBound(count, entries, static_cast<anycclDataType_t>(values), &bytes));
  if (!status.ok()) return status;
  return bytes;
}

/// Moves the elements that `cut` takes from `residual` into `payload`; returns its bytes. The rest
/// of rounding to `values` stays in `residual`, so residual and payload together are the old
/// residual; numbers too large for f16 leave the rest, rounded to f32 from 2^29 on, and infinities
/// and NaNs nothing. The elements become 0 in `momentum`: the factor masking of Lin, Han, Mao, Wang
/// and Dally, "Deep Gradient Compression", ICLR 2018.
///
/// Shapes: momentum is empty or as long as residual; payload has at least bound(residual.size(),
///         cut.entries, values) bytes; none of them overlap.
/// Errors: invalid_argument (shapes; or residual has changed since the cut was made, and more of it
///         than cut.entries is taken now: some may be lost then), unsupported.
inline Result<std::size_t> pack(std::span<float> residual, std::span<float> momentum,
                                const Cut& cut, std::span<std::byte> payload,
                                DType values = DType::f32) {
  if (!momentum.empty() && momentum.size() != residual.size())
    return detail::refused(Code::invalid_argument,
                           "momentum has " + std::to_string(momentum.size()) +
                               " elements, and residual " + std::to_string(residual.size()));
  std::size_t bytes = 0;
  const Status status = detail::status_of(anycclSparsePack(
      residual.data(), momentum.empty() ? nullptr : momentum.data(), residual.size(), &cut,
      static_cast<anycclDataType_t>(values), payload.data(), payload.size(), &bytes));
  if (!status.ok()) return status;
  return bytes;
}

/// Packs into memory of its own.
inline Result<std::vector<std::byte>> pack(std::span<float> residual, std::span<float> momentum,
                                           const Cut& cut, DType values = DType::f32) {
  const Result<std::size_t> most = bound(residual.size(), cut.entries, values);
  if (!most.ok()) return most.status();
  std::vector<std::byte> payload(*most);
  const Result<std::size_t> bytes = pack(residual, momentum, cut, payload, values);
  if (!bytes.ok()) return bytes.status();
  payload.resize(*bytes);
  return payload;
}

/// into[i] += what `payload` has for i. Ranks that add all payloads to equal vectors in the order
/// of ranks get the same bits. A payload may have any bytes: they are checked before any are added.
///
/// Errors: invalid_argument, saying what is wrong: no payload of into.size() elements; `into` is
/// unchanged.
inline Status add(std::span<const std::byte> payload, std::span<float> into) {
  return detail::status_of(
      anycclSparseAdd(payload.data(), payload.size(), into.data(), into.size()));
}

/// momentum[i] = factor * momentum[i] + gradient[i], then residual[i] += momentum[i]: the momentum
/// correction of "Deep Gradient Compression", in place of the optimizer's momentum.
///
/// Shapes: equally long; none of them overlap.
/// Errors: invalid_argument.
inline Status momentum(std::span<float> momentum, std::span<float> residual,
                       std::span<const float> gradient, float factor) {
  if (momentum.size() != residual.size() || gradient.size() != residual.size())
    return detail::refused(Code::invalid_argument, "momentum, residual and gradient have " +
                                                       std::to_string(momentum.size()) + ", " +
                                                       std::to_string(residual.size()) + " and " +
                                                       std::to_string(gradient.size()) +
                                                       " elements");
  return detail::status_of(anycclSparseMomentum(momentum.data(), residual.data(), gradient.data(),
                                                residual.size(), factor));
}

}  // namespace anyccl::sparse
