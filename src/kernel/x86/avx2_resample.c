/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx2_resample.c: resampling with AVX2.
 *
 * A weight of 22 fractional bits is w = low + 2048 high with 0 <= low < 2048, and vpmaddwd sums two taps of 16-bit
 * products in 32 bits. Both halves put together are the scalar sum modulo 2^32, which fits 32 bits.
 *
 * Rows: the bytes of output are taken as they lie in memory, four to each lane of 128 bits, whatever pixel and channel
 * they are of. A lane loads 16 bytes of source a step, from which one shuffle takes two taps for each of its bytes. Four
 * vectors of sums make 32 bytes of output, in order without another shuffle: lane l of vector v holds bytes
 * 16 l + 4 v and on. Where the source is so much larger than the output that the taps of four bytes do not lie within 16
 * bytes, a lane takes the three channels of one pixel and four taps a step instead (pixel_pairs).
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/x86/x86.h"

#define LOW_BITS 11
#define LOW_MASK ((1 << LOW_BITS) - 1)

#define VECTORS    4 /* of a block */
#define LANES      8 /* of a block, each of four bytes of output */
#define LANE_BYTES 4
#define BLOCK      32 /* bytes of output */
#define WINDOW     16 /* bytes of source that a lane loads a step */
#define PAIR       2  /* taps a step */
#define TAIL_BYTES 1024

/* Thirty-two bytes of output. Followed in memory by the weights of step after step: low and high halves, a vector each, of
 * vector after vector. */
typedef struct block {
    uint8_t index[VECTORS][32]; /* where in the window each byte's two taps lie; 0x80: none */
    int32_t start[LANES];       /* byte of a row of source that a lane begins with, from pixel 0 on */
} block;

typedef struct header {
    int32_t steps;
    int32_t pixels; /* 1: packed for pixel_pairs, or not at all */
    int32_t unused[6];
} header;

static int32_t most_taps(const sk_taps *taps, int32_t from, int32_t to)
{
    int32_t most = 1;

    for (int32_t x = from; x < to; x++)
        most = taps->count[x] > most ? taps->count[x] : most;
    return most;
}

static int32_t steps_of(const sk_taps *taps, int32_t from, int32_t to, int32_t a_step)
{
    return (most_taps(taps, from, to) + a_step - 1) / a_step;
}

static size_t block_bytes(int32_t steps)
{
    return sizeof(block) + (size_t)steps * VECTORS * 2 * 32;
}

/* Whether the two taps of a step of each four bytes of output lie within a window. */
static bool fits(const sk_taps *taps, int32_t from, int32_t to, int32_t channels)
{
    int32_t beyond = (LANE_BYTES - 1 + channels - 1) / channels; /* pixels that four bytes may reach on */

    for (int32_t x = from; x < to; x++) {
        int32_t last = x + beyond < to ? x + beyond : to - 1;

        if ((taps->first[last] - taps->first[x] + PAIR) * channels > WINDOW)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------ a lane for each pixel: packing -------- */

#define STEP_TAPS 4
#define STEP_ITEM 64 /* 16-bit weights for two outputs and four taps: low and high of taps 0, 1, then of taps 2, 3 */

static size_t pixel_pairs_size(const sk_taps *taps, int32_t from, int32_t to, int32_t channels)
{
    if (channels != 3)
        return 0;
    return (size_t)((to - from + 1) / 2) * (size_t)steps_of(taps, from, to, STEP_TAPS) * STEP_ITEM * sizeof(int16_t);
}

static void pack_pixel_pairs(const sk_taps *taps, int32_t from, int32_t to, int32_t steps, int16_t *weights)
{
    for (int32_t x = from; x < to; x++) {
        const int32_t *weight = taps->weight + (size_t)x * (size_t)taps->size;
        size_t i = (size_t)(x - from);

        for (int32_t k = 0; k < taps->count[x]; k++) {
            size_t step = (size_t)k / STEP_TAPS, tap = (size_t)k % STEP_TAPS;
            int16_t *at = weights + (i / 2 * (size_t)steps + step) * STEP_ITEM + tap / 2 * 32 + i % 2 * 8 + tap % 2;

            for (size_t c = 0; c < 3; c++) {
                at[2 * c] = (int16_t)(weight[k] & LOW_MASK);
                at[2 * c + 16] = (int16_t)(weight[k] >> LOW_BITS);
            }
        }
    }
}

/* ------------------------------------------------------------------------- a lane for each four bytes: packing -------- */

/* One byte of output: the `byte`th of the lane `lane`. */
static void pack_byte(block *b, int32_t steps, int32_t lane, int32_t byte, const int32_t *weight, int32_t count,
                      int32_t at, int32_t channels)
{
    int32_t vector = lane % VECTORS, half = lane / VECTORS;
    int16_t *weights = (int16_t *)(void *)(b + 1) + 2 * (half * LANE_BYTES + byte);
    uint8_t *index = b->index[vector] + 4 * (half * LANE_BYTES + byte);

    for (int32_t t = 0; t < PAIR; t++)
        index[2 * t] = (uint8_t)(at + t * channels);
    for (int32_t k = 0; k < count; k++) {
        int16_t *low = weights + ((vector * steps + k / PAIR) * 2) * 16 + k % PAIR;

        low[0] = (int16_t)(weight[k] & LOW_MASK);
        low[16] = (int16_t)(weight[k] >> LOW_BITS);
    }
}

/* The bytes begin .. end of the outputs from `from` on. */
static void pack_block(const sk_taps *taps, int32_t from, int32_t begin, int32_t end, int32_t channels, int32_t steps,
                       block *b)
{
    memset(b, 0, block_bytes(steps));
    memset(b->index, 0x80, sizeof b->index);
    for (int32_t lane = 0; lane < LANES; lane++) {
        int32_t byte = begin + lane * LANE_BYTES;
        int32_t first = taps->first[from + (byte < end ? byte : end - 1) / channels];

        b->start[lane] = first * channels;
        for (int32_t i = 0; i < LANE_BYTES && byte + i < end; i++) {
            int32_t x = from + (byte + i) / channels, c = (byte + i) % channels;

            pack_byte(b, steps, lane, i, taps->weight + (size_t)x * (size_t)taps->size, taps->count[x],
                      (taps->first[x] - first) * channels + c, channels);
        }
    }
}

size_t sk_avx2_resample_packed_size(const sk_taps *taps, int32_t from, int32_t to, int32_t channels)
{
    size_t blocks = ((size_t)(to - from) * (size_t)channels + BLOCK - 1) / BLOCK;

    if (!fits(taps, from, to, channels))
        return sizeof(header) + pixel_pairs_size(taps, from, to, channels);
    return sizeof(header) + blocks * block_bytes(steps_of(taps, from, to, PAIR));
}

void sk_avx2_resample_pack(const sk_taps *taps, int32_t from, int32_t to, int32_t channels, void *packed)
{
    header *head = packed;
    uint8_t *at = (uint8_t *)(head + 1);
    int32_t bytes = (to - from) * channels;

    memset(head, 0, sizeof *head);
    if (!fits(taps, from, to, channels)) {
        head->pixels = 1;
        head->steps = steps_of(taps, from, to, STEP_TAPS);
        if (channels == 3) {
            memset(at, 0, pixel_pairs_size(taps, from, to, channels));
            pack_pixel_pairs(taps, from, to, head->steps, (int16_t *)(void *)at);
        }
        return;
    }
    head->steps = steps_of(taps, from, to, PAIR);
    for (int32_t i = 0; i < bytes; i += BLOCK, at += block_bytes(head->steps)) {
        pack_block(taps, from, i, bytes - i < BLOCK ? bytes : i + BLOCK, channels, head->steps, (block *)(void *)at);
    }
}

/* -------------------------------------------------------------------------------------------------- rows -------- */

static inline __m256i load_weights(const int16_t *weights)
{
    return _mm256_load_si256((const __m256i *)(const void *)weights);
}

static inline __m256i join(__m256i low, __m256i high)
{
    return _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, LOW_BITS)), SK_WEIGHT_BITS);
}

static void pixel_pairs(const sk_rows *rows, const sk_taps *taps, const int16_t *weights, int32_t steps, int32_t y)
{
    /* Words [r0 r1 g0 g1 b0 b1 0 0] of pixels 0, 1 (then 2, 3) in each half. */
    const __m256i pixels01 = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 0, -1, 3, -1, 1,
                                              -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    const __m256i pixels23 = _mm256_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, 6, -1, 9, -1,
                                              7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i half = _mm256_set1_epi32(1 << (SK_WEIGHT_BITS - 1));
    const uint8_t *in = rows->in + (size_t)y * rows->in_stride;
    uint8_t *out = rows->out + (size_t)y * rows->out_stride;
    int32_t x = rows->from;

    for (; x + 1 < rows->to; x += 2) {
        int32_t a = taps->first[x] - rows->in_first, b = taps->first[x + 1] - rows->in_first;

        /* Both read 16 bytes a step; near the row's end the scalar loop takes over. */
        if ((b + STEP_TAPS * (steps - 1)) * 3 + 16 > rows->in_width * 3)
            break;
        const uint8_t *at_a = in + 3 * (size_t)a, *at_b = in + 3 * (size_t)b;
        const int16_t *w = weights + (size_t)((x - rows->from) / 2) * (size_t)steps * STEP_ITEM;
        __m256i low = half, high = _mm256_setzero_si256();

        for (int32_t s = 0; s < steps; s++) {
            __m128i load_a = _mm_loadu_si128((const __m128i *)at_a), load_b = _mm_loadu_si128((const __m128i *)at_b);
            __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(load_a), load_b, 1);
            __m256i v01 = _mm256_shuffle_epi8(both, pixels01), v23 = _mm256_shuffle_epi8(both, pixels23);

            low = _mm256_add_epi32(low, _mm256_madd_epi16(v01, load_weights(w)));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(v01, load_weights(w + 16)));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(v23, load_weights(w + 32)));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(v23, load_weights(w + 48)));
            at_a += STEP_TAPS * 3;
            at_b += STEP_TAPS * 3;
            w += STEP_ITEM;
        }
        __m256i sum = join(low, high);
        __m256i words = _mm256_packs_epi32(sum, sum);
        __m256i bytes = _mm256_packus_epi16(words, words);
        uint32_t first = (uint32_t)_mm256_extract_epi32(bytes, 0), second = (uint32_t)_mm256_extract_epi32(bytes, 4);
        uint64_t six = (first & 0xffffff) | (uint64_t)(second & 0xffffff) << 24;

        memcpy(out + 3 * (size_t)(x - rows->from), &six, 6);
    }
    sk_scalar_resample_row(rows, taps, y, x);
}

/* A block from a row of source, of which `in` is the byte `shift`. */
static inline __attribute__((always_inline)) __m256i run_block(const block *b, int32_t steps, int32_t step_bytes,
                                                               const uint8_t *in, int32_t shift)
{
    const __m256i half = _mm256_set1_epi32(1 << (SK_WEIGHT_BITS - 1));
    const int16_t *w = (const int16_t *)(const void *)(b + 1);
    __m256i sum[VECTORS];

    for (int v = 0; v < VECTORS; v++) {
        __m256i index = _mm256_load_si256((const __m256i *)(const void *)b->index[v]);
        const uint8_t *first = in + (b->start[v] - shift), *second = in + (b->start[v + VECTORS] - shift);
        __m256i low = half, high = _mm256_setzero_si256();

        for (int32_t s = 0; s < steps; s++, w += 32) {
            __m128i here = _mm_loadu_si128((const __m128i *)(const void *)(first + (ptrdiff_t)s * step_bytes));
            __m128i there = _mm_loadu_si128((const __m128i *)(const void *)(second + (ptrdiff_t)s * step_bytes));
            __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(here), there, 1);
            __m256i taps = _mm256_shuffle_epi8(both, index);

            low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, load_weights(w)));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, load_weights(w + 16)));
        }
        sum[v] = join(low, high);
    }
    return _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
}

/* Usual numbers of steps with loops that the compiler can unroll. */
static inline __m256i any_block(const block *b, int32_t steps, int32_t channels, const uint8_t *in, int32_t shift)
{
    if (channels == 3 && steps == 2)
        return run_block(b, 2, 6, in, shift);
    if (channels == 3 && steps == 3)
        return run_block(b, 3, 6, in, shift);
    return run_block(b, steps, PAIR * channels, in, shift);
}

static void store_block(uint8_t *out, __m256i bytes, size_t count)
{
    _Alignas(32) uint8_t whole[BLOCK];

    if (count >= BLOCK) {
        _mm256_storeu_si256((__m256i *)(void *)out, bytes);
        return;
    }
    _mm256_store_si256((__m256i *)(void *)whole, bytes);
    memcpy(out, whole, count);
}

static void blocks_of_row(const sk_rows *rows, const sk_taps *taps, const header *head, int32_t y)
{
    const uint8_t *in = rows->in + (size_t)y * rows->in_stride;
    uint8_t *out = rows->out + (size_t)y * rows->out_stride;
    const uint8_t *at = (const uint8_t *)(head + 1);
    size_t stride = block_bytes(head->steps), bytes = (size_t)(rows->to - rows->from) * (size_t)rows->channels, i = 0;
    int32_t shift = rows->in_first * rows->channels, end = shift + rows->in_width * rows->channels;
    int32_t reach = WINDOW + (head->steps - 1) * PAIR * rows->channels; /* bytes that a lane reads */
    _Alignas(32) uint8_t tail[TAIL_BYTES];

    for (; i < bytes && ((const block *)(const void *)at)->start[LANES - 1] + reach <= end; i += BLOCK, at += stride)
        store_block(out + i, any_block((const block *)(const void *)at, head->steps, rows->channels, in, shift),
                    bytes - i);
    if (i >= bytes)
        return;
    /* What is left of the row, with room behind it for what lanes read and do not use. */
    int32_t begin = ((const block *)(const void *)at)->start[0], left = end - begin;

    if (left + reach > TAIL_BYTES) {
        sk_scalar_resample_row(rows, taps, y, rows->from + (int32_t)(i / (size_t)rows->channels));
        return;
    }
    memcpy(tail, in + (begin - shift), (size_t)left);
    memset(tail + left, 0, (size_t)reach);
    for (; i < bytes; i += BLOCK, at += stride)
        store_block(out + i, any_block((const block *)(const void *)at, head->steps, rows->channels, tail, begin),
                    bytes - i);
}

void sk_avx2_resample_rows(const sk_rows *rows, const sk_taps *taps, const void *packed)
{
    const header *head = packed;

    for (int32_t y = 0; y < rows->rows; y++) {
        if (!head->pixels)
            blocks_of_row(rows, taps, head, y);
        else if (rows->channels == 3)
            pixel_pairs(rows, taps, (const int16_t *)(const void *)(head + 1), head->steps, y);
        else
            sk_scalar_resample_row(rows, taps, y, rows->from);
    }
}

/* ----------------------------------------------------------------------------------------------- columns -------- */

void sk_avx2_resample_column(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                             int32_t count)
{
    const __m256i half = _mm256_set1_epi32(1 << (SK_WEIGHT_BITS - 1));
    const __m256i zero = _mm256_setzero_si256();
    size_t x = 0;

    for (; x + 32 <= bytes; x += 32) {
        __m256i low[4] = {half, half, half, half}, high[4] = {zero, zero, zero, zero};

        for (int32_t k = 0; k < count; k += 2) {
            int32_t w0 = weight[k], w1 = k + 1 < count ? weight[k + 1] : 0;
            const uint8_t *row0 = in + (size_t)k * stride + x, *row1 = k + 1 < count ? row0 + stride : row0;
            __m256i weight_low = _mm256_set1_epi32((w0 & LOW_MASK) | (w1 & LOW_MASK) << 16);
            __m256i weight_high =
                _mm256_set1_epi32((int32_t)(((uint32_t)(w0 >> LOW_BITS) & 0xffff) | (uint32_t)(w1 >> LOW_BITS) << 16));
            __m256i a = _mm256_loadu_si256((const __m256i *)row0), b = _mm256_loadu_si256((const __m256i *)row1);
            __m256i pairs_low = _mm256_unpacklo_epi8(a, b), pairs_high = _mm256_unpackhi_epi8(a, b);
            __m256i pairs[4] = {_mm256_unpacklo_epi8(pairs_low, zero), _mm256_unpackhi_epi8(pairs_low, zero),
                                _mm256_unpacklo_epi8(pairs_high, zero), _mm256_unpackhi_epi8(pairs_high, zero)};

            for (int i = 0; i < 4; i++) {
                low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(pairs[i], weight_low));
                high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(pairs[i], weight_high));
            }
        }
        __m256i first = _mm256_packs_epi32(join(low[0], high[0]), join(low[1], high[1]));
        __m256i second = _mm256_packs_epi32(join(low[2], high[2]), join(low[3], high[3]));

        _mm256_storeu_si256((__m256i *)(out + x), _mm256_packus_epi16(first, second));
    }
    if (x < bytes)
        sk_kernels_scalar.resample_column(out + x, in + x, stride, bytes - x, weight, count);
}
