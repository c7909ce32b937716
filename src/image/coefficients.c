/* SPDX-License-Identifier: Apache-2.0 */
#include "image/coefficients.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

/* What must survive a longjmp lives here. */
typedef struct reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr error;
    jmp_buf escape;
    bool memory;
} reading;

static void on_error(j_common_ptr jpeg)
{
    reading *self = jpeg->client_data;

    self->memory = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
    longjmp(self->escape, 1);
}

/* A warning is reason enough not to take the file. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0)
        on_error(jpeg);
}

static void no_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

void sk_coefficients_free(sk_coefficients *self)
{
    sk_buffer_free(&self->memory);
}

stoker_status sk_coefficients_lay_out(sk_coefficients *self)
{
    int32_t h = self->plane[0].h, v = self->plane[0].v; /* luma's are the largest */
    int32_t mcus_across = (self->width + 8 * h - 1) / (8 * h), mcus_down = (self->height + 8 * v - 1) / (8 * v);
    size_t blocks = 0;

    for (int c = 0; c < self->components; c++) {
        sk_plane *plane = &self->plane[c];

        plane->across = mcus_across * plane->h;
        plane->down = mcus_down * plane->v;
        blocks += (size_t)plane->across * (size_t)plane->down; /* at most 2^28: sides are below 2^16 */
    }
    stoker_status status = sk_buffer_reserve(&self->memory, blocks * 64 * sizeof(int16_t));

    if (status != STOKER_OK)
        return status;
    int16_t *at = (int16_t *)(void *)self->memory.data;

    for (int c = 0; c < self->components; c++) {
        self->plane[c].blocks = at;
        at += (size_t)self->plane[c].across * (size_t)self->plane[c].down * 64;
    }
    return STOKER_OK;
}

/* Whether the kind of file is one that is taken; fills in what the header tells. */
static bool read_kind(sk_coefficients *self, const struct jpeg_decompress_struct *jpeg)
{
    const jpeg_component_info *parts = jpeg->comp_info;

    self->width = (int32_t)jpeg->image_width;
    self->height = (int32_t)jpeg->image_height;
    self->components = jpeg->num_components;
    if (jpeg->data_precision != 8 || (int64_t)self->width * self->height > SK_COEFFICIENTS_MAX_PIXELS)
        return false;
    if (!(self->components == 1 && jpeg->jpeg_color_space == JCS_GRAYSCALE) &&
        !(self->components == 3 && jpeg->jpeg_color_space == JCS_YCbCr))
        return false;
    for (int c = 0; c < self->components; c++) {
        self->plane[c].h = parts[c].h_samp_factor;
        self->plane[c].v = parts[c].v_samp_factor;
        self->plane[c].id = (uint8_t)parts[c].component_id;
        if (c > 0 && (parts[c].h_samp_factor != 1 || parts[c].v_samp_factor != 1))
            return false;
    }
    int most = self->components == 1 ? 1 : 2;

    return self->plane[0].h <= most && self->plane[0].v <= most;
}

static bool read_quant(sk_coefficients *self, const struct jpeg_decompress_struct *jpeg)
{
    for (int c = 0; c < self->components; c++) {
        const JQUANT_TBL *table = jpeg->comp_info[c].quant_table;

        if (table == NULL)
            return false;
        for (int i = 0; i < 64; i++) {
            if (table->quantval[i] < 1 || table->quantval[i] > 255)
                return false;
            self->plane[c].quant[i] = table->quantval[i];
        }
    }
    return true;
}

static void copy_blocks(sk_coefficients *self, struct jpeg_decompress_struct *jpeg, jvirt_barray_ptr *arrays)
{
    for (int c = 0; c < self->components; c++) {
        const sk_plane *plane = &self->plane[c];
        size_t row = (size_t)plane->across * 64;

        for (int32_t y = 0; y < plane->down; y++) {
            JBLOCKARRAY from = jpeg->mem->access_virt_barray((j_common_ptr)jpeg, arrays[c], (JDIMENSION)y, 1, FALSE);

            memcpy(plane->blocks + (size_t)y * row, from[0], row * sizeof(int16_t));
        }
    }
}

stoker_status sk_coefficients_read(sk_coefficients *self, const uint8_t *data, size_t size, bool *taken)
{
    reading job = {.memory = false};
    volatile stoker_status status = STOKER_OK;

    *taken = false;
    job.jpeg.err = jpeg_std_error(&job.error);
    job.error.error_exit = on_error;
    job.error.emit_message = on_message;
    job.error.output_message = no_output;
    job.jpeg.client_data = &job;
    if (setjmp(job.escape) != 0) {
        jpeg_destroy_decompress(&job.jpeg);
        return job.memory ? sk_fail(STOKER_ERR_MEMORY, "out of memory: a JPEG's coefficients") : STOKER_OK;
    }
    jpeg_create_decompress(&job.jpeg);
    jpeg_mem_src(&job.jpeg, (unsigned char *)(uintptr_t)data, (unsigned long)size);
    if (jpeg_read_header(&job.jpeg, FALSE) == JPEG_HEADER_OK && read_kind(self, &job.jpeg)) {
        jvirt_barray_ptr *arrays = jpeg_read_coefficients(&job.jpeg);

        if (arrays != NULL && read_quant(self, &job.jpeg)) {
            status = sk_coefficients_lay_out(self);
            if (status == STOKER_OK) {
                copy_blocks(self, &job.jpeg, arrays);
                jpeg_finish_decompress(&job.jpeg);
                *taken = true;
            }
        }
    }
    jpeg_destroy_decompress(&job.jpeg);
    return status;
}
