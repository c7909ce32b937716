/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coefficients.h: a JPEG image's quantised DCT coefficients, whole, in memory: what a JPEG file and a pack's payload both hold in their
 * own code. Read by libjpeg from files of the usual kinds; written by dct_write.c and by jpeg_rewrite.c.
 */
#ifndef SK_IMAGE_COEFFICIENTS_H
#define SK_IMAGE_COEFFICIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

#define SK_COEFFICIENTS_MAX_PIXELS ((int64_t)1 << 25) /* of an image; with 3 × 2 bytes each */

typedef struct sk_plane {
    int32_t h, v;         /* sampling factors: blocks of an MCU across and down */
    int32_t across, down; /* blocks, whole MCUs: those beyond the picture's edge are held too */
    uint8_t id;           /* of the component, as in the file */
    uint16_t quant[64];   /* 1..255, row by row ("natural order") */
    int16_t *blocks;      /* down × across × 64, each block row by row */
} sk_plane;

/* Begins as {0}. Gray, or YCbCr with chroma at full size, half width, half height, or both. */
typedef struct sk_coefficients {
    int32_t width, height; /* pixels */
    int32_t components;    /* 1 or 3 */
    sk_plane plane[3];
    sk_buffer memory;
} sk_coefficients;

/* Reads a JPEG file's. *taken is false where the file is of another kind (CMYK, other sampling factors, lossless, 12-bit, larger than
 * SK_COEFFICIENTS_MAX_PIXELS …) or libjpeg has any warning about it. Fails on lack of memory only. */
stoker_status sk_coefficients_read(sk_coefficients *self, const uint8_t *data, size_t size, bool *taken);

/* Makes room for an image whose width, height, components, h and v are set: fills in across, down and blocks (not cleared). */
stoker_status sk_coefficients_lay_out(sk_coefficients *self);

/* Writes them as a standard baseline JPEG file with tables of its own, into memory that `free` takes back. An `orientation` other than 1
 * goes into an Exif segment. */
stoker_status sk_coefficients_write(const sk_coefficients *self, int orientation, uint8_t **data, size_t *size);

void sk_coefficients_free(sk_coefficients *self);

#endif
