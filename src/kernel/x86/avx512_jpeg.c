/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx512_jpeg.c: JPEG's pixels with AVX-512: four blocks at once, one to a lane of 128 bits; 64 samples of a row at
 * once, bytes put in order by the permutations of VBMI, ends by masks.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/x86/x86.h"

#define vector       __m512i
#define V(operation) _mm512_##operation
#include "kernel/x86/idct.h"

#define BLOCKS   4
#define LAST_LOW 9 /* up to here the zigzag stays within the first four rows and columns */

static __mmask64 first_bytes(int32_t count)
{
    return count >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << count) - 1;
}

/* Row `y` of four blocks, dequantised. Blocks from `blocks` on are zero. */
static inline __m512i row_of_blocks(const int16_t *coefficients, int32_t blocks, const uint16_t *quant, int y)
{
    const int16_t *row = coefficients + 8 * y;
    __m512i all = _mm512_zextsi128_si512(_mm_loadu_si128((const __m128i *)row));

    if (blocks > 1)
        all = _mm512_mask_broadcast_i32x4(all, 0x00f0, _mm_loadu_si128((const __m128i *)(row + 64)));
    if (blocks > 2)
        all = _mm512_mask_broadcast_i32x4(all, 0x0f00, _mm_loadu_si128((const __m128i *)(row + 128)));
    if (blocks > 3)
        all = _mm512_mask_broadcast_i32x4(all, 0xf000, _mm_loadu_si128((const __m128i *)(row + 192)));
    return _mm512_mullo_epi16(all, _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(quant + 8 * y))));
}

/* Columns of 16 bits to rows of bytes. Two columns a register make rows of four, then of eight; the second permutation
 * also puts the blocks next to each other. */
static inline void store_blocks(uint8_t *out, size_t stride, const __m512i columns[8], int32_t blocks)
{
    __m512i four[2][2]; /* by half of the row, by half of the block's rows */
    __mmask32 bytes = (__mmask32)first_bytes(8 * blocks);
    __m512i index[2], join[2];

    for (int half = 0; half < 2; half++) {
        /* byte 16 l + 4 r + c: lane l, row r, column c of four, found in the pair of columns c / 2 */
        index[half] = _mm512_add_epi8(
            _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 64, 72, 1, 9, 65, 73, 2, 10, 66, 74, 3, 11, 67, 75)),
            _mm512_add_epi8(_mm512_set1_epi8((char)(4 * half)),
                            _mm512_set_epi64(0x3030303030303030, 0x3030303030303030, 0x2020202020202020,
                                             0x2020202020202020, 0x1010101010101010, 0x1010101010101010, 0, 0)));
        /* double word 8 r + 2 l + h: row r of two, lane l, half h */
        join[half] = _mm512_add_epi32(_mm512_setr_epi32(0, 16, 4, 20, 8, 24, 12, 28, 1, 17, 5, 21, 9, 25, 13, 29),
                                      _mm512_set1_epi32(2 * half));
    }
    for (int half = 0; half < 2; half++) {
        const __m512i *c = columns + 4 * half;
        __m512i flip = _mm512_set1_epi8((char)0x80);
        __m512i c01 = _mm512_xor_si512(_mm512_packs_epi16(c[0], c[1]), flip);
        __m512i c23 = _mm512_xor_si512(_mm512_packs_epi16(c[2], c[3]), flip);

        four[half][0] = _mm512_permutex2var_epi8(c01, index[0], c23);
        four[half][1] = _mm512_permutex2var_epi8(c01, index[1], c23);
    }
    for (int y = 0; y < 8; y += 2) {
        __m512i rows = _mm512_permutex2var_epi32(four[0][y / 4], join[y / 2 % 2], four[1][y / 4]);
        uint8_t *at = out + (size_t)y * stride;

        if (blocks == BLOCKS) {
            _mm256_storeu_si256((__m256i *)at, _mm512_castsi512_si256(rows));
            _mm256_storeu_si256((__m256i *)(at + stride), _mm512_extracti64x4_epi64(rows, 1));
        } else {
            _mm256_mask_storeu_epi8(at, bytes, _mm512_castsi512_si256(rows));
            _mm256_mask_storeu_epi8(at + stride, bytes, _mm512_extracti64x4_epi64(rows, 1));
        }
    }
}

/* Four blocks of one value each. */
static inline void idct_means(uint8_t *out, size_t stride, const int16_t *coefficients, int32_t blocks,
                              const uint16_t *quant)
{
    __m128i mean = _mm_setzero_si128();
    __mmask32 bytes = (__mmask32)first_bytes(8 * blocks);

    mean = _mm_insert_epi16(mean, coefficients[0], 0);
    if (blocks > 1)
        mean = _mm_insert_epi16(mean, coefficients[64], 1);
    if (blocks > 2)
        mean = _mm_insert_epi16(mean, coefficients[128], 2);
    if (blocks > 3)
        mean = _mm_insert_epi16(mean, coefficients[192], 3);
    /* times 4 wraps, as in the scalar version; the sum with 16 may not */
    mean = _mm_slli_epi16(_mm_mullo_epi16(mean, _mm_set1_epi16((short)quant[0])), 2);
    mean = _mm_srai_epi16(_mm_adds_epi16(mean, _mm_set1_epi16(16)), 5);
    mean = _mm_xor_si128(_mm_packs_epi16(mean, mean), _mm_set1_epi8((char)0x80));
    __m256i row =
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(mean),
                            _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));

    for (size_t y = 0; y < 8; y++) {
        if (blocks == BLOCKS)
            _mm256_storeu_si256((__m256i *)(out + y * stride), row);
        else
            _mm256_mask_storeu_epi8(out + y * stride, bytes, row);
    }
}

static inline void idct_four(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last,
                             int32_t blocks, const uint16_t *quant)
{
    __m512i in[8], columns[8];
    uint8_t most = last[0];

    for (int32_t b = 1; b < blocks; b++)
        most = last[b] > most ? last[b] : most;
    if (most == 0) {
        idct_means(out, stride, coefficients, blocks, quant);
        return;
    }
    bool low = most <= LAST_LOW;

    for (int y = 0; y < (low ? 4 : 8); y++)
        in[y] = row_of_blocks(coefficients, blocks, quant, y);
    /* Blocks with only the first row wrap where others saturate: leave values for which that matters to scalar. */
    if (_mm512_test_epi16_mask(_mm512_add_epi16(in[0], _mm512_set1_epi16(0x2000)), _mm512_set1_epi16((short)0xc000)) !=
        0) {
        sk_scalar_idct(out, stride, coefficients, last, blocks, quant);
        return;
    }
    if (low)
        idct_lanes(in, columns, true);
    else
        idct_lanes(in, columns, false);
    store_blocks(out, stride, columns, blocks);
}

void sk_avx512_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                    const uint16_t *quant)
{
    int32_t b = 0;

    for (; b + BLOCKS <= blocks; b += BLOCKS)
        idct_four(out + 8 * (size_t)b, stride, coefficients + 64 * (size_t)b, last + b, BLOCKS, quant);
    if (b < blocks)
        idct_four(out + 8 * (size_t)b, stride, coefficients + 64 * (size_t)b, last + b, blocks - b, quant);
}

/* --------------------------------------------------------------------------------------------- upsampling -------- */

/* 3 a + b of 64 bytes, in the order of unpacking: the elements of `low` and then `high` of each lane. */
static inline wide three_to_one(__m512i a, __m512i b)
{
    __m512i weights = _mm512_set1_epi16(0x0103);

    return (wide){_mm512_maddubs_epi16(_mm512_unpacklo_epi8(a, b), weights),
                  _mm512_maddubs_epi16(_mm512_unpackhi_epi8(a, b), weights)};
}

/* Stores 128 bytes, or 2 × count, whose 64 pairs are in the order of unpacking. */
static inline void store_pairs(uint8_t *out, wide pairs, int32_t count)
{
    __m512i first = _mm512_permutex2var_epi64(pairs.low, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), pairs.high);
    __m512i second = _mm512_permutex2var_epi64(pairs.low, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), pairs.high);

    if (count >= 64) {
        _mm512_storeu_si512(out, first);
        _mm512_storeu_si512(out + 64, second);
        return;
    }
    _mm512_mask_storeu_epi8(out, first_bytes(2 * count), first);
    if (count > 32)
        _mm512_mask_storeu_epi8(out + 64, first_bytes(2 * count - 64), second);
}

/* (left + 1) >> 2 as the lower byte, (right + 2) >> 2 as the upper one. */
static inline __m512i pair_h2v1(__m512i left, __m512i right)
{
    __m512i even = _mm512_srli_epi16(_mm512_add_epi16(left, _mm512_set1_epi16(1)), 2);
    __m512i odd = _mm512_slli_epi16(_mm512_add_epi16(right, _mm512_set1_epi16(2)), 6);

    return _mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaa, odd);
}

void sk_avx512_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width)
{
    for (int32_t i = 0; i < width; i += 64) {
        __mmask64 mask = first_bytes(width - i);
        __m512i here = _mm512_maskz_loadu_epi8(mask, in + i);
        wide left = three_to_one(here, _mm512_maskz_loadu_epi8(mask, in + i - 1));
        wide right = three_to_one(here, _mm512_maskz_loadu_epi8(mask, in + i + 1));
        wide pairs = {pair_h2v1(left.low, right.low), pair_h2v1(left.high, right.high)};

        store_pairs(out + 2 * (size_t)i, pairs, width - i);
    }
}

/* (3 here + left + 8) >> 4 as the lower byte, (3 here + right + 7) >> 4 as the upper one. */
static inline __m512i pair_h2v2(__m512i here, __m512i left, __m512i right)
{
    __m512i three = _mm512_add_epi16(_mm512_add_epi16(here, here), _mm512_add_epi16(here, _mm512_set1_epi16(7)));
    __m512i even = _mm512_srli_epi16(_mm512_add_epi16(_mm512_add_epi16(three, left), _mm512_set1_epi16(1)), 4);
    __m512i odd = _mm512_slli_epi16(_mm512_add_epi16(three, right), 4);

    return _mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaa, odd);
}

static inline wide column_sums(const uint8_t *near, const uint8_t *far, __mmask64 mask)
{
    return three_to_one(_mm512_maskz_loadu_epi8(mask, near), _mm512_maskz_loadu_epi8(mask, far));
}

void sk_avx512_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width)
{
    for (int32_t i = 0; i < width; i += 64) {
        __mmask64 mask = first_bytes(width - i);
        wide here = column_sums(near + i, far + i, mask);
        wide left = column_sums(near + i - 1, far + i - 1, mask);
        wide right = column_sums(near + i + 1, far + i + 1, mask);
        wide pairs = {pair_h2v2(here.low, left.low, right.low), pair_h2v2(here.high, left.high, right.high)};

        store_pairs(out + 2 * (size_t)i, pairs, width - i);
    }
}

void sk_avx512_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias)
{
    __m512i rounding = _mm512_set1_epi16((short)bias);

    for (int32_t i = 0; i < width; i += 64) {
        __mmask64 mask = first_bytes(width - i);
        wide sums = column_sums(near + i, far + i, mask);

        sums.low = _mm512_srli_epi16(_mm512_add_epi16(sums.low, rounding), 2);
        sums.high = _mm512_srli_epi16(_mm512_add_epi16(sums.high, rounding), 2);
        _mm512_mask_storeu_epi8(out + i, mask, _mm512_packus_epi16(sums.low, sums.high));
    }
}

/* ------------------------------------------------------------------------------------------------- colour -------- */

/* Which byte goes to each of 192: red p, green 64 + p, blue p of the third register. */
#define PIXEL(p)   (p), 64 + (p), (p)
#define FOUR(p)    PIXEL(p), PIXEL((p) + 1), PIXEL((p) + 2), PIXEL((p) + 3)
#define SIXTEEN(p) FOUR(p), FOUR((p) + 4), FOUR((p) + 8), FOUR((p) + 12)

static const uint8_t _Alignas(64) interleaving[192] = {SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)};

/* Stores up to 64 pixels. */
static inline void store_rgb(uint8_t *out, __m512i red, __m512i green, __m512i blue, int32_t count)
{
    static const __mmask64 is_blue[3] = {0x4924924924924924, 0x2492492492492492, 0x9249249249249249};

    for (int32_t k = 0; k < 3; k++) {
        __m512i index = _mm512_load_si512(interleaving + 64 * k);
        __m512i bytes = _mm512_permutex2var_epi8(red, index, green);

        bytes = _mm512_mask_permutexvar_epi8(bytes, is_blue[k], index, blue);
        if (count >= 64)
            _mm512_storeu_si512(out + 64 * k, bytes);
        else if (3 * count > 64 * k)
            _mm512_mask_storeu_epi8(out + 64 * k, first_bytes(3 * count - 64 * k), bytes);
    }
}

/* 2 × (v - 128) of 64 bytes v, in the order of unpacking. */
static inline wide twice_signed(__m512i v)
{
    __m512i zero = _mm512_setzero_si512();

    v = _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80));
    return (wide){_mm512_srai_epi16(_mm512_unpacklo_epi8(zero, v), 7),
                  _mm512_srai_epi16(_mm512_unpackhi_epi8(zero, v), 7)};
}

/* y + round(chroma × factor / 2^15) to bytes. With chroma of 256 values, the factors used below give what 16 fractional
 * bits give. */
static inline __m512i by_one(wide y, wide chroma, short factor)
{
    __m512i factors = _mm512_set1_epi16(factor);

    return _mm512_packus_epi16(_mm512_add_epi16(y.low, _mm512_mulhrs_epi16(chroma.low, factors)),
                               _mm512_add_epi16(y.high, _mm512_mulhrs_epi16(chroma.high, factors)));
}

/* What green adds to 32 values of y. */
static inline __m512i green_part(__m512i blue, __m512i red)
{
    __m512i factors = _mm512_set1_epi32((int)((uint32_t)-23401 << 16 | (uint16_t)-11277));
    __m512i half = _mm512_set1_epi32(1 << 15);
    wide both = interleave(blue, red);

    both.low = _mm512_dpwssd_epi32(half, both.low, factors);
    both.high = _mm512_dpwssd_epi32(half, both.high, factors);
    return _mm512_packs_epi32(_mm512_srai_epi32(both.low, 16), _mm512_srai_epi32(both.high, 16));
}

static inline void convert(uint8_t *out, __m512i luma, __m512i cb, __m512i cr, int32_t count)
{
    __m512i zero = _mm512_setzero_si512();
    wide y = {_mm512_unpacklo_epi8(luma, zero), _mm512_unpackhi_epi8(luma, zero)};
    wide blue = twice_signed(cb), red = twice_signed(cr);
    __m512i green = _mm512_packus_epi16(_mm512_add_epi16(y.low, green_part(blue.low, red.low)),
                                        _mm512_add_epi16(y.high, green_part(blue.high, red.high)));

    store_rgb(out, by_one(y, red, 22971), green, by_one(y, blue, 29033), count);
}

void sk_avx512_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    int32_t i = 0;

    for (; i + 64 <= width; i += 64)
        convert(out + 3 * (size_t)i, _mm512_loadu_si512(y + i), _mm512_loadu_si512(cb + i), _mm512_loadu_si512(cr + i),
                64);
    if (i < width) {
        __mmask64 mask = first_bytes(width - i);

        convert(out + 3 * (size_t)i, _mm512_maskz_loadu_epi8(mask, y + i), _mm512_maskz_loadu_epi8(mask, cb + i),
                _mm512_maskz_loadu_epi8(mask, cr + i), width - i);
    }
}

void sk_avx512_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width)
{
    for (int32_t i = 0; i < width; i += 64, out += 192) {
        __m512i gray = _mm512_maskz_loadu_epi8(first_bytes(width - i), y + i);

        for (int32_t k = 0; k < 3 && 3 * (width - i) > 64 * k; k++) {
            __m512i bytes = _mm512_permutexvar_epi8(_mm512_load_si512(interleaving + 64 * k), gray);

            _mm512_mask_storeu_epi8(out + 64 * k, first_bytes(3 * (width - i) - 64 * k), bytes);
        }
    }
}
