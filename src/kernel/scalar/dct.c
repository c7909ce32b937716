/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct.c: a pack's groups of DCT blocks, read as docs/pack-format.md has them: the reference.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/kernel.h"

const uint8_t sk_zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* `count` bits, 0 to 12, from bit `at` on. Bits are counted from the lowest of the first byte. */
static int32_t bits(const uint8_t *bytes, size_t at, int32_t count)
{
    uint32_t word = (uint32_t)bytes[at / 8] | (uint32_t)bytes[at / 8 + 1] << 8 | (uint32_t)bytes[at / 8 + 2] << 16;

    return (int32_t)(word >> (at % 8) & ((1u << count) - 1));
}

/* The widths of places 1 .. last, from their steps. False where one is out of range. */
static bool read_widths(const uint8_t *steps, int32_t last, int32_t widths[64])
{
    for (int32_t k = 1; k <= last; k++) {
        widths[k] = k == 1 ? bits(steps, 0, 4) : widths[k - 1] + bits(steps, (size_t)(2 * k), 2) - 2;
        if (widths[k] < 0 || widths[k] > SK_DCT_WIDEST)
            return false;
    }
    return true;
}

int32_t sk_scalar_dct_unpack(const uint8_t *group, int16_t *upper, int16_t *lower, uint8_t *upper_last,
                             uint8_t *lower_last)
{
    int32_t least = bits(group, 0, 12) - 2048, dc_width = bits(group, 12, 4), last = bits(group, 16, 6), widths[64];
    const uint8_t *at = group + 3, *signs;
    size_t sign = 0;

    if (dc_width > SK_DCT_DC_WIDEST || group[2] >> 6 != 0 || !read_widths(at, last, widths))
        return -1;
    if (last > 0)
        at += (last + 4) / 4;
    memset(upper, 0, 4 * 64 * sizeof *upper);
    memset(lower, 0, 4 * 64 * sizeof *lower);
    for (int32_t b = 0; b < 8; b++) {
        (b < 4 ? upper + 64 * b : lower + 64 * (b - 4))[0] =
            (int16_t)(least + bits(at, (size_t)(b * dc_width), dc_width));
        (b < 4 ? upper_last : lower_last)[b % 4] = (uint8_t)last;
    }
    at += dc_width;
    signs = at;
    for (int32_t k = 1; k <= last; k++)
        signs += widths[k];
    for (int32_t k = 1; k <= last; at += widths[k++]) {
        for (int32_t b = 0; b < 8; b++) {
            int32_t value = bits(at, (size_t)(b * widths[k]), widths[k]);

            if (value != 0 && bits(signs, sign++, 1) != 0)
                value = -value;
            (b < 4 ? upper + 64 * b : lower + 64 * (b - 4))[sk_zigzag[k]] = (int16_t)value;
        }
    }
    return (int32_t)(signs - group) + (int32_t)((sign + 7) / 8);
}
