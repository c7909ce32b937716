/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_write.c: coefficients → the pack's code. Groups are 4 × 2 blocks; docs/pack-format.md says what lies where, and why.
 */
#include <string.h>

#include "base/hash.h"
#include "image/dct.h"
#include "kernel/kernel.h"

#define MOST_AC     1023 /* baseline JPEG's: 10 bits */
#define LEAST_DC    (-2048)
#define MOST_DC     2047
#define MOST_COLUMN 5900 /* of magnitudes in columns c and c + 4 of a block, dequantised; jpeg_rows.c has the reason */

static void put_16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put_32(uint8_t *at, uint32_t value)
{
    put_16(at, value & 0xffff);
    put_16(at + 2, value >> 16);
}

static void put_64(uint8_t *at, uint64_t value)
{
    put_32(at, (uint32_t)value);
    put_32(at + 4, (uint32_t)(value >> 32));
}

/* Bits, the lowest first. `word` holds fewer than 8 between calls. */
typedef struct bits {
    uint8_t *at;
    uint64_t word;
    int32_t count;
} bits;

/* Up to 56 bits. Writes 8 bytes, of which those past the last whole one are written again. */
static inline void bits_put(bits *self, uint64_t value, int32_t count)
{
    self->word |= value << self->count;
    self->count += count;
    put_64(self->at, self->word);
    self->at += self->count >> 3;
    self->word >>= self->count & 56;
    self->count &= 7;
}

static void bits_end(bits *self)
{
    self->at += self->count > 0;
    self->word = 0;
    self->count = 0;
}

static int32_t width_of(uint32_t value)
{
    return value == 0 ? 0 : 32 - __builtin_clz(value);
}

typedef int16_t lanes __attribute__((vector_size(16)));
typedef uint16_t unsigned_lanes __attribute__((vector_size(16)));
typedef int32_t wide_lanes __attribute__((vector_size(32)));

static inline lanes load(const void *at)
{
    lanes row;

    memcpy(&row, at, sizeof row);
    return row;
}

/* Of INT16_MIN, itself: seen as below -MOST_AC. */
static inline lanes magnitudes_of(lanes row)
{
    lanes minus = row < 0;

    return (lanes)((unsigned_lanes)(row ^ minus) - (unsigned_lanes)minus);
}

static bool in_range(const sk_plane *plane, const int16_t *block)
{
    wide_lanes sum = {0};
    lanes beyond = {0};

    if (block[0] < LEAST_DC || block[0] > MOST_DC)
        return false;
    for (int y = 0; y < 8; y++) {
        lanes row = magnitudes_of(load(block + 8 * y)), ac = row;

        if (y == 0)
            ac[0] = 0;
        beyond |= (ac > MOST_AC) | (ac < 0);
        sum +=
            __builtin_convertvector(row, wide_lanes) * __builtin_convertvector(load(plane->quant + 8 * y), wide_lanes);
    }
    for (int x = 0; x < 8; x++) {
        if (beyond[x] != 0 || sum[x % 4] + sum[x % 4 + 4] > MOST_COLUMN)
            return false;
    }
    return true;
}

/* Eight blocks, upper ones first; those beyond the plane are NULL. */
typedef const int16_t *group[8];

/* The halves of two registers by turns, elements of 16, 32 and 64 bits. */
#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (lanes){__VA_ARGS__})
#endif
#define LOW_1(a, b)  SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_1(a, b) SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_2(a, b)  SHUFFLE(a, b, 0, 1, 8, 9, 2, 3, 10, 11)
#define HIGH_2(a, b) SHUFFLE(a, b, 4, 5, 12, 13, 6, 7, 14, 15)
#define LOW_4(a, b)  SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_4(a, b) SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

/* Row `y` of eight blocks to eight places of eight lanes. */
static inline void transpose_row(const group blocks, int y, lanes out[8])
{
    lanes a[8], b[8];

    for (int i = 0; i < 8; i++)
        a[i] = load(blocks[i] + 8 * y);
    for (int i = 0; i < 4; i++) {
        b[2 * i] = LOW_1(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = HIGH_1(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        for (int half = 0; half < 2; half++) {
            a[4 * i + 2 * half] = LOW_2(b[4 * i + half], b[4 * i + 2 + half]);
            a[4 * i + 2 * half + 1] = HIGH_2(b[4 * i + half], b[4 * i + 2 + half]);
        }
    }
    for (int i = 0; i < 4; i++) {
        out[2 * i] = LOW_4(a[i], a[4 + i]);
        out[2 * i + 1] = HIGH_4(a[i], a[4 + i]);
    }
}

/* A group's values by zigzag place. */
typedef struct values {
    uint16_t magnitude[64][8];
    uint8_t some[64], minus[64]; /* which of the eight are not 0, and which are below */
    int32_t needed[64];          /* bits */
    int32_t last;
} values;

static void gather(const group given, values *out)
{
    static const int16_t zeros[64];
    const lanes low = {1, 2, 4, 8, 16, 32, 64, 128}, high = {256, 512, 1024, 2048, 4096, 8192, 16384, INT16_MIN};
    group blocks;
    lanes natural[64], any_rows[8] = {{0}};
    uint16_t any[64];

    for (int b = 0; b < 8; b++) {
        blocks[b] = given[b] != NULL ? given[b] : zeros;
        for (int y = 0; y < 8; y++)
            any_rows[y] |= magnitudes_of(load(blocks[b] + 8 * y));
    }
    for (int y = 0; y < 8; y++)
        memcpy(any + 8 * y, &any_rows[y], sizeof any_rows[y]);
    out->last = 63;
    while (out->last > 0 && any[sk_zigzag[out->last]] == 0)
        out->last--;
    for (int y = 0; y < 8; y++)
        transpose_row(blocks, y, natural + 8 * y);
    for (int32_t k = 1; k <= out->last; k++) {
        lanes value = natural[sk_zigzag[k]], minus = value < 0;
        lanes set = (minus & low) | ((value != 0) & high); /* a bit a lane: all of them make two sets */
        uint64_t words[2];

        out->needed[k] = width_of(any[sk_zigzag[k]]);
        value = magnitudes_of(value);
        memcpy(out->magnitude[k], &value, sizeof value);
        memcpy(words, &set, sizeof words);
        words[0] |= words[1];
        words[0] |= words[0] >> 32;
        words[0] |= words[0] >> 16;
        out->minus[k] = (uint8_t)words[0];
        out->some[k] = (uint8_t)(words[0] >> 8);
    }
}

/* Widths whose steps from place to place are -2 .. 1, none less than is needed. */
static void choose_widths(const int32_t needed[64], int32_t last, int32_t widths[64])
{
    memcpy(widths, needed, 64 * sizeof *widths);
    for (int32_t k = last - 1; k >= 1; k--)
        widths[k] = widths[k + 1] - 1 > widths[k] ? widths[k + 1] - 1 : widths[k];
    for (int32_t k = 2; k <= last; k++)
        widths[k] = widths[k - 1] - 2 > widths[k] ? widths[k - 1] - 2 : widths[k];
}

/* The bits of m that stand where s has ones, moved together. */
#define BIT(s, m, i) ((s) >> (i) & 1 ? ((m) >> (i) & 1) << __builtin_popcount((s) & ((1 << (i)) - 1)) : 0)
#define BITS(s, m)   (BIT(s, m, 0) | BIT(s, m, 1) | BIT(s, m, 2) | BIT(s, m, 3))
#define BITS_4(s, m) BITS(s, m), BITS(s, (m) + 1), BITS(s, (m) + 2), BITS(s, (m) + 3)
#define BITS_16(s)   {BITS_4(s, 0), BITS_4(s, 4), BITS_4(s, 8), BITS_4(s, 12)}

static const uint8_t together[16][16] = {BITS_16(0),  BITS_16(1),  BITS_16(2),  BITS_16(3), BITS_16(4),  BITS_16(5),
                                         BITS_16(6),  BITS_16(7),  BITS_16(8),  BITS_16(9), BITS_16(10), BITS_16(11),
                                         BITS_16(12), BITS_16(13), BITS_16(14), BITS_16(15)};

/* Writes a group, at most SK_DCT_GROUP bytes (and scratch past them); returns the end. */
static uint8_t *write_group(const group blocks, uint8_t *out)
{
    int32_t widths[64], least = MOST_DC, most = LEAST_DC, last;
    values v;

    gather(blocks, &v);
    last = v.last;
    for (int b = 0; b < 8; b++) {
        if (blocks[b] != NULL) {
            least = blocks[b][0] < least ? blocks[b][0] : least;
            most = blocks[b][0] > most ? blocks[b][0] : most;
        }
    }
    int32_t dc_width = width_of((uint32_t)(most - least));
    uint32_t head = (uint32_t)(least - LEAST_DC) | (uint32_t)dc_width << 12 | (uint32_t)last << 16;
    bits to = {.at = out + 3};

    put_16(out, head & 0xffff);
    out[2] = (uint8_t)(head >> 16);
    choose_widths(v.needed, last, widths);
    for (int32_t k = 1; k <= last; k++)
        bits_put(&to, (uint32_t)(k == 1 ? widths[1] : widths[k] - widths[k - 1] + 2), k == 1 ? 4 : 2);
    bits_end(&to);
    for (int b = 0; b < 8; b++)
        bits_put(&to, (uint32_t)((blocks[b] != NULL ? blocks[b][0] : blocks[0][0]) - least), dc_width);
    for (int32_t k = 1; k <= last; k++) {
        for (int b = 0; b < 8; b += 4)
            bits_put(&to,
                     v.magnitude[k][b] | (uint64_t)v.magnitude[k][b + 1] << widths[k] |
                         (uint64_t)v.magnitude[k][b + 2] << 2 * widths[k] |
                         (uint64_t)v.magnitude[k][b + 3] << 3 * widths[k],
                     4 * widths[k]);
    }
    for (int32_t k = 1; k <= last; k++) {
        uint32_t low = v.some[k] & 15, high = v.some[k] >> 4;
        uint32_t signs = together[low][v.minus[k] & 15] | (uint32_t)together[high][v.minus[k] >> 4]
                                                              << __builtin_popcount(low);

        bits_put(&to, signs, __builtin_popcount(v.some[k]));
    }
    bits_end(&to);
    return to.at;
}

/* Writes a row of groups: their sizes, then the groups. Returns the end, or NULL where a block is out of range. */
static uint8_t *write_row(const sk_plane *plane, int32_t row, int32_t groups, uint8_t *out)
{
    uint8_t *at = out + 2 * (size_t)groups;

    for (int32_t g = 0; g < groups; g++) {
        group blocks;

        for (int b = 0; b < 8; b++) {
            int32_t x = 4 * g + b % 4, y = 2 * row + b / 4;

            blocks[b] = x < plane->across && y < plane->down
                            ? plane->blocks + ((size_t)y * (size_t)plane->across + (size_t)x) * 64
                            : NULL;
            if (blocks[b] != NULL && !in_range(plane, blocks[b]))
                return NULL;
        }
        uint8_t *end = write_group(blocks, at);

        put_16(out + 2 * (size_t)g, (uint32_t)(end - at));
        at = end;
    }
    return at;
}

stoker_status sk_dct_encode(const sk_coefficients *image, int orientation, sk_buffer *out, size_t *size, bool *taken)
{
    size_t rows = 0, groups = 0;
    int components = image->components;

    *taken = false;
    for (int c = 0; c < components; c++) {
        size_t down = (size_t)(image->plane[c].down + 1) / 2;

        rows += down;
        groups += down * ((size_t)(image->plane[c].across + 3) / 4);
    }
    size_t head = SK_DCT_HEAD + 64 * (size_t)components, begin = head + 8 * rows;
    stoker_status status = sk_buffer_reserve(out, begin + groups * (2 + SK_DCT_GROUP) + sizeof(uint64_t));

    if (status != STOKER_OK)
        return status;
    uint8_t *data = out->data, *entry = data + head, *at = data + begin;

    memset(data, 0, SK_DCT_HEAD);
    put_32(data, SK_DCT_MAGIC);
    put_16(data + 4, SK_DCT_VERSION);
    data[6] = (uint8_t)components;
    data[7] = (uint8_t)(image->plane[0].h << 4 | image->plane[0].v);
    put_32(data + 8, (uint32_t)image->width);
    put_32(data + 12, (uint32_t)image->height);
    data[16] = (uint8_t)orientation;
    for (int c = 0; c < components; c++) {
        const sk_plane *plane = &image->plane[c];

        for (int k = 0; k < 64; k++)
            data[SK_DCT_HEAD + 64 * c + k] = (uint8_t)plane->quant[sk_zigzag[k]];
        for (int32_t row = 0; row < (plane->down + 1) / 2; row++, entry += 8) {
            uint8_t *end = write_row(plane, row, (plane->across + 3) / 4, at);

            if (end == NULL || (size_t)(end - data) > UINT32_MAX)
                return STOKER_OK;
            put_32(entry, (uint32_t)(end - data));
            put_32(entry + 4, (uint32_t)sk_hash64(at, (size_t)(end - at), 0));
            at = end;
        }
    }
    put_64(data + 24, sk_hash64(data + head, begin - head, sk_hash64(data, head, 0))); /* of zeros where it will lie */
    *size = (size_t)(at - data);
    *taken = true;
    return STOKER_OK;
}
