/* SPDX-License-Identifier: Apache-2.0 */
/* by_libjpeg.h: JPEG files made and decoded by libjpeg alone, with the settings that Pillow uses: what our own decoder is held to. */
#ifndef SK_TESTS_BY_LIBJPEG_H
#define SK_TESTS_BY_LIBJPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct by_libjpeg_options {
    int quality;  /* 1..100 */
    int h, v;     /* sampling factors of luma */
    int gray;     /* one component */
    int optimize; /* Huffman tables of its own */
    int restart;  /* MCUs of an interval; 0: none */
    int progressive;
} by_libjpeg_options;

/* A file of `width` × `height` pixels, RGB or gray, in memory from malloc. */
uint8_t *by_libjpeg_encode(const uint8_t *pixels, int width, int height, const by_libjpeg_options *options,
                           size_t *size);

/* RGB in memory from malloc, or NULL where libjpeg fails; *warnings: what it passed over. Files of up to `most` pixels. */
uint8_t *by_libjpeg_decode(const uint8_t *data, size_t size, int most, int *width, int *height, long *warnings);

#endif
