/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c: chooses the codec by the file's first bytes, holds to the limit on pixels, and turns images upright where
 * the settings ask for it.
 */
#include "image/image.h"

#include <string.h>

#include "image/codec.h"
#include "image/dct.h"
#include "image/sniff.h"

enum { CODECS = 4, PACKED = 3 };

struct sk_decoder {
    stoker_image_settings settings;
    void *selves[CODECS];  /* each codec's object, made when the first image of its format comes */
    int current;           /* of the image begun; -1: none */
    sk_header header;      /* its own */
    int32_t width, height; /* upright */
    sk_buffer upright;
    char warning[SK_WARNING_SIZE];
};

static const struct {
    sk_format format;
    const sk_codec *codec;
} codecs[CODECS] = {{SK_FORMAT_JPEG, &sk_jpeg_codec},
                    {SK_FORMAT_PNG, &sk_png_codec},
                    {SK_FORMAT_WEBP, &sk_webp_codec},
                    {SK_FORMAT_UNKNOWN, &sk_dct_codec} /* asked for only */};

sk_decoder *sk_decoder_create(const stoker_image_settings *settings)
{
    sk_decoder *decoder = sk_calloc(1, sizeof *decoder);

    if (decoder == NULL)
        return NULL;
    if (settings != NULL)
        decoder->settings = *settings;
    else
        stoker_image_default_settings(&decoder->settings);
    decoder->current = -1;
    return decoder;
}

void sk_decoder_destroy(sk_decoder *decoder)
{
    if (decoder == NULL)
        return;
    for (int i = 0; i < CODECS; i++)
        if (decoder->selves[i] != NULL)
            codecs[i].codec->destroy(decoder->selves[i]);
    sk_buffer_free(&decoder->upright);
    sk_free(decoder);
}

/* Whether an orientation swaps width and height. */
static bool turns(int orientation)
{
    return orientation >= 5;
}

static stoker_status open_with(sk_decoder *decoder, int chosen, const uint8_t *data, size_t size, int32_t *width,
                               int32_t *height)
{
    const sk_codec *codec = codecs[chosen].codec;

    if (decoder->selves[chosen] == NULL)
        decoder->selves[chosen] = codec->create(&decoder->settings);
    if (decoder->selves[chosen] == NULL)
        return STOKER_ERR_MEMORY;
    sk_header header = {0, 0, 1};
    stoker_status status = codec->open(decoder->selves[chosen], data, size, &header);

    if (status != STOKER_OK)
        return status;
    if ((int64_t)header.width * header.height > decoder->settings.max_pixels)
        return sk_fail(STOKER_ERR_LIMIT, "image of %d x %d = %lld pixels: more than the limit max_pixels, %lld",
                       header.width, header.height, (long long)header.width * header.height,
                       (long long)decoder->settings.max_pixels);
    decoder->header = header;
    decoder->current = chosen;
    decoder->width = turns(header.orientation) ? header.height : header.width;
    decoder->height = turns(header.orientation) ? header.width : header.height;
    *width = decoder->width;
    *height = decoder->height;
    return STOKER_OK;
}

stoker_status sk_decoder_open(sk_decoder *decoder, const uint8_t *data, size_t size, int32_t *width, int32_t *height)
{
    sk_format format = sk_image_sniff(data, size, NULL);
    int chosen = 0;

    decoder->current = -1;
    decoder->warning[0] = '\0';
    while (chosen < PACKED && codecs[chosen].format != format)
        chosen++;
    if (chosen == PACKED)
        return sk_sniff_refuse(data, size);
    return open_with(decoder, chosen, data, size, width, height);
}

stoker_status sk_decoder_open_packed(sk_decoder *decoder, const uint8_t *data, size_t size, int32_t *width,
                                     int32_t *height)
{
    decoder->current = -1;
    decoder->warning[0] = '\0';
    return open_with(decoder, PACKED, data, size, width, height);
}

int sk_decoder_orientation(const sk_decoder *decoder)
{
    return decoder->header.orientation;
}

/* Where the upright image's pixel (x, y) lies in the stored image. */
static void stored_place(const sk_header *header, int32_t x, int32_t y, int32_t *stored_x, int32_t *stored_y)
{
    int32_t right = header->width - 1, bottom = header->height - 1;

    switch (header->orientation) {
    case 2: /* mirrored */
        *stored_x = right - x, *stored_y = y;
        break;
    case 3: /* upside down */
        *stored_x = right - x, *stored_y = bottom - y;
        break;
    case 4:
        *stored_x = x, *stored_y = bottom - y;
        break;
    case 5:
        *stored_x = y, *stored_y = x;
        break;
    case 6: /* to be turned clockwise */
        *stored_x = y, *stored_y = bottom - x;
        break;
    case 7:
        *stored_x = right - y, *stored_y = bottom - x;
        break;
    case 8: /* to be turned anticlockwise */
        *stored_x = right - y, *stored_y = x;
        break;
    default:
        *stored_x = x, *stored_y = y;
        break;
    }
}

/* Decodes the part of the stored image that becomes `region` upright, and turns it. */
static stoker_status upright_pixels(sk_decoder *decoder, const sk_rect *region, sk_pixels *out)
{
    const sk_header *header = &decoder->header;
    const sk_codec *codec = codecs[decoder->current].codec;
    int32_t x0, y0, x1, y1;
    size_t size;
    sk_pixels stored;

    stored_place(header, region->left, region->top, &x0, &y0);
    stored_place(header, region->left + region->width - 1, region->top + region->height - 1, &x1, &y1);
    sk_rect part = {x0 < x1 ? x0 : x1, y0 < y1 ? y0 : y1, (x0 < x1 ? x1 - x0 : x0 - x1) + 1,
                    (y0 < y1 ? y1 - y0 : y0 - y1) + 1};
    stoker_status status = codec->pixels(decoder->selves[decoder->current], &part, &stored, decoder->warning);

    if (status != STOKER_OK)
        return status;
    size_t stride = (size_t)region->width * 3;

    if (!sk_multiply(stride, (size_t)region->height, &size))
        return sk_fail(STOKER_ERR_LIMIT, "image of %d x %d pixels is too large", region->width, region->height);
    status = sk_buffer_reserve(&decoder->upright, size);
    if (status != STOKER_OK)
        return status;
    uint8_t *to = decoder->upright.data;

    for (int32_t y = 0; y < region->height; y++)
        for (int32_t x = 0; x < region->width; x++, to += 3) {
            int32_t from_x, from_y;

            stored_place(header, region->left + x, region->top + y, &from_x, &from_y);
            memcpy(to,
                   stored.data + (size_t)(from_y - stored.area.top) * stored.stride +
                       (size_t)(from_x - stored.area.left) * 3,
                   3);
        }
    *out = (sk_pixels){decoder->upright.data, stride, 3, decoder->width, decoder->height, *region};
    return STOKER_OK;
}

stoker_status sk_decoder_pixels(sk_decoder *decoder, const sk_rect *region, sk_pixels *out)
{
    if (decoder->current < 0)
        return sk_fail(STOKER_ERR_STATE, "no image was begun");
    sk_rect all = {0, 0, decoder->width, decoder->height};

    if (region == NULL)
        region = &all;
    if (region->left < 0 || region->top < 0 || region->width < 1 || region->height < 1 ||
        region->left > decoder->width - region->width || region->top > decoder->height - region->height)
        return sk_fail(STOKER_ERR_ARGUMENT, "region %d,%d %d x %d does not lie in the image of %d x %d pixels",
                       region->left, region->top, region->width, region->height, decoder->width, decoder->height);
    decoder->warning[0] = '\0';
    if (decoder->header.orientation != 1)
        return upright_pixels(decoder, region, out);
    return codecs[decoder->current].codec->pixels(decoder->selves[decoder->current], region, out, decoder->warning);
}

const char *sk_decoder_warning(const sk_decoder *decoder)
{
    return decoder->warning;
}

const char *sk_decoder_format(const sk_decoder *decoder)
{
    return decoder->current >= 0 ? codecs[decoder->current].codec->format : "unknown";
}
