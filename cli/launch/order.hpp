#pragma once

#include <string>

#include "launch/job.hpp"

namespace anyccl::cli {

/// What a launcher tells the `anyccl run` that it has started on a host of its job, through that
/// one's standard input: command lines can be read by everyone, and pass through shells.
struct Order {
  Job job;                  ///< Its ranks there. All but the name, the port and HostPart::control.
  std::string folder = {};  ///< Where they start.
};

/// The bytes. Errors: invalid_argument when they are more than a socket holds for sure.
Result<std::string> text_of(const Order& order);

/// Reads exactly one order from `fd`. Errors: invalid_argument naming what is wrong: nothing is
/// there, or another version of anyccl has written it.
Result<Order> read_order(int fd);

}  // namespace anyccl::cli
