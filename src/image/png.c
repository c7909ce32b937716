/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png.c: PNG files → RGB.
 *
 * The walk over the chunks and the inflating are our own, over zlib, and not a PNG library's: what is right is what
 * Pillow makes of a file, and Pillow's idea of damage (which checksums matter, what a stream that ends early leaves
 * behind, which texts are too long) is its own. png_chunks.c holds that walk, png_rows.c the arithmetic; here the image
 * data are inflated row by row.
 */
#include <stdio.h>
#include <string.h>

#include "image/codec.h"
#include "image/exif.h"
#include "image/png_chunks.h"
#include "image/png_rows.h"

#define MAX_PALETTE_SIZE 770               /* bytes: 256 entries, and two bytes that Pillow lets pass */
#define WINDOW_SIZE      ((size_t)1 << 18) /* bytes of rows inflated in one go: fits the second-level cache */

/* The seven passes of an interlaced image (PNG specification, section 8.2). */
static const struct {
    uint32_t left, top, across, down;
} passes[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

typedef struct png {
    sk_png_file file; /* as it stands at the image data */
    sk_png_file tail; /* reads on from there */
    sk_png_tools tools;
    sk_png_pixels pixels;
    sk_buffer rows;                    /* the row above, then a window of rows, each with its filter's byte before it */
    sk_buffer image;                   /* RGB of the rows asked for */
    sk_buffer pass;                    /* RGB of one row of an interlaced image's pass */
    sk_rect area;                      /* of the image, in `image` */
    uint32_t left, top, width, height; /* the part of the image that the data fill; all of it but for odd animations */
    bool ended_early;                  /* the data ended before the image was full */
} png;

/* ---------------------------------------------------------------------------------------------------- rows ----- */

/* Where the next row belongs. */
typedef struct cursor {
    int pass;
    uint32_t y;     /* of the next row, within the part that the data fill */
    uint32_t width; /* pixels of the row */
    size_t size;    /* bytes of the row without its filter's byte */
    bool first;     /* no row above */
    bool done;
} cursor;

static size_t row_size(const png *p, uint32_t width)
{
    return (size_t)(((uint64_t)width * (unsigned)sk_png_pixel_bits(p->pixels.depth, p->pixels.color) + 7) / 8);
}

/* Begins the first pass from `pass` on that has pixels. */
static void begin_pass(const png *p, cursor *at, int pass)
{
    for (at->pass = pass; at->pass < 7; at->pass++) {
        uint32_t x = passes[at->pass].left, across = passes[at->pass].across;

        if (x < p->width && passes[at->pass].top < p->height) {
            at->y = passes[at->pass].top;
            at->width = (p->width - x + across - 1) / across;
            at->size = row_size(p, at->width);
            at->first = true;
            return;
        }
    }
    at->done = true;
}

static cursor first_row(const png *p)
{
    cursor at = {0, 0, p->width, row_size(p, p->width), true, false};

    if (p->file.interlaced)
        begin_pass(p, &at, 0);
    return at;
}

static void next_row(const png *p, cursor *at)
{
    at->first = false;
    if (!p->file.interlaced) {
        at->y++;
        at->done = at->y >= p->height;
        return;
    }
    at->y += passes[at->pass].down;
    if (at->y >= p->height)
        begin_pass(p, at, at->pass + 1);
}

static void store_row(png *p, const cursor *at, const uint8_t *row)
{
    size_t stride = (size_t)p->area.width * 3;

    if (!p->file.interlaced) {
        int64_t y = (int64_t)at->y + p->top - p->area.top;

        if (y >= 0 && y < p->area.height)
            sk_png_expand(&p->pixels, row, at->width, p->image.data + (size_t)y * stride + (size_t)p->left * 3);
        return;
    }
    /* An interlaced frame is not moved to its place within the image: neither does Pillow move it. */
    int64_t y = (int64_t)at->y - p->area.top;

    if (y < 0 || y >= p->area.height)
        return;
    uint32_t across = passes[at->pass].across;
    uint8_t *to = p->image.data + (size_t)y * stride + (size_t)passes[at->pass].left * 3;
    const uint8_t *from = p->pass.data;

    sk_png_expand(&p->pixels, row, at->width, p->pass.data);
    for (uint32_t i = 0; i < at->width; i++, from += 3, to += (size_t)across * 3)
        memcpy(to, from, 3);
}

/* Takes `count` inflated rows out of the window. */
static stoker_status take_rows(png *p, cursor *at, uint32_t count)
{
    size_t step = (size_t)(sk_png_pixel_bits(p->pixels.depth, p->pixels.color) + 7) / 8;
    size_t size = at->size;
    uint8_t *above = p->rows.data;
    uint8_t *row = above + 1 + row_size(p, p->width);
    const uint8_t *before = above + 1;

    if (at->first)
        memset(above, 0, size + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (!sk_png_unfilter(row[0], row + 1, before, size, step))
            return sk_fail(STOKER_ERR_DATA, "broken PNG: unknown filter %d in row %u", row[0], at->y);
        store_row(p, at, row + 1);
        before = row + 1;
        row += size + 1;
        next_row(p, at);
    }
    memcpy(above + 1, before, size);
    return STOKER_OK;
}

/* Blank pixels where the data do not reach. */
static void blank(png *p)
{
    size_t size = (size_t)p->area.width * (size_t)p->area.height * 3;

    if (p->pixels.table[0] == p->pixels.table[1] && p->pixels.table[0] == p->pixels.table[2]) {
        memset(p->image.data, p->pixels.table[0], size);
        return;
    }
    for (size_t i = 0; i < size; i += 3)
        memcpy(p->image.data + i, p->pixels.table, 3);
}

/* --------------------------------------------------------------------------------------------------- inflate --- */

/*
 * Inflates the image data and stores the rows, `window` rows at a time (1 for interlaced images).
 *
 * With a window of one row this is step by step what Pillow does: a row is asked for, and only when it is full the
 * next; a stream that ends right after a row leaves the rest of the image blank, one that ends within a row is an
 * error, and what comes after the last row is not looked at, unless it came in the same piece and step as that row.
 * With a larger window it is faster; then whatever is out of the ordinary sets *odd instead, and the caller begins
 * again with a window of one.
 */
static stoker_status inflate_rows(png *p, uint32_t window, bool *odd)
{
    z_stream *inflater = &p->tools.inflater;
    cursor at = first_row(p);
    uint8_t *room = p->rows.data + 1 + row_size(p, p->width);
    size_t have = 0; /* bytes in the window */
    stoker_status status = sk_png_inflate_begin(&p->tools);

    *odd = false;
    p->ended_early = false;
    p->tail = p->file;
    bool blanked = window > 1 && p->width == p->file.width && p->height == p->file.height;

    while (status == STOKER_OK) {
        const uint8_t *piece;
        size_t piece_size;

        status = sk_png_chunks_data(&p->tail, &piece, &piece_size);
        if (status != STOKER_OK)
            break;
        inflater->next_in = (z_const Bytef *)piece;
        inflater->avail_in = (uInt)piece_size;
        while (inflater->avail_in > 0) {
            uint32_t count = window;

            if (window > 1 && count > p->height - at.y)
                count = p->height - at.y;
            size_t wanted = (at.size + 1) * count;

            inflater->next_out = room + have;
            inflater->avail_out = (uInt)(wanted - have);
            int result = inflate(inflater, Z_NO_FLUSH);

            if (result == Z_MEM_ERROR)
                return sk_fail(STOKER_ERR_MEMORY, "out of memory: an inflater");
            if (result < 0)
                return sk_fail(STOKER_ERR_DATA, "broken PNG: its image data do not inflate in row %u (%s)", at.y,
                               inflater->msg != NULL ? inflater->msg : "no zlib stream");
            have = wanted - inflater->avail_out;
            if (have < wanted)
                break; /* more data are needed */
            have = 0;
            if (!blanked) {
                blank(p);
                blanked = true;
            }
            status = take_rows(p, &at, count);
            if (status != STOKER_OK)
                return status;
            if (at.done) {
                *odd = window > 1 && result != Z_STREAM_END && inflater->avail_in == 0;
                return STOKER_OK;
            }
            if (result == Z_STREAM_END) {
                p->ended_early = true;
                *odd = window > 1;
                return STOKER_OK;
            }
        }
    }
    return status;
}

static stoker_status read_image(png *p)
{
    uint32_t window = 1;
    size_t row = row_size(p, p->width) + 1;
    size_t size, window_size;
    bool odd;

    if (!sk_multiply((size_t)p->area.width * 3, (size_t)p->area.height, &size))
        return sk_fail(STOKER_ERR_LIMIT, "image of %u x %u pixels is too large", p->file.width, p->file.height);
    if (!p->file.interlaced && row < WINDOW_SIZE) {
        window = (uint32_t)(WINDOW_SIZE / row);
        window = window < p->height ? window : p->height;
    }
    if (row > UINT32_MAX / 2 || !sk_multiply(row, (size_t)window + 1, &window_size))
        return sk_fail(STOKER_ERR_LIMIT, "image of %u x %u pixels is too large", p->file.width, p->file.height);
    stoker_status status = sk_buffer_reserve(&p->rows, window_size);

    if (status == STOKER_OK)
        status = sk_buffer_reserve(&p->image, size);
    if (status == STOKER_OK && p->file.interlaced)
        status = sk_buffer_reserve(&p->pass, (size_t)p->width * 3);
    if (status != STOKER_OK)
        return status;
    if (window > 1) {
        status = inflate_rows(p, window, &odd);
        if (status == STOKER_OK && !odd)
            return STOKER_OK;
        if (status == STOKER_ERR_MEMORY)
            return status;
    }
    return inflate_rows(p, 1, &odd);
}
/* --------------------------------------------------------------------------------------------------- codec ----- */

/* A palette is kept only where a header said that the pixels are numbers in it; a second header may have said otherwise
 * since. */
static bool takes_palette(const sk_png_file *file)
{
    return (file->color == SK_PNG_GRAY && file->depth > 1 && file->depth < 16) ||
           (file->color == SK_PNG_GRAY_ALPHA && file->depth == 8);
}

static stoker_status open_file(png *p, const uint8_t *data, size_t size)
{
    sk_png_file *file = &p->file;
    stoker_status status = sk_png_chunks_open(file, &p->tools, data, size);

    if (status != STOKER_OK)
        return status;
    if (file->width > INT32_MAX || file->height > INT32_MAX)
        return sk_fail(STOKER_ERR_LIMIT, "image of %u x %u pixels: more than any limit max_pixels", file->width,
                       file->height);
    p->left = file->has_frame ? file->frame_left : 0;
    p->top = file->has_frame ? file->frame_top : 0;
    p->width = file->has_frame ? file->frame_width : file->width;
    p->height = file->has_frame ? file->frame_height : file->height;
    if (p->width == 0 || p->height == 0)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: an animation's frame without pixels");
    /* The frame was checked against the header before it; there may have been another since. */
    if ((uint64_t)p->left + p->width > file->width || (uint64_t)p->top + p->height > file->height)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: an animation's frame lies outside the image");
    if (file->palette_size > MAX_PALETTE_SIZE)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: a palette of %zu bytes", file->palette_size);
    if (file->has_palette && file->color != SK_PNG_PALETTE && !takes_palette(file))
        return sk_fail(STOKER_ERR_DATA, "broken PNG: a palette, and pixels that take none");
    sk_png_pixels_make(&p->pixels, file->depth, file->color, file->has_palette ? file->palette : NULL,
                       file->palette_size);
    return STOKER_OK;
}

/* Pillow stumbles over some transparency when it converts what it has read. */
static stoker_status check_transparency(const png *p)
{
    bool palette = p->pixels.color == SK_PNG_PALETTE;
    bool gray = p->pixels.color == SK_PNG_GRAY && p->pixels.depth > 1 && p->pixels.depth < 16;

    if (p->tail.transparency == SK_PNG_NONSENSE && (palette || gray))
        return sk_fail(STOKER_ERR_DATA, "broken PNG: a text takes the place of its transparency");
    if (p->tail.transparency == SK_PNG_THREE_SAMPLES && gray)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: the transparency of colours in a gray image");
    if ((p->tail.transparency == SK_PNG_ONE_COLOR || p->tail.transparency == SK_PNG_THREE_SAMPLES) && palette &&
        !p->file.has_palette)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: transparency without a palette");
    return STOKER_OK;
}

static void *png_create(const stoker_image_settings *settings)
{
    png *p = sk_calloc(1, sizeof *p);

    if (p != NULL)
        p->tools.keep_texts = settings->exif_orientation != 0;
    return p;
}

static void png_destroy(void *self)
{
    png *p = self;

    if (p == NULL)
        return;
    sk_png_tools_free(&p->tools);
    sk_buffer_free(&p->rows);
    sk_buffer_free(&p->image);
    sk_buffer_free(&p->pass);
    sk_free(p);
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* An EXIF block as older programs keep it: a text whose lines from the fourth on are hexadecimal. Decoded in place; the
 * text is thrown away with its line feeds first, as a pair of digits may be broken by one, but not by other white
 * space. */
static stoker_status decode_raw_profile(sk_png_text *profile)
{
    uint8_t *text = profile->buffer.data;
    size_t at = 0, digits = 0, size = 0;

    for (int lines = 0; lines < 3 && at < profile->size; at++)
        lines += text[at] == '\n';
    for (; at < profile->size; at++)
        if (text[at] != '\n')
            text[digits++] = text[at];
    for (at = 0; at < digits; at += 2) {
        while (at < digits && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r')))
            at++;
        if (at == digits)
            break;
        int high = hex_digit(text[at]), low = at + 1 < digits ? hex_digit(text[at + 1]) : -1;

        if (high < 0 || low < 0)
            return sk_fail(STOKER_ERR_DATA, "broken PNG: its raw EXIF profile is not hexadecimal");
        text[size++] = (uint8_t)(high << 4 | low);
    }
    profile->size = size;
    return STOKER_OK;
}

/* What Pillow goes by once the whole file is read, so what follows the image data counts; damage there is told when the
 * pixels are asked for. */
static stoker_status find_orientation(png *p, int *orientation)
{
    sk_png_file rest = p->file;
    bool found = false;
    stoker_status status = sk_png_chunks_finish(&rest, &p->tools);

    if (status == STOKER_ERR_MEMORY)
        return status;
    status = STOKER_OK;
    if (rest.has_exif) {
        /* Pillow puts one prefix before an eXIf chunk's content itself, and takes off two. */
        status = sk_exif_orientation(rest.exif, rest.exif_size, rest.exif_is_text ? 2 : 1, orientation, &found);
    } else if (p->tools.raw_profile.found) {
        status = decode_raw_profile(&p->tools.raw_profile);
        if (status == STOKER_OK)
            status = sk_exif_orientation(p->tools.raw_profile.buffer.data, p->tools.raw_profile.size, 2, orientation,
                                         &found);
    }
    if (status == STOKER_OK && !found && p->tools.xmp.found)
        *orientation = sk_xmp_orientation(p->tools.xmp.buffer.data, p->tools.xmp.size);
    return status;
}

static stoker_status png_open(void *self, const uint8_t *data, size_t size, sk_header *header)
{
    png *p = self;
    stoker_status status = open_file(p, data, size);

    if (status != STOKER_OK)
        return status;
    header->width = (int32_t)p->file.width;
    header->height = (int32_t)p->file.height;
    return p->tools.keep_texts ? find_orientation(p, &header->orientation) : STOKER_OK;
}

/* What Pillow passes over in silence and a user would want to know. */
static void tell(const png *p, char *warning)
{
    const char *words[4];
    size_t count = 0, at = 0;

    if (p->ended_early)
        words[count++] = "the image data end early, the rest of the image is blank";
    if (p->tail.no_end)
        words[count++] = "the file is cut off after the image data";
    if (p->pixels.color == SK_PNG_GRAY && p->pixels.depth == 16)
        words[count++] = "16-bit gray, clipped to 0..255";
    if (p->file.animated)
        words[count++] = "animated, the first frame is taken";
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(warning + at, SK_WARNING_SIZE - at, "%s%s", i > 0 ? "; " : "", words[i]);
}

static stoker_status png_pixels(void *self, const sk_rect *region, sk_pixels *out, char *warning)
{
    png *p = self;

    p->area = (sk_rect){0, region->top, (int32_t)p->file.width, region->height};
    stoker_status status = read_image(p);

    if (status == STOKER_OK)
        status = sk_png_chunks_finish(&p->tail, &p->tools);
    if (status == STOKER_OK)
        status = check_transparency(p);
    if (status != STOKER_OK)
        return status;
    tell(p, warning);
    *out = (sk_pixels){p->image.data,          (size_t)p->area.width * 3, 3,
                       (int32_t)p->file.width, (int32_t)p->file.height,   p->area};
    return STOKER_OK;
}

const sk_codec sk_png_codec = {"png", png_create, png_destroy, png_open, png_pixels};
