/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct.c: the pack's code → pixels of a region, or coefficients. Nothing in the bytes is trusted: the head's checksum is looked at when an
 * image is opened, a row's before its groups are read, and each group says itself how long it is.
 */
#include "image/dct.h"

#include <string.h>

#include "base/hash.h"
#include "image/jpeg_rows.h"
#include "kernel/kernel.h"

/* A component's place in the data. */
typedef struct part {
    int32_t h, v;
    int32_t across, down;  /* groups */
    const uint8_t *rows;   /* its rows' entries */
    size_t first;          /* where its first row begins */
    uint16_t quant[64];    /* row by row */
    int32_t group, groups; /* the first that a region needs, and how many */
    int16_t *blocks;       /* two rows of 4 × groups blocks */
    uint8_t *last;
    int32_t held; /* the row of groups in `blocks`; -1: none */
} part;

typedef struct dct_codec {
    bool orient;
    const uint8_t *data;
    size_t size;
    int32_t width, height, components, orientation;
    part part[3];
    sk_buffer blocks;
    sk_jpeg_rows rows;
    uint8_t end[SK_DCT_READABLE]; /* for groups near the data's end */
} dct_codec;

static uint32_t get_16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get_32(const uint8_t *at)
{
    return get_16(at) | get_16(at + 2) << 16;
}

static uint64_t get_64(const uint8_t *at)
{
    return get_32(at) | (uint64_t)get_32(at + 4) << 32;
}

static void *create(const stoker_image_settings *settings)
{
    dct_codec *self = sk_calloc(1, sizeof *self);

    if (self != NULL)
        self->orient = settings->exif_orientation != 0;
    return self;
}

static void destroy(void *codec)
{
    dct_codec *self = codec;

    if (self == NULL)
        return;
    sk_buffer_free(&self->blocks);
    sk_jpeg_rows_free(&self->rows);
    sk_free(self);
}

/* ------------------------------------------------------------------------------------------------ the head -------- */

static bool read_kind(dct_codec *self)
{
    const uint8_t *data = self->data;
    int32_t h = data[7] >> 4, v = data[7] & 15;

    self->components = data[6];
    if (self->components != 1 && self->components != 3)
        return false;
    self->width = (int32_t)(get_32(data + 8) & INT32_MAX);
    self->height = (int32_t)(get_32(data + 12) & INT32_MAX);
    self->orientation = data[16];
    if (self->width < 1 || self->height < 1 || self->width > UINT16_MAX || self->height > UINT16_MAX ||
        (int64_t)self->width * self->height > SK_COEFFICIENTS_MAX_PIXELS || self->orientation < 1 ||
        self->orientation > 8)
        return false;
    int32_t most = self->components == 1 ? 1 : 2;

    if (h < 1 || v < 1 || h > most || v > most)
        return false;
    int32_t mcus_across = (self->width + 8 * h - 1) / (8 * h), mcus_down = (self->height + 8 * v - 1) / (8 * v);

    for (int c = 0; c < self->components; c++) {
        part *p = &self->part[c];

        p->h = c == 0 ? h : 1;
        p->v = c == 0 ? v : 1;
        p->across = (mcus_across * p->h + 3) / 4;
        p->down = (mcus_down * p->v + 1) / 2;
    }
    return true;
}

static bool read_quant(dct_codec *self)
{
    for (int c = 0; c < self->components; c++) {
        for (int k = 0; k < 64; k++) {
            uint8_t value = self->data[SK_DCT_HEAD + 64 * c + k];

            if (value == 0)
                return false;
            self->part[c].quant[sk_zigzag[k]] = value;
        }
    }
    return true;
}

/* The head's checksum is over the head with zeros in its place. */
static bool is_sound(const dct_codec *self, size_t head)
{
    uint8_t first[SK_DCT_HEAD + 3 * 64];
    const size_t fixed = SK_DCT_HEAD + 64 * (size_t)self->components;

    memcpy(first, self->data, fixed);
    memset(first + 24, 0, 8);
    return sk_hash_fits(get_64(self->data + 24),
                        sk_hash64(self->data + fixed, head - fixed, sk_hash64(first, fixed, 0)));
}

static stoker_status read_head(dct_codec *self)
{
    size_t rows = 0, at, begin;

    if (self->size < SK_DCT_HEAD || get_32(self->data) != SK_DCT_MAGIC)
        return sk_fail(STOKER_ERR_DATA, "pack: these are no coefficients");
    if (get_16(self->data + 4) != SK_DCT_VERSION)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "pack: coefficients of version %u; this library reads version %d",
                       get_16(self->data + 4), SK_DCT_VERSION);
    if (!read_kind(self))
        return sk_fail(STOKER_ERR_DATA, "pack: damaged head of the coefficients");
    for (int c = 0; c < self->components; c++)
        rows += (size_t)self->part[c].down;
    at = SK_DCT_HEAD + 64 * (size_t)self->components;
    begin = at + 8 * rows;
    if (self->size < begin || !is_sound(self, begin) || !read_quant(self))
        return sk_fail(STOKER_ERR_DATA, "pack: damaged head of the coefficients");
    for (int c = 0; c < self->components; c++) {
        part *p = &self->part[c];

        p->rows = self->data + at;
        p->first = begin;
        for (int32_t row = 0; row < p->down; row++, at += 8) {
            size_t end = get_32(self->data + at);

            if (end > self->size || end < begin || end - begin < 2 * (size_t)p->across)
                return sk_fail(STOKER_ERR_DATA, "pack: damaged index of the coefficients");
            begin = end;
        }
    }
    return STOKER_OK;
}

static stoker_status open_image(void *codec, const uint8_t *data, size_t size, sk_header *header)
{
    dct_codec *self = codec;

    self->data = data;
    self->size = size;
    stoker_status status = read_head(self);

    if (status == STOKER_OK)
        *header = (sk_header){self->width, self->height, self->orient ? self->orientation : 1};
    return status;
}

/* -------------------------------------------------------------------------------------------------- groups -------- */

static stoker_status fail_row(const part *p, const dct_codec *self, int32_t row)
{
    return sk_fail(STOKER_ERR_DATA, "pack: damaged coefficients (component %d, rows %d and %d of blocks)",
                   (int)(p - self->part), 2 * row, 2 * row + 1);
}

/* Unpacks the groups that are needed of a row. */
static stoker_status read_groups(dct_codec *self, part *p, int32_t row)
{
    const sk_kernels *kernels = sk_kernels_get();
    size_t from = row == 0 ? p->first : get_32(p->rows + 8 * (size_t)(row - 1)),
           end = get_32(p->rows + 8 * (size_t)row);
    const uint8_t *sizes = self->data + from;
    size_t at = from + 2 * (size_t)p->across, half = 4 * (size_t)p->groups;

    if (!sk_hash_fits(get_32(p->rows + 8 * (size_t)row + 4), (uint32_t)sk_hash64(sizes, end - from, 0)))
        return fail_row(p, self, row);
    for (int32_t g = 0; g < p->group; g++)
        at += get_16(sizes + 2 * (size_t)g);
    for (int32_t g = 0; g < p->groups; g++) {
        size_t size = get_16(sizes + 2 * (size_t)(p->group + g)), block = 4 * (size_t)g;
        const uint8_t *group = self->data + at;

        if (at > end || end - at < size || size > SK_DCT_GROUP)
            return fail_row(p, self, row);
        if (self->size - at < SK_DCT_READABLE) {
            memcpy(self->end, group, size);
            memset(self->end + size, 0, SK_DCT_READABLE - size);
            group = self->end;
        }
        if (kernels->dct_unpack(group, p->blocks + 64 * block, p->blocks + 64 * (half + block), p->last + block,
                                p->last + half + block) != (int32_t)size)
            return fail_row(p, self, row);
        at += size;
    }
    p->held = row;
    return STOKER_OK;
}

/* Room for two rows of blocks of each component, of the groups that p->group and p->groups say. */
static stoker_status make_room(dct_codec *self)
{
    size_t blocks = 0;

    for (int c = 0; c < self->components; c++)
        blocks += 8 * (size_t)self->part[c].groups;
    stoker_status status = sk_buffer_reserve(&self->blocks, blocks * (64 * sizeof(int16_t) + 1));

    if (status != STOKER_OK)
        return status;
    int16_t *coefficients = (int16_t *)(void *)self->blocks.data;
    uint8_t *last = self->blocks.data + blocks * 64 * sizeof(int16_t);

    for (int c = 0; c < self->components; c++) {
        part *p = &self->part[c];

        p->blocks = coefficients;
        p->last = last;
        p->held = -1;
        coefficients += 8 * (size_t)p->groups * 64;
        last += 8 * (size_t)p->groups;
    }
    return STOKER_OK;
}

static void set_up_rows(dct_codec *self, const sk_rect *region)
{
    sk_jpeg_rows *rows = &self->rows;

    rows->kernels = sk_kernels_get();
    rows->width = self->width;
    rows->height = self->height;
    rows->components = self->components;
    rows->h = self->part[0].h;
    rows->v = self->part[0].v;
    for (int c = 0; c < self->components; c++) {
        rows->part[c].h = self->part[c].h;
        rows->part[c].v = self->part[c].v;
        rows->part[c].quant = self->part[c].quant;
    }
    sk_jpeg_rows_lay_out(rows, region);
    for (int c = 0; c < self->components; c++) {
        part *p = &self->part[c];

        p->group = rows->mcu_left * p->h / 4;
        p->groups = (rows->mcu_right * p->h + 3) / 4 - p->group;
        rows->part[c].next_row = 4 * p->groups;
    }
}

static stoker_status decode_pixels(void *codec, const sk_rect *region, sk_pixels *out, char *warning)
{
    dct_codec *self = codec;
    sk_jpeg_rows *rows = &self->rows;

    (void)warning;
    set_up_rows(self, region);
    if (!sk_jpeg_rows_can(rows))
        return sk_fail(STOKER_ERR_DATA, "pack: damaged head of the coefficients");
    stoker_status status = make_room(self);

    if (status == STOKER_OK)
        status = sk_jpeg_rows_reserve(rows);
    for (int32_t mcu = rows->mcu_top; mcu < rows->mcu_bottom && status == STOKER_OK; mcu++) {
        for (int c = 0; c < self->components && status == STOKER_OK; c++) {
            part *p = &self->part[c];
            int32_t row = p->v == 2 ? mcu : mcu / 2;

            if (p->held != row)
                status = read_groups(self, p, row);
            size_t first = (size_t)(rows->mcu_left * p->h - 4 * p->group) +
                           (p->v == 1 && mcu % 2 == 1 ? 4 * (size_t)p->groups : 0);

            rows->part[c].blocks = p->blocks + 64 * first;
            rows->part[c].last = p->last + first;
        }
        if (status == STOKER_OK && !sk_jpeg_rows_make(rows, mcu))
            status = sk_fail(STOKER_ERR_DATA, "pack: coefficients out of range");
    }
    if (status == STOKER_OK)
        sk_jpeg_rows_pixels(rows, out);
    return status;
}

const sk_codec sk_dct_codec = {
    .format = "jpeg", .create = create, .destroy = destroy, .open = open_image, .pixels = decode_pixels};

/* -------------------------------------------------------------------------------------------- coefficients -------- */

static stoker_status read_plane(dct_codec *self, part *p, sk_plane *plane)
{
    size_t row_size = (size_t)plane->across * 64, half = 4 * (size_t)p->groups * 64;

    for (int32_t row = 0; row < p->down; row++) {
        stoker_status status = read_groups(self, p, row);

        if (status != STOKER_OK)
            return status;
        for (int32_t y = 2 * row; y < plane->down && y < 2 * row + 2; y++)
            memcpy(plane->blocks + (size_t)y * row_size, p->blocks + (y % 2 == 1 ? half : 0),
                   row_size * sizeof(int16_t));
    }
    return STOKER_OK;
}

static stoker_status read_planes(dct_codec *self, sk_coefficients *out)
{
    stoker_status status = read_head(self);

    if (status != STOKER_OK)
        return status;
    out->width = self->width;
    out->height = self->height;
    out->components = self->components;
    for (int c = 0; c < self->components; c++) {
        part *p = &self->part[c];

        out->plane[c].h = p->h;
        out->plane[c].v = p->v;
        out->plane[c].id = (uint8_t)(c + 1);
        memcpy(out->plane[c].quant, p->quant, sizeof p->quant);
        p->group = 0;
        p->groups = p->across;
    }
    status = sk_coefficients_lay_out(out);
    if (status == STOKER_OK)
        status = make_room(self);
    for (int c = 0; c < self->components && status == STOKER_OK; c++)
        status = read_plane(self, &self->part[c], &out->plane[c]);
    return status;
}

stoker_status sk_dct_read(const uint8_t *data, size_t size, sk_coefficients *out)
{
    stoker_image_settings settings = {0};
    dct_codec *self = create(&settings);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->data = data;
    self->size = size;
    stoker_status status = read_planes(self, out);

    destroy(self);
    return status;
}
