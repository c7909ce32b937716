/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx512_dct.c: a pack's groups with AVX-512: eight places of eight blocks at a time, as bytes: VBMI's permutations bring each place's
 * bytes to its 64 bits, a multishift takes the eight values out of them, and a deposit puts sign bits where values are not 0.
 */
#include <immintrin.h>

#include "kernel/dct_group.h"
#include "kernel/x86/x86.h"

#define ROW(w) 0, (w), 2 * (w), 3 * (w), 4 * (w), 5 * (w), 6 * (w), 7 * (w)

/* Which bit each of eight values of a width begins at. */
static const uint8_t _Alignas(64) shifts[64] = {ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7)};

#define COLUMN(b) (b), (b) + 8, (b) + 16, (b) + 24, (b) + 32, (b) + 40, (b) + 48, (b) + 56

static const uint8_t _Alignas(64) transposition[64] = {COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3),
                                                       COLUMN(4), COLUMN(5), COLUMN(6), COLUMN(7)};

#define EIGHT(j) (j), (j), (j), (j), (j), (j), (j), (j)

static const uint8_t _Alignas(64) repetition[64] = {EIGHT(0), EIGHT(1), EIGHT(2), EIGHT(3),
                                                    EIGHT(4), EIGHT(5), EIGHT(6), EIGHT(7)};

/* Of a place in a block row by row, the zigzag place: sk_zigzag the other way round. */
static const uint8_t _Alignas(64) zigzag_place[64] = {
    0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
    41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
    46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63,
};

/* A chunk without wide values: 64 bits a block, its eight places. */
static inline __m512i read_chunk(const sk_dct_group *group, int32_t c, size_t *sign)
{
    __m512i ramp = _mm512_set1_epi64(0x0706050403020100), each = _mm512_load_si512(repetition);
    __m512i widths =
        _mm512_permutexvar_epi8(each, _mm512_castsi128_si512(_mm_cvtsi64_si128((long long)group->widths[c])));
    __m512i offsets =
        _mm512_permutexvar_epi8(each, _mm512_castsi128_si512(_mm_cvtsi64_si128((long long)group->offsets[c])));
    __m512i places = _mm512_permutexvar_epi8(_mm512_add_epi8(offsets, ramp), _mm512_loadu_si512(group->at[c]));
    __m512i shift =
        _mm512_permutexvar_epi8(_mm512_or_si512(_mm512_slli_epi16(widths, 3), ramp), _mm512_load_si512(shifts));
    __m512i mask = _mm512_shuffle_epi8(_mm512_set1_epi64(0x7f3f1f0f07030100), widths);
    __m512i values = _mm512_and_si512(_mm512_multishift_epi64_epi8(shift, places), mask);
    __mmask64 some = _mm512_test_epi8_mask(values, values);
    __mmask64 minus = _pdep_u64(sk_load_bits(group->signs, *sign), some);

    *sign += (size_t)_mm_popcnt_u64(some);
    values = _mm512_mask_sub_epi8(values, minus, _mm512_setzero_si512(), values);
    return _mm512_permutexvar_epi8(_mm512_load_si512(transposition), values);
}

/* Words of chunks to words of blocks. */
static inline void transpose(__m512i r[8])
{
    __m512i a[8], b[8];

    for (int i = 0; i < 4; i++) {                                 /* pairs of chunks */
        a[i] = _mm512_unpacklo_epi64(r[2 * i], r[2 * i + 1]);     /* blocks 0, 2, 4, 6 */
        a[4 + i] = _mm512_unpackhi_epi64(r[2 * i], r[2 * i + 1]); /* 1, 3, 5, 7 */
    }
    for (int odd = 0; odd < 2; odd++) {
        const __m512i *p = a + 4 * odd;

        b[0] = _mm512_shuffle_i64x2(p[0], p[1], 0x88); /* blocks 0, 4 of chunks 0 1, then 2 3 */
        b[1] = _mm512_shuffle_i64x2(p[0], p[1], 0xdd); /* blocks 2, 6 */
        b[2] = _mm512_shuffle_i64x2(p[2], p[3], 0x88);
        b[3] = _mm512_shuffle_i64x2(p[2], p[3], 0xdd);
        r[odd] = _mm512_shuffle_i64x2(b[0], b[2], 0x88);
        r[4 + odd] = _mm512_shuffle_i64x2(b[0], b[2], 0xdd);
        r[2 + odd] = _mm512_shuffle_i64x2(b[1], b[3], 0x88);
        r[6 + odd] = _mm512_shuffle_i64x2(b[1], b[3], 0xdd);
    }
}

static inline void store_blocks(const __m512i r[4], int16_t *out)
{
    __m512i index = _mm512_load_si512(zigzag_place);

    for (int b = 0; b < 4; b++) {
        __m512i bytes = _mm512_permutexvar_epi8(index, r[b]);

        _mm512_storeu_si512(out + 64 * b, _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes)));
        _mm512_storeu_si512(out + 64 * b + 32, _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1)));
    }
}

/* Wide values are kept beside the others, and written last. */
static __attribute__((noinline)) void read_wide(const sk_dct_group *group, int32_t c, size_t *sign,
                                                int16_t values[8][8])
{
    for (int32_t j = 0; j < 8; j++)
        sk_dct_group_place(group->at[c] + (group->offsets[c] >> 8 * j & 255),
                           (int32_t)(group->widths[c] >> 8 * j & 255), group->signs, sign, values[j]);
}

static __attribute__((noinline)) void write_wide(int32_t c, const int16_t values[8][8], int16_t *upper, int16_t *lower)
{
    for (int32_t j = 0; j < 8; j++) {
        for (int32_t b = 0; b < 4; b++) {
            upper[64 * b + sk_zigzag[8 * c + j]] = values[j][b];
            lower[64 * b + sk_zigzag[8 * c + j]] = values[j][4 + b];
        }
    }
}

int32_t sk_avx512_dct_unpack(const uint8_t *group, int16_t *upper, int16_t *lower, uint8_t *upper_last,
                             uint8_t *lower_last)
{
    sk_dct_group head;
    __m512i r[8];
    int16_t wide[8][8][8];
    size_t sign = 0;

    if (!sk_dct_group_read(group, &head))
        return -1;
    uint32_t lasts = (uint32_t)head.last * 0x01010101u;

    memcpy(upper_last, &lasts, sizeof lasts);
    memcpy(lower_last, &lasts, sizeof lasts);
    for (int32_t c = 0; c < 8; c++) {
        r[c] = _mm512_setzero_si512();
        if (c >= head.chunks)
            continue;
        if (__builtin_expect((head.wide >> c & 1) == 0, 1))
            r[c] = read_chunk(&head, c, &sign);
        else
            read_wide(&head, c, &sign, wide[c]);
    }
    transpose(r);
    store_blocks(r, upper);
    store_blocks(r + 4, lower);
    for (uint32_t left = head.wide; left != 0; left &= left - 1)
        write_wide(__builtin_ctz(left), (const int16_t(*)[8])wide[__builtin_ctz(left)], upper, lower);
    sk_dct_group_dc(&head, upper, lower);
    return (int32_t)(head.signs - group) + (int32_t)((sign + 7) / 8);
}
