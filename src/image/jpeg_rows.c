/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_rows.c: see the header.
 *
 * Upsampling is libjpeg's "fancy" one: each chroma sample's neighbours count a quarter. So a region is decoded with two pixels more on
 * each side, and with chroma of half height the last row of pixels of a row of MCUs waits for the next.
 */
#include "image/jpeg_rows.h"

#include <string.h>

#define MARGIN     2  /* pixels around the region where chroma is of half size: a sample on each side */
#define PLANE_SIDE 64 /* bytes beside a plane's rows, for the copies of edge samples and for whole vectors */

void sk_jpeg_rows_free(sk_jpeg_rows *self)
{
    sk_buffer_free(&self->planes);
    sk_buffer_free(&self->line);
    sk_buffer_free(&self->pixels);
}

void sk_jpeg_rows_lay_out(sk_jpeg_rows *self, const sk_rect *region)
{
    int32_t across = 8 * self->h, down = 8 * self->v;
    int32_t beside = self->h == 2 ? MARGIN : 0, above = self->v == 2 ? MARGIN : 0;

    self->mcus_across = (self->width + across - 1) / across;
    self->mcus_down = (self->height + down - 1) / down;
    self->left = region->left - region->left % self->h; /* where a chroma sample begins */
    self->top = region->top;
    self->right = region->left + region->width;
    self->bottom = region->top + region->height;
    self->mcu_left = self->left > beside ? (self->left - beside) / across : 0;
    self->mcu_top = self->top > above ? (self->top - above) / down : 0;
    self->mcu_right =
        self->width - self->right > beside ? (self->right + beside + across - 1) / across : self->mcus_across;
    self->mcu_bottom = self->height - self->bottom > above ? (self->bottom + above + down - 1) / down : self->mcus_down;
    for (int c = 0; c < self->components; c++) {
        sk_jpeg_part *part = &self->part[c];

        part->width = (self->width * part->h + self->h - 1) / self->h;
        part->height = (self->height * part->v + self->v - 1) / self->v;
        part->row_blocks = (self->mcu_right - self->mcu_left) * part->h;
    }
}

bool sk_jpeg_rows_can(const sk_jpeg_rows *self)
{
    return self->h == 1 || self->part[self->components - 1].width > 2;
}

stoker_status sk_jpeg_rows_reserve(sk_jpeg_rows *self)
{
    size_t planes = 0, pixels;
    size_t width = (size_t)(self->mcu_right - self->mcu_left) * 8 * (size_t)self->h; /* at most 65,536 + 16 */

    for (int c = 0; c < self->components; c++) {
        self->part[c].stride = (size_t)self->part[c].row_blocks * 8 + 2 * (size_t)PLANE_SIDE;
        planes += self->part[c].stride * (size_t)(8 * self->part[c].v + 1);
    }
    if (!sk_multiply(3 * (width + 1), (size_t)(self->bottom - self->top), &pixels))
        return sk_fail(STOKER_ERR_LIMIT, "JPEG: %d x %d pixels do not fit in memory", self->width, self->height);
    stoker_status status = sk_buffer_reserve(&self->planes, planes);

    if (status == STOKER_OK)
        status = sk_buffer_reserve(&self->line, 2 * (width + 2 * (size_t)PLANE_SIDE));
    if (status == STOKER_OK)
        status = sk_buffer_reserve(&self->pixels, pixels);
    if (status != STOKER_OK)
        return status;
    uint8_t *plane = self->planes.data;

    for (int c = 0; c < self->components; c++) {
        self->part[c].plane = plane + PLANE_SIDE;
        plane += self->part[c].stride * (size_t)(8 * self->part[c].v + 1);
    }
    return STOKER_OK;
}

static uint8_t *plane_row(const sk_jpeg_part *part, int32_t row)
{
    return part->plane + (size_t)row * part->stride;
}

/* Where values leave 16 bits, libjpeg-turbo's vector code for Arm gives other samples than that for x86-64, which the kernels follow.
 * What the columns leave is at most 4 × 1.387 (2 fractional bits, √2 cos π/16) times the column's sum of magnitudes, and the rows then add
 * values four columns apart in 16 bits. Dequantised values wrap to 16 bits in both. Only damage and drawn noise go further. */
static bool is_libjpeg_like_ours(const sk_jpeg_part *part)
{
#ifdef __aarch64__
    enum { MOST = 5900 }; /* 32767 / 5.548, less what rounding adds */

    for (int32_t b = 0; b < part->v * part->row_blocks; b++) {
        const int16_t *block =
            part->blocks +
            ((size_t)(b / part->row_blocks) * (size_t)part->next_row + (size_t)(b % part->row_blocks)) * 64;
        int32_t sum[4] = {0};

        for (int i = 0; i < 64; i++) {
            int32_t value = (int16_t)(uint16_t)(block[i] * part->quant[i]);

            sum[i % 4] += value < 0 ? -value : value;
        }
        if (sum[0] > MOST || sum[1] > MOST || sum[2] > MOST || sum[3] > MOST)
            return false;
    }
#else
    (void)part;
#endif
    return true;
}

/* Coefficients of a row of MCUs → samples, with copies of the picture's edge samples beside them. False: libjpeg would make others. */
static bool make_samples(const sk_jpeg_rows *self)
{
    for (int c = 0; c < self->components; c++) {
        const sk_jpeg_part *part = &self->part[c];
        int32_t first = self->mcu_left * part->h * 8, past = part->width - first;

        if (!is_libjpeg_like_ours(part))
            return false;
        for (int32_t y = 0; y < part->v; y++)
            self->kernels->idct(plane_row(part, 1 + 8 * y), part->stride,
                                part->blocks + (size_t)y * (size_t)part->next_row * 64,
                                part->last + (size_t)y * (size_t)part->next_row, part->row_blocks, part->quant);
        if (c == 0 || self->h == 1)
            continue;
        for (int32_t y = 1; y <= 8 * part->v; y++) {
            uint8_t *row = plane_row(part, y);

            if (first == 0)
                row[-1] = row[0];
            if (past <= part->row_blocks * 8)
                row[past] = row[past - 1];
        }
    }
    return true;
}

/* The chroma of image row `y` at full width: of `count` samples from sample `from` of the planes on. `base`: the image's chroma row that
 * is row 0 of the plane. */
static const uint8_t *chroma_line(const sk_jpeg_rows *self, const sk_jpeg_part *part, int32_t y, int32_t base,
                                  int32_t from, int32_t count, uint8_t *line)
{
    int32_t near = y / self->v;
    const uint8_t *near_row = plane_row(part, near - base) + from;

    if (self->v == 1) {
        if (self->h == 1)
            return near_row;
        self->kernels->upsample_h2v1(line, near_row, count);
        return line;
    }
    int32_t far = y % 2 == 0 ? near - 1 : near + 1;

    far = far < 0 ? 0 : far >= part->height ? part->height - 1 : far;
    const uint8_t *far_row = plane_row(part, far - base) + from;

    if (self->h == 2)
        self->kernels->upsample_h2v2(line, near_row, far_row, count);
    else
        self->kernels->upsample_h1v2(line, near_row, far_row, count, y % 2 == 0 ? 1 : 2);
    return line;
}

/* Rows of pixels that are complete once row `mcu` of MCUs is: with chroma of half height the last one of it waits for the next. */
static void make_pixels(const sk_jpeg_rows *self, int32_t mcu)
{
    int32_t down = 8 * self->v, wait = self->v == 2 ? 1 : 0;
    int32_t from = mcu * down - wait, to = (mcu + 1) * down - (mcu + 1 == self->mcus_down ? 0 : wait);
    int32_t width = self->right - self->left, luma = self->left - self->mcu_left * 8 * self->h, chroma = luma / self->h;
    int32_t count = (width + self->h - 1) / self->h;
    size_t line_size = self->line.capacity / 2;

    from = from < self->top ? self->top : from;
    to = to < self->bottom ? to : self->bottom;
    for (int32_t y = from; y < to; y++) {
        uint8_t *out = self->pixels.data + (size_t)(y - self->top) * 3 * (size_t)width;
        const uint8_t *light = plane_row(&self->part[0], y - mcu * down + 1) + luma;

        if (self->components == 1) {
            self->kernels->gray_to_rgb(out, light, width);
            continue;
        }
        const uint8_t *cb = chroma_line(self, &self->part[1], y, mcu * 8 - 1, chroma, count, self->line.data);
        const uint8_t *cr =
            chroma_line(self, &self->part[2], y, mcu * 8 - 1, chroma, count, self->line.data + line_size);

        self->kernels->ycc_to_rgb(out, light, cb, cr, width);
    }
}

/* Each plane's last row becomes the row above the next MCUs. */
static void keep_last_rows(const sk_jpeg_rows *self)
{
    for (int c = 0; c < self->components; c++) {
        const sk_jpeg_part *part = &self->part[c];

        memcpy(plane_row(part, 0) - PLANE_SIDE, plane_row(part, 8 * part->v) - PLANE_SIDE, part->stride);
    }
}

bool sk_jpeg_rows_make(sk_jpeg_rows *self, int32_t mcu_row)
{
    if (!make_samples(self))
        return false;
    make_pixels(self, mcu_row);
    if (self->v == 2)
        keep_last_rows(self);
    return true;
}

void sk_jpeg_rows_pixels(const sk_jpeg_rows *self, sk_pixels *out)
{
    *out = (sk_pixels){.data = self->pixels.data,
                       .stride = 3 * (size_t)(self->right - self->left),
                       .channels = 3,
                       .full_width = self->width,
                       .full_height = self->height,
                       .area = {self->left, self->top, self->right - self->left, self->bottom - self->top}};
}
