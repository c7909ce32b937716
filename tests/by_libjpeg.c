/* SPDX-License-Identifier: Apache-2.0 */
#include "by_libjpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

typedef struct errors {
    struct jpeg_error_mgr base;
    jmp_buf escape;
} errors;

static void on_error(j_common_ptr jpeg)
{
    longjmp(((errors *)jpeg->err)->escape, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0)
        jpeg->err->num_warnings++;
}

uint8_t *by_libjpeg_encode(const uint8_t *pixels, int width, int height, const by_libjpeg_options *options,
                           size_t *size)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr error;
    unsigned char *bytes = NULL;
    unsigned long count = 0;
    int channels = options->gray ? 1 : 3;

    jpeg.err = jpeg_std_error(&error);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &count);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = channels;
    jpeg.in_color_space = options->gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, options->quality, TRUE);
    jpeg.comp_info[0].h_samp_factor = options->h;
    jpeg.comp_info[0].v_samp_factor = options->v;
    jpeg.optimize_coding = options->optimize;
    jpeg.restart_interval = (unsigned)options->restart;
    if (options->progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)jpeg.next_scanline * (size_t)(width * channels));

        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    *size = count;
    return bytes;
}

/* What must survive a longjmp lives in here. */
typedef struct job {
    struct jpeg_decompress_struct jpeg;
    errors error;
    uint8_t *pixels;
} job;

static bool decode(job *work, const uint8_t *data, size_t size, int most)
{
    struct jpeg_decompress_struct *jpeg = &work->jpeg;

    if (setjmp(work->error.escape) != 0)
        return false;
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, data, size);
    jpeg_read_header(jpeg, TRUE);
    if ((uint64_t)jpeg->image_width * jpeg->image_height > (uint64_t)most)
        return false;
    jpeg->out_color_space = JCS_RGB;
    jpeg->do_block_smoothing = FALSE;
    size_t row_bytes = (size_t)jpeg->image_width * 3;

    work->pixels = malloc(row_bytes * jpeg->image_height);
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = work->pixels + (size_t)jpeg->output_scanline * row_bytes;

        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
    return true;
}

uint8_t *by_libjpeg_decode(const uint8_t *data, size_t size, int most, int *width, int *height, long *warnings)
{
    job work;

    memset(&work, 0, sizeof work);
    work.jpeg.err = jpeg_std_error(&work.error.base);
    work.error.base.error_exit = on_error;
    work.error.base.emit_message = on_message;
    if (!decode(&work, data, size, most)) {
        free(work.pixels);
        work.pixels = NULL;
    }
    *width = (int)work.jpeg.image_width;
    *height = (int)work.jpeg.image_height;
    *warnings = work.error.base.num_warnings;
    jpeg_destroy_decompress(&work.jpeg);
    return work.pixels;
}
