/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas.h: an RGB picture in memory to draw rectangles, text and tiles on.
 */
#ifndef STOKER_CLI_CANVAS_H
#define STOKER_CLI_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct canvas {
    uint8_t *rgb; /* height × width × 3; freed by canvas_free */
    int32_t width, height;
} canvas;

typedef struct colour {
    uint8_t r, g, b;
} colour;

bool canvas_make(canvas *c, int32_t width, int32_t height, colour fill); /* false: out of memory */
void canvas_free(canvas *c);

void canvas_rectangle(canvas *c, int32_t left, int32_t top, int32_t width, int32_t height, colour fill);

/* Pixels of an image (channels 1 or 3, interleaved), each as a square of `scale` × `scale`. */
void canvas_image(canvas *c, int32_t left, int32_t top, const uint8_t *pixels, int32_t width, int32_t height,
                  int32_t channels, int32_t scale);

/* A character takes 6 × 9 pixels times `scale`. Text past `room` pixels is cut with "..."; bytes outside printable ASCII are shown as
 * '?' (one for each UTF-8 character). */
enum { CHARACTER_WIDTH = 6, CHARACTER_HEIGHT = 9 };
void canvas_text(canvas *c, int32_t left, int32_t top, const char *text, int32_t room, int32_t scale, colour ink);

/* Rows of a character, 5 bits each, the leftmost the highest; 9 rows, the last two for descenders. */
const uint8_t *font_rows(char character);

#endif
