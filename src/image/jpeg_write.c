/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_write.c: pixels → a baseline JPEG file.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "image/write.h"

typedef struct errors {
    struct jpeg_error_mgr base;
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
} errors;

static void on_error(j_common_ptr jpeg)
{
    errors *error = (errors *)jpeg->err;

    jpeg->err->format_message(jpeg, error->message);
    longjmp(error->escape, 1);
}

static void no_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

/* What must survive a longjmp lives here, not in registers. */
typedef struct job {
    struct jpeg_compress_struct jpeg;
    errors error;
    unsigned char *bytes; /* libjpeg's malloc */
    unsigned long size;
} job;

static stoker_status compress(job *work, const char *path, const uint8_t *rgb, int32_t width, int32_t height,
                              int32_t quality, int32_t subsample)
{
    struct jpeg_compress_struct *jpeg = &work->jpeg;

    if (setjmp(work->error.escape) != 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "cannot write %s: JPEG: %s", path, work->error.message);
    jpeg_mem_dest(jpeg, &work->bytes, &work->size);
    jpeg->image_width = (JDIMENSION)width;
    jpeg->image_height = (JDIMENSION)height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    if (!subsample)
        jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = (JSAMPROW)(rgb + (size_t)jpeg->next_scanline * 3 * (size_t)width);

        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    return STOKER_OK;
}

stoker_status sk_jpeg_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height, int32_t quality,
                            int32_t subsample)
{
    job work = {.bytes = NULL, .size = 0};

    work.jpeg.err = jpeg_std_error(&work.error.base);
    work.error.base.error_exit = on_error;
    work.error.base.output_message = no_output;
    jpeg_create_compress(&work.jpeg);
    stoker_status status = compress(&work, path, rgb, width, height, quality, subsample);

    jpeg_destroy_compress(&work.jpeg);
    if (status == STOKER_OK)
        status = sk_write_file_atomically(path, work.bytes, work.size);
    free(work.bytes);
    return status;
}
