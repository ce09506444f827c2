# libnccl.so.2: the library under NCCL's names, for programs that are linked to NCCL. It needs nothing.
set(folder bindings/nccl)
if(SKBUILD)
  set(missing "a Python package has no library of that name")
elseif(ANYCCL_SANITIZE)
  set(missing "it is built without sanitizers")
endif()
