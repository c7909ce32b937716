/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalar.c: the reference. Obvious first; the other tables are checked against it.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/kernel.h"

static uint8_t clip(int32_t sum)
{
    sum >>= SK_WEIGHT_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static size_t packed_size(const sk_taps *taps, int32_t from, int32_t to, int32_t channels)
{
    (void)taps, (void)from, (void)to, (void)channels;
    return 0;
}

static void pack(const sk_taps *taps, int32_t from, int32_t to, int32_t channels, void *packed)
{
    (void)taps, (void)from, (void)to, (void)channels, (void)packed;
}

void sk_scalar_resample_row(const sk_rows *rows, const sk_taps *taps, int32_t y, int32_t from)
{
    size_t channels = (size_t)rows->channels;
    const uint8_t *in = rows->in + (size_t)y * rows->in_stride;
    uint8_t *out = rows->out + (size_t)y * rows->out_stride + (size_t)(from - rows->from) * channels;

    for (int32_t x = from; x < rows->to; x++) {
        const int32_t *weight = taps->weight + (size_t)x * (size_t)taps->size;
        const uint8_t *first = in + (size_t)(taps->first[x] - rows->in_first) * channels;

        for (size_t c = 0; c < channels; c++) {
            int32_t sum = 1 << (SK_WEIGHT_BITS - 1);

            for (int32_t k = 0; k < taps->count[x]; k++)
                sum += first[(size_t)k * channels + c] * weight[k];
            *out++ = clip(sum);
        }
    }
}

static void resample_rows(const sk_rows *rows, const sk_taps *taps, const void *packed)
{
    (void)packed;
    for (int32_t y = 0; y < rows->rows; y++)
        sk_scalar_resample_row(rows, taps, y, rows->from);
}

static void resample_column(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                            int32_t count)
{
    for (size_t i = 0; i < bytes; i++) {
        int32_t sum = 1 << (SK_WEIGHT_BITS - 1);

        for (int32_t k = 0; k < count; k++)
            sum += in[(size_t)k * stride + i] * weight[k];
        out[i] = clip(sum);
    }
}

static void rgb_to_planes_f32(float *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip,
                              const sk_normal *normal)
{
    for (int32_t x = 0; x < width; x++) {
        const uint8_t *pixel = in + 3 * (size_t)(flip ? width - 1 - x : x);

        out[x] = normal->table[0][pixel[0]];
        out[plane + (size_t)x] = normal->table[1][pixel[1]];
        out[2 * plane + (size_t)x] = normal->table[2][pixel[2]];
    }
}

static void rgb_to_rgb_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal)
{
    for (int32_t x = 0; x < width; x++) {
        const uint8_t *pixel = in + 3 * (size_t)(flip ? width - 1 - x : x);

        for (int c = 0; c < 3; c++)
            *out++ = normal->table[c][pixel[c]];
    }
}

static void plane_to_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal,
                         int32_t channel)
{
    const float *table = normal->table[channel];

    for (int32_t x = 0; x < width; x++)
        out[x] = table[in[flip ? width - 1 - x : x]];
}

static void rgb_to_planes_u8(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip)
{
    for (int32_t x = 0; x < width; x++) {
        const uint8_t *pixel = in + 3 * (size_t)(flip ? width - 1 - x : x);

        out[x] = pixel[0];
        out[plane + (size_t)x] = pixel[1];
        out[2 * plane + (size_t)x] = pixel[2];
    }
}

static void plane_to_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    if (!flip) {
        memcpy(out, in, (size_t)width);
        return;
    }
    for (int32_t x = 0; x < width; x++)
        out[x] = in[width - 1 - x];
}

static void rgb_to_rgb_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    if (!flip) {
        memcpy(out, in, 3 * (size_t)width);
        return;
    }
    for (int32_t x = 0; x < width; x++)
        memcpy(out + 3 * (size_t)x, in + 3 * (size_t)(width - 1 - x), 3);
}

/* The source byte at (x, y) of the window. */
static uint8_t window_at(const sk_window *window, int32_t x, int32_t y)
{
    int32_t column = x - window->margin_left, row = y - window->margin_top;

    if (row < 0 || row >= window->rows || column < 0 || column >= window->count)
        return window->fill;
    return window->in[row * window->in_stride + (window->flip ? window->count - 1 - column : column)];
}

static void window_to_f32(float *out, const sk_window *window, const sk_normal *normal, int32_t channel)
{
    for (int32_t y = 0; y < window->height; y++) {
        for (int32_t x = 0; x < window->width; x++)
            *out++ = normal->table[channel][window_at(window, x, y)];
    }
}

static void window_to_u8(uint8_t *out, const sk_window *window)
{
    for (int32_t y = 0; y < window->height; y++) {
        for (int32_t x = 0; x < window->width; x++)
            *out++ = window_at(window, x, y);
    }
}

void sk_scalar_drain(void)
{
}

static void planes_to_rgb_u8(uint8_t *out, const uint8_t *in, size_t plane, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        for (size_t c = 0; c < 3; c++)
            *out++ = in[c * plane + (size_t)i];
    }
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint16_t to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000) /* NaN: quiet, with the payload's upper bits */
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
    if (magnitude >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    if (magnitude < 0x38800000) {
        /* Subnormal: the float whose unit in the last place is 2^-24 does the rounding. */
        float shifted = fabsf(value) + 0.5f;

        return (uint16_t)(sign | (bits_of(shifted) - bits_of(0.5f)));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((magnitude - 0x38000000) >> 13));
}

static void f32_to_f16(uint16_t *out, const float *in, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        out[i] = to_f16(in[i]);
}

static void f32_to_bf16(uint16_t *out, const float *in, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(in[i]);
        bool nan = (bits & 0x7fffffff) > 0x7f800000;

        out[i] = (uint16_t)(nan ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

const sk_kernels sk_kernels_scalar = {
    .name = "scalar",
    .resample_packed_size = packed_size,
    .resample_pack = pack,
    .resample_rows = resample_rows,
    .resample_column = resample_column,
    .rgb_to_planes_f32 = rgb_to_planes_f32,
    .rgb_to_rgb_f32 = rgb_to_rgb_f32,
    .window_to_f32 = window_to_f32,
    .window_to_u8 = window_to_u8,
    .drain = sk_scalar_drain,
    .planes_to_rgb_u8 = planes_to_rgb_u8,
    .plane_to_f32 = plane_to_f32,
    .rgb_to_planes_u8 = rgb_to_planes_u8,
    .rgb_to_rgb_u8 = rgb_to_rgb_u8,
    .plane_to_u8 = plane_to_u8,
    .f32_to_f16 = f32_to_f16,
    .f32_to_bf16 = f32_to_bf16,
    .idct = sk_scalar_idct,
    .upsample_h2v1 = sk_scalar_upsample_h2v1,
    .upsample_h2v2 = sk_scalar_upsample_h2v2,
    .upsample_h1v2 = sk_scalar_upsample_h1v2,
    .ycc_to_rgb = sk_scalar_ycc_to_rgb,
    .gray_to_rgb = sk_scalar_gray_to_rgb,
    .dct_unpack = sk_scalar_dct_unpack,
};
