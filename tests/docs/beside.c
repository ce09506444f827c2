/* Loads the library beside one that brings its own fmt and OpenSSL, uses it, and then loads a
 * second copy. usage, as one of the ranks of `anyccl run`: beside FOREIGN LIBRARY COPY (absolute
 * paths) */
#define _GNU_SOURCE
#include <anyccl/anyccl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef anycclResult_t (*InitEnv)(anycclComm_t*);
typedef anycclResult_t (*InitAll)(anycclComm_t*, int, const int*);
typedef anycclResult_t (*AllReduce)(const void*, void*, size_t, anycclDataType_t, anycclRedOp_t,
                                    anycclComm_t, anycclStream_t);
typedef anycclResult_t (*Destroy)(anycclComm_t);
typedef const char* (*LastError)(anycclComm_t);

static int failed(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return 1;
}

/* ISO C has no conversion from an object to a function pointer; POSIX has this one. */
#define LOOK_UP(library, name, function) *(void**)&(function) = dlsym(library, name)

/* What a copy says when it is asked for a communicator while another copy is in use; "" if it gives
 * one. */
static const char* refusal(void* copy) {
  InitAll init_all;
  LastError last_error;
  anycclComm_t comm = NULL;
  LOOK_UP(copy, "anycclCommInitAll", init_all);
  LOOK_UP(copy, "anycclGetLastError", last_error);
  return init_all(&comm, 1, NULL) == anycclInvalidUsage ? last_error(NULL) : "";
}

int main(int argc, char** argv) {
  void *library, *copy;
  InitEnv init_env;
  AllReduce all_reduce;
  Destroy destroy;
  LastError last_error;
  anycclComm_t comm = NULL;
  float sum = 1;

  if (argc != 4) return failed("usage", "beside FOREIGN LIBRARY COPY");
  if (!dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) return failed("foreign library", dlerror());
  library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!library) return failed("library", dlerror());
  LOOK_UP(library, "anycclCommInitEnv", init_env);
  LOOK_UP(library, "anycclAllReduce", all_reduce);
  LOOK_UP(library, "anycclCommDestroy", destroy);
  LOOK_UP(library, "anycclGetLastError", last_error);
  if (init_env(&comm) != anycclSuccess) return failed("anycclCommInitEnv", last_error(NULL));

  copy = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
  if (!copy) return failed("copy", dlerror());
  if (!strstr(refusal(copy), argv[2]) || !strstr(refusal(copy), argv[3]))
    return failed("the second copy is not refused with both paths, but says", refusal(copy));

  if (all_reduce(&sum, &sum, 1, anycclFloat, anycclSum, comm, NULL) != anycclSuccess)
    return failed("anycclAllReduce", last_error(comm));
  if (sum != 2) return failed("anycclAllReduce", "the sum of two ones is not 2");
  return destroy(comm) == anycclSuccess ? 0 : failed("anycclCommDestroy", last_error(NULL));
}
