/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.c: the two passes of resampling with NEON. Pixels are widened to 32 bits and multiplied by the weights as
 * they are, so each lane makes the scalar sum; no weight is split, none is packed.
 */
#include <arm_neon.h>
#include <string.h>

#include "kernel/arm/arm.h"

#define GROUP 4 /* rows that share the loads of weights */

/* For a table look-up: three bytes from `b` on become three 32-bit lanes, and the fourth is zero (255 is out of the
 * table's range). */
#define LANES(b) (b), 255, 255, 255, (b) + 1, 255, 255, 255, (b) + 2, 255, 255, 255, 255, 255, 255, 255
static const uint8_t pixel_lanes[4][16] = {{LANES(0)}, {LANES(3)}, {LANES(6)}, {LANES(9)}};
static const uint8_t last_pixel_lanes[16] = {LANES(1)};

static inline int32x4_t lanes_of(uint8x16_t bytes, uint8x16_t order)
{
    return vreinterpretq_s32_u8(vqtbl1q_u8(bytes, order));
}

static inline uint8x16_t load_four(const uint8_t *in)
{
    uint32_t four;

    memcpy(&four, in, sizeof four);
    return vreinterpretq_u8_u32(vdupq_n_u32(four));
}

/* Sums of two pixels, shifted and clipped, four bytes each. */
static inline uint8x8_t clip_two(int32x4_t a, int32x4_t b)
{
    uint16x8_t words = vcombine_u16(vqshrun_n_s32(a, 16), vqshrun_n_s32(b, 16));

    return vqshrn_n_u16(words, SK_WEIGHT_BITS - 16);
}

/* RGB: rows y .. y + group - 1. The rows are at least two pixels wide. */
static inline void resample_group(const sk_rows *rows, const sk_taps *taps, int32_t y, const int32_t group)
{
    const uint8x16_t order[4] = {vld1q_u8(pixel_lanes[0]), vld1q_u8(pixel_lanes[1]), vld1q_u8(pixel_lanes[2]),
                                 vld1q_u8(pixel_lanes[3])};
    const uint8x16_t last_order = vld1q_u8(last_pixel_lanes);
    const int32x4_t half = vdupq_n_s32(1 << (SK_WEIGHT_BITS - 1));
    const uint8_t *in = rows->in + (size_t)y * rows->in_stride;
    uint8_t *out = rows->out + (size_t)y * rows->out_stride;
    const size_t stride = rows->in_stride, out_stride = rows->out_stride;
    const int32_t in_first = rows->in_first, in_width = rows->in_width, to = rows->to;
    const sk_taps t = *taps; /* copies: bytes that are written could be anything of the caller's */

    for (int32_t x = rows->from; x < to; x++, out += 3) {
        const int32_t *weight = t.weight + (size_t)x * (size_t)t.size;
        int32_t first = t.first[x] - in_first, count = t.count[x], k = 0;
        int32_t readable = in_width - first; /* pixels */
        const uint8_t *at = in + 3 * (size_t)first;
        int32x4_t sum[GROUP] = {half, half, half, half};

        for (; k + 4 <= count && k + 6 <= readable; k += 4, at += 12) { /* 16 bytes: a part of the sixth pixel */
            int32x4_t w = vld1q_s32(weight + k);

            for (int32_t r = 0; r < group; r++) {
                uint8x16_t bytes = vld1q_u8(at + (size_t)r * stride);

                sum[r] = vmlaq_laneq_s32(sum[r], lanes_of(bytes, order[0]), w, 0);
                sum[r] = vmlaq_laneq_s32(sum[r], lanes_of(bytes, order[1]), w, 1);
                sum[r] = vmlaq_laneq_s32(sum[r], lanes_of(bytes, order[2]), w, 2);
                sum[r] = vmlaq_laneq_s32(sum[r], lanes_of(bytes, order[3]), w, 3);
            }
        }
        for (; k < count && k + 2 <= readable; k++, at += 3) {
            for (int32_t r = 0; r < group; r++)
                sum[r] = vmlaq_n_s32(sum[r], lanes_of(load_four(at + (size_t)r * stride), order[0]), weight[k]);
        }
        if (k < count) { /* the row's last pixel is its last three bytes: read with the byte before them */
            for (int32_t r = 0; r < group; r++)
                sum[r] = vmlaq_n_s32(sum[r], lanes_of(load_four(at + (size_t)r * stride - 1), last_order), weight[k]);
        }
        uint32x4_t pixels = vreinterpretq_u32_u8(vcombine_u8(clip_two(sum[0], sum[1]), clip_two(sum[2], sum[3])));
        uint32_t pixel[GROUP];

        vst1q_u32(pixel, pixels);
        for (int32_t r = 0; r < group && x + 1 < to; r++) /* the next pixel overwrites the fourth byte */
            memcpy(out + (size_t)r * out_stride, &pixel[r], 4);
        for (int32_t r = 0; r < group && x + 1 == to; r++)
            memcpy(out + (size_t)r * out_stride, &pixel[r], 3);
    }
}

static inline uint8_t clip_one(int32_t sum)
{
    sum >>= SK_WEIGHT_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* One channel: four taps of an output in the four lanes. */
static void resample_gray_row(const sk_rows *rows, const sk_taps *taps, int32_t y)
{
    const uint8_t *in = rows->in + (size_t)y * rows->in_stride;
    uint8_t *out = rows->out + (size_t)y * rows->out_stride;
    const int32_t in_first = rows->in_first, to = rows->to;
    const sk_taps t = *taps;

    for (int32_t x = rows->from; x < to; x++) {
        const int32_t *weight = t.weight + (size_t)x * (size_t)t.size;
        const uint8_t *at = in + (t.first[x] - in_first);
        int32_t count = t.count[x], k = 0;
        int32x4_t sums = vdupq_n_s32(0);

        for (; k + 4 <= count; k += 4) {
            uint16x8_t words = vmovl_u8(vget_low_u8(load_four(at + k)));

            sums = vmlaq_s32(sums, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words))), vld1q_s32(weight + k));
        }
        int32_t sum = vaddvq_s32(sums) + (1 << (SK_WEIGHT_BITS - 1));

        for (; k < count; k++)
            sum += at[k] * weight[k];
        *out++ = clip_one(sum);
    }
}

void sk_neon_resample_rows(const sk_rows *rows, const sk_taps *taps, const void *packed)
{
    int32_t y = 0;

    (void)packed;
    if (rows->channels == 1) {
        for (; y < rows->rows; y++)
            resample_gray_row(rows, taps, y);
        return;
    }
    if (rows->in_width < 2) {
        for (; y < rows->rows; y++)
            sk_scalar_resample_row(rows, taps, y, rows->from);
        return;
    }
    for (; y + GROUP <= rows->rows; y += GROUP)
        resample_group(rows, taps, y, GROUP);
    for (; y < rows->rows; y++)
        resample_group(rows, taps, y, 1);
}

void sk_neon_resample_column(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                             int32_t count)
{
    const int32x4_t half = vdupq_n_s32(1 << (SK_WEIGHT_BITS - 1));

    if (bytes < 16) {
        sk_kernels_scalar.resample_column(out, in, stride, bytes, weight, count);
        return;
    }
    for (size_t i = 0; i < bytes; i += 16) { /* the last step begins earlier, so that it ends with the row */
        size_t x = i + 16 <= bytes ? i : bytes - 16;
        const uint8_t *at = in + x;
        int32x4_t sum[4] = {half, half, half, half};

        for (int32_t k = 0; k < count; k++, at += stride) {
            uint8x16_t row = vld1q_u8(at);
            uint16x8_t low = vmovl_u8(vget_low_u8(row)), high = vmovl_high_u8(row);

            sum[0] = vmlaq_n_s32(sum[0], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), weight[k]);
            sum[1] = vmlaq_n_s32(sum[1], vreinterpretq_s32_u32(vmovl_high_u16(low)), weight[k]);
            sum[2] = vmlaq_n_s32(sum[2], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))), weight[k]);
            sum[3] = vmlaq_n_s32(sum[3], vreinterpretq_s32_u32(vmovl_high_u16(high)), weight[k]);
        }
        vst1q_u8(out + x, vcombine_u8(clip_two(sum[0], sum[1]), clip_two(sum[2], sum[3])));
    }
}
