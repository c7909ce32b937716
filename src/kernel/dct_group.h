/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct_group.h: what the vector versions of dct_unpack share: a group's head, and the widths of eight places at a time in the bytes of a
 * word. How values are taken apart is each version's own.
 */
#ifndef SK_KERNEL_DCT_GROUP_H
#define SK_KERNEL_DCT_GROUP_H

#include <stdbool.h>
#include <string.h>

#include "kernel/kernel.h"

#define SK_DCT_NARROW 7 /* values of such a width are bytes, sign and all */

typedef struct sk_dct_group {
    int32_t least, dc_width, last;
    int32_t chunks;       /* of eight places; 0 where there is only DC */
    uint32_t wide;        /* bit c: chunk c has a width above SK_DCT_NARROW */
    uint64_t widths[8];   /* byte j: of place 8 c + j; 0 past the last one */
    uint64_t offsets[8];  /* byte j: where its values begin in the chunk */
    const uint8_t *at[8]; /* each chunk's values */
    const uint8_t *dc, *signs;
} sk_dct_group;

static inline uint64_t sk_load_64(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

/* 64 bits from bit `at` on; reads nine bytes. */
static inline uint64_t sk_load_bits(const uint8_t *bytes, size_t at)
{
    const uint8_t *byte = bytes + at / 8;

    return sk_load_64(byte) >> at % 8 | (uint64_t)byte[8] << 1 << (63 - at % 8);
}

/* Eight times two bits to bytes. */
static inline uint64_t sk_spread_steps(uint64_t steps)
{
    steps = (steps | steps << 24) & 0x000000ff000000ff;
    steps = (steps | steps << 12) & 0x000f000f000f000f;
    return (steps | steps << 6) & 0x0303030303030303;
}

/* False where the group is none. Sums of the bytes of a word by multiplication: byte j of x × 0x0101… is the sum of bytes 0 .. j. A
 * width below 0 borrows from the places above it, and is seen itself, as one of 240 or more. */
static inline __attribute__((always_inline)) bool sk_dct_group_read(const uint8_t *group, sk_dct_group *out)
{
    const uint64_t each = 0x0101010101010101, tops = 0x8080808080808080;
    uint32_t head;

    memcpy(&head, group, sizeof head);
    out->least = (int32_t)(head & 4095) - 2048;
    out->dc_width = (int32_t)(head >> 12 & 15);
    out->last = (int32_t)(head >> 16 & 63);
    if (out->dc_width > SK_DCT_DC_WIDEST || (head >> 22 & 3) != 0)
        return false;
    out->chunks = out->last > 0 ? out->last / 8 + 1 : 0;
    out->wide = 0;
    out->dc = group + 3 + (out->last > 0 ? (out->last + 4) / 4 : 0);

    const uint8_t *at = out->dc + out->dc_width;
    uint64_t before = group[3] & 15, less = 0x0c0a080604020000, bad = 0;

    for (int32_t c = 0; c < out->chunks; c++) {
        uint64_t steps = (uint64_t)group[3 + 2 * c] | (uint64_t)group[4 + 2 * c] << 8;
        uint64_t widths = before * each + sk_spread_steps(c == 0 ? steps & ~(uint64_t)15 : steps) * each - less;

        before = widths >> 56;
        less = 0x100e0c0a08060402;
        if (c == 0)
            widths &= ~(uint64_t)255;
        if (c + 1 == out->chunks)
            widths &= ~(uint64_t)0 >> (8 * (7 - out->last % 8));
        bad |= (widths | (widths + (127 - SK_DCT_WIDEST) * each)) & tops;
        out->wide |= (uint32_t)(((widths + (127 - SK_DCT_NARROW) * each) & tops) != 0) << c;
        out->widths[c] = widths;
        out->offsets[c] = widths * each - widths;
        out->at[c] = at;
        at += widths * each >> 56;
        if (bad != 0)
            return false;
    }
    out->signs = at;
    return true;
}

/* The DC values, of the upper and then the lower blocks. */
static inline __attribute__((always_inline)) void sk_dct_group_dc(const sk_dct_group *self, int16_t *upper,
                                                                  int16_t *lower)
{
    uint64_t first = sk_load_64(self->dc);
    uint64_t second = sk_load_64(self->dc + self->dc_width / 2) >> (self->dc_width % 2 * 4);
    uint64_t mask = ((uint64_t)1 << self->dc_width) - 1;

    for (int32_t b = 0; b < 4; b++) {
        upper[64 * b] = (int16_t)(self->least + (int32_t)(first >> (b * self->dc_width) & mask));
        lower[64 * b] = (int16_t)(self->least + (int32_t)(second >> (b * self->dc_width) & mask));
    }
}

/* A place's eight values of any width. *sign: the next bit of `signs`. */
static inline void sk_dct_group_place(const uint8_t *at, int32_t width, const uint8_t *signs, size_t *sign,
                                      int16_t values[8])
{
    uint64_t mask = ((uint64_t)1 << width) - 1;

    for (int32_t b = 0; b < 8; b++) {
        size_t bit = (size_t)(b * width);
        int32_t value = (int32_t)(sk_load_64(at + bit / 8) >> bit % 8 & mask);
        int32_t minus = value != 0 ? signs[*sign / 8] >> *sign % 8 & 1 : 0;

        *sign += value != 0;
        values[b] = (int16_t)((value ^ -minus) + minus);
    }
}

#endif
