/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lossless.h: lossless JPEG (ITU-T T.81 annex H: predictors and Huffman codes, frame SOF3), 8 bits a sample, one scan, no
 * subsampling. libjpeg-turbo decodes it from version 3 on, and Pillow's wheels carry such a version, while distributions ship 2.1; so
 * the kind has a decoder of its own here.
 */
#ifndef SK_IMAGE_JPEG_LOSSLESS_H
#define SK_IMAGE_JPEG_LOSSLESS_H

#include "base/memory.h"
#include "image/image.h"
#include "image/jpeg_markers.h"

typedef struct sk_jpeg_lossless {
    sk_buffer pixels, rows;
} sk_jpeg_lossless;

void sk_jpeg_lossless_free(sk_jpeg_lossless *self);

/* Decodes the whole image to RGB; the pixels belong to `self` until its next call. `warning` as in sk_codec. */
stoker_status sk_jpeg_lossless_decode(sk_jpeg_lossless *self, const uint8_t *data, size_t size,
                                      const sk_jpeg_info *info, sk_pixels *out, char *warning);

/* `count` pixels of 1 or 4 components → RGB, which may be in the same place if they have 4 (jpeg.c). CMYK is inverted, as Adobe writes
 * it and Pillow assumes (rawmode "CMYK;I"); CMYK to RGB as Pillow's Convert.c does it. */
void sk_jpeg_to_rgb(uint8_t *out, const uint8_t *in, size_t count, int32_t components);

#endif
