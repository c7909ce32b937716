/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neon.c: the table for aarch64. The kernels are in jpeg.c, resample.c and tensor.c. They have been run under emulation only.
 */
#include "kernel/arm/arm.h"

/* Weights are read as they are: nothing to pack. */
static size_t packed_size(const sk_taps *taps, int32_t from, int32_t to, int32_t channels)
{
    (void)taps, (void)from, (void)to, (void)channels;
    return 0;
}

static void pack(const sk_taps *taps, int32_t from, int32_t to, int32_t channels, void *packed)
{
    (void)taps, (void)from, (void)to, (void)channels, (void)packed;
}

const sk_kernels sk_kernels_neon = {
    .name = "neon",
    .resample_packed_size = packed_size,
    .resample_pack = pack,
    .resample_rows = sk_neon_resample_rows,
    .resample_column = sk_neon_resample_column,
    .rgb_to_planes_f32 = sk_neon_rgb_to_planes_f32,
    .rgb_to_rgb_f32 = sk_neon_rgb_to_rgb_f32,
    .window_to_f32 = sk_neon_window_to_f32,
    .window_to_u8 = sk_neon_window_to_u8,
    .drain = sk_scalar_drain,
    .planes_to_rgb_u8 = sk_neon_planes_to_rgb_u8,
    .plane_to_f32 = sk_neon_plane_to_f32,
    .rgb_to_planes_u8 = sk_neon_rgb_to_planes_u8,
    .rgb_to_rgb_u8 = sk_neon_rgb_to_rgb_u8,
    .plane_to_u8 = sk_neon_plane_to_u8,
    .f32_to_f16 = sk_neon_f32_to_f16,
    .f32_to_bf16 = sk_neon_f32_to_bf16,
    .idct = sk_neon_idct,
    .upsample_h2v1 = sk_neon_upsample_h2v1,
    .upsample_h2v2 = sk_neon_upsample_h2v2,
    .upsample_h1v2 = sk_neon_upsample_h1v2,
    .ycc_to_rgb = sk_neon_ycc_to_rgb,
    .gray_to_rgb = sk_neon_gray_to_rgb,
    .dct_unpack = sk_scalar_dct_unpack,
};
