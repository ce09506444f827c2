// A program that loads the library itself, and closes it again.

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace anyccl::test {
namespace {

TEST(Unload, keeps_the_code_that_threads_of_the_library_still_run) {
  void* const library = ::dlopen(ANYCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_EQ(::dlclose(library), 0);
  EXPECT_NE(::dlopen(ANYCCL_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace anyccl::test
