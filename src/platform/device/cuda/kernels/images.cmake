# Writes INTO, a source with the texts of IMAGES, files of PTX; without any, a module that has no kernels.
set(literals "")
foreach(image IN LISTS IMAGES)
  file(READ ${image} text)
  string(REGEX REPLACE "//[^\n]*\n" "\n" text "${text}")
  string(REGEX REPLACE "\n+" "\n" text "${text}")
  string(APPEND literals "R\"ptx(${text})ptx\",\n")
endforeach()
if(NOT IMAGES)
  set(literals "nullptr\n")
endif()
file(WRITE ${INTO} "#include \"platform/device/cuda/kernels.hpp\"
const char* const anyccl::cuda::kKernelImages[kDTypes] = {
${literals}};
")
