/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_rows.h: a PNG's inflated rows → RGB. Pure functions; the file's structure is png_chunks.h's matter.
 */
#ifndef SK_IMAGE_PNG_ROWS_H
#define SK_IMAGE_PNG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Undoes a row's filter in place. `row` and `above` are `size` bytes without the filter's byte (`above` all 0 for a
 * first row); `step` is the bytes of a whole pixel, at least 1. False for an unknown filter. (PNG specification,
 * section 9.) */
bool sk_png_unfilter(int filter, uint8_t *row, const uint8_t *above, size_t size, size_t step);

/* How samples become RGB. */
typedef struct sk_png_pixels {
    int depth, color;       /* as in sk_png_file */
    uint8_t table[256 * 3]; /* RGB of a sample of up to 8 bits, for gray and palette */
} sk_png_pixels;

/* Fills the table: Pillow reads a palette's missing entries as black and scales gray of less than 8 bits to 0..255. A
 * palette with gray (NULL: none) comes from a file with two headers; Pillow then looks the gray up in it. */
void sk_png_pixels_make(sk_png_pixels *pixels, int depth, int color, const uint8_t *palette, size_t palette_size);

/* Bits of a pixel as stored. */
int sk_png_pixel_bits(int depth, int color);

/* `count` pixels of a row to RGB. Alpha is dropped; of 16 bits the high ones are kept, but 16-bit gray is clipped to
 * 255, as Pillow has it. */
void sk_png_expand(const sk_png_pixels *pixels, const uint8_t *row, size_t count, uint8_t *rgb);

#endif
