/* A rank of a coded AllReduce that uses its codec, int8, where the network is slow enough: prints
 * for which types. All ranks average the same vector. */
#include <anyccl/anyccl.h>
#include <stdio.h>

static int fail(anycclComm_t comm) {
  printf("%s\n", anycclGetLastError(comm));
  return 1;
}

int main(void) {
  enum { kCount = 100000 };
  static float x[kCount];
  anycclComm_t comm = NULL;
  anycclCoded_t coded = NULL;
  int f32 = 0, bf16 = 0;
  if (anycclCommInitEnv(&comm) != anycclSuccess) return fail(NULL);
  if (anycclCodedCreate(&coded, anycclCodecInt8, 0, 1, comm) != anycclSuccess) return fail(comm);
  if (anycclCodedUsesCodec(coded, anycclFloat32, &f32) != anycclSuccess) return fail(NULL);
  if (anycclCodedUsesCodec(coded, anycclBfloat16, &bf16) != anycclSuccess) return fail(NULL);
  for (int i = 0; i < kCount; i++) x[i] = (float)(i % 100 - 50);
  if (anycclCodedAllReduce(x, x, kCount, anycclFloat32, anycclAvg, coded) != anycclSuccess)
    return fail(NULL);
  for (int i = 0; i < kCount; i++)
    if (x[i] < (float)(i % 100 - 50) - 0.5F || x[i] > (float)(i % 100 - 50) + 0.5F)
      return printf("WRONG at %d: %g\n", i, (double)x[i]);
  printf("f32 %s, bf16 %s\n", f32 ? "coded" : "as it is", bf16 ? "coded" : "as it is");
  if (anycclCodedDestroy(coded) != anycclSuccess) return fail(NULL);
  return anycclCommDestroy(comm) == anycclSuccess ? 0 : fail(comm);
}
