/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86.h: the tables for x86-64. Each is compiled with its own instruction-set flags and called only where kernel.c found them.
 */
#ifndef SK_KERNEL_X86_X86_H
#define SK_KERNEL_X86_X86_H

#include "kernel/kernel.h"

extern const sk_kernels sk_kernels_avx2;   /* AVX2, FMA, F16C */
extern const sk_kernels sk_kernels_avx512; /* AVX-512 F, BW, VL, VBMI, VNNI, BMI2 */

/* avx2_resample.c */
size_t sk_avx2_resample_packed_size(const sk_taps *taps, int32_t from, int32_t to, int32_t channels);
void sk_avx2_resample_pack(const sk_taps *taps, int32_t from, int32_t to, int32_t channels, void *packed);
void sk_avx2_resample_rows(const sk_rows *rows, const sk_taps *taps, const void *packed);
void sk_avx2_resample_column(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                             int32_t count);

/* avx2_jpeg.c */
void sk_avx2_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                  const uint16_t *quant);
void sk_avx2_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width);
void sk_avx2_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width);
void sk_avx2_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias);
void sk_avx2_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width);
void sk_avx2_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width);

/* avx2_dct.c */
int32_t sk_avx2_dct_unpack(const uint8_t *group, int16_t *upper, int16_t *lower, uint8_t *upper_last,
                           uint8_t *lower_last);

/* avx512_resample.c */
size_t sk_avx512_resample_packed_size(const sk_taps *taps, int32_t from, int32_t to, int32_t channels);
void sk_avx512_resample_pack(const sk_taps *taps, int32_t from, int32_t to, int32_t channels, void *packed);
void sk_avx512_resample_rows(const sk_rows *rows, const sk_taps *taps, const void *packed);
void sk_avx512_resample_column(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                               int32_t count);

/* avx512_jpeg.c */
void sk_avx512_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                    const uint16_t *quant);
void sk_avx512_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width);
void sk_avx512_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width);
void sk_avx512_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias);
void sk_avx512_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width);
void sk_avx512_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width);

/* avx512_dct.c */
int32_t sk_avx512_dct_unpack(const uint8_t *group, int16_t *upper, int16_t *lower, uint8_t *upper_last,
                             uint8_t *lower_last);

#endif
