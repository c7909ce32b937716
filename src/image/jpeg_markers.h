/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_markers.h: a JPEG file's segments up to its first scan, walked as Pillow's reader walks them before libjpeg sees the file.
 * Decoding is jpeg.c's.
 */
#ifndef SK_IMAGE_JPEG_MARKERS_H
#define SK_IMAGE_JPEG_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct sk_jpeg_info {
    int32_t width, height;
    int32_t components;  /* 1, 3 or 4 */
    uint8_t frame;       /* the frame marker's second byte: 0xC0 baseline, 0xC2 progressive, 0xC3 lossless … */
    size_t frame_at;     /* offset of the frame segment's length field */
    const uint8_t *exif; /* the first "Exif" APP1 segment */
    size_t exif_size;
    size_t
        joined_size; /* of the one block that all of them put together are, less the names of all but the first; 0: none */
    const uint8_t *xmp; /* the last XMP packet */
    size_t xmp_size;
    bool has_density;   /* a JFIF segment told dots per inch or centimetre */
    bool multi_picture; /* an MPF segment was seen */
} sk_jpeg_info;

/* Fails where Pillow's Image.open does not take the file. */
stoker_status sk_jpeg_markers(const uint8_t *data, size_t size, sk_jpeg_info *info);

/* Writes that block of info->joined_size bytes; `info` is what sk_jpeg_markers said of the same data. */
void sk_jpeg_join_exif(const uint8_t *data, size_t size, const sk_jpeg_info *info, uint8_t *joined);

/* True if the entropy-coded data at `at` runs into a marker that ends it (and not into the end of the file), so that decoding it can
 * never want for data; *next is that marker's second byte. */
bool sk_jpeg_scan_ends(const uint8_t *data, size_t size, size_t at, uint8_t *next);

#endif
