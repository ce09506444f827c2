// The C interface: algorithms that users write.

#include "algorithm/loaded/load.hpp"
#include "c/handle.hpp"

using namespace anyccl;

anycclResult_t anycclLoadAlgorithms(const char* path) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(path, "path"));
    return load_algorithm_files(path).status();
  });
}
