/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_chunks.h: a PNG file as a row of chunks.
 *
 * The walk keeps Pillow's rules of what is damage: every chunk before the image data must be whole and carry its right
 * checksum; of those after it no checksum is looked at, a missing end is passed over, and a cut or ill-formed chunk is
 * an error. An animated file's first frame is the image. What the data inflate to is png.c's matter.
 */
#ifndef SK_IMAGE_PNG_CHUNKS_H
#define SK_IMAGE_PNG_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

#include "base/memory.h"
#include "base/status.h"

#define SK_PNG_MAGIC_SIZE 8

enum { SK_PNG_GRAY = 0, SK_PNG_RGB = 2, SK_PNG_PALETTE = 3, SK_PNG_GRAY_ALPHA = 4, SK_PNG_RGBA = 6 }; /* colour types */

typedef enum sk_png_transparency {
    SK_PNG_OPAQUE = 0,
    SK_PNG_ONE_COLOR,     /* a gray or a palette entry */
    SK_PNG_THREE_SAMPLES, /* a colour */
    SK_PNG_ALPHA_LIST,    /* an alpha for each palette entry */
    SK_PNG_NONSENSE       /* a text chunk of that name, which Pillow stumbles over */
} sk_png_transparency;

/* A text that outlives its chunk: a copy, since it may come out of a compressed chunk. */
typedef struct sk_png_text {
    sk_buffer buffer;
    size_t size;
    bool found;
} sk_png_text;

typedef struct sk_png_file {
    const uint8_t *data;
    size_t size;
    size_t at; /* read position, <= size */

    uint32_t width, height; /* pixels, as the header claims */
    int depth;              /* bits a sample: 1, 2, 4, 8, 16; 0 before a header of a legal kind was seen */
    int color;              /* SK_PNG_GRAY … */
    bool interlaced;
    bool has_palette;
    const uint8_t *palette;
    size_t palette_size; /* bytes */
    sk_png_transparency transparency;

    bool has_frame; /* an animation's frame control came before the data: the image data fill this part of the image
                       only */
    bool frame_is_text;
    uint32_t frame_left, frame_top, frame_width, frame_height;
    int64_t frames;   /* an animation's claim, or -1 */
    int64_t sequence; /* last sequence number, or -1 */
    bool default_image;
    bool animated; /* more frames than one: reading stops at the second one's control chunk */

    bool has_data;
    bool no_end;      /* the file stops, or stops making sense, before its end chunk */
    size_t data_left; /* of the current chunk of image data; may reach past the end of the file */

    size_t text_memory; /* characters of text so far */
    const uint8_t *exif;
    size_t exif_size;
    bool has_exif;
    bool exif_is_text; /* from a text chunk named exif, not from eXIf */
} sk_png_file;

/* What a walk needs besides: an inflater and room to inflate texts in; kept from image to image. */
typedef struct sk_png_tools {
    z_stream inflater;
    bool ready; /* inflater is initialised */
    sk_buffer text;
    bool keep_texts;         /* whether the two below are wanted */
    sk_png_text raw_profile; /* "Raw profile type exif": hexadecimal EXIF */
    sk_png_text xmp;
} sk_png_tools;

void sk_png_tools_free(sk_png_tools *tools);

/* Makes the inflater ready for a new stream. */
stoker_status sk_png_inflate_begin(sk_png_tools *tools);

/* Reads up to the image data. On success file->depth is set and the size is not 0 × 0. `data` begins with the PNG
 * magic. */
stoker_status sk_png_chunks_open(sk_png_file *file, sk_png_tools *tools, const uint8_t *data, size_t size);

/* The next piece of image data, at most 64 KiB and never reaching over a chunk's end (how the data are cut decides in
 * rare cases whether Pillow sees damage); not empty. An error when there is no more. */
stoker_status sk_png_chunks_data(sk_png_file *file, const uint8_t **piece, size_t *size);

/* Reads what follows the image data. */
stoker_status sk_png_chunks_finish(sk_png_file *file, sk_png_tools *tools);

#endif
