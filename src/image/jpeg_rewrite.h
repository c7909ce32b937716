/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_rewrite.h: a JPEG file written anew for reading regions of it: baseline, with a restart marker every few MCUs, so that a decoder can
 * begin at any of them, and with the best Huffman tables, which pay for the markers. What gives the original file back is jpeg_recipe.h's.
 */
#ifndef SK_IMAGE_JPEG_REWRITE_H
#define SK_IMAGE_JPEG_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "image/coefficients.h"

/* Writes to `out` a standard baseline JPEG file of *out_size bytes with the same coefficients, quantisation tables, component ids and
 * sampling factors. Of the original `file`, which `image` was read from, it keeps the segments that decoders go by for colour and orientation:
 * JFIF, Adobe, Exif, and XMP where that turns the picture. Intervals are of equal length and none crosses a row of MCUs: they are as short
 * as a file about as long as the original allows, but not shorter than 56 pixels, and whole rows where nothing shorter divides them.
 * *taken is false where the image does not fit baseline's codes or Pillow would refuse the file. Fails on lack of memory only. */
stoker_status sk_jpeg_restart(const sk_coefficients *image, const uint8_t *file, size_t size, sk_buffer *out,
                              size_t *out_size, bool *taken);

/* The bytes of a JPEG file up to the entropy-coded data of its first scan; 0 where there is none. */
size_t sk_jpeg_header_size(const uint8_t *file, size_t size);

#endif
