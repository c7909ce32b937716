/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_jpeg.c: our own JPEG decoder against libjpeg. Where it takes a file, libjpeg reads it too and gives the same pixels; where it takes
 * the whole of it, libjpeg has nothing to complain of.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../tests/by_libjpeg.h"
#include "image/jpeg_baseline.h"
#include "kernel/kernel.h"

#define MAX_PIXELS 200000

static sk_jpeg_baseline decoder;

static bool take(const uint8_t *data, size_t size, const sk_jpeg_info *info, sk_rect region, const uint8_t *whole)
{
    sk_pixels pixels;
    bool done;

    if (sk_jpeg_baseline_decode(&decoder, data, size, info, &region, &pixels, &done) != STOKER_OK || !done)
        return false;
    fuzz_require(whole != NULL, "libjpeg reads what our decoder takes");
    for (int32_t y = 0; y < pixels.area.height; y++)
        fuzz_require(
            memcmp(pixels.data + (size_t)y * pixels.stride,
                   whole + 3 * ((size_t)(pixels.area.top + y) * (size_t)info->width + (size_t)pixels.area.left),
                   3 * (size_t)pixels.area.width) == 0,
            "our decoder's pixels are libjpeg's");
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sk_jpeg_info info;
    int width, height;
    long warnings;

    if (sk_kernel_init() != STOKER_OK || sk_jpeg_markers(data, size, &info) != STOKER_OK ||
        (int64_t)info.width * info.height > MAX_PIXELS)
        return 0;
    uint8_t *whole = by_libjpeg_decode(data, size, MAX_PIXELS, &width, &height, &warnings);
    uint64_t hash = fuzz_hash(data, size, 0);
    sk_rect region;

    region.left = (int32_t)(hash % (uint64_t)info.width);
    region.top = (int32_t)((hash >> 16) % (uint64_t)info.height);
    region.width = 1 + (int32_t)((hash >> 32) % (uint64_t)(info.width - region.left));
    region.height = 1 + (int32_t)((hash >> 48) % (uint64_t)(info.height - region.top));
    if (whole == NULL || (width == info.width && height == info.height)) {
        take(data, size, &info, region, whole);
        if (take(data, size, &info, (sk_rect){0, 0, info.width, info.height}, whole))
            fuzz_require(warnings == 0, "libjpeg has nothing to complain of");
    }
    free(whole);
    return 0;
}
