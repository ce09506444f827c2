#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace anyccl::cli {

// Paul Tol's "light" scheme: to the colour-blind these differ, and dark text reads well on them.
inline constexpr std::string_view kColours[] = {"#77AADD", "#EE8866", "#EEDD88", "#44BB99",
                                                "#FFAABB", "#99DDFF", "#BBCC33", "#AAAA00"};

inline std::string_view colour(std::size_t number) {
  return kColours[number % std::size(kColours)];
}

}  // namespace anyccl::cli
