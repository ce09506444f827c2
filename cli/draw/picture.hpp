#pragma once

#include <string>

#include "draw/movement.hpp"

namespace anyccl::cli {

/// Two tables: each rank's chunks before and after, and one line for each message and
/// for each sum that is not part of receiving one.
std::string to_text(const Movement& movement);

/// A picture that needs no other file: ranks are columns, time goes down.
std::string to_svg(const Movement& movement);

}  // namespace anyccl::cli
