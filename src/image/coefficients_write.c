/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "image/coefficients.h"

/* What must survive a longjmp lives here. */
typedef struct writing {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr error;
    jmp_buf escape;
    unsigned char *data;
    unsigned long size;
} writing;

static void on_error(j_common_ptr jpeg)
{
    longjmp(((writing *)jpeg->client_data)->escape, 1);
}

static void no_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void set_up(writing *self, const sk_coefficients *image)
{
    struct jpeg_compress_struct *jpeg = &self->jpeg;

    jpeg->image_width = (JDIMENSION)image->width;
    jpeg->image_height = (JDIMENSION)image->height;
    jpeg->input_components = image->components;
    jpeg->in_color_space = image->components == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(jpeg);
    for (int c = 0; c < image->components; c++) {
        const sk_plane *plane = &image->plane[c];
        unsigned table[64];

        for (int i = 0; i < 64; i++)
            table[i] = plane->quant[i];
        jpeg_add_quant_table(jpeg, c, table, 100, TRUE);
        jpeg->comp_info[c].quant_tbl_no = c;
        jpeg->comp_info[c].h_samp_factor = plane->h;
        jpeg->comp_info[c].v_samp_factor = plane->v;
    }
    jpeg->optimize_coding = TRUE;
}

static void copy_planes(writing *self, const sk_coefficients *image, jvirt_barray_ptr *arrays)
{
    for (int c = 0; c < image->components; c++) {
        const sk_plane *plane = &image->plane[c];
        size_t row = (size_t)plane->across * 64;

        for (int32_t y = 0; y < plane->down; y++) {
            JBLOCKARRAY to =
                self->jpeg.mem->access_virt_barray((j_common_ptr)&self->jpeg, arrays[c], (JDIMENSION)y, 1, TRUE);

            memcpy(to[0], plane->blocks + (size_t)y * row, row * sizeof(int16_t));
        }
    }
}

/* A TIFF header and one tag (Exif 2.3, 4.6.2): 0x0112, a short. */
static void write_orientation(j_compress_ptr jpeg, int orientation)
{
    uint8_t exif[32] = {'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0};

    exif[24] = (uint8_t)orientation;
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, exif, sizeof exif);
}

stoker_status sk_coefficients_write(const sk_coefficients *self, int orientation, uint8_t **data, size_t *size)
{
    writing job = {.data = NULL};
    jvirt_barray_ptr arrays[3];

    job.jpeg.err = jpeg_std_error(&job.error);
    job.error.error_exit = on_error;
    job.error.output_message = no_output;
    job.jpeg.client_data = &job;
    if (setjmp(job.escape) != 0) {
        jpeg_destroy_compress(&job.jpeg);
        free(job.data);
        return sk_fail(STOKER_ERR_MEMORY, "out of memory: writing a JPEG");
    }
    jpeg_create_compress(&job.jpeg);
    jpeg_mem_dest(&job.jpeg, &job.data, &job.size);
    set_up(&job, self);
    for (int c = 0; c < self->components; c++)
        arrays[c] = job.jpeg.mem->request_virt_barray((j_common_ptr)&job.jpeg, JPOOL_IMAGE, TRUE,
                                                      (JDIMENSION)self->plane[c].across,
                                                      (JDIMENSION)self->plane[c].down, (JDIMENSION)self->plane[c].v);
    jpeg_write_coefficients(&job.jpeg, arrays);
    if (orientation != 1)
        write_orientation(&job.jpeg, orientation);
    copy_planes(&job, self, arrays);
    jpeg_finish_compress(&job.jpeg);
    jpeg_destroy_compress(&job.jpeg);
    *data = job.data;
    *size = job.size;
    return STOKER_OK;
}
