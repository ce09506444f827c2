#pragma once
// Torch's headers: precompiled, so that they are read once.

#include <torch/version.h>
#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 9
#error "anyccl-torch is for torch 2.9 and later"
#endif

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

// What differs between these versions of torch.
namespace anyccl::torch {

#if TORCH_VERSION_MINOR >= 12
inline constexpr auto kCoalescedReduceScatter = c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
#else
inline constexpr auto kCoalescedReduceScatter = c10d::OpType::COALESCED;
#endif

// Functions for torch.distributed.shrink_group override those of torch, where it has them.
#if TORCH_VERSION_MINOR >= 10
#define ANYCCL_TORCH_SHRINKS override
#else
#define ANYCCL_TORCH_SHRINKS
#endif

}  // namespace anyccl::torch
