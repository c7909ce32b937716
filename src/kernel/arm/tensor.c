/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c: pixels to tensors with NEON.
 *
 * Floats: v / 255 and (x - mean) / std by inverses in two parts (sk_inverse), as in the x86 tables; the spec found that
 * this gives the table (sk_normal.by_arithmetic), or else the scalar loop runs.
 *
 * Rows go in steps of 8 or 16 pixels; the last step begins earlier, so that it ends with the row: some pixels are then
 * made twice, and none one by one.
 */
#include <arm_neon.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/arm/arm.h"

static inline size_t step_start(size_t x, size_t last)
{
    return x < last ? x : last;
}

/* The pixel in memory at which the step of output that begins at `x` begins, where the last step begins at `last`. */
static inline size_t source_start(size_t x, size_t last, int32_t flip)
{
    return flip ? last - x : x;
}

static inline uint8x16_t reverse(uint8x16_t bytes)
{
    uint8x16_t halves = vrev64q_u8(bytes);

    return vextq_u8(halves, halves, 8);
}

static inline uint8x8_t load_eight(const uint8_t *in, int32_t flip)
{
    uint8x8_t bytes = vld1_u8(in);

    return flip ? vrev64_u8(bytes) : bytes;
}

static inline uint8x8x3_t load_eight_pixels(const uint8_t *in, int32_t flip)
{
    uint8x8x3_t pixels = vld3_u8(in);

    for (int c = 0; c < 3 && flip; c++)
        pixels.val[c] = vrev64_u8(pixels.val[c]);
    return pixels;
}

static inline uint8x16x3_t load_sixteen_pixels(const uint8_t *in, int32_t flip)
{
    uint8x16x3_t pixels = vld3q_u8(in);

    for (int c = 0; c < 3 && flip; c++)
        pixels.val[c] = reverse(pixels.val[c]);
    return pixels;
}

/* ---------------------------------------------------------------------------------------------- to floats -------- */

typedef struct divisor {
    float32x4_t unit_high, unit_low, mean, high, low;
} divisor;

static inline divisor divisor_of(const sk_normal *normal, int32_t channel)
{
    return (divisor){vdupq_n_f32(normal->unit.high), vdupq_n_f32(normal->unit.low), vdupq_n_f32(normal->mean[channel]),
                     vdupq_n_f32(normal->deviation[channel].high), vdupq_n_f32(normal->deviation[channel].low)};
}

static inline float32x4_t multiply(float32x4_t value, float32x4_t high, float32x4_t low)
{
    return vfmaq_f32(vmulq_f32(value, low), value, high);
}

static inline float32x4_t normalise_four(uint32x4_t values, const divisor *d)
{
    float32x4_t unit = multiply(vcvtq_f32_u32(values), d->unit_high, d->unit_low);

    return multiply(vsubq_f32(unit, d->mean), d->high, d->low);
}

static inline float32x4x2_t normalise(uint8x8_t bytes, const divisor *d)
{
    uint16x8_t words = vmovl_u8(bytes);

    return (float32x4x2_t){
        {normalise_four(vmovl_u16(vget_low_u16(words)), d), normalise_four(vmovl_high_u16(words), d)}};
}

static inline void store_eight(float *out, float32x4x2_t floats)
{
    vst1q_f32(out, floats.val[0]);
    vst1q_f32(out + 4, floats.val[1]);
}

void sk_neon_rgb_to_planes_f32(float *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip,
                               const sk_normal *normal)
{
    if (!normal->by_arithmetic || width < 8) {
        sk_kernels_scalar.rgb_to_planes_f32(out, plane, in, width, flip, normal);
        return;
    }
    divisor d[3] = {divisor_of(normal, 0), divisor_of(normal, 1), divisor_of(normal, 2)};

    const size_t n = (size_t)width, last = n - 8;

    for (size_t i = 0; i < n; i += 8) {
        size_t x = step_start(i, last);
        uint8x8x3_t pixels = load_eight_pixels(in + 3 * source_start(x, last, flip), flip);

        for (size_t c = 0; c < 3; c++)
            store_eight(out + c * plane + x, normalise(pixels.val[c], &d[c]));
    }
}

void sk_neon_rgb_to_rgb_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal)
{
    if (!normal->by_arithmetic || width < 8) {
        sk_kernels_scalar.rgb_to_rgb_f32(out, in, width, flip, normal);
        return;
    }
    divisor d[3] = {divisor_of(normal, 0), divisor_of(normal, 1), divisor_of(normal, 2)};

    const size_t n = (size_t)width, last = n - 8;

    for (size_t i = 0; i < n; i += 8) {
        size_t x = step_start(i, last);
        uint8x8x3_t pixels = load_eight_pixels(in + 3 * source_start(x, last, flip), flip);
        float32x4x3_t first, second;

        for (int c = 0; c < 3; c++) {
            float32x4x2_t floats = normalise(pixels.val[c], &d[c]);

            first.val[c] = floats.val[0];
            second.val[c] = floats.val[1];
        }
        vst3q_f32(out + 3 * (size_t)x, first);
        vst3q_f32(out + 3 * (size_t)x + 12, second);
    }
}

/* One row of bytes; d is NULL where the table must be used. */
static inline void row_to_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const divisor *d,
                              const float *table)
{
    if (d == NULL || width < 8) {
        for (int32_t x = 0; x < width; x++)
            out[x] = table[in[flip ? width - 1 - x : x]];
        return;
    }
    const size_t n = (size_t)width, last = n - 8;

    for (size_t i = 0; i < n; i += 8) {
        size_t x = step_start(i, last);

        store_eight(out + x, normalise(load_eight(in + source_start(x, last, flip), flip), d));
    }
}

void sk_neon_plane_to_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal,
                          int32_t channel)
{
    divisor d = divisor_of(normal, channel);

    row_to_f32(out, in, width, flip, normal->by_arithmetic ? &d : NULL, normal->table[channel]);
}

static inline float *fill_f32(float *out, float value, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        out[i] = value;
    return out + count;
}

/* Rows of a window are short, so the divisors are made once for all of them. */
void sk_neon_window_to_f32(float *out, const sk_window *window, const sk_normal *normal, int32_t channel)
{
    const float *table = normal->table[channel];
    float fill = table[window->fill];
    divisor d = divisor_of(normal, channel);

    for (int32_t y = 0; y < window->height; y++) {
        int32_t row = y - window->margin_top;

        if (row < 0 || row >= window->rows) {
            out = fill_f32(out, fill, window->width);
            continue;
        }
        out = fill_f32(out, fill, window->margin_left);
        row_to_f32(out, window->in + row * window->in_stride, window->count, window->flip,
                   normal->by_arithmetic ? &d : NULL, table);
        out = fill_f32(out + window->count, fill, window->width - window->margin_left - window->count);
    }
}

/* ----------------------------------------------------------------------------------------------- to bytes -------- */

void sk_neon_planes_to_rgb_u8(uint8_t *out, const uint8_t *in, size_t plane, int32_t count)
{
    if (count < 8) {
        sk_kernels_scalar.planes_to_rgb_u8(out, in, plane, count);
        return;
    }
    const size_t n = (size_t)count, last = n - 8;

    for (size_t i = 0; i < n; i += 8) {
        size_t x = step_start(i, last);
        const uint8_t *at = in + x;

        vst3_u8(out + 3 * x, (uint8x8x3_t){{vld1_u8(at), vld1_u8(at + plane), vld1_u8(at + 2 * plane)}});
    }
}

void sk_neon_rgb_to_planes_u8(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip)
{
    if (width < 16) {
        sk_kernels_scalar.rgb_to_planes_u8(out, plane, in, width, flip);
        return;
    }
    const size_t n = (size_t)width, last = n - 16;

    for (size_t i = 0; i < n; i += 16) {
        size_t x = step_start(i, last);
        uint8x16x3_t pixels = load_sixteen_pixels(in + 3 * source_start(x, last, flip), flip);

        for (size_t c = 0; c < 3; c++)
            vst1q_u8(out + c * plane + x, pixels.val[c]);
    }
}

void sk_neon_rgb_to_rgb_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    if (!flip || width < 16) {
        sk_kernels_scalar.rgb_to_rgb_u8(out, in, width, flip);
        return;
    }
    const size_t n = (size_t)width, last = n - 16;

    for (size_t i = 0; i < n; i += 16) {
        size_t x = step_start(i, last);

        vst3q_u8(out + 3 * x, load_sixteen_pixels(in + 3 * (last - x), 1));
    }
}

void sk_neon_plane_to_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    if (!flip || width < 16) {
        sk_kernels_scalar.plane_to_u8(out, in, width, flip);
        return;
    }
    const size_t n = (size_t)width, last = n - 16;

    for (size_t i = 0; i < n; i += 16) {
        size_t x = step_start(i, last);

        vst1q_u8(out + x, reverse(vld1q_u8(in + last - x)));
    }
}

void sk_neon_window_to_u8(uint8_t *out, const sk_window *window)
{
    for (int32_t y = 0; y < window->height; y++, out += window->width) {
        int32_t row = y - window->margin_top;
        bool inside = row >= 0 && row < window->rows;
        int32_t begin = window->margin_left, end = inside ? begin + window->count : begin;

        memset(out, window->fill, (size_t)begin);
        if (inside)
            sk_neon_plane_to_u8(out + begin, window->in + row * window->in_stride, window->count, window->flip);
        memset(out + end, window->fill, (size_t)(window->width - end));
    }
}

/* ------------------------------------------------------------------------------------------ 16-bit floats -------- */

/* FCVTN rounds to nearest, ties to even, and keeps a NaN's sign and upper bits, made quiet: what scalar.c spells out. */
void sk_neon_f32_to_f16(uint16_t *out, const float *in, int32_t count)
{
    int32_t i = 0;

    for (; i + 8 <= count; i += 8) {
        float16x4_t low = vcvt_f16_f32(vld1q_f32(in + i));

        vst1q_u16(out + i, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(in + i + 4))));
    }
    if (i < count)
        sk_kernels_scalar.f32_to_f16(out + i, in + i, count - i);
}

static inline uint32x4_t round_to_bf16(float32x4_t value) /* the upper halves */
{
    uint32x4_t bits = vreinterpretq_u32_f32(value);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, odd), vdupq_n_u32(0x7fff));

    return vbslq_u32(vceqq_f32(value, value), rounded, vdupq_n_u32(0x7fc00000)); /* NaN differs from itself */
}

void sk_neon_f32_to_bf16(uint16_t *out, const float *in, int32_t count)
{
    int32_t i = 0;

    for (; i + 8 <= count; i += 8) {
        uint16x8_t low = vreinterpretq_u16_u32(round_to_bf16(vld1q_f32(in + i)));
        uint16x8_t high = vreinterpretq_u16_u32(round_to_bf16(vld1q_f32(in + i + 4)));

        vst1q_u16(out + i, vuzp2q_u16(low, high));
    }
    if (i < count)
        sk_kernels_scalar.f32_to_bf16(out + i, in + i, count - i);
}
