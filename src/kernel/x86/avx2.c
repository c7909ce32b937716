/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx2.c: AVX2 with FMA.
 *
 * Floats as in avx512.c. Resampling is in avx2_resample.c, JPEG in avx2_jpeg.c.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/x86/x86.h"

typedef struct divisor {
    __m256 unit_high, unit_low, mean, high, low;
} divisor;

static inline divisor divisor_of(const sk_normal *normal, int channel)
{
    return (divisor){_mm256_set1_ps(normal->unit.high), _mm256_set1_ps(normal->unit.low),
                     _mm256_set1_ps(normal->mean[channel]), _mm256_set1_ps(normal->deviation[channel].high),
                     _mm256_set1_ps(normal->deviation[channel].low)};
}

static inline __m256 multiply(__m256 value, __m256 high, __m256 low)
{
    return _mm256_fmadd_ps(value, high, _mm256_mul_ps(value, low));
}

/* The low 8 bytes → 8 floats. */
static inline __m256 normalise(__m128i bytes, const divisor *d)
{
    __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    __m256 unit = multiply(value, d->unit_high, d->unit_low);

    return multiply(_mm256_sub_ps(unit, d->mean), d->high, d->low);
}

/* Where 24 bytes of output come from in 8 pixels of RGB, forwards and mirrored: planes (8 bytes a channel), then
 * interleaved. */
#define NONE -1
static const int8_t pixel_order[2][2][24] = {
    {{0, 3, 6, 9, 12, 15, 18, 21, 1, 4, 7, 10, 13, 16, 19, 22, 2, 5, 8, 11, 14, 17, 20, 23},
     {21, 18, 15, 12, 9, 6, 3, 0, 22, 19, 16, 13, 10, 7, 4, 1, 23, 20, 17, 14, 11, 8, 5, 2}},
    {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23},
     {21, 22, 23, 18, 19, 20, 15, 16, 17, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2}},
};

/* The shuffles for one such order: bytes 0..15 and 8..23 of the pixels give 8 bytes of each third. */
typedef struct splitter {
    __m128i first[3], second[3];
} splitter;

static inline splitter splitter_of(int interleaved, int32_t flip)
{
    const int8_t *order = pixel_order[interleaved][flip ? 1 : 0];
    splitter s;

    for (int third = 0; third < 3; third++) {
        int8_t first[16], second[16];

        for (int i = 0; i < 16; i++) {
            int byte = i < 8 ? order[8 * third + i] : NONE;

            first[i] = (int8_t)(byte < 16 ? byte : NONE);
            second[i] = (int8_t)(byte >= 16 ? byte - 8 : NONE);
        }
        s.first[third] = _mm_loadu_si128((const __m128i *)first);
        s.second[third] = _mm_loadu_si128((const __m128i *)second);
    }
    return s;
}

static inline void split_pixels(const uint8_t *in, const splitter *s, __m128i third[3])
{
    __m128i first = _mm_loadu_si128((const __m128i *)in), second = _mm_loadu_si128((const __m128i *)(in + 8));

    for (int i = 0; i < 3; i++)
        third[i] = _mm_or_si128(_mm_shuffle_epi8(first, s->first[i]), _mm_shuffle_epi8(second, s->second[i]));
}

/* Rows go in steps of 8 (or 16) pixels; the last step begins earlier, so that it ends with the row: some pixels are
 * then made twice, and none one by one. */
static inline int32_t step_start(int32_t x, int32_t width, int32_t step)
{
    return x + step <= width ? x : width - step;
}

static void rgb_to_planes_f32(float *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip,
                              const sk_normal *normal)
{
    if (!normal->by_arithmetic || width < 8) {
        sk_kernels_scalar.rgb_to_planes_f32(out, plane, in, width, flip, normal);
        return;
    }
    divisor d[3] = {divisor_of(normal, 0), divisor_of(normal, 1), divisor_of(normal, 2)};
    splitter s = splitter_of(0, flip);

    for (int32_t i = 0; i < width; i += 8) {
        int32_t x = step_start(i, width, 8);
        __m128i channel[3];

        split_pixels(in + 3 * (size_t)(flip ? width - 8 - x : x), &s, channel);
        for (size_t c = 0; c < 3; c++)
            _mm256_storeu_ps(out + c * plane + x, normalise(channel[c], &d[c]));
    }
}

static inline divisor interleaved_divisor(const sk_normal *normal, int phase)
{
    float mean[8], high[8], low[8];

    for (int i = 0; i < 8; i++) {
        int c = (phase + i) % 3;

        mean[i] = normal->mean[c];
        high[i] = normal->deviation[c].high;
        low[i] = normal->deviation[c].low;
    }
    return (divisor){_mm256_set1_ps(normal->unit.high), _mm256_set1_ps(normal->unit.low), _mm256_loadu_ps(mean),
                     _mm256_loadu_ps(high), _mm256_loadu_ps(low)};
}

static void rgb_to_rgb_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal)
{
    if (!normal->by_arithmetic || width < 8) {
        sk_kernels_scalar.rgb_to_rgb_f32(out, in, width, flip, normal);
        return;
    }
    /* 8 = 2 modulo 3: each of the three vectors begins two channels further. */
    divisor d[3] = {interleaved_divisor(normal, 0), interleaved_divisor(normal, 2), interleaved_divisor(normal, 1)};
    splitter s = splitter_of(1, flip);

    for (int32_t i = 0; i < width; i += 8) {
        int32_t x = step_start(i, width, 8);
        __m128i third[3];

        split_pixels(in + 3 * (size_t)(flip ? width - 8 - x : x), &s, third);
        for (size_t j = 0; j < 3; j++)
            _mm256_storeu_ps(out + 3 * (size_t)x + 8 * j, normalise(third[j], &d[j]));
    }
}

static void rgb_to_planes_u8(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip)
{
    if (width < 8) {
        sk_kernels_scalar.rgb_to_planes_u8(out, plane, in, width, flip);
        return;
    }
    splitter s = splitter_of(0, flip);

    for (int32_t i = 0; i < width; i += 8) {
        int32_t x = step_start(i, width, 8);
        __m128i channel[3];

        split_pixels(in + 3 * (size_t)(flip ? width - 8 - x : x), &s, channel);
        for (size_t c = 0; c < 3; c++)
            _mm_storel_epi64((__m128i *)(out + c * plane + x), channel[c]);
    }
}

static void rgb_to_rgb_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    if (!flip || width < 8) {
        sk_kernels_scalar.rgb_to_rgb_u8(out, in, width, flip);
        return;
    }
    splitter s = splitter_of(1, flip);

    for (int32_t i = 0; i < width; i += 8) {
        int32_t x = step_start(i, width, 8);
        __m128i third[3];

        split_pixels(in + 3 * (size_t)(width - 8 - x), &s, third);
        for (size_t j = 0; j < 3; j++)
            _mm_storel_epi64((__m128i *)(out + 3 * (size_t)x + 8 * j), third[j]);
    }
}

static inline __m128i reverse(__m128i bytes)
{
    return _mm_shuffle_epi8(bytes, _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

/* 8 bytes, in order or back to front. */
static inline __m128i load_eight(const uint8_t *in, int32_t flip)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)in);

    return flip ? _mm_srli_si128(reverse(bytes), 8) : bytes;
}

static void plane_to_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal,
                         int32_t channel)
{
    if (!normal->by_arithmetic || width < 8) {
        sk_kernels_scalar.plane_to_f32(out, in, width, flip, normal, channel);
        return;
    }
    divisor d = divisor_of(normal, channel);

    for (int32_t i = 0; i < width; i += 8) {
        int32_t x = step_start(i, width, 8);

        _mm256_storeu_ps(out + x, normalise(load_eight(in + (flip ? width - 8 - x : x), flip), &d));
    }
}

static inline void row_to_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    if (width >= 16) {
        for (int32_t i = 0; i < width; i += 16) {
            int32_t x = step_start(i, width, 16);
            __m128i bytes = _mm_loadu_si128((const __m128i *)(in + (flip ? width - 16 - x : x)));

            _mm_storeu_si128((__m128i *)(out + x), flip ? reverse(bytes) : bytes);
        }
        return;
    }
    for (int32_t i = 0; i < width && width >= 8; i += 8) {
        int32_t x = step_start(i, width, 8);

        _mm_storel_epi64((__m128i *)(out + x), load_eight(in + (flip ? width - 8 - x : x), flip));
    }
    for (int32_t x = 0; x < width && width < 8; x++)
        out[x] = in[flip ? width - 1 - x : x];
}

static void plane_to_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    row_to_u8(out, in, width, flip);
}

static inline void fill_row(uint8_t *out, __m256i fill, int32_t width)
{
    if (width < 32) {
        memset(out, _mm256_cvtsi256_si32(fill) & 255, (size_t)width);
        return;
    }
    for (int32_t i = 0; i < width; i += 32)
        _mm256_storeu_si256((__m256i *)(out + step_start(i, width, 32)), fill);
}

static inline void window_bytes(uint8_t *out, const sk_window *window, int32_t flip)
{
    const __m256i fill = _mm256_set1_epi8((char)window->fill);
    const uint8_t *in = window->in;

    for (int32_t y = 0; y < window->height; y++, out += window->width) {
        bool inside = y >= window->margin_top && y < window->margin_top + window->rows;

        if (!inside || window->count < window->width)
            fill_row(out, fill, window->width);
        if (!inside)
            continue;
        row_to_u8(out + window->margin_left, in, window->count, flip);
        in += window->in_stride;
    }
}

static void window_to_u8(uint8_t *out, const sk_window *window)
{
    if (window->flip)
        window_bytes(out, window, 1);
    else
        window_bytes(out, window, 0);
}

/* `count` bytes behind one another, at least 8; `stream`: `out` is aligned and `count` a multiple of 8. */
static inline void bytes_to_f32(float *out, const uint8_t *in, int32_t count, const divisor *d, bool stream)
{
    for (int32_t i = 0; i < count; i += 8) {
        int32_t x = step_start(i, count, 8);
        __m256 floats = normalise(_mm_loadl_epi64((const __m128i *)(in + x)), d);

        if (stream)
            _mm256_stream_ps(out + x, floats);
        else
            _mm256_storeu_ps(out + x, floats);
    }
}

#define WINDOW_BYTES 2048 /* of a window that are put together on the stack before they become floats */

static void window_to_f32(float *out, const sk_window *window, const sk_normal *normal, int32_t channel)
{
    if (!normal->by_arithmetic || window->width > WINDOW_BYTES) {
        sk_kernels_scalar.window_to_f32(out, window, normal, channel);
        return;
    }
    divisor d = divisor_of(normal, channel);
    _Alignas(32) uint8_t bytes[WINDOW_BYTES];
    int32_t most = WINDOW_BYTES / window->width;

    for (int32_t y = 0; y < window->height; y += most) {
        sk_window part = sk_window_rows(window, y, window->height - y < most ? window->height - y : most);
        int32_t count = part.height * window->width;
        float *to = out + (size_t)y * (size_t)window->width;

        window_to_u8(bytes, &part);
        if (count < 8)
            sk_kernels_scalar.plane_to_f32(to, bytes, count, 0, normal, channel);
        else if (window->stream && count % 8 == 0 && (uintptr_t)to % 32 == 0)
            bytes_to_f32(to, bytes, count, &d, true);
        else
            bytes_to_f32(to, bytes, count, &d, false);
    }
}

static void drain(void)
{
    _mm_sfence();
}

/* 16 pixels a step: each third of their 48 bytes takes some from each plane. */
static void planes_to_rgb_u8(uint8_t *out, const uint8_t *in, size_t plane, int32_t count)
{
    if (count < 16) {
        sk_kernels_scalar.planes_to_rgb_u8(out, in, plane, count);
        return;
    }
    __m128i order[3][3]; /* third, channel */

    for (int third = 0; third < 3; third++) {
        int8_t at[3][16];

        memset(at, NONE, sizeof at);
        for (int i = 0; i < 16; i++)
            at[(16 * third + i) % 3][i] = (int8_t)((16 * third + i) / 3);
        for (int c = 0; c < 3; c++)
            order[third][c] = _mm_loadu_si128((const __m128i *)at[c]);
    }
    for (int32_t i = 0; i < count; i += 16) {
        int32_t x = step_start(i, count, 16);
        __m128i pixels[3];

        for (size_t c = 0; c < 3; c++)
            pixels[c] = _mm_loadu_si128((const __m128i *)(in + c * plane + x));
        for (size_t third = 0; third < 3; third++) {
            __m128i bytes = _mm_or_si128(_mm_shuffle_epi8(pixels[0], order[third][0]),
                                         _mm_shuffle_epi8(pixels[1], order[third][1]));

            bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(pixels[2], order[third][2]));
            _mm_storeu_si128((__m128i *)(out + 3 * (size_t)x + 16 * third), bytes);
        }
    }
}

static void f32_to_f16(uint16_t *out, const float *in, int32_t count)
{
    int32_t i = 0;

    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    if (i < count)
        sk_kernels_scalar.f32_to_f16(out + i, in + i, count - i);
}

static void f32_to_bf16(uint16_t *out, const float *in, int32_t count)
{
    int32_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256 value = _mm256_loadu_ps(in + i);
        __m256i bits = _mm256_castps_si256(value);
        __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        __m256i rounded =
            _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
        __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));

        rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
    }
    if (i < count)
        sk_kernels_scalar.f32_to_bf16(out + i, in + i, count - i);
}

const sk_kernels sk_kernels_avx2 = {
    .name = "avx2",
    .resample_packed_size = sk_avx2_resample_packed_size,
    .resample_pack = sk_avx2_resample_pack,
    .resample_rows = sk_avx2_resample_rows,
    .resample_column = sk_avx2_resample_column,
    .rgb_to_planes_f32 = rgb_to_planes_f32,
    .rgb_to_rgb_f32 = rgb_to_rgb_f32,
    .window_to_f32 = window_to_f32,
    .window_to_u8 = window_to_u8,
    .drain = drain,
    .planes_to_rgb_u8 = planes_to_rgb_u8,
    .plane_to_f32 = plane_to_f32,
    .rgb_to_planes_u8 = rgb_to_planes_u8,
    .rgb_to_rgb_u8 = rgb_to_rgb_u8,
    .plane_to_u8 = plane_to_u8,
    .f32_to_f16 = f32_to_f16,
    .f32_to_bf16 = f32_to_bf16,
    .idct = sk_avx2_idct,
    .upsample_h2v1 = sk_avx2_upsample_h2v1,
    .upsample_h2v2 = sk_avx2_upsample_h2v2,
    .upsample_h1v2 = sk_avx2_upsample_h1v2,
    .ycc_to_rgb = sk_avx2_ycc_to_rgb,
    .gray_to_rgb = sk_avx2_gray_to_rgb,
    .dct_unpack = sk_avx2_dct_unpack,
};
