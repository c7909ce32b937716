/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx512_resample.c: resampling with AVX-512, VBMI and VNNI.
 *
 * A weight of 22 fractional bits is written as three signed bytes, w = d0 + 256 d1 + 65536 d2, and each
 * byte has a multiply-add of its own (vpdpbusd: four unsigned pixels times four signed digits into 32 bits, without
 * saturation). The three sums put together are the scalar sum modulo 2^32, and that fits 32 bits, so the bytes are
 * equal.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/x86/x86.h"

#define WINDOW     64 /* bytes of source that one group reads a step */
#define STEP_TAPS  4
#define DIGITS     3
#define ROWS       4  /* rows that share the loads of weights */
#define GROUP_LANE 16 /* 32-bit sums a group */

/* A run of outputs whose taps lie within one window: up to 5 RGB pixels, or 16 gray ones. Their lanes take bytes of the
 * window by `index`, the same at every step of four taps. Followed in memory by DIGITS × 64 digits a step. */
typedef struct group {
    uint8_t index[WINDOW];
    int32_t start; /* first source pixel */
    int32_t output;
    int32_t lanes; /* 32-bit sums in use */
    int32_t unused[13];
} group;

typedef struct header {
    int32_t groups, steps;
    int32_t unused[14]; /* keeps what follows aligned to 64 bytes */
} header;

/* Steps of four taps that the outputs from .. to take: often fewer than the room for weights would say. */
static int32_t steps_of(const sk_taps *taps, int32_t from, int32_t to)
{
    int32_t most = 1;

    for (int32_t x = from; x < to; x++)
        most = taps->count[x] > most ? taps->count[x] : most;
    return (most + STEP_TAPS - 1) / STEP_TAPS;
}

static size_t group_bytes(int32_t steps)
{
    return sizeof(group) + (size_t)steps * DIGITS * WINDOW;
}

size_t sk_avx512_resample_packed_size(const sk_taps *taps, int32_t from, int32_t to, int32_t channels)
{
    (void)channels;
    /* At worst each output is a group of its own. */
    return sizeof(header) + (size_t)(to - from) * group_bytes(steps_of(taps, from, to));
}

/* w = out[0] + 256 out[1] + 65536 out[2], each in -128..127. */
static void digits_of(int32_t w, int8_t out[DIGITS])
{
    out[0] = (int8_t)(uint8_t)w;
    w = (w - out[0]) >> 8;
    out[1] = (int8_t)(uint8_t)w;
    w = (w - out[1]) >> 8;
    out[2] = (int8_t)w;
}

static void pack_group(const sk_taps *taps, int32_t x, int32_t n, int32_t channels, int32_t steps, group *g)
{
    int8_t *digit = (int8_t *)(g + 1);

    memset(g, 0, group_bytes(steps));
    g->start = taps->first[x];
    g->output = x;
    g->lanes = n * channels;
    for (int32_t i = 0; i < n; i++) {
        const int32_t *weight = taps->weight + (size_t)(x + i) * (size_t)taps->size;
        int32_t base = taps->first[x + i] - g->start;

        for (int32_t c = 0; c < channels; c++) {
            uint8_t *index = g->index + (i * channels + c) * STEP_TAPS;

            for (int32_t t = 0; t < STEP_TAPS; t++)
                index[t] = (uint8_t)((base + t) * channels + c);
        }
        for (int32_t k = 0; k < taps->count[x + i]; k++) {
            int8_t d[DIGITS];
            int8_t *at = digit + (size_t)(k / STEP_TAPS) * DIGITS * WINDOW + k % STEP_TAPS;

            digits_of(weight[k], d);
            for (int32_t c = 0; c < channels; c++) {
                for (int32_t j = 0; j < DIGITS; j++)
                    at[j * WINDOW + (i * channels + c) * STEP_TAPS] = d[j];
            }
        }
    }
}

void sk_avx512_resample_pack(const sk_taps *taps, int32_t from, int32_t to, int32_t channels, void *packed)
{
    header *head = packed;
    uint8_t *at = (uint8_t *)(head + 1);
    int32_t most = GROUP_LANE / channels;

    head->groups = 0;
    head->steps = steps_of(taps, from, to);
    for (int32_t x = from; x < to;) {
        int32_t n = 1;

        while (n < most && x + n < to && (taps->first[x + n] - taps->first[x] + STEP_TAPS) * channels <= WINDOW)
            n++;
        pack_group(taps, x, n, channels, head->steps, (group *)at);
        at += group_bytes(head->steps);
        head->groups++;
        x += n;
    }
}

static inline __mmask64 first_bytes(int64_t n)
{
    return n >= 64 ? ~0ull : n <= 0 ? 0 : (1ull << n) - 1;
}

/* The three digits' sums → 32-bit results before clipping. */
static inline __m512i join(__m512i a0, __m512i a1, __m512i a2)
{
    __m512i sum = _mm512_add_epi32(a0, _mm512_add_epi32(_mm512_slli_epi32(a1, 8), _mm512_slli_epi32(a2, 16)));

    return _mm512_srai_epi32(sum, SK_WEIGHT_BITS);
}

/* `count` (1..ROWS) rows through one group. `inside`: all 64 bytes of every step lie within the rows. */
static inline __attribute__((always_inline)) void run_group(const sk_rows *rows, const group *g, int32_t steps,
                                                            const uint8_t *in, uint8_t *out, int32_t count, bool inside)
{
    const __m512i half = _mm512_set1_epi32(1 << (SK_WEIGHT_BITS - 1));
    const __m512i index = _mm512_load_si512(g->index);
    const int8_t *digit = (const int8_t *)(g + 1);
    int64_t at = (int64_t)(g->start - rows->in_first) * rows->channels;
    int64_t row_bytes = (int64_t)rows->in_width * rows->channels;
    const uint8_t *row[ROWS];
    __m512i a0[ROWS], a1[ROWS], a2[ROWS];

    for (int32_t r = 0; r < ROWS; r++) {
        row[r] = in + (size_t)(r < count ? r : 0) * rows->in_stride;
        a0[r] = half;
        a1[r] = a2[r] = _mm512_setzero_si512();
    }
    for (int32_t s = 0; s < steps; s++) {
        __mmask64 readable = inside ? ~0ull : first_bytes(row_bytes - at);
        __m512i d0 = _mm512_load_si512(digit);
        __m512i d1 = _mm512_load_si512(digit + WINDOW);
        __m512i d2 = _mm512_load_si512(digit + 2 * WINDOW);

        for (int32_t r = 0; r < ROWS; r++) {
            __m512i bytes;

            /* An address past a row's end is only formed when no byte of it is read. */
            if (inside)
                bytes = _mm512_loadu_si512(row[r] + at);
            else
                bytes = _mm512_maskz_loadu_epi8(readable, readable != 0 ? row[r] + at : in);
            __m512i v = _mm512_permutexvar_epi8(index, bytes);

            a0[r] = _mm512_dpbusd_epi32(a0[r], v, d0);
            a1[r] = _mm512_dpbusd_epi32(a1[r], v, d1);
            a2[r] = _mm512_dpbusd_epi32(a2[r], v, d2);
        }
        at += STEP_TAPS * rows->channels;
        digit += DIGITS * WINDOW;
    }
    __mmask16 keep = (__mmask16)((1u << g->lanes) - 1);
    uint8_t *to = out + (size_t)(g->output - rows->from) * (size_t)rows->channels;

    for (int32_t r = 0; r < count; r++) {
        __m512i sum = _mm512_max_epi32(join(a0[r], a1[r], a2[r]), _mm512_setzero_si512());

        _mm_mask_storeu_epi8(to + (size_t)r * rows->out_stride, keep, _mm512_cvtusepi32_epi8(sum));
    }
}

void sk_avx512_resample_rows(const sk_rows *rows, const sk_taps *taps, const void *packed)
{
    const header *head = packed;
    size_t stride = group_bytes(head->steps);
    /* Groups that start no later than this read within the row at every step. */
    int64_t last = rows->in_first + ((int64_t)rows->in_width * rows->channels - WINDOW) / rows->channels -
                   (int64_t)STEP_TAPS * (head->steps - 1);

    (void)taps;
    if ((int64_t)rows->in_width * rows->channels < WINDOW)
        last = -1;
    for (int32_t y = 0; y < rows->rows; y += ROWS) {
        const uint8_t *in = rows->in + (size_t)y * rows->in_stride;
        uint8_t *out = rows->out + (size_t)y * rows->out_stride;
        const uint8_t *at = (const uint8_t *)(head + 1);
        int32_t count = rows->rows - y < ROWS ? rows->rows - y : ROWS;
        int32_t i = 0;

        if (count == ROWS) {
            for (; i < head->groups && ((const group *)at)->start <= last; i++, at += stride)
                run_group(rows, (const group *)at, head->steps, in, out, ROWS, true);
        }
        for (; i < head->groups; i++, at += stride)
            run_group(rows, (const group *)at, head->steps, in, out, count, false);
    }
}

#define COLUMN_STEPS 64 /* of a column, whose digits are on the stack; taller columns go the scalar way */

void sk_avx512_resample_column(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                               int32_t count)
{
    const __m512i half = _mm512_set1_epi32(1 << (SK_WEIGHT_BITS - 1));
    int32_t steps = (count + STEP_TAPS - 1) / STEP_TAPS;
    int8_t digits[COLUMN_STEPS][DIGITS][STEP_TAPS];

    if (steps > COLUMN_STEPS) {
        sk_kernels_scalar.resample_column(out, in, stride, bytes, weight, count);
        return;
    }
    for (int32_t k = 0; k < steps * STEP_TAPS; k++) {
        int8_t one[DIGITS];

        digits_of(k < count ? weight[k] : 0, one);
        for (int j = 0; j < DIGITS; j++)
            digits[k / STEP_TAPS][j][k % STEP_TAPS] = one[j];
    }
    for (size_t x = 0; x < bytes; x += 64) {
        __mmask64 mask = first_bytes((int64_t)(bytes - x));
        __m512i a0[4], a1[4], a2[4], result[4];

        for (int i = 0; i < 4; i++) {
            a0[i] = half;
            a1[i] = a2[i] = _mm512_setzero_si512();
        }
        for (int32_t s = 0; s < steps; s++) {
            int32_t four_digits[DIGITS];
            __m512i row[STEP_TAPS];

            memcpy(four_digits, digits[s], sizeof four_digits);
            for (int32_t t = 0; t < STEP_TAPS; t++) {
                int32_t k = s * STEP_TAPS + t;

                /* Past the last tap: any row, weight zero. */
                row[t] = _mm512_maskz_loadu_epi8(mask, in + (size_t)(k < count ? k : count - 1) * stride + x);
            }
            __m512i low01 = _mm512_unpacklo_epi8(row[0], row[1]), high01 = _mm512_unpackhi_epi8(row[0], row[1]);
            __m512i low23 = _mm512_unpacklo_epi8(row[2], row[3]), high23 = _mm512_unpackhi_epi8(row[2], row[3]);
            __m512i four[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                               _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
            __m512i d0 = _mm512_set1_epi32(four_digits[0]);
            __m512i d1 = _mm512_set1_epi32(four_digits[1]);
            __m512i d2 = _mm512_set1_epi32(four_digits[2]);

            for (int i = 0; i < 4; i++) {
                a0[i] = _mm512_dpbusd_epi32(a0[i], four[i], d0);
                a1[i] = _mm512_dpbusd_epi32(a1[i], four[i], d1);
                a2[i] = _mm512_dpbusd_epi32(a2[i], four[i], d2);
            }
        }
        for (int i = 0; i < 4; i++)
            result[i] = join(a0[i], a1[i], a2[i]);
        /* The packs undo the unpacks within each 128 bits, and clip to 0..255. */
        __m512i packed =
            _mm512_packus_epi16(_mm512_packs_epi32(result[0], result[1]), _mm512_packs_epi32(result[2], result[3]));

        _mm512_mask_storeu_epi8(out + x, mask, packed);
    }
}
