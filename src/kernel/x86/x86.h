/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86.h: the tables for x86-64. Each is compiled with its own instruction-set flags and called only where kernel.c found them.
 */
#ifndef SK_KERNEL_X86_X86_H
#define SK_KERNEL_X86_X86_H

#include "kernel/kernel.h"

extern const sk_kernels sk_kernels_avx2;   /* AVX2, FMA, F16C */
extern const sk_kernels sk_kernels_avx512; /* AVX-512 F, BW, VL, VBMI, VNNI */

#endif
