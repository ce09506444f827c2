# A weak symbol (W, V, u) in a kernel object could replace the rest of the program's copy with one
# for a newer CPU.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES " [A-Z] anyccl_(kernels|row_sums)_")
    message(FATAL_ERROR "${object} exports no table:\n${symbols}")
  endif()
  string(REGEX MATCHALL "[^\n]* [WwVvu] [^\n]*" weak "${symbols}")
  if(weak)
    message(FATAL_ERROR "weak symbols in ${object}:\n${weak}")
  endif()
endforeach()
