# Where the backend of torch.distributed is, and what it needs. It belongs to the Python package.
set(folder bindings/torch)
if(NOT PYTHON IN_LIST ANYCCL_PARTS_BUILT)
  set(missing "there is no PYTHON part")
  return()
endif()
if(DEFINED ANYCCL_TORCH)  # version, folder and ABI of a torch that cannot be imported here
  return()
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -c
  "import torch; print(torch.__version__, torch.__path__[0], int(torch._C._GLIBCXX_USE_CXX11_ABI), sep=';')"
  OUTPUT_VARIABLE ANYCCL_TORCH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(missing "${Python_EXECUTABLE} has no torch (scripts/make-venv torch)")
else()
  list(GET ANYCCL_TORCH 0 version)
  if(NOT version MATCHES "^2\\." OR version VERSION_LESS 2.9)
    set(missing "it is for torch 2.9 and later, and ${Python_EXECUTABLE} has torch ${version}")
  endif()
endif()
