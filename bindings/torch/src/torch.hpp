#pragma once
// Torch's headers: precompiled, so that they are read once.

#include <torch/headeronly/version.h>
#define ANYCCL_TORCH_TEXT_(x) #x
#define ANYCCL_TORCH_TEXT(x) ANYCCL_TORCH_TEXT_(x)
#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR != 13
#pragma message("found torch " ANYCCL_TORCH_TEXT(TORCH_VERSION_MAJOR) "." ANYCCL_TORCH_TEXT( \
    TORCH_VERSION_MINOR))
#error \
    "this version of anyccl-torch is for torch 2.13: c10d::Backend changes with every minor version"
#endif

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
