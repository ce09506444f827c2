#pragma once
// The C++ interface: values instead of exceptions, handles that free themselves. Header-only over
// the C interface (anyccl.h), whose rules on threads, order and errors hold here too. This is all
// of it but window.hpp; each header can also be included alone.

#include "anyccl/codec.hpp"
#include "anyccl/communicator.hpp"
#include "anyccl/experts.hpp"
#include "anyccl/group.hpp"
#include "anyccl/memory.hpp"
#include "anyccl/requests.hpp"
#include "anyccl/sequence.hpp"
#include "anyccl/sparse.hpp"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/topology.hpp"
#include "anyccl/types.hpp"
#include "anyccl/view.hpp"
#include "anyccl/work.hpp"
