/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png_rows.h"

#include <string.h>

#include "image/png_chunks.h"

/* ------------------------------------------------------------------------------------------------- filters ----- */

/* The predictor nearest to left + above - diagonal, on a tie in that order. */
static inline uint8_t paeth(int a, int b, int c)
{
    int pa = b - c, pb = a - c, pc = pa + pb;

    pa = pa < 0 ? -pa : pa;
    pb = pb < 0 ? -pb : pb;
    pc = pc < 0 ? -pc : pc;
    if (pb < pa) {
        pa = pb;
        a = b;
    }
    return (uint8_t)(pc < pa ? c : a);
}

/* Inlined with a constant step, so that the pixel to the left stays in registers. */
static inline __attribute__((always_inline)) void unfilter_by(int filter, uint8_t *row, const uint8_t *above,
                                                              size_t size, size_t step)
{
    uint8_t left[8] = {0}, corner[8] = {0};

    for (size_t i = 0; i + step <= size; i += step) {
        for (size_t k = 0; k < step; k++) {
            uint8_t up = above[i + k];

            if (filter == 1)
                left[k] = (uint8_t)(row[i + k] + left[k]);
            else if (filter == 3)
                left[k] = (uint8_t)(row[i + k] + (left[k] + up) / 2);
            else
                left[k] = (uint8_t)(row[i + k] + paeth(left[k], up, corner[k]));
            corner[k] = up;
            row[i + k] = left[k];
        }
    }
}

bool sk_png_unfilter(int filter, uint8_t *row, const uint8_t *above, size_t size, size_t step)
{
    if (filter < 0 || filter > 4)
        return false;
    if (filter == 2) {
        for (size_t i = 0; i < size; i++)
            row[i] = (uint8_t)(row[i] + above[i]);
        return true;
    }
    if (filter == 0)
        return true;
#define BY(n)                                                                                                          \
    case n:                                                                                                            \
        if (filter == 1)                                                                                               \
            unfilter_by(1, row, above, size, n);                                                                       \
        else if (filter == 3)                                                                                          \
            unfilter_by(3, row, above, size, n);                                                                       \
        else                                                                                                           \
            unfilter_by(4, row, above, size, n);                                                                       \
        break;
    switch (step) {
        BY(1)
        BY(2)
        BY(3)
        BY(4)
        BY(6)
        BY(8)
    default:
        return false;
    }
#undef BY
    return true;
}

/* --------------------------------------------------------------------------------------------------- pixels ---- */

int sk_png_pixel_bits(int depth, int color)
{
    switch (color) {
    case SK_PNG_RGB:
        return depth * 3;
    case SK_PNG_GRAY_ALPHA:
        return depth * 2;
    case SK_PNG_RGBA:
        return depth * 4;
    default:
        return depth;
    }
}

void sk_png_pixels_make(sk_png_pixels *pixels, int depth, int color, const uint8_t *palette, size_t palette_size)
{
    uint8_t colors[256 * 3] = {0};
    size_t whole = palette_size / 3 * 3;

    pixels->depth = depth;
    pixels->color = color;
    memset(pixels->table, 0, sizeof pixels->table);
    if (palette != NULL && whole > 0)
        memcpy(colors, palette, whole < sizeof colors ? whole : sizeof colors);
    if (color == SK_PNG_PALETTE) {
        memcpy(pixels->table, colors, sizeof colors);
    } else if ((color == SK_PNG_GRAY || color == SK_PNG_GRAY_ALPHA) && depth <= 8) {
        int largest = (1 << depth) - 1;

        for (int v = 0; v <= largest; v++) {
            int gray = v * 255 / largest;

            if (palette != NULL)
                memcpy(pixels->table + 3 * v, colors + 3 * gray, 3);
            else
                memset(pixels->table + 3 * v, gray, 3);
        }
    }
}

static inline void put(uint8_t *rgb, const uint8_t *color)
{
    rgb[0] = color[0];
    rgb[1] = color[1];
    rgb[2] = color[2];
}

static inline void put_gray(uint8_t *rgb, uint8_t gray)
{
    rgb[0] = gray;
    rgb[1] = gray;
    rgb[2] = gray;
}

static void expand_packed(const sk_png_pixels *pixels, const uint8_t *row, size_t count, uint8_t *rgb)
{
    int depth = pixels->depth;
    size_t per_byte = 8u / (unsigned)depth;
    unsigned mask = (1u << depth) - 1;

    for (size_t i = 0; i < count; i++, rgb += 3) {
        unsigned shift = (unsigned)(per_byte - 1 - i % per_byte) * (unsigned)depth;

        put(rgb, pixels->table + 3 * (row[i / per_byte] >> shift & mask));
    }
}

void sk_png_expand(const sk_png_pixels *pixels, const uint8_t *row, size_t count, uint8_t *rgb)
{
    bool wide = pixels->depth == 16;

    switch (pixels->color) {
    case SK_PNG_RGB:
        if (!wide) {
            memcpy(rgb, row, count * 3);
            break;
        }
        for (size_t i = 0; i < count * 3; i++)
            rgb[i] = row[2 * i];
        break;
    case SK_PNG_RGBA:
        for (size_t i = 0; i < count; i++, rgb += 3, row += wide ? 8 : 4) {
            rgb[0] = row[0];
            rgb[1] = row[wide ? 2 : 1];
            rgb[2] = row[wide ? 4 : 2];
        }
        break;
    case SK_PNG_GRAY_ALPHA:
        if (wide)
            for (size_t i = 0; i < count; i++, rgb += 3, row += 4)
                put_gray(rgb, row[0]);
        else
            for (size_t i = 0; i < count; i++, rgb += 3, row += 2)
                put(rgb, pixels->table + 3 * row[0]);
        break;
    case SK_PNG_PALETTE:
        if (pixels->depth < 8)
            expand_packed(pixels, row, count, rgb);
        else
            for (size_t i = 0; i < count; i++, rgb += 3)
                put(rgb, pixels->table + 3 * row[i]);
        break;
    default: /* gray */
        if (wide)
            for (size_t i = 0; i < count; i++, rgb += 3, row += 2)
                put_gray(rgb, row[0] != 0 ? 255 : row[1]);
        else if (pixels->depth == 8)
            for (size_t i = 0; i < count; i++, rgb += 3)
                put(rgb, pixels->table + 3 * row[i]);
        else
            expand_packed(pixels, row, count, rgb);
        break;
    }
}
