/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_image.c: image files. A decoder keeps its objects from image to image, as the loader's threads do. Whatever
 * comes before, the same bytes give the same pixels, and a region is cut out of the whole.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "image/image.h"

#define MAX_PIXELS 300000 /* so that a run meets many files, not a few large ones */

static sk_decoder *decoders[2]; /* pixels as stored; upright */

static void try_decoder(sk_decoder *decoder, const uint8_t *data, size_t size)
{
    int32_t width, height;
    sk_pixels pixels;

    if (sk_decoder_open(decoder, data, size, &width, &height) != STOKER_OK)
        return;
    fuzz_require(width > 0 && height > 0 && (int64_t)width * height <= MAX_PIXELS, "an opened image has a legal size");
    stoker_status status = sk_decoder_pixels(decoder, NULL, &pixels);
    uint8_t *whole = NULL;
    size_t row = (size_t)width * 3;

    if (status == STOKER_OK) {
        fuzz_require(pixels.channels == 3 && pixels.full_width == width && pixels.full_height == height,
                     "the image is of the size that open told");
        whole = malloc(row * (size_t)height);
        fuzz_require(whole != NULL, "memory");
        for (int32_t y = 0; y < height; y++)
            memcpy(whole + (size_t)y * row,
                   pixels.data + (size_t)(y - pixels.area.top) * pixels.stride - (size_t)pixels.area.left * 3, row);
    }
    uint64_t hash = fuzz_hash(data, size, 0);
    sk_rect region;

    region.left = (int32_t)(hash % (uint64_t)width);
    region.top = (int32_t)((hash >> 16) % (uint64_t)height);
    region.width = 1 + (int32_t)((hash >> 32) % (uint64_t)(width - region.left));
    region.height = 1 + (int32_t)((hash >> 48) % (uint64_t)(height - region.top));
    fuzz_require(sk_decoder_open(decoder, data, size, &width, &height) == STOKER_OK, "it opens again");
    stoker_status again = sk_decoder_pixels(decoder, &region, &pixels);

    /* A region may be decoded without what lies below it, so it may succeed where the whole fails. */
    fuzz_require(status != STOKER_OK || again == STOKER_OK, "a region decodes where the whole does");
    if (status == STOKER_OK)
        for (int32_t y = 0; y < region.height; y++)
            fuzz_require(memcmp(whole + (size_t)(region.top + y) * row + (size_t)region.left * 3,
                                pixels.data + (size_t)(region.top + y - pixels.area.top) * pixels.stride +
                                    (size_t)(region.left - pixels.area.left) * 3,
                                (size_t)region.width * 3) == 0,
                         "a region is cut out of the whole");
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int i = 0; i < 2; i++) {
        if (decoders[i] == NULL) {
            stoker_image_settings settings;

            stoker_image_default_settings(&settings);
            settings.max_pixels = MAX_PIXELS;
            settings.exif_orientation = i;
            decoders[i] = sk_decoder_create(&settings);
            fuzz_require(decoders[i] != NULL, "memory");
        }
        try_decoder(decoders[i], data, size);
    }
    return 0;
}
