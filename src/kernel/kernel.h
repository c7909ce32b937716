/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h: the hot loops, one table for each instruction set.
 */
#ifndef SK_KERNEL_KERNEL_H
#define SK_KERNEL_KERNEL_H

#include "base/status.h"

/* Chooses the table by STOKER_CPU or by what the processor has; a wrong STOKER_CPU is STOKER_ERR_ARGUMENT. Any thread, any
 * number of times. */
stoker_status sk_kernel_init(void);

/* "scalar", "avx2", "avx512" or "neon". */
const char *sk_cpu_name(void);

#endif
