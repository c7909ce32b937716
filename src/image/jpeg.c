/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg.c: JPEG, with Pillow's verdicts. Sound baseline files are jpeg_baseline.c's; all others are decoded by libjpeg-turbo.
 *
 * Pillow decodes with libjpeg's defaults (accurate integer DCT, fancy upsampling). It feeds the file in blocks of 64 KB and lets the
 * decoder wait for more; a decoder that still waits at the file's end makes the file "truncated", while one that has all its rows is
 * done, whatever follows in the block. libjpeg's own damage reports are warnings, and Pillow passes over them. Here the whole file is
 * in memory, so wanting more than there is comes down to the same two cases; only what follows the last row is cut to Pillow's block.
 *
 * A part of a baseline image is decoded alone: rows above are only entropy-decoded, columns beside are left out, and rows below are
 * not touched, if the bytes show that decoding them could not have failed.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "image/codec.h"
#include "image/exif.h"
#include "image/jpeg_baseline.h"
#include "image/jpeg_lossless.h"
#include "image/jpeg_markers.h"
#include "image/jpeg_smooth.h"

#define BLOCK    65536 /* bytes that Pillow reads at a time */
#define MARGIN   2     /* pixels beside a region, so that upsampling sees its neighbours' chroma */
#define EOI      0xD9
#define TRAILING 64 /* bytes after the image that are not worth a word */
#define LOSSLESS 0xC3

/* Markers of frame headers: C0..CF but for DHT, JPG and DAC. */
#define IS_FRAME(marker) (((marker) & 0xF0) == 0xC0 && (marker) != 0xC4 && (marker) != 0xC8 && (marker) != 0xCC)

typedef struct errors {
    struct jpeg_error_mgr base;
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
    char warning[JMSG_LENGTH_MAX];
    stoker_status status; /* of the failure that escaped */
} errors;

typedef struct jpeg_codec {
    struct jpeg_decompress_struct jpeg;
    errors error;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr monitor;
    bool fresh; /* no file's tables are in `jpeg` */
    int32_t max_scans;
    bool orient;
    /* The image begun. */
    const uint8_t *data;
    size_t size;
    sk_jpeg_info info;
    bool rows_done; /* wanting more data is no failure any more */
    bool smoothed;
    sk_jpeg_progress progress; /* of a progressive file */
    sk_buffer pixels, line, averages, joined;
    sk_jpeg_lossless lossless;
    sk_jpeg_baseline baseline;
} jpeg_codec;

/* ---------------------------------------------------------------------------------------- libjpeg's callbacks -------- */

static jpeg_codec *codec_of(j_common_ptr jpeg)
{
    return (jpeg_codec *)jpeg->client_data;
}

static void on_error(j_common_ptr jpeg)
{
    jpeg_codec *self = codec_of(jpeg);

    jpeg->err->format_message(jpeg, self->error.message);
    self->error.status = jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? STOKER_ERR_MEMORY : STOKER_ERR_DATA;
    longjmp(self->error.escape, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    jpeg_codec *self = codec_of(jpeg);

    if (jpeg->err->msg_code == JTRC_RST && level > 0)
        sk_jpeg_progress_restart(&self->progress, &self->jpeg);
    if (level >= 0)
        return;
    if (jpeg->err->msg_code == JWRN_HIT_MARKER)
        sk_jpeg_progress_starve(&self->progress, &self->jpeg);
    if (jpeg->err->num_warnings++ == 0)
        jpeg->err->format_message(jpeg, self->error.warning);
}

static void no_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void no_source_action(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static void escape_with(jpeg_codec *self, stoker_status status, const char *message)
{
    self->error.status = status;
    snprintf(self->error.message, sizeof self->error.message, "%s", message);
    longjmp(self->error.escape, 1);
}

/* All bytes were there from the start, so this is the end of the file. */
static boolean on_want_more(j_decompress_ptr jpeg)
{
    jpeg_codec *self = codec_of((j_common_ptr)jpeg);

    if (!self->rows_done)
        escape_with(self, STOKER_ERR_DATA, "image file is truncated");
    if (IS_FRAME(jpeg->unread_marker)) /* libjpeg-turbo 2 waits for the whole segment before it says so, 3 does not */
        escape_with(self, STOKER_ERR_DATA, "a second frame header");
    return FALSE; /* wait: the rows are out */
}

static void on_skip(j_decompress_ptr jpeg, long bytes)
{
    if (bytes <= 0)
        return;
    size_t skip = (size_t)bytes < jpeg->src->bytes_in_buffer ? (size_t)bytes : jpeg->src->bytes_in_buffer;

    jpeg->src->next_input_byte += skip;
    jpeg->src->bytes_in_buffer -= skip;
    if (skip < (size_t)bytes)
        on_want_more(jpeg);
}

/* A restart marker is missing, or another stands in its place. */
static boolean on_resync(j_decompress_ptr jpeg, int desired)
{
    jpeg_codec *self = codec_of((j_common_ptr)jpeg);
    boolean done = jpeg_resync_to_restart(jpeg, desired);

    if (done && jpeg->unread_marker == 0)
        sk_jpeg_progress_restart(&self->progress, jpeg);
    else if (done)
        self->progress.restarts++; /* the next piece of data counts as empty */
    return done;
}

static void on_progress(j_common_ptr jpeg)
{
    jpeg_codec *self = codec_of(jpeg);

    if (jpeg->is_decompressor && self->max_scans > 0 && self->jpeg.input_scan_number > self->max_scans)
        escape_with(self, STOKER_ERR_LIMIT, "");
}

/* ------------------------------------------------------------------------------------------------ the codec -------- */

static void destroy(void *codec)
{
    jpeg_codec *self = codec;

    if (self == NULL)
        return;
    jpeg_destroy_decompress(&self->jpeg);
    sk_buffer_free(&self->pixels);
    sk_buffer_free(&self->line);
    sk_buffer_free(&self->averages);
    sk_buffer_free(&self->joined);
    sk_jpeg_lossless_free(&self->lossless);
    sk_jpeg_baseline_free(&self->baseline);
    sk_free(self);
}

/* Makes the decoder anew, since libjpeg keeps a file's tables for the next one: a file that lacks its own would be decoded with
 * those of the file before it. Costs a third of a microsecond. */
static void renew(jpeg_codec *self)
{
    jpeg_destroy_decompress(&self->jpeg);
    jpeg_create_decompress(&self->jpeg);
    self->jpeg.client_data = self; /* creating clears the struct but for err and this; said again for certainty */
    self->jpeg.src = &self->source;
    self->jpeg.progress = &self->monitor;
    self->fresh = true;
}

static void *create(const stoker_image_settings *settings)
{
    jpeg_codec *self = sk_calloc(1, sizeof *self);

    if (self == NULL)
        return NULL;
    self->max_scans = settings->max_scans;
    self->orient = settings->exif_orientation != 0;
    self->jpeg.err = jpeg_std_error(&self->error.base);
    self->error.base.error_exit = on_error;
    self->error.base.emit_message = on_message;
    self->error.base.output_message = no_output;
    self->jpeg.client_data = self;
    if (setjmp(self->error.escape) != 0) {
        destroy(self);
        sk_fail(STOKER_ERR_MEMORY, "out of memory: a JPEG decoder");
        return NULL;
    }
    renew(self);
    self->source.init_source = no_source_action;
    self->source.fill_input_buffer = on_want_more;
    self->source.skip_input_data = on_skip;
    self->source.resync_to_restart = on_resync;
    self->source.term_source = no_source_action;
    self->monitor.progress_monitor = on_progress;
    return self;
}

/* As PIL.ImageOps.exif_transpose: the EXIF tag, or what the XMP packet says where there is none. */
static stoker_status read_orientation(jpeg_codec *self, int *orientation)
{
    const sk_jpeg_info *info = &self->info;
    const uint8_t *exif = info->exif;
    bool found = false;
    stoker_status status = STOKER_OK;

    if (info->joined_size > info->exif_size) {
        status = sk_buffer_reserve(&self->joined, info->joined_size);
        if (status != STOKER_OK)
            return status;
        sk_jpeg_join_exif(self->data, self->size, info, self->joined.data);
        exif = self->joined.data;
    }
    if (exif != NULL)
        status = sk_exif_orientation(exif, info->joined_size, 2, orientation, &found);
    if (status == STOKER_ERR_DATA && !info->has_density)
        return STOKER_OK; /* Pillow has asked this block for the density before, and kept the failure to itself */
    if (status == STOKER_OK && !found && info->xmp != NULL)
        *orientation = sk_xmp_orientation(info->xmp, info->xmp_size);
    return status;
}

static stoker_status open_image(void *codec, const uint8_t *data, size_t size, sk_header *header)
{
    jpeg_codec *self = codec;

    self->data = data;
    self->size = size;
    stoker_status status = sk_jpeg_markers(data, size, &self->info);

    if (status != STOKER_OK)
        return status;
    header->width = self->info.width;
    header->height = self->info.height;
    header->orientation = 1;
    return self->orient ? read_orientation(self, &header->orientation) : STOKER_OK;
}

/* Reads libjpeg's header and sets what Pillow sets. */
static void begin(jpeg_codec *self)
{
    struct jpeg_decompress_struct *jpeg = &self->jpeg;
    int result;

    if (!self->fresh)
        renew(self);
    self->fresh = false;
    self->source.next_input_byte = self->data;
    self->source.bytes_in_buffer = self->size;
    self->rows_done = false;
    self->smoothed = false;
    self->error.base.num_warnings = 0;
    self->error.warning[0] = '\0';
    do {
        result = jpeg_read_header(jpeg, FALSE);
    } while (result == JPEG_HEADER_TABLES_ONLY);
    if ((int32_t)jpeg->image_width != self->info.width || (int32_t)jpeg->image_height != self->info.height ||
        jpeg->num_components != self->info.components)
        escape_with(self, STOKER_ERR_DATA, "two frame headers contradict one another");
    jpeg->out_color_space = self->info.components == 1   ? JCS_GRAYSCALE
                            : self->info.components == 3 ? JCS_RGB
                                                         : JCS_CMYK;
}

static uint8_t multiply_255(uint32_t a, uint32_t b)
{
    uint32_t product = a * b + 128; /* Pillow's MULDIV255: a × b / 255, rounded */

    return (uint8_t)(((product >> 8) + product) >> 8);
}

void sk_jpeg_to_rgb(uint8_t *out, const uint8_t *in, size_t count, int32_t components)
{
    for (size_t i = 0; i < count; i++, out += 3, in += components) {
        if (components == 1) {
            out[0] = out[1] = out[2] = in[0];
            continue;
        }
        uint32_t light = in[3]; /* 255 - K, K being 255 - in[3] */

        for (int c = 0; c < 3; c++) {
            int value = (int)light - multiply_255(255u - in[c], light);

            out[c] = (uint8_t)(value < 0 ? 0 : value);
        }
    }
}

/* Reads `rows` rows of output_width pixels as RGB to `out`. */
static void read_rows(jpeg_codec *self, uint8_t *out, int32_t rows)
{
    struct jpeg_decompress_struct *jpeg = &self->jpeg;
    size_t row_bytes = 3 * (size_t)jpeg->output_width;
    bool direct = self->info.components == 3;

    for (int32_t y = 0; y < rows;) {
        JSAMPROW lines[8];
        JDIMENSION wanted = rows - y < 8 ? (JDIMENSION)(rows - y) : 8;

        for (JDIMENSION i = 0; i < wanted; i++)
            lines[i] = direct ? out + (size_t)(y + (int32_t)i) * row_bytes : self->line.data;
        JDIMENSION got = jpeg_read_scanlines(jpeg, lines, direct ? wanted : 1);

        if (!direct && got > 0)
            sk_jpeg_to_rgb(out + (size_t)y * row_bytes, self->line.data, jpeg->output_width, self->info.components);
        y += (int32_t)got;
    }
}

/* After the last row Pillow's decoder goes on to the end of its block, and what it meets there may still be an error. */
static void finish(jpeg_codec *self)
{
    size_t at = (size_t)(self->source.next_input_byte - self->data);
    size_t visible = (at + BLOCK - 1) / BLOCK * BLOCK;

    self->rows_done = true;
    if (visible < self->size)
        self->source.bytes_in_buffer = visible - at;
    jpeg_finish_decompress(&self->jpeg);
}

static void describe_trailing(const jpeg_codec *self, size_t used, char *text, size_t size)
{
    if (!self->info.multi_picture && used < self->size && self->size - used > TRAILING)
        snprintf(text, size, "%zu bytes after the image", self->size - used);
}

/* Says of a sound image what is rare or odd about it. */
static void describe(jpeg_codec *self, char *warning)
{
    const char *found = self->error.warning[0] != '\0' ? self->error.warning : "";
    const char *kind = "";
    size_t used = (size_t)(self->source.next_input_byte - self->data);
    char trailing[64] = "";

    if (self->smoothed)
        kind = "incomplete progressive image: scans are missing";
    else if (self->info.components == 4)
        kind = "rare kind: CMYK";
    else if (self->jpeg.arith_code)
        kind = "rare kind: arithmetic coding";
    if (found[0] == '\0')
        describe_trailing(self, used, trailing, sizeof trailing);
    snprintf(warning, SK_WARNING_SIZE, "%.100s%s%s%s%s", found, found[0] != '\0' && kind[0] != '\0' ? "; " : "", kind,
             (found[0] != '\0' || kind[0] != '\0') && trailing[0] != '\0' ? "; " : "", trailing);
}

/* The failure that escaped, in words. */
static stoker_status fail(jpeg_codec *self)
{
    jpeg_abort_decompress(&self->jpeg);
    if (self->error.status == STOKER_ERR_LIMIT)
        return sk_fail(STOKER_ERR_LIMIT, "JPEG: more than %d scans (setting max_scans)", self->max_scans);
    return sk_fail(self->error.status, "JPEG: %s", self->error.message);
}

static stoker_status reserve(jpeg_codec *self, int32_t width, int32_t height)
{
    size_t bytes;

    if (!sk_multiply(3 * (size_t)width, (size_t)height, &bytes))
        return sk_fail(STOKER_ERR_LIMIT, "JPEG: %d x %d pixels do not fit in memory", width, height);
    stoker_status status = sk_buffer_reserve(&self->pixels, bytes);

    if (status == STOKER_OK)
        status = sk_buffer_reserve(&self->line, 4 * (size_t)width);
    return status;
}

/* Reads all scans of a progressive file, and puts guesses in the place of what they do not tell. */
static stoker_status read_scans(jpeg_codec *self)
{
    struct jpeg_decompress_struct *jpeg = &self->jpeg;
    stoker_status status = STOKER_OK;
    int result;

    jpeg->buffered_image = TRUE; /* which alone opens the coefficients to us and then goes on to pixels */
    jpeg->do_block_smoothing = FALSE;
    jpeg_start_decompress(jpeg);
    sk_jpeg_progress_scan(&self->progress, jpeg);
    do {
        sk_jpeg_progress_row(&self->progress, jpeg);
        result = jpeg_consume_input(jpeg);
        if (result == JPEG_REACHED_SOS) {
            sk_jpeg_progress_scan(&self->progress, jpeg);
            on_progress((j_common_ptr)jpeg);
        }
    } while (result != JPEG_REACHED_EOI);
    self->smoothed = sk_jpeg_is_smoothed(jpeg);
    if (self->smoothed)
        status = sk_jpeg_smooth(jpeg, jpeg_read_coefficients(jpeg), &self->progress, &self->averages);
    return status;
}

static stoker_status decode_whole(jpeg_codec *self, sk_pixels *out, char *warning)
{
    stoker_status status = reserve(self, self->info.width, self->info.height);

    if (status != STOKER_OK)
        return status;
    if (setjmp(self->error.escape) != 0)
        return fail(self);
    begin(self);
    if (self->jpeg.progressive_mode) {
        status = read_scans(self);
        if (status != STOKER_OK) {
            jpeg_abort_decompress(&self->jpeg);
            return status;
        }
        jpeg_start_output(&self->jpeg, self->jpeg.input_scan_number);
    } else {
        jpeg_start_decompress(&self->jpeg);
    }
    read_rows(self, self->pixels.data, self->info.height);
    if (self->jpeg.progressive_mode)
        jpeg_finish_output(&self->jpeg);
    finish(self);
    describe(self, warning);
    jpeg_abort_decompress(&self->jpeg);
    *out = (sk_pixels){.data = self->pixels.data,
                       .stride = 3 * (size_t)self->info.width,
                       .channels = 3,
                       .full_width = self->info.width,
                       .full_height = self->info.height,
                       .area = {0, 0, self->info.width, self->info.height}};
    return STOKER_OK;
}

/* -------------------------------------------------------------------------------------------------- a part -------- */

/* Whether partial decoding is known to be exact: one interleaved scan, gray or luma with chroma of 1 × 1 at 1 × 1, 2 × 1 or
 * 2 × 2. */
static bool part_is_exact(const jpeg_codec *self)
{
    const struct jpeg_decompress_struct *jpeg = &self->jpeg;
    const jpeg_component_info *c = jpeg->comp_info;

    if (jpeg->progressive_mode || jpeg->arith_code || jpeg->comps_in_scan != jpeg->num_components)
        return false;
    if (jpeg->num_components == 1)
        return c[0].h_samp_factor == 1 && c[0].v_samp_factor == 1;
    if (jpeg->num_components != 3)
        return false;
    bool chroma_one =
        c[1].h_samp_factor == 1 && c[1].v_samp_factor == 1 && c[2].h_samp_factor == 1 && c[2].v_samp_factor == 1;
    int h = c[0].h_samp_factor, v = c[0].v_samp_factor;

    return chroma_one && ((h == 1 && v == 1) || (h == 2 && v == 1) || (h == 2 && v == 2));
}

/* Whether what lies below the rows read could not have made Pillow raise: the scan runs into EOI. */
static bool rest_is_sound(const jpeg_codec *self)
{
    size_t at = (size_t)(self->source.next_input_byte - self->data);
    uint8_t next = 0;

    if (self->jpeg.unread_marker != 0)
        return self->jpeg.unread_marker == EOI;
    return sk_jpeg_scan_ends(self->data, self->size, at, &next) && next == EOI;
}

/* Decodes `region` with a margin; *done is false where a whole decode must decide. */
static stoker_status decode_part(jpeg_codec *self, const sk_rect *region, sk_pixels *out, bool *done)
{
    struct jpeg_decompress_struct *jpeg = &self->jpeg;
    int32_t top = region->top > MARGIN ? region->top - MARGIN : 0;
    int32_t bottom = region->top + region->height;
    int32_t left = region->left > MARGIN ? region->left - MARGIN : 0;
    int32_t right = region->left + region->width + MARGIN;

    *done = false;
    right = right < self->info.width ? right : self->info.width;
    stoker_status status = reserve(self, self->info.width, bottom - top);

    if (status != STOKER_OK)
        return status;
    if (setjmp(self->error.escape) != 0) {
        jpeg_abort_decompress(jpeg);
        return STOKER_OK; /* a whole decode gives the verdict */
    }
    begin(self);
    if (!part_is_exact(self)) {
        jpeg_abort_decompress(jpeg);
        return STOKER_OK;
    }
    JDIMENSION x = (JDIMENSION)left, width = (JDIMENSION)(right - left);

    jpeg_start_decompress(jpeg);
    if (width < jpeg->output_width)
        jpeg_crop_scanline(jpeg, &x, &width);
    if (top > 0)
        jpeg_skip_scanlines(jpeg, (JDIMENSION)top);
    read_rows(self, self->pixels.data, bottom - top);
    if (bottom < self->info.height) {
        *done = rest_is_sound(self);
    } else {
        finish(self);
        *done = true;
    }
    *out = (sk_pixels){.data = self->pixels.data,
                       .stride = 3 * (size_t)jpeg->output_width,
                       .channels = 3,
                       .full_width = self->info.width,
                       .full_height = self->info.height,
                       .area = {(int32_t)x, top, (int32_t)jpeg->output_width, bottom - top}};
    jpeg_abort_decompress(jpeg);
    return STOKER_OK;
}

static stoker_status decode_pixels(void *codec, const sk_rect *region, sk_pixels *out, char *warning)
{
    jpeg_codec *self = codec;
    const sk_rect whole = {0, 0, self->info.width, self->info.height};
    bool part = region != NULL && (region->width < whole.width || region->height < whole.height);
    bool done = false;

    if (self->info.frame == LOSSLESS)
        return sk_jpeg_lossless_decode(&self->lossless, self->data, self->size, &self->info, out, warning);
    stoker_status status = sk_jpeg_baseline_decode(&self->baseline, self->data, self->size, &self->info,
                                                   part ? region : &whole, out, &done);

    if (done && !part)
        describe_trailing(self, self->baseline.end, warning, SK_WARNING_SIZE);
    if (status == STOKER_OK && !done && part)
        status = decode_part(self, region, out, &done);
    return status != STOKER_OK || done ? status : decode_whole(self, out, warning);
}

const sk_codec sk_jpeg_codec = {
    .format = "jpeg", .create = create, .destroy = destroy, .open = open_image, .pixels = decode_pixels};
