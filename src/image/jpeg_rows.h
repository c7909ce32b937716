/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_rows.h: JPEG's coefficients → RGB, one row of MCUs after another: inverse DCT, upsampling, colour; of a region and its margin
 * alone. Where the coefficients come from (a JPEG file's codes, a pack's) is its user's.
 */
#ifndef SK_IMAGE_JPEG_ROWS_H
#define SK_IMAGE_JPEG_ROWS_H

#include <stdbool.h>

#include "base/memory.h"
#include "image/image.h"
#include "kernel/kernel.h"

/* A component. */
typedef struct sk_jpeg_part {
    int32_t h, v;          /* sampling factors: blocks of an MCU across and down */
    const uint16_t *quant; /* 64, in natural order */
    int32_t width, height; /* samples of the whole image, libjpeg's downsampled size */
    int32_t row_blocks;    /* blocks across that the region needs: those of the MCUs mcu_left .. mcu_right */
    /* Set by the user before each row of MCUs: coefficients of v rows of blocks, 64 a block in natural order; for each block the zigzag
     * place of its last one; and the blocks from one row to the next. */
    const int16_t *blocks;
    const uint8_t *last;
    int32_t next_row;
    uint8_t *plane; /* first sample of the row that is kept from the MCUs above; 8 × v rows follow */
    size_t stride;
} sk_jpeg_part;

/* Begins as {0}; used again from image to image. */
typedef struct sk_jpeg_rows {
    /* Set by the user. */
    const sk_kernels *kernels;
    int32_t width, height; /* of the image, pixels */
    int32_t components;    /* 1, or 3: YCbCr */
    int32_t h, v;          /* of luma, 1 or 2; chroma's are 1 */
    sk_jpeg_part part[3];
    /* Set by sk_jpeg_rows_lay_out. Right and bottom are past the end. */
    int32_t mcus_across, mcus_down;
    int32_t left, top, right, bottom;                 /* the pixels to make */
    int32_t mcu_left, mcu_top, mcu_right, mcu_bottom; /* that they need */
    sk_buffer planes;                                 /* samples of a row of MCUs, and of the row of pixels above it */
    sk_buffer line;                                   /* a row of chroma at full width, twice */
    sk_buffer pixels;
} sk_jpeg_rows;

void sk_jpeg_rows_free(sk_jpeg_rows *self);

/* Sizes that follow from the image and the region. */
void sk_jpeg_rows_lay_out(sk_jpeg_rows *self, const sk_rect *region);

/* Whether such an image can be made here: libjpeg upsamples the narrowest in another way. */
bool sk_jpeg_rows_can(const sk_jpeg_rows *self);

stoker_status sk_jpeg_rows_reserve(sk_jpeg_rows *self);

/* Makes the pixels that row `mcu_row` of MCUs completes; called for mcu_top .. mcu_bottom in turn. False: libjpeg would make others. */
bool sk_jpeg_rows_make(sk_jpeg_rows *self, int32_t mcu_row);

/* The pixels made. They belong to `self`. */
void sk_jpeg_rows_pixels(const sk_jpeg_rows *self, sk_pixels *out);

#endif
