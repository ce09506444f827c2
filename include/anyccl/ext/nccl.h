/* Names that programs for NCCL use and that mean nothing on host memory: the values of fields that
 * are accepted and change nothing, and calls that are refused. docs/nccl.md has all others. */
#ifndef ANYCCL_EXT_NCCL_H
#define ANYCCL_EXT_NCCL_H

#include "anyccl/anyccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CTAPolicy of anycclConfig_t and anycclCollConfig_t. */
#define ANYCCL_CTA_POLICY_DEFAULT 0x00
#define ANYCCL_CTA_POLICY_EFFICIENCY 0x01
#define ANYCCL_CTA_POLICY_ZERO 0x02

/* hostCftMode of anycclConfig_t. */
typedef enum {
  anycclHostCftDefault = ANYCCL_CONFIG_UNDEF_INT,
  anycclHostCftEnable = 1,
  anycclHostCftDisable = 2,
  anycclHostCftFallback = 3
} anycclHostCftMode_t;

/* nvlsHostMode of anycclConfig_t: parts that are switched off, joined by |. */
typedef enum {
  anycclNvlsHostModeDefault = ANYCCL_CONFIG_UNDEF_INT,
  anycclNvlsHostModeEnable = 0,
  anycclNvlsHostModeDisableTransport = 1,
  anycclNvlsHostModeDisableSymmetricMultimem = 2,
  anycclNvlsHostModeDisable = 2147483647
} anycclNvlsHostMode_t;

/* Refused as Unsupported: memory that peers have mapped cannot be given back for a while. */
ANYCCL_API anycclResult_t anycclCommSuspend(anycclComm_t comm, int flags);
ANYCCL_API anycclResult_t anycclCommResume(anycclComm_t comm);
#define ANYCCL_SUSPEND_MEM 0x01

#ifdef __cplusplus
}
#endif

#endif
