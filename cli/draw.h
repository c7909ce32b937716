/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.h: made-up pictures of ten shapes, for `stoker sample`.
 */
#ifndef STOKER_CLI_DRAW_H
#define STOKER_CLI_DRAW_H

#include <stdint.h>

enum { SHAPES = 10 };

/* "disc", "square", … */
const char *shape_name(int32_t shape);

/* The next number of a stream (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
uint64_t draw_next(uint64_t *state);

/* A picture of `shape` somewhere on a cloudy ground: width × height × 3 bytes, interleaved. `hue` 0..: which part of the colour
 * circle the shape takes its colour from, of `hues`. Everything else comes from `state`. The same bytes on every machine: only sums,
 * products, quotients and square roots of doubles are used. */
void draw_picture(uint8_t *rgb, int32_t width, int32_t height, int32_t shape, int32_t hue, int32_t hues,
                  uint64_t *state);

#endif
