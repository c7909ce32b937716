/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_baseline.h: the usual JPEG file, decoded by region: baseline (ITU-T T.81), Huffman codes, one scan; gray, or YCbCr with chroma at
 * full size, half width, half height, or both. It takes sound files only. Whatever is unusual or damaged is left to libjpeg and jpeg.c,
 * which begin anew, so that no verdict on a file is given here.
 */
#ifndef SK_IMAGE_JPEG_BASELINE_H
#define SK_IMAGE_JPEG_BASELINE_H

#include <stdbool.h>

#include "base/memory.h"
#include "image/image.h"
#include "image/jpeg_huffman.h"
#include "image/jpeg_markers.h"
#include "image/jpeg_rows.h"

typedef struct sk_jpeg_baseline {
    sk_huffman dc[4];
    sk_huffman_pairs ac[4];
    sk_buffer bits;   /* the scan without stuffing and markers */
    sk_buffer starts; /* size_t: where in `bits` each restart interval begins, and where the last one ends */
    sk_buffer blocks; /* coefficients of a row of MCUs */
    sk_jpeg_rows rows;
    size_t end; /* of the image decoded: offset past its last marker */
} sk_jpeg_baseline;

void sk_jpeg_baseline_free(sk_jpeg_baseline *self);

/* Decodes `region`, which lies within the image, to RGB; out->area may be a little wider. The pixels belong to `self` until its next
 * call. *done is false where this file is not for this decoder. `info` is what sk_jpeg_markers said of the same data. Fails on lack of
 * memory only. */
stoker_status sk_jpeg_baseline_decode(sk_jpeg_baseline *self, const uint8_t *data, size_t size,
                                      const sk_jpeg_info *info, const sk_rect *region, sk_pixels *out, bool *done);

#endif
