/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm.h: the table for aarch64, and the kernels in it. Every aarch64 processor has Advanced SIMD (NEON), so nothing is
 * asked at run time and no flag is given to the compiler.
 */
#ifndef SK_KERNEL_ARM_ARM_H
#define SK_KERNEL_ARM_ARM_H

#include "kernel/kernel.h"

extern const sk_kernels sk_kernels_neon;

/* jpeg.c */
void sk_neon_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                  const uint16_t *quant);
void sk_neon_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width);
void sk_neon_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width);
void sk_neon_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias);
void sk_neon_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width);
void sk_neon_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width);

/* resample.c */
void sk_neon_resample_rows(const sk_rows *rows, const sk_taps *taps, const void *packed);
void sk_neon_resample_column(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                             int32_t count);

/* tensor.c */
void sk_neon_rgb_to_planes_f32(float *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip,
                               const sk_normal *normal);
void sk_neon_rgb_to_rgb_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal);
void sk_neon_window_to_f32(float *out, const sk_window *window, const sk_normal *normal, int32_t channel);
void sk_neon_window_to_u8(uint8_t *out, const sk_window *window);
void sk_neon_planes_to_rgb_u8(uint8_t *out, const uint8_t *in, size_t plane, int32_t count);
void sk_neon_plane_to_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal,
                          int32_t channel);
void sk_neon_rgb_to_planes_u8(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip);
void sk_neon_rgb_to_rgb_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip);
void sk_neon_plane_to_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip);
void sk_neon_f32_to_f16(uint16_t *out, const float *in, int32_t count);
void sk_neon_f32_to_bf16(uint16_t *out, const float *in, int32_t count);

#endif
