#pragma once

#include <anyccl/status.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace digits {

constexpr std::size_t kPixels = 64;   // 8 x 8
constexpr std::size_t kClasses = 10;  // the digits 0 to 9

/// Handwritten digits: pixel p of image i is images[i * kPixels + p], in [0, 1].
struct Images {
  std::vector<float> images;
  std::vector<int> labels;
  std::size_t size() const { return labels.size(); }
};

struct DataSet {
  Images train, test;
};

/// Reads the gzip-compressed table at `path`: one image per line, 64 pixels from 0 to 16 and the
/// digit. Every fifth line goes to the test set, so the split is the same everywhere. Errors:
/// system_error (cannot read), invalid_argument (not this format; the message names the line).
anyccl::Result<DataSet> load(const std::string& path);

}  // namespace digits
