#pragma once
// The second names of functions, which begin with a p.

/// Behind the definition of a function of nccl.h.
#define ANYCCL_SECOND_NAME(name) extern "C" __attribute__((alias(#name))) decltype(p##name) p##name
