/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/encode.h"

#include <string.h>

#include "image/dct.h"
#include "image/jpeg_rewrite.h"

#define MOST_GROWTH 2 /* a form this many times as large as the file is not worth it (small files of one colour) */
#define FIXED       4096

stoker_status sk_encoder_init(sk_encoder *self, int32_t mode, const stoker_image_settings *settings)
{
    stoker_image_settings upright = *settings, stored = *settings;

    upright.exif_orientation = 1;
    stored.exif_orientation = 0;
    self->mode = mode;
    self->as_stored = sk_decoder_create(&stored);
    self->upright = sk_decoder_create(&upright);
    self->packed = sk_decoder_create(&upright);
    return self->as_stored != NULL && self->upright != NULL && self->packed != NULL ? STOKER_OK : STOKER_ERR_MEMORY;
}

void sk_encoder_clear(sk_encoder *self)
{
    sk_decoder_destroy(self->as_stored);
    sk_decoder_destroy(self->upright);
    sk_decoder_destroy(self->packed);
    sk_coefficients_free(&self->coefficients);
    sk_buffer_free(&self->fetched);
    sk_buffer_free(&self->coded);
    *self = (sk_encoder){0};
}

static bool same_pixels(const sk_pixels *a, const sk_pixels *b)
{
    size_t row = 3 * (size_t)a->full_width;

    if (a->full_width != b->full_width || a->full_height != b->full_height)
        return false;
    for (int32_t y = 0; y < a->full_height; y++) {
        if (memcmp(a->data + (size_t)(y - a->area.top) * a->stride - 3 * (ptrdiff_t)a->area.left,
                   b->data + (size_t)(y - b->area.top) * b->stride - 3 * (ptrdiff_t)b->area.left, row) != 0)
            return false;
    }
    return true;
}

/* Whether `data` as a pack holds it gives the pixels of the file, and the file none but pixels: no warning. */
static bool gives_the_same(sk_encoder *self, const sk_sample *sample, const uint8_t *data, size_t size, bool packed)
{
    int32_t width, height;
    sk_pixels expected, got;

    return sk_decoder_open(self->upright, sample->data, sample->size, &width, &height) == STOKER_OK &&
           sk_decoder_pixels(self->upright, NULL, &expected) == STOKER_OK &&
           sk_decoder_warning(self->upright)[0] == '\0' &&
           (packed ? sk_decoder_open_packed : sk_decoder_open)(self->packed, data, size, &width, &height) ==
               STOKER_OK &&
           sk_decoder_pixels(self->packed, NULL, &got) == STOKER_OK && sk_decoder_warning(self->packed)[0] == 0 &&
           same_pixels(&expected, &got);
}

static stoker_status recode(sk_encoder *self, const sk_sample *sample, sk_encoded *out)
{
    int32_t width, height;
    size_t size = 0;
    bool taken = false, dct = self->mode == STOKER_PACK_DCT;

    if (sk_decoder_open(self->upright, sample->data, sample->size, &width, &height) != STOKER_OK ||
        strcmp(sk_decoder_format(self->upright), "jpeg") != 0)
        return STOKER_OK;
    int orientation = sk_decoder_orientation(self->upright);
    stoker_status status = sk_coefficients_read(&self->coefficients, sample->data, sample->size, &taken);

    if (status == STOKER_OK && taken)
        status = dct ? sk_dct_encode(&self->coefficients, orientation, &self->coded, &size, &taken)
                     : sk_jpeg_restart(&self->coefficients, sample->data, sample->size, &self->coded, &size, &taken);
    if (status != STOKER_OK || !taken || size > MOST_GROWTH * sample->size + FIXED ||
        !gives_the_same(self, sample, self->coded.data, size, dct))
        return status;
    out->encoding = dct ? SK_PACK_DCT : SK_PACK_JPEG;
    out->data = self->coded.data;
    out->size = size;
    return STOKER_OK;
}

/* The pixels themselves. An image that is stored turned keeps its bytes: pixels do not tell which way up they are. */
static stoker_status encode_pixels(sk_encoder *self, const sk_sample *sample, sk_encoded *out)
{
    int32_t width, height;
    sk_pixels pixels;

    if (sk_decoder_open(self->upright, sample->data, sample->size, &width, &height) != STOKER_OK ||
        sk_decoder_orientation(self->upright) != 1 || sk_decoder_pixels(self->upright, NULL, &pixels) != STOKER_OK ||
        sk_decoder_warning(self->upright)[0] != '\0')
        return STOKER_OK;
    size_t row = 3 * (size_t)width;
    stoker_status status = sk_buffer_reserve(&self->coded, row * (size_t)height);

    if (status != STOKER_OK)
        return status;
    for (int32_t y = 0; y < height; y++)
        memcpy(self->coded.data + (size_t)y * row,
               pixels.data + (size_t)(y - pixels.area.top) * pixels.stride - 3 * (ptrdiff_t)pixels.area.left, row);
    *out = (sk_encoded){.encoding = SK_PACK_INTERLEAVED,
                        .data = self->coded.data,
                        .size = row * (size_t)height,
                        .width = width,
                        .height = height,
                        .channels = 3};
    return STOKER_OK;
}

stoker_status sk_encoder_encode(sk_encoder *self, const sk_sample *sample, sk_encoded *out)
{
    int32_t width, height;
    sk_pixels pixels;
    stoker_status status = STOKER_OK;

    *out = (sk_encoded){.encoding = SK_PACK_ORIGINAL, .data = sample->data, .size = sample->size};
    if (sample->kind != SK_SAMPLE_ENCODED) {
        out->encoding = sample->kind == SK_SAMPLE_PLANAR ? SK_PACK_PLANAR : SK_PACK_INTERLEAVED;
        out->width = sample->width;
        out->height = sample->height;
        out->channels = sample->channels;
        return STOKER_OK;
    }
    if (self->mode == STOKER_PACK_DCT || self->mode == STOKER_PACK_JPEG)
        status = recode(self, sample, out);
    else if (self->mode == STOKER_PACK_RAW)
        status = encode_pixels(self, sample, out);
    if (status != STOKER_OK || out->encoding != SK_PACK_ORIGINAL)
        return status;
    status = sk_decoder_open(self->as_stored, sample->data, sample->size, &width, &height);
    if (status == STOKER_OK)
        status = sk_decoder_pixels(self->as_stored, NULL, &pixels);
    out->odd = status != STOKER_OK;
    return status == STOKER_ERR_MEMORY ? status : STOKER_OK;
}
