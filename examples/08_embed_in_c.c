/* Embedding in C99: a program with other work creates communicators in the background, and handles
 * errors.
 *   08_embed_in_c
 * All ranks are in this one thread, so calls that need each other are grouped. */
#define _POSIX_C_SOURCE 200809L
#include <anyccl/anyccl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RANKS 3
#define COUNT 4

/* Prints the failed call and the library's explanation; the caller then returns. */
static int failed(const char* what, anycclComm_t comm) {
  fprintf(stderr, "%s: %s\n", what, anycclGetLastError(comm));
  return -1;
}

/* Begins to create all ranks; none can be used before ready() returns 1. */
static int begin(anycclComm_t comms[RANKS]) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  anycclUniqueId id; /* Other processes would get it from this one, in any safe way. */
  int r;

  config.blocking = 0;
  if (anycclGetUniqueId(&id) != anycclSuccess) return failed("anycclGetUniqueId", NULL);
  for (r = 0; r < RANKS; ++r) {
    if (anycclCommInitRankConfig(&comms[r], RANKS, id, r, &config) != anycclInProgress)
      return failed("anycclCommInitRankConfig", NULL);
  }
  return 0;
}

/* 1: all ranks can be used; 0: not yet; -1: one has failed. */
static int ready(anycclComm_t comms[RANKS]) {
  int r, all = 1;
  for (r = 0; r < RANKS; ++r) {
    anycclResult_t state;
    if (anycclCommGetAsyncError(comms[r], &state) != anycclSuccess)
      return failed("anycclCommGetAsyncError", comms[r]);
    if (state == anycclInProgress)
      all = 0;
    else if (state != anycclSuccess)
      return failed("creating a communicator", comms[r]);
  }
  return all;
}

/* Does other work until all ranks are ready. */
static int meanwhile(anycclComm_t comms[RANKS]) {
  const struct timespec a_millisecond = {0, 1000000};
  int now;
  while ((now = ready(comms)) == 0) nanosleep(&a_millisecond, NULL);
  return now < 0 ? -1 : 0;
}

static int add_up(anycclComm_t comms[RANKS]) {
  float in[RANKS][COUNT], out[RANKS][COUNT];
  int r, i;

  for (r = 0; r < RANKS; ++r)
    for (i = 0; i < COUNT; ++i) in[r][i] = (float)(10 * r + i);
  if (anycclGroupStart() != anycclSuccess) return failed("anycclGroupStart", NULL);
  for (r = 0; r < RANKS; ++r)
    anycclAllReduce(in[r], out[r], COUNT, anycclFloat, anycclSum, comms[r], NULL);
  /* Also the first error of the calls in the group. */
  if (anycclGroupEnd() != anycclSuccess) return failed("anycclGroupEnd", NULL);

  for (r = 0; r < RANKS; ++r) {
    printf("rank %d: %g %g %g %g\n", r, out[r][0], out[r][1], out[r][2], out[r][3]);
    for (i = 0; i < COUNT; ++i) {
      if (out[r][i] != (float)(30 + 3 * i)) {
        fprintf(stderr, "WRONG: rank %d, element %d\n", r, i);
        return -1;
      }
    }
  }
  return 0;
}

/* A call with a bad argument is refused, and the communicator can still be used. */
static int make_a_mistake(anycclComm_t comms[RANKS]) {
  float x = 0;
  const anycclResult_t result = anycclBcast(&x, 1, anycclFloat, RANKS, comms[1], NULL);

  printf("a mistake: %s\n", anycclGetErrorString(result));
  printf("in detail: %s\n", anycclGetLastError(comms[1]));
  if (result != anycclInvalidArgument || strstr(anycclGetLastError(comms[1]), "root") == NULL) {
    fprintf(stderr, "WRONG: a root that does not exist was not refused\n");
    return -1;
  }
  return 0;
}

/* Non-blocking communicators also finalize in the background. */
static int finish(anycclComm_t comms[RANKS]) {
  int r;
  for (r = 0; r < RANKS; ++r) {
    const anycclResult_t result = anycclCommFinalize(comms[r]);
    if (result != anycclSuccess && result != anycclInProgress)
      return failed("anycclCommFinalize", comms[r]);
  }
  return meanwhile(comms);
}

int main(void) {
  anycclComm_t comms[RANKS] = {NULL, NULL, NULL};
  int r, result;

  result = begin(comms);
  if (result == 0) result = meanwhile(comms);
  if (result == 0) result = add_up(comms);
  if (result == 0) result = make_a_mistake(comms);
  if (result == 0) result = add_up(comms);
  if (result == 0) result = finish(comms);
  for (r = 0; r < RANKS; ++r) { /* A failed communicator cannot end cleanly: it is aborted. */
    if (result == 0 && anycclCommDestroy(comms[r]) != anycclSuccess)
      result = failed("anycclCommDestroy", NULL);
    else if (result != 0 && comms[r] != NULL)
      anycclCommAbort(comms[r]);
  }
  return result == 0 ? 0 : 1;
}
