# Compiles several files at once. A batch is a file that includes sources of one target, so that the headers they share
# are read once: a whole build takes half the time, a small change a little longer. ANYCCL_BATCHES=OFF, as in the presets
# dev and clang, compiles file by file.
option(ANYCCL_BATCHES "Compile several files of a part at once" ON)

# anyccl_batches(TARGET [HOT|COLD] [SIZE files] [APART file...] [LIGHT file...] [OWN name... IN folder AFTER header])
# HOT: calls of programs go through it, so g++ inlines there as it does in single files: in large units it stops earlier
# (6 to 14 ns of an AllReduce of 8 bytes). COLD: it reads and prints text, and is compiled with -O1. LIGHT: the same for
# some files, in a batch of their own. SIZE: files in a batch. APART: files that stay alone, as do those with compile
# options of their own and those that are generated. OWN: names that each file of the folder has for itself, in an
# anonymous namespace; in a batch they begin with the name of the file. The header, where these names mean something
# else, is read before.
# Batches are made when all folders have been read, so sources may be added afterwards.
function(anyccl_batches target)
  cmake_parse_arguments(PARSE_ARGV 1 batch "HOT;COLD" "SIZE;IN;AFTER" "OWN;APART;LIGHT")
  if(NOT ANYCCL_BATCHES)
    return()
  endif()
  if(NOT batch_SIZE)
    set(batch_SIZE 16)
  endif()
  if(batch_OWN)
    set(batch_OWN ${CMAKE_CURRENT_SOURCE_DIR}/${batch_IN} ${batch_AFTER} ${batch_OWN})
  endif()
  if(batch_HOT)
    target_compile_options(${target} PRIVATE
                           $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:--param=large-unit-insns=200000>)
  endif()
  if(batch_COLD)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  list(TRANSFORM batch_APART PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(TRANSFORM batch_LIGHT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_target_properties(${target} PROPERTIES ANYCCL_BATCH_SIZE ${batch_SIZE} ANYCCL_BATCH_OWN "${batch_OWN}"
                        ANYCCL_BATCH_APART "${batch_APART}" ANYCCL_BATCH_LIGHT "${batch_LIGHT}")
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY \"${PROJECT_SOURCE_DIR}\" CALL anyccl_make_batches ${target})")
endfunction()

# One of the deferred calls: replaces sources of the target by batches.
function(anyccl_make_batches target)
  get_target_property(apart ${target} ANYCCL_BATCH_APART)
  get_target_property(light ${target} ANYCCL_BATCH_LIGHT)
  get_target_property(folder ${target} SOURCE_DIR)
  get_target_property(all ${target} SOURCES)
  set(sources "")
  set(together "")
  foreach(file IN LISTS all)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE path)
    get_source_file_property(options ${path} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${path} is_ours)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${path} is_generated)
    if(NOT path MATCHES "\\.cpp$" OR options OR path IN_LIST apart OR is_generated OR NOT is_ours)
      list(APPEND sources ${file})
    elseif(NOT path IN_LIST light)
      list(APPEND together ${path})
    endif()
  endforeach()
  anyccl_split(batches ${target} ${target} "${together}")
  anyccl_split(light_batches ${target} ${target}_light "${light}")
  set_source_files_properties(${light_batches} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS
                              $<$<CONFIG:Release>:-O1>)
  set_target_properties(${target} PROPERTIES SOURCES "${sources};${batches};${light_batches}")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # g++ takes a type with members of an anonymous namespace for one of a header, where its file is included.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# Writes batches of nearly the same size; one file alone stays itself.
function(anyccl_split result target name files)
  get_target_property(size ${target} ANYCCL_BATCH_SIZE)
  get_target_property(own ${target} ANYCCL_BATCH_OWN)
  list(SORT files)  # a folder's files share most
  list(LENGTH files count)
  if(count LESS 2)
    set(${result} ${files} PARENT_SCOPE)
    return()
  endif()
  set(batches "")
  math(EXPR number "(${count} + ${size} - 1) / ${size}")
  foreach(batch RANGE 1 ${number})
    math(EXPR from "${count} * (${batch} - 1) / ${number}")
    math(EXPR length "${count} * ${batch} / ${number} - ${from}")
    list(SUBLIST files ${from} ${length} some)
    list(APPEND batches ${PROJECT_BINARY_DIR}/generated/batches/${name}_${batch}.cpp)
    list(GET batches -1 file)
    anyccl_write_batch(${file} "${some}" "${own}")
  endforeach()
  set(${result} ${batches} PARENT_SCOPE)
endfunction()

# Paths begin at the source folder, so a clone elsewhere has the same batches and finds them in the compiler's cache.
function(anyccl_write_batch batch files own)
  set(text "")
  set(folder "")
  if(own)
    list(POP_FRONT own folder header)
    set(text "#include \"${header}\"\n")
  endif()
  foreach(path IN LISTS files)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE file)
    cmake_path(IS_PREFIX folder ${path} has_own)
    string(MAKE_C_IDENTIFIER ${file} prefix)
    set(define "")
    set(undefine "")
    if(own AND has_own)
      foreach(name IN LISTS own)
        string(APPEND define "#define ${name} ${prefix}_${name}\n")
        string(APPEND undefine "#undef ${name}\n")
      endforeach()
    endif()
    string(APPEND text "${define}#include \"${file}\"\n${undefine}")
  endforeach()
  file(CONFIGURE OUTPUT ${batch} CONTENT "${text}" @ONLY)
endfunction()
