/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h: bytes → pixels.
 *
 * image.c looks at the first bytes and chooses the decoder; jpeg.c, png.c and webp.c each hold one. What is right is what
 * Pillow's Image.open(f).convert("RGB") gives. Datasets, transforms and threads are unknown here.
 */
#ifndef SK_IMAGE_IMAGE_H
#define SK_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef enum sk_format {
    SK_FORMAT_UNKNOWN = 0,
    SK_FORMAT_JPEG,
    SK_FORMAT_PNG,
    SK_FORMAT_WEBP,
    SK_FORMAT_OTHER /* known and not read: sk_format_name tells which */
} sk_format;

/* What the bytes are; for SK_FORMAT_OTHER and SK_FORMAT_UNKNOWN *name is what to call it in an error ("GIF", "TIFF",
 * "BMP", "gzip", "HTML", "JPEG 2000", …, "not an image"). Static. `name` may be NULL. */
sk_format sk_image_sniff(const uint8_t *data, size_t size, const char **name);

/* A rectangle in pixels. */
typedef struct sk_rect {
    int32_t left, top, width, height;
} sk_rect;

/* Pixels that somebody else owns: 8-bit, interleaved, 1 or 3 channels. They hold the rectangle `area` of an image that is
 * full_width × full_height; data[0] is the pixel (area.left, area.top). */
typedef struct sk_pixels {
    const uint8_t *data;
    size_t stride; /* bytes from row to row */
    int32_t channels;
    int32_t full_width, full_height;
    sk_rect area;
} sk_pixels;

/* Everything a thread needs to decode one image after another without allocating: decoder objects and buffers. Not shared
 * between threads. */
typedef struct sk_decoder sk_decoder;

/* `settings` is copied; NULL for defaults. NULL on lack of memory. */
sk_decoder *sk_decoder_create(const stoker_image_settings *settings);
void sk_decoder_destroy(sk_decoder *decoder); /* takes NULL */

/* Begins an image: reads its header only, gives its size (after EXIF orientation where the settings ask for it). `data` must
 * stay until sk_decoder_pixels has returned. Limits on size are checked here. */
stoker_status sk_decoder_open(sk_decoder *decoder, const uint8_t *data, size_t size, int32_t *width, int32_t *height);

/* The same of an image in a pack's own code for coefficients (dct.h), which is never told by looking at it. */
stoker_status sk_decoder_open_packed(sk_decoder *decoder, const uint8_t *data, size_t size, int32_t *width,
                                     int32_t *height);

/* Of the image begun: EXIF's orientation, 1..8; 1 where the settings do not ask for it. */
int sk_decoder_orientation(const sk_decoder *decoder);

/* Decodes the image begun. `region` (NULL: all of it) must lie within it; out->area may be larger than asked for, never
 * smaller. The pixels (always 3 channels) belong to the decoder until its next call. */
stoker_status sk_decoder_pixels(sk_decoder *decoder, const sk_rect *region, sk_pixels *out);

/* After sk_decoder_pixels: what was noticed and passed over ("" if nothing), and the format's name ("jpeg" …). */
const char *sk_decoder_warning(const sk_decoder *decoder);
const char *sk_decoder_format(const sk_decoder *decoder);

#endif
