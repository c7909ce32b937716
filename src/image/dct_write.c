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

static bool in_range(const sk_plane *plane, const int16_t *block)
{
    int32_t sum[4] = {0};
    int32_t most = 0;

    for (int i = 0; i < 64; i++) {
        int32_t value = block[i] < 0 ? -block[i] : block[i];

        if (i > 0)
            most = value > most ? value : most;
        sum[i % 4] += value * plane->quant[i];
    }
    for (int i = 0; i < 4; i++) {
        if (sum[i] > MOST_COLUMN)
            return false;
    }
    return most <= MOST_AC && block[0] >= LEAST_DC && block[0] <= MOST_DC;
}

/* Eight blocks, upper ones first; those beyond the plane are NULL. */
typedef const int16_t *group[8];

/* For each zigzag place, the bits that any of the values set; and how many places count. */
static int32_t gather(const group blocks, uint16_t any[64], uint16_t magnitudes[64][8], uint8_t minus[64][8])
{
    uint16_t natural[64] = {0};
    int32_t last = 0;

    for (int b = 0; b < 8; b++) {
        if (blocks[b] == NULL)
            continue;
        for (int i = 0; i < 64; i++) {
            int16_t value = blocks[b][i];

            natural[i] |= (uint16_t)(value < 0 ? -value : value);
        }
    }
    for (int32_t k = 1; k < 64; k++) {
        any[k] = natural[sk_zigzag[k]];
        if (any[k] != 0)
            last = k;
    }
    for (int32_t k = 1; k <= last; k++) {
        for (int b = 0; b < 8; b++) {
            int16_t value = (int16_t)(blocks[b] != NULL ? blocks[b][sk_zigzag[k]] : 0);

            magnitudes[k][b] = (uint16_t)(value < 0 ? -value : value);
            minus[k][b] = value < 0;
        }
    }
    return last;
}

/* Widths whose steps from place to place are -2 .. 1, none less than is needed. */
static void choose_widths(const uint16_t any[64], int32_t last, int32_t widths[65])
{
    for (int32_t k = 1; k <= last; k++)
        widths[k] = width_of(any[k]);
    for (int32_t k = last - 1; k >= 1; k--)
        widths[k] = widths[k + 1] - 1 > widths[k] ? widths[k + 1] - 1 : widths[k];
    for (int32_t k = 2; k <= last; k++)
        widths[k] = widths[k - 1] - 2 > widths[k] ? widths[k - 1] - 2 : widths[k];
}

/* Writes a group, at most SK_DCT_GROUP bytes (and scratch past them); returns the end. */
static uint8_t *write_group(const group blocks, uint8_t *out)
{
    uint16_t any[64], magnitudes[64][8];
    uint8_t minus[64][8];
    int32_t widths[65], least = MOST_DC, most = LEAST_DC;
    int32_t last = gather(blocks, any, magnitudes, minus);

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
    choose_widths(any, last, widths);
    for (int32_t k = 1; k <= last; k++)
        bits_put(&to, (uint32_t)(k == 1 ? widths[1] : widths[k] - widths[k - 1] + 2), k == 1 ? 4 : 2);
    bits_end(&to);
    for (int b = 0; b < 8; b++)
        bits_put(&to, (uint32_t)((blocks[b] != NULL ? blocks[b][0] : blocks[0][0]) - least), dc_width);
    for (int32_t k = 1; k <= last; k++) {
        for (int b = 0; b < 8; b += 4)
            bits_put(&to,
                     magnitudes[k][b] | (uint64_t)magnitudes[k][b + 1] << widths[k] |
                         (uint64_t)magnitudes[k][b + 2] << 2 * widths[k] |
                         (uint64_t)magnitudes[k][b + 3] << 3 * widths[k],
                     4 * widths[k]);
    }
    for (int32_t k = 1; k <= last; k++) {
        uint32_t signs = 0;
        int32_t count = 0;

        for (int b = 0; b < 8; b++) {
            signs |= (uint32_t)minus[k][b] << count;
            count += magnitudes[k][b] != 0;
        }
        bits_put(&to, signs, count);
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
