/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx512.c: AVX-512 with VBMI and VNNI.
 *
 * Floats: v / 255 and (x - mean) / std by inverses in two parts (sk_inverse); the spec found that this gives the table
 * (sk_normal.by_arithmetic), or else the scalar loop runs. Resampling is in avx512_resample.c, JPEG in avx512_jpeg.c.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/x86/x86.h"

/* (v / 255 - mean) / std for 16 pixels. */
typedef struct divisor {
    __m512 unit_high, unit_low, mean, high, low;
} divisor;

static inline divisor divisor_of(const sk_normal *normal, int channel)
{
    return (divisor){_mm512_set1_ps(normal->unit.high), _mm512_set1_ps(normal->unit.low),
                     _mm512_set1_ps(normal->mean[channel]), _mm512_set1_ps(normal->deviation[channel].high),
                     _mm512_set1_ps(normal->deviation[channel].low)};
}

static inline __m512 multiply(__m512 value, __m512 high, __m512 low)
{
    return _mm512_fmadd_ps(value, high, _mm512_mul_ps(value, low));
}

static inline __m512 normalise(__m128i bytes, const divisor *d)
{
    __m512 value = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
    __m512 unit = multiply(value, d->unit_high, d->unit_low);

    return multiply(_mm512_sub_ps(unit, d->mean), d->high, d->low);
}

/* Byte 3 i + c of 48 → byte i, for the three channels; then the same with i counted from the end. */
static const uint8_t planes_index[2][3][64] = {
    {{0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45},
     {1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46},
     {2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47}},
    {{45, 42, 39, 36, 33, 30, 27, 24, 21, 18, 15, 12, 9, 6, 3, 0},
     {46, 43, 40, 37, 34, 31, 28, 25, 22, 19, 16, 13, 10, 7, 4, 1},
     {47, 44, 41, 38, 35, 32, 29, 26, 23, 20, 17, 14, 11, 8, 5, 2}},
};

/* The 16 pixels that outputs x .. x + 15 of a row of `width` come from, as 16 bytes a channel; fewer at the row's end.
 */
static inline void load_pixels(const uint8_t *in, int32_t width, int32_t flip, int32_t x, __m128i channel[3])
{
    int32_t n = width - x < 16 ? width - x : 16;
    /* Flipped, the last of the 16 comes first; the missing ones at the end are then the first in memory. */
    __mmask64 mask = ((1ull << (3 * n)) - 1) << (flip ? 3 * (16 - n) : 0);
    const uint8_t *from = flip ? in + 3 * (ptrdiff_t)(width - x - 16) : in + 3 * (ptrdiff_t)x;
    __m512i pixels = _mm512_maskz_loadu_epi8(mask, from);

    for (int c = 0; c < 3; c++) {
        __m512i index = _mm512_loadu_si512(planes_index[flip ? 1 : 0][c]);

        channel[c] = _mm512_castsi512_si128(_mm512_permutexvar_epi8(index, pixels));
    }
}

static void rgb_to_planes_f32(float *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip,
                              const sk_normal *normal)
{
    if (!normal->by_arithmetic) {
        sk_kernels_scalar.rgb_to_planes_f32(out, plane, in, width, flip, normal);
        return;
    }
    divisor d[3] = {divisor_of(normal, 0), divisor_of(normal, 1), divisor_of(normal, 2)};

    for (int32_t x = 0; x < width; x += 16) {
        __mmask16 keep = width - x >= 16 ? 0xffff : (__mmask16)((1u << (width - x)) - 1);
        __m128i channel[3];

        load_pixels(in, width, flip, x, channel);
        for (size_t c = 0; c < 3; c++)
            _mm512_mask_storeu_ps(out + c * plane + x, keep, normalise(channel[c], &d[c]));
    }
}

/* Interleaved: byte i of 48 from the mirrored pixel. */
static const uint8_t mirror_index[64] = {45, 46, 47, 42, 43, 44, 39, 40, 41, 36, 37, 38, 33, 34, 35, 30,
                                         31, 32, 27, 28, 29, 24, 25, 26, 21, 22, 23, 18, 19, 20, 15, 16,
                                         17, 12, 13, 14, 9,  10, 11, 6,  7,  8,  3,  4,  5,  0,  1,  2};

/* The same 16 pixels as load_pixels, interleaved. */
static inline __m512i load_interleaved(const uint8_t *in, int32_t width, int32_t flip, int32_t x)
{
    int32_t n = width - x < 16 ? width - x : 16;
    __mmask64 mask = ((1ull << (3 * n)) - 1) << (flip ? 3 * (16 - n) : 0);

    if (!flip)
        return _mm512_maskz_loadu_epi8(mask, in + 3 * (ptrdiff_t)x);
    return _mm512_permutexvar_epi8(_mm512_loadu_si512(mirror_index),
                                   _mm512_maskz_loadu_epi8(mask, in + 3 * (ptrdiff_t)(width - x - 16)));
}

/* For 16 interleaved values whose first is of channel `phase`. */
static inline divisor interleaved_divisor(const sk_normal *normal, int phase)
{
    float mean[16], high[16], low[16];

    for (int i = 0; i < 16; i++) {
        int c = (phase + i) % 3;

        mean[i] = normal->mean[c];
        high[i] = normal->deviation[c].high;
        low[i] = normal->deviation[c].low;
    }
    return (divisor){_mm512_set1_ps(normal->unit.high), _mm512_set1_ps(normal->unit.low), _mm512_loadu_ps(mean),
                     _mm512_loadu_ps(high), _mm512_loadu_ps(low)};
}

static inline __mmask16 first_lanes(int32_t n)
{
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

static void rgb_to_rgb_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal)
{
    if (!normal->by_arithmetic) {
        sk_kernels_scalar.rgb_to_rgb_f32(out, in, width, flip, normal);
        return;
    }
    /* 16 = 1 modulo 3: each of the three vectors begins one channel further. */
    divisor d0 = interleaved_divisor(normal, 0), d1 = interleaved_divisor(normal, 1),
            d2 = interleaved_divisor(normal, 2);

    for (int32_t x = 0; x < width; x += 16, out += 48) {
        __m512i pixels = load_interleaved(in, width, flip, x);
        int32_t left = 3 * (width - x);

        _mm512_mask_storeu_ps(out, first_lanes(left), normalise(_mm512_castsi512_si128(pixels), &d0));
        _mm512_mask_storeu_ps(out + 16, first_lanes(left - 16), normalise(_mm512_extracti32x4_epi32(pixels, 1), &d1));
        _mm512_mask_storeu_ps(out + 32, first_lanes(left - 32), normalise(_mm512_extracti32x4_epi32(pixels, 2), &d2));
    }
}

static void rgb_to_rgb_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    if (!flip) {
        memcpy(out, in, 3 * (size_t)width);
        return;
    }
    for (int32_t x = 0; x < width; x += 16) {
        int32_t n = width - x < 16 ? width - x : 16;

        _mm512_mask_storeu_epi8(out + 3 * (size_t)x, (1ull << (3 * n)) - 1, load_interleaved(in, width, flip, x));
    }
}

static void rgb_to_planes_u8(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip)
{
    for (int32_t x = 0; x < width; x += 16) {
        __mmask16 keep = width - x >= 16 ? 0xffff : (__mmask16)((1u << (width - x)) - 1);
        __m128i channel[3];

        load_pixels(in, width, flip, x, channel);
        for (size_t c = 0; c < 3; c++)
            _mm_mask_storeu_epi8(out + c * plane + x, keep, channel[c]);
    }
}

static inline __m128i reverse16(__m128i bytes)
{
    return _mm_shuffle_epi8(bytes, _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

/* 16 bytes for outputs x .. x + 15 of a plane's row. */
static inline __m128i load_plane(const uint8_t *in, int32_t width, int32_t flip, int32_t x)
{
    int32_t n = width - x < 16 ? width - x : 16;
    __mmask16 mask = (__mmask16)(n == 16 ? 0xffff : (1u << n) - 1);

    if (!flip)
        return _mm_maskz_loadu_epi8(mask, in + x);
    mask = (__mmask16)(mask << (16 - n));
    return reverse16(_mm_maskz_loadu_epi8(mask, in + (ptrdiff_t)(width - x - 16)));
}

static void plane_to_f32(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal,
                         int32_t channel)
{
    if (!normal->by_arithmetic) {
        sk_kernels_scalar.plane_to_f32(out, in, width, flip, normal, channel);
        return;
    }
    divisor d = divisor_of(normal, channel);

    for (int32_t x = 0; x < width; x += 16) {
        __mmask16 keep = width - x >= 16 ? 0xffff : (__mmask16)((1u << (width - x)) - 1);

        _mm512_mask_storeu_ps(out + x, keep, normalise(load_plane(in, width, flip, x), &d));
    }
}

static void plane_to_u8(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip)
{
    for (int32_t x = 0; x < width; x += 16) {
        __mmask16 keep = width - x >= 16 ? 0xffff : (__mmask16)((1u << (width - x)) - 1);

        _mm_mask_storeu_epi8(out + x, keep, load_plane(in, width, flip, x));
    }
}

static const uint8_t counting[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                     32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                     48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* Bits from `from` to `to` - 1 of 64, both cut to 0 .. 64. */
static inline __mmask64 lanes(int32_t from, int32_t to)
{
    uint64_t below_to = to >= 64 ? UINT64_MAX : to <= 0 ? 0 : (UINT64_C(1) << to) - 1;
    uint64_t below_from = from >= 64 ? UINT64_MAX : from <= 0 ? 0 : (UINT64_C(1) << from) - 1;

    return below_to & ~below_from;
}

/* 64 columns of a window from `x` on: which of them are source, and where those lie. Columns are lanes; back to front,
 * lane i is byte 63 - i of what is read. */
typedef struct strip {
    __mmask64 source, read;
    ptrdiff_t offset; /* of the first byte read, from the row's */
    int32_t flip;
    __m512i fill, reversal;
} strip;

static inline strip strip_of(const sk_window *window, int32_t x)
{
    int32_t from = window->margin_left - x, to = from + window->count;
    strip s = {.source = lanes(from, to), .flip = window->flip, .fill = _mm512_set1_epi8((char)window->fill)};

    s.read = window->flip ? lanes(64 - to, 64 - from) : s.source;
    s.offset = window->flip ? (ptrdiff_t)to - 64 : -(ptrdiff_t)from;
    s.reversal = _mm512_sub_epi8(_mm512_set1_epi8(63), _mm512_loadu_si512(counting));
    return s;
}

static inline __m512i strip_row(const strip *s, const uint8_t *row)
{
    if (!s->flip)
        return _mm512_mask_loadu_epi8(s->fill, s->source, row + s->offset);
    return _mm512_mask_permutexvar_epi8(s->fill, s->source, s->reversal,
                                        _mm512_maskz_loadu_epi8(s->read, row + s->offset));
}

/* 64 bytes to as many floats as `left` at `out`. */
static inline void store_floats(float *out, int32_t left, __m512i bytes, const divisor *d, bool stream)
{
    const __m128i sixteen[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                                _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};

    for (int32_t i = 0; i < 4 && 16 * i < left; i++) {
        __mmask16 keep = left - 16 * i >= 16 ? 0xffff : (__mmask16)((1u << (left - 16 * i)) - 1);

        if (stream)
            _mm512_stream_ps(out + 16 * i, normalise(sixteen[i], d));
        else
            _mm512_mask_storeu_ps(out + 16 * i, keep, normalise(sixteen[i], d));
    }
}

/* `stream`: `out` is aligned and the width a multiple of 16. */
static inline void window_floats(float *out, const sk_window *window, const divisor *d, bool stream)
{
    for (int32_t x = 0; x < window->width; x += 64) {
        strip s = strip_of(window, x);
        const uint8_t *row = window->in;
        float *to = out + x;

        for (int32_t y = 0; y < window->height; y++, to += window->width) {
            bool inside = y >= window->margin_top && y < window->margin_top + window->rows;

            store_floats(to, window->width - x, inside ? strip_row(&s, row) : s.fill, d, stream);
            if (inside)
                row += window->in_stride;
        }
    }
}

static void window_to_f32(float *out, const sk_window *window, const sk_normal *normal, int32_t channel)
{
    if (!normal->by_arithmetic) {
        sk_kernels_scalar.window_to_f32(out, window, normal, channel);
        return;
    }
    divisor d = divisor_of(normal, channel);

    if (window->stream && window->width % 16 == 0 && (uintptr_t)out % 64 == 0)
        window_floats(out, window, &d, true);
    else
        window_floats(out, window, &d, false);
}

static void drain(void)
{
    _mm_sfence();
}

/* 16 pixels a step: the three planes' bytes behind one another in a register, then each where it goes. */
static void planes_to_rgb_u8(uint8_t *out, const uint8_t *in, size_t plane, int32_t count)
{
    uint8_t order[64] = {0};

    for (int i = 0; i < 48; i++)
        order[i] = (uint8_t)(i % 3 * 16 + i / 3);
    const __m512i index = _mm512_loadu_si512(order);

    for (int32_t x = 0; x < count; x += 16, in += 16, out += 48) {
        __mmask16 keep = count - x >= 16 ? 0xffff : (__mmask16)((1u << (count - x)) - 1);
        __mmask64 bytes = count - x >= 16 ? 0xffffffffffff : (UINT64_C(1) << 3 * (count - x)) - 1;
        __m512i planes = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(keep, in));

        planes = _mm512_inserti32x4(planes, _mm_maskz_loadu_epi8(keep, in + plane), 1);
        planes = _mm512_inserti32x4(planes, _mm_maskz_loadu_epi8(keep, in + 2 * plane), 2);
        _mm512_mask_storeu_epi8(out, bytes, _mm512_permutexvar_epi8(index, planes));
    }
}

static void window_to_u8(uint8_t *out, const sk_window *window)
{
    for (int32_t x = 0; x < window->width; x += 64) {
        strip s = strip_of(window, x);
        __mmask64 keep = lanes(0, window->width - x);
        const uint8_t *row = window->in;
        uint8_t *to = out + x;

        for (int32_t y = 0; y < window->height; y++, to += window->width) {
            bool inside = y >= window->margin_top && y < window->margin_top + window->rows;

            _mm512_mask_storeu_epi8(to, keep, inside ? strip_row(&s, row) : s.fill);
            if (inside)
                row += window->in_stride;
        }
    }
}

static void f32_to_f16(uint16_t *out, const float *in, int32_t count)
{
    for (int32_t i = 0; i < count; i += 16) {
        __mmask16 keep = first_lanes(count - i);
        __m512 value = _mm512_maskz_loadu_ps(keep, in + i);

        _mm256_mask_storeu_epi16(out + i, keep, _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}

static void f32_to_bf16(uint16_t *out, const float *in, int32_t count)
{
    for (int32_t i = 0; i < count; i += 16) {
        __mmask16 keep = first_lanes(count - i);
        __m512 value = _mm512_maskz_loadu_ps(keep, in + i);
        __m512i bits = _mm512_castps_si512(value);
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        __m512i rounded =
            _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
        __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);

        rounded = _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7fc0));
        _mm256_mask_storeu_epi16(out + i, keep, _mm512_cvtepi32_epi16(rounded));
    }
}

const sk_kernels sk_kernels_avx512 = {
    .name = "avx512",
    .resample_packed_size = sk_avx512_resample_packed_size,
    .resample_pack = sk_avx512_resample_pack,
    .resample_rows = sk_avx512_resample_rows,
    .resample_column = sk_avx512_resample_column,
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
    .idct = sk_avx512_idct,
    .upsample_h2v1 = sk_avx512_upsample_h2v1,
    .upsample_h2v2 = sk_avx512_upsample_h2v2,
    .upsample_h1v2 = sk_avx512_upsample_h1v2,
    .ycc_to_rgb = sk_avx512_ycc_to_rgb,
    .gray_to_rgb = sk_avx512_gray_to_rgb,
    .dct_unpack = sk_avx512_dct_unpack,
};
