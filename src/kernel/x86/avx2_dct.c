/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx2_dct.c: a pack's groups with AVX2: four places of eight blocks at a time, taken apart by halving with shifts of their own, since
 * the bit deposit that would do it in one step is slow on AMD's processors before Zen 3. Blocks then come by transposing.
 */
#include <immintrin.h>

#include "kernel/dct_group.h"
#include "kernel/x86/x86.h"

/* For each set of blocks that have a value, the bit of their sign (0: no value): 1, 2, 4 … in turn. */
#define BIT(m, b)  ((uint64_t)((m) >> (b) & 1) << __builtin_popcount((m) & ((1 << (b)) - 1)) << (8 * (b)))
#define BITS(m)    (BIT(m, 0) | BIT(m, 1) | BIT(m, 2) | BIT(m, 3) | BIT(m, 4) | BIT(m, 5) | BIT(m, 6) | BIT(m, 7))
#define BITS_4(m)  BITS(m), BITS((m) + 1), BITS((m) + 2), BITS((m) + 3)
#define BITS_16(m) BITS_4(m), BITS_4((m) + 4), BITS_4((m) + 8), BITS_4((m) + 12)
#define BITS_64(m) BITS_16(m), BITS_16((m) + 16), BITS_16((m) + 32), BITS_16((m) + 48)

static const uint64_t sign_bits[256] = {BITS_64(0), BITS_64(64), BITS_64(128), BITS_64(192)};

/* Four places' 64 bits to bytes: halves of 4 w bits, of 2 w, of w. */
static inline __m256i take_apart(__m256i places, __m256i width)
{
    __m256i one = _mm256_set1_epi64x(1), two = _mm256_slli_epi64(width, 1), four = _mm256_slli_epi64(width, 2);
    __m256i mask_4 = _mm256_sub_epi64(_mm256_sllv_epi64(one, four), one);
    __m256i mask_2 = _mm256_sub_epi64(_mm256_sllv_epi64(one, two), one);
    __m256i mask_1 = _mm256_sub_epi64(_mm256_sllv_epi64(one, width), one);

    mask_2 = _mm256_or_si256(mask_2, _mm256_slli_epi64(mask_2, 32));
    mask_1 = _mm256_or_si256(mask_1, _mm256_slli_epi64(mask_1, 16));
    mask_1 = _mm256_or_si256(mask_1, _mm256_slli_epi64(mask_1, 32));
    places = _mm256_or_si256(_mm256_and_si256(places, mask_4),
                             _mm256_slli_epi64(_mm256_and_si256(_mm256_srlv_epi64(places, four), mask_4), 32));
    places = _mm256_or_si256(_mm256_and_si256(places, mask_2),
                             _mm256_slli_epi64(_mm256_and_si256(_mm256_srlv_epi64(places, two), mask_2), 16));
    return _mm256_or_si256(_mm256_and_si256(places, mask_1),
                           _mm256_slli_epi64(_mm256_and_si256(_mm256_srlv_epi64(places, width), mask_1), 8));
}

/* 0xff where the value is negative. */
static inline __m256i read_signs(__m256i values, const uint8_t *signs, size_t *sign)
{
    uint32_t some = ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(values, _mm256_setzero_si256()));
    uint64_t next = sk_load_bits(signs, *sign), bit[4];

    for (int j = 0; j < 4; j++, some >>= 8) {
        bit[j] = sign_bits[some & 255] & (next & 255) * 0x0101010101010101;
        int32_t count = __builtin_popcount(some & 255);

        next >>= count;
        *sign += (size_t)count;
    }
    __m256i bits = _mm256_set_epi64x((long long)bit[3], (long long)bit[2], (long long)bit[1], (long long)bit[0]);

    return _mm256_xor_si256(_mm256_cmpeq_epi8(bits, _mm256_setzero_si256()), _mm256_set1_epi8(-1));
}

/* A chunk without wide values: eight of 16 bits a place, to the place of each. */
static inline void read_chunk(const sk_dct_group *group, int32_t c, size_t *sign, int16_t lanes[64][8])
{
    for (int32_t half = 0; half < 2; half++) {
        uint32_t offsets = (uint32_t)(group->offsets[c] >> 32 * half),
                 widths = (uint32_t)(group->widths[c] >> 32 * half);
        const uint8_t *at = group->at[c];
        __m256i places = _mm256_set_epi64x(
            (long long)sk_load_64(at + (offsets >> 24)), (long long)sk_load_64(at + (offsets >> 16 & 255)),
            (long long)sk_load_64(at + (offsets >> 8 & 255)), (long long)sk_load_64(at + (offsets & 255)));
        __m256i values = take_apart(places, _mm256_cvtepu8_epi64(_mm_cvtsi32_si128((int)widths)));
        __m256i minus = read_signs(values, group->signs, sign);

        values = _mm256_sub_epi8(_mm256_xor_si256(values, minus), minus);
        const uint8_t *to = sk_zigzag + 8 * c + 4 * half;
        __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(values));
        __m256i high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(values, 1));

        _mm_store_si128((__m128i *)lanes[to[0]], _mm256_castsi256_si128(low));
        _mm_store_si128((__m128i *)lanes[to[1]], _mm256_extracti128_si256(low, 1));
        _mm_store_si128((__m128i *)lanes[to[2]], _mm256_castsi256_si128(high));
        _mm_store_si128((__m128i *)lanes[to[3]], _mm256_extracti128_si256(high, 1));
    }
}

static __attribute__((noinline)) void read_wide(const sk_dct_group *group, int32_t c, size_t *sign,
                                                int16_t lanes[64][8])
{
    for (int32_t j = 0; j < 8; j++)
        sk_dct_group_place(group->at[c] + (group->offsets[c] >> 8 * j & 255),
                           (int32_t)(group->widths[c] >> 8 * j & 255), group->signs, sign, lanes[sk_zigzag[8 * c + j]]);
}

/* Row `y`: eight places of eight blocks, to eight blocks' rows. */
static inline void transpose_row(const int16_t lanes[8][8], int16_t *upper, int16_t *lower)
{
    __m256i a[4], b[4], c[4];

    for (int i = 0; i < 4; i++) /* places i and i + 4 */
        a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128((const __m128i *)lanes[i])),
                                       _mm_load_si128((const __m128i *)lanes[4 + i]), 1);
    for (int i = 0; i < 2; i++) {
        b[i] = _mm256_unpacklo_epi16(a[2 * i], a[2 * i + 1]); /* blocks 0 .. 3 of two places */
        b[2 + i] = _mm256_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        c[2 * i] = _mm256_unpacklo_epi32(b[2 * i], b[2 * i + 1]); /* two blocks' four places */
        c[2 * i + 1] = _mm256_unpackhi_epi32(b[2 * i], b[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        __m256i two = _mm256_permute4x64_epi64(c[i], 0xd8);
        int16_t *out = (i < 2 ? upper : lower) + 128 * (i % 2);

        _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(two));
        _mm_storeu_si128((__m128i *)(out + 64), _mm256_extracti128_si256(two, 1));
    }
}

int32_t sk_avx2_dct_unpack(const uint8_t *group, int16_t *upper, int16_t *lower, uint8_t *upper_last,
                           uint8_t *lower_last)
{
    _Alignas(32) int16_t lanes[64][8];
    sk_dct_group head;
    size_t sign = 0;

    if (!sk_dct_group_read(group, &head))
        return -1;
    uint32_t lasts = (uint32_t)head.last * 0x01010101u;

    memcpy(upper_last, &lasts, sizeof lasts);
    memcpy(lower_last, &lasts, sizeof lasts);
    memset(lanes, 0, sizeof lanes);
    for (int32_t c = 0; c < head.chunks; c++) {
        if (__builtin_expect((head.wide >> c & 1) == 0, 1))
            read_chunk(&head, c, &sign, lanes);
        else
            read_wide(&head, c, &sign, lanes);
    }
    for (int32_t y = 0; y < 8; y++)
        transpose_row((const int16_t(*)[8])lanes[8 * y], upper + 8 * y, lower + 8 * y);
    sk_dct_group_dc(&head, upper, lower);
    return (int32_t)(head.signs - group) + (int32_t)((sign + 7) / 8);
}
