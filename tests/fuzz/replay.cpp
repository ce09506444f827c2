// Runs a target on the files of a folder, and on each of them cut in the middle.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "input.hpp"

int main(int count, char** arguments) {
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(count == 2 ? arguments[1] : "")) {
    std::ifstream in(file.path(), std::ios::binary);
    // Without room to spare, so that sanitizers see a read beyond the end.
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    const std::vector<char> half(bytes.begin(),
                                 bytes.begin() + static_cast<long>(bytes.size() / 2));
    for (const auto* one : {&bytes, &half})
      anyccl::fuzz::run(anyccl::fuzz::Input(std::as_bytes(std::span(*one))));
    ++files;
  }
  std::printf("%zu inputs\n", files);
  return files > 0 ? 0 : 1;
}
