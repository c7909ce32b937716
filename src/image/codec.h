/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h: how a format's decoder plugs into image.c.
 *
 * A codec is a table of functions over an object of its own that one thread keeps from image to image. It knows its
 * format and nothing else: choosing it, the limit on pixels and turning the image upright are image.c's.
 */
#ifndef SK_IMAGE_CODEC_H
#define SK_IMAGE_CODEC_H

#include "image/image.h"

#define SK_WARNING_SIZE 256 /* bytes with the NUL, as in stoker_image */

/* What a header tells. */
typedef struct sk_header {
    int32_t width, height; /* pixels as stored, at least 1; untrusted */
    int orientation; /* EXIF, 1..8, what PIL.ImageOps.exif_transpose goes by; 1 where the settings do not ask for it */
} sk_header;

typedef struct sk_codec {
    const char *format; /* "jpeg" …; static */
    /* The codec's object; settings are copied. NULL on lack of memory. */
    void *(*create)(const stoker_image_settings *settings);
    void (*destroy)(void *self); /* takes NULL */
    /* Reads the header. Takes no memory in proportion to what it claims: image.c checks that first. `data` stays until
     * the next call of open or destroy. */
    stoker_status (*open)(void *self, const uint8_t *data, size_t size, sk_header *header);
    /* Decodes. `region` (as stored, before turning) lies within the image; out->area may be larger, and is then as
     * sk_decoder_pixels says. `warning` holds SK_WARNING_SIZE bytes, is "" when called and takes what is passed over.
     * The pixels belong to the codec until its next call. */
    stoker_status (*pixels)(void *self, const sk_rect *region, sk_pixels *out, char *warning);
} sk_codec;

extern const sk_codec sk_jpeg_codec; /* jpeg.c */
extern const sk_codec sk_png_codec;  /* png.c */
extern const sk_codec sk_webp_codec; /* webp.c */

#endif
