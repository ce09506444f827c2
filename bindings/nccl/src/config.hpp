#pragma once
// Configurations of communicators, as the versions of NCCL have them.

#include "anyccl/anyccl.h"
#include "nccl.h"

namespace anyccl::nccl {

/// The configuration of a call, as anyccl has it.
struct CallConfig {
  anycclConfig_t fields = ANYCCL_CONFIG_INITIALIZER;
  bool is_given = false;
  anycclConfig_t* get() { return is_given ? &fields : nullptr; }
};

/// Reads the fields that have an effect here, from as many bytes as the version of the program has.
/// `given` may be null. Errors, kept for `comm`: invalid argument, for a wrong magic number or
/// size.
ncclResult_t read_config(const ncclConfig_t* given, ncclComm_t comm, CallConfig& config);

/// The version of NCCL that the program was built for, as far as its configurations have told; else
/// that of nccl.h.
int program_version();

}  // namespace anyccl::nccl
