#include "draw/map_page.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace anyccl::cli {

std::string to_svg(const MapPage& page) {
  const int width =
      std::max(page.body_width, 9 * static_cast<int>(page.title.size())) + 2 * MapPage::kMargin;
  const int height = MapPage::kTitle + page.body_height + MapPage::kMargin;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n<style>text{{font-family:sans-serif;font-size:12px;fill:#222}}.title{{font-size:"
      "15px;font-weight:bold}}.rank{{text-anchor:middle}}{2}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#FFF\"/>\n"
      "<text class=\"title\" x=\"{3}\" y=\"24\">{4}</text>\n{5}</svg>\n",
      width, height, page.style, MapPage::kMargin, page.title, page.body);
}

}  // namespace anyccl::cli
