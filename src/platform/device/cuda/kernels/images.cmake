# Writes INTO, a source with the texts of REDUCE and EXCHANGE, files of PTX; without any, a module that has no kernels.
set(literals "")
foreach(kind IN ITEMS REDUCE EXCHANGE)
  string(APPEND literals "{\n")
  foreach(image IN LISTS ${kind})
    file(READ ${image} text)
    string(REGEX REPLACE "//[^\n]*\n" "\n" text "${text}")
    string(REGEX REPLACE "\n+" "\n" text "${text}")
    string(APPEND literals "R\"ptx(${text})ptx\",\n")
  endforeach()
  string(APPEND literals "},\n")
endforeach()
file(WRITE ${INTO} "#include \"platform/device/cuda/kernels.hpp\"
const char* const anyccl::cuda::kKernelImages[2][kDTypes] = {
${literals}};
")
