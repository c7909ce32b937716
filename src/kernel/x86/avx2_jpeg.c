/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx2_jpeg.c: JPEG's pixels with AVX2: two blocks at once, one to a lane of 128 bits; 32 samples of a row at once. The
 * end of a row is done once more from where 32 samples end with it; rows shorter than that are scalar.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/x86/x86.h"

#define vector       __m256i
#define V(operation) _mm256_##operation
#include "kernel/x86/idct.h"

#define BLOCKS   2
#define LAST_LOW 9  /* up to here the zigzag stays within the first four rows and columns */
#define STEP     32 /* samples */

static inline __m128i load16(const void *from)
{
    return _mm_loadu_si128((const __m128i *)from);
}

static inline __m256i load32(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

static inline void store32(void *to, __m256i bytes)
{
    _mm256_storeu_si256((__m256i *)to, bytes);
}

/* Row `y` of two blocks, dequantised. The second block is zero where `blocks` is 1. */
static inline __m256i row_of_blocks(const int16_t *coefficients, int32_t blocks, const uint16_t *quant, int y)
{
    const int16_t *row = coefficients + 8 * y;
    __m128i second = blocks > 1 ? load16(row + 64) : _mm_setzero_si128();
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(row)), second, 1);

    return _mm256_mullo_epi16(both, _mm256_broadcastsi128_si256(load16(quant + 8 * y)));
}

/* Rows y and y + 1 of two blocks, each block in a lane. */
static inline void store_two_rows(uint8_t *at, size_t stride, __m256i rows, int32_t blocks)
{
    if (blocks == BLOCKS) {
        rows = _mm256_permute4x64_epi64(rows, 0xd8);
        _mm_storeu_si128((__m128i *)at, _mm256_castsi256_si128(rows));
        _mm_storeu_si128((__m128i *)(at + stride), _mm256_extracti128_si256(rows, 1));
    } else {
        __m128i first = _mm256_castsi256_si128(rows);

        _mm_storel_epi64((__m128i *)at, first);
        _mm_storel_epi64((__m128i *)(at + stride), _mm_unpackhi_epi64(first, first));
    }
}

/* Columns of 16 bits to rows of bytes. */
static inline void store_blocks(uint8_t *out, size_t stride, const __m256i columns[8], int32_t blocks)
{
    __m256i flip = _mm256_set1_epi8((char)0x80), pack[4], pair[4], four[4];

    for (int k = 0; k < 4; k++) /* columns k and k + 4 */
        pack[k] = _mm256_xor_si256(_mm256_packs_epi16(columns[k], columns[k + 4]), flip);
    for (int k = 0; k < 2; k++) {
        pair[2 * k] = _mm256_unpacklo_epi8(pack[2 * k], pack[2 * k + 1]);
        pair[2 * k + 1] = _mm256_unpackhi_epi8(pack[2 * k], pack[2 * k + 1]);
    }
    for (int k = 0; k < 2; k++) { /* four[2 k + h]: columns 4 h to 4 h + 3 of rows 4 k to 4 k + 3 */
        four[k] = _mm256_unpacklo_epi16(pair[k], pair[k + 2]);
        four[2 + k] = _mm256_unpackhi_epi16(pair[k], pair[k + 2]);
    }
    for (size_t k = 0; k < 2; k++) {
        uint8_t *at = out + 4 * k * stride;

        store_two_rows(at, stride, _mm256_unpacklo_epi32(four[2 * k], four[2 * k + 1]), blocks);
        store_two_rows(at + 2 * stride, stride, _mm256_unpackhi_epi32(four[2 * k], four[2 * k + 1]), blocks);
    }
}

/* Two blocks of one value each. */
static inline void idct_means(uint8_t *out, size_t stride, const int16_t *coefficients, int32_t blocks,
                              const uint16_t *quant)
{
    __m128i mean = _mm_insert_epi16(_mm_setzero_si128(), coefficients[0], 0);

    if (blocks > 1)
        mean = _mm_insert_epi16(mean, coefficients[64], 1);
    /* times 4 wraps, as in the scalar version; the sum with 16 may not */
    mean = _mm_slli_epi16(_mm_mullo_epi16(mean, _mm_set1_epi16((short)quant[0])), 2);
    mean = _mm_srai_epi16(_mm_adds_epi16(mean, _mm_set1_epi16(16)), 5);
    mean = _mm_xor_si128(_mm_packs_epi16(mean, mean), _mm_set1_epi8((char)0x80));
    mean = _mm_shuffle_epi8(mean, _mm_set_epi64x(0x0101010101010101, 0));
    for (size_t y = 0; y < 8; y++) {
        if (blocks == BLOCKS)
            _mm_storeu_si128((__m128i *)(out + y * stride), mean);
        else
            _mm_storel_epi64((__m128i *)(out + y * stride), mean);
    }
}

static inline void idct_two(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last,
                            int32_t blocks, const uint16_t *quant)
{
    __m256i in[8], columns[8];
    uint8_t most = blocks > 1 && last[1] > last[0] ? last[1] : last[0];

    if (most == 0) {
        idct_means(out, stride, coefficients, blocks, quant);
        return;
    }
    bool low = most <= LAST_LOW;

    for (int y = 0; y < (low ? 4 : 8); y++)
        in[y] = row_of_blocks(coefficients, blocks, quant, y);
    /* Blocks with only the first row wrap where others saturate: leave values for which that matters to scalar. */
    if (!_mm256_testz_si256(_mm256_add_epi16(in[0], _mm256_set1_epi16(0x2000)), _mm256_set1_epi16((short)0xc000))) {
        sk_scalar_idct(out, stride, coefficients, last, blocks, quant);
        return;
    }
    if (low)
        idct_lanes(in, columns, true);
    else
        idct_lanes(in, columns, false);
    store_blocks(out, stride, columns, blocks);
}

void sk_avx2_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                  const uint16_t *quant)
{
    int32_t b = 0;

    for (; b + BLOCKS <= blocks; b += BLOCKS)
        idct_two(out + 8 * (size_t)b, stride, coefficients + 64 * (size_t)b, last + b, BLOCKS, quant);
    if (b < blocks)
        idct_two(out + 8 * (size_t)b, stride, coefficients + 64 * (size_t)b, last + b, 1, quant);
}

/* --------------------------------------------------------------------------------------------- upsampling -------- */

/* Where the step after the one at `i` begins: right behind it, or 32 samples before the end of the row. */
static inline int32_t next_step(int32_t i, int32_t width)
{
    return i + STEP < width && i + 2 * STEP > width ? width - STEP : i + STEP;
}

/* 3 a + b of 32 bytes, in the order of unpacking: the elements of `low` and then `high` of each lane. */
static inline wide three_to_one(__m256i a, __m256i b)
{
    __m256i weights = _mm256_set1_epi16(0x0103);

    return (wide){_mm256_maddubs_epi16(_mm256_unpacklo_epi8(a, b), weights),
                  _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a, b), weights)};
}

/* Stores 64 bytes whose 32 pairs are in the order of unpacking. */
static inline void store_pairs(uint8_t *out, wide pairs)
{
    store32(out, _mm256_permute2x128_si256(pairs.low, pairs.high, 0x20));
    store32(out + 32, _mm256_permute2x128_si256(pairs.low, pairs.high, 0x31));
}

/* `odd` is already in the upper byte, with bits of the fraction below. */
static inline __m256i joined(__m256i even, __m256i odd)
{
    return _mm256_or_si256(even, _mm256_and_si256(odd, _mm256_set1_epi16((short)0xff00)));
}

/* (left + 1) >> 2 as the lower byte, (right + 2) >> 2 as the upper one. */
static inline __m256i pair_h2v1(__m256i left, __m256i right)
{
    return joined(_mm256_srli_epi16(_mm256_add_epi16(left, _mm256_set1_epi16(1)), 2),
                  _mm256_slli_epi16(_mm256_add_epi16(right, _mm256_set1_epi16(2)), 6));
}

void sk_avx2_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width)
{
    if (width < STEP) {
        sk_scalar_upsample_h2v1(out, in, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        __m256i here = load32(in + i);
        wide left = three_to_one(here, load32(in + i - 1)), right = three_to_one(here, load32(in + i + 1));

        store_pairs(out + 2 * (size_t)i, (wide){pair_h2v1(left.low, right.low), pair_h2v1(left.high, right.high)});
    }
}

/* (3 here + left + 8) >> 4 as the lower byte, (3 here + right + 7) >> 4 as the upper one. */
static inline __m256i pair_h2v2(__m256i here, __m256i left, __m256i right)
{
    __m256i three = _mm256_add_epi16(_mm256_add_epi16(here, here), _mm256_add_epi16(here, _mm256_set1_epi16(7)));
    __m256i even = _mm256_add_epi16(_mm256_add_epi16(three, left), _mm256_set1_epi16(1));

    return joined(_mm256_srli_epi16(even, 4), _mm256_slli_epi16(_mm256_add_epi16(three, right), 4));
}

static inline wide column_sums(const uint8_t *near, const uint8_t *far)
{
    return three_to_one(load32(near), load32(far));
}

void sk_avx2_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width)
{
    if (width < STEP) {
        sk_scalar_upsample_h2v2(out, near, far, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        wide here = column_sums(near + i, far + i);
        wide left = column_sums(near + i - 1, far + i - 1), right = column_sums(near + i + 1, far + i + 1);

        store_pairs(out + 2 * (size_t)i,
                    (wide){pair_h2v2(here.low, left.low, right.low), pair_h2v2(here.high, left.high, right.high)});
    }
}

void sk_avx2_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias)
{
    __m256i rounding = _mm256_set1_epi16((short)bias);

    if (width < STEP) {
        sk_scalar_upsample_h1v2(out, near, far, width, bias);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        wide sums = column_sums(near + i, far + i);

        store32(out + i, _mm256_packus_epi16(_mm256_srli_epi16(_mm256_add_epi16(sums.low, rounding), 2),
                                             _mm256_srli_epi16(_mm256_add_epi16(sums.high, rounding), 2)));
    }
}

/* ------------------------------------------------------------------------------------------------- colour -------- */

/* Stores 32 pixels. Element i of a lane goes to byte 3 i of its 48, green one and blue two behind; as 3 and 16 have no
 * common factor, one shuffle brings each channel to its bytes modulo 16, and blends choose from which third. */
static inline void store_rgb(uint8_t *out, __m256i red, __m256i green, __m256i blue)
{
    __m256i to_red = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5));
    __m256i to_green = _mm256_broadcastsi128_si256(_mm_setr_epi8(5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10));
    __m256i to_blue = _mm256_broadcastsi128_si256(_mm_setr_epi8(10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15));
    /* bytes 0, 3, 6… and 1, 4, 7… of 16 */
    __m256i zeroth = _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1));
    __m256i first = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0));

    red = _mm256_shuffle_epi8(red, to_red);
    green = _mm256_shuffle_epi8(green, to_green);
    blue = _mm256_shuffle_epi8(blue, to_blue);
    /* byte 16 k + i is of channel (k + i) % 3 */
    __m256i a = _mm256_blendv_epi8(_mm256_blendv_epi8(blue, green, first), red, zeroth);
    __m256i b = _mm256_blendv_epi8(_mm256_blendv_epi8(red, blue, first), green, zeroth);
    __m256i c = _mm256_blendv_epi8(_mm256_blendv_epi8(green, red, first), blue, zeroth);

    store32(out, _mm256_permute2x128_si256(a, b, 0x20));
    store32(out + 32, _mm256_blend_epi32(c, a, 0xf0));
    store32(out + 64, _mm256_permute2x128_si256(b, c, 0x31));
}

/* 2 × (v - 128) of 32 bytes v, in the order of unpacking. */
static inline wide twice_signed(__m256i v)
{
    __m256i zero = _mm256_setzero_si256();

    v = _mm256_xor_si256(v, _mm256_set1_epi8((char)0x80));
    return (wide){_mm256_srai_epi16(_mm256_unpacklo_epi8(zero, v), 7),
                  _mm256_srai_epi16(_mm256_unpackhi_epi8(zero, v), 7)};
}

/* y + round(chroma × factor / 2^15) to bytes. With chroma of 256 values, the factors used below give what 16 fractional
 * bits give. */
static inline __m256i by_one(wide y, wide chroma, short factor)
{
    __m256i factors = _mm256_set1_epi16(factor);

    return _mm256_packus_epi16(_mm256_add_epi16(y.low, _mm256_mulhrs_epi16(chroma.low, factors)),
                               _mm256_add_epi16(y.high, _mm256_mulhrs_epi16(chroma.high, factors)));
}

/* What green adds to 16 values of y. */
static inline __m256i green_part(__m256i blue, __m256i red)
{
    __m256i half = _mm256_set1_epi32(1 << 15);
    wide both = product(interleave(blue, red), -11277, -23401);

    return narrowed(plus(both, (wide){half, half}), 16);
}

void sk_avx2_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    __m256i zero = _mm256_setzero_si256();

    if (width < STEP) {
        sk_scalar_ycc_to_rgb(out, y, cb, cr, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        __m256i bytes = load32(y + i);
        wide luma = {_mm256_unpacklo_epi8(bytes, zero), _mm256_unpackhi_epi8(bytes, zero)};
        wide blue = twice_signed(load32(cb + i)), red = twice_signed(load32(cr + i));
        __m256i green = _mm256_packus_epi16(_mm256_add_epi16(luma.low, green_part(blue.low, red.low)),
                                            _mm256_add_epi16(luma.high, green_part(blue.high, red.high)));

        store_rgb(out + 3 * (size_t)i, by_one(luma, red, 22971), green, by_one(luma, blue, 29033));
    }
}

void sk_avx2_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width)
{
    if (width < STEP) {
        sk_scalar_gray_to_rgb(out, y, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        __m256i gray = load32(y + i);

        store_rgb(out + 3 * (size_t)i, gray, gray, gray);
    }
}
