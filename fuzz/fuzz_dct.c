/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dct.c: a pack's code for coefficients. Its checksums are not looked at in a fuzzing build. A region has the whole's pixels, and each
 * kernel table reads a group as the scalar one does.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "image/dct.h"
#include "image/image.h"
#include "kernel/kernel.h"

#define MOST_PIXELS 65536

static void regions_agree(sk_decoder *whole, sk_decoder *part, const uint8_t *data, size_t size, uint64_t choice)
{
    int32_t width, height;
    sk_pixels all, some;

    if (sk_decoder_open_packed(whole, data, size, &width, &height) != STOKER_OK ||
        sk_decoder_pixels(whole, NULL, &all) != STOKER_OK)
        return;
    sk_rect region = {(int32_t)(choice % (uint64_t)width), (int32_t)((choice >> 16) % (uint64_t)height), 1, 1};

    region.width += (int32_t)((choice >> 32) % (uint64_t)(width - region.left));
    region.height += (int32_t)((choice >> 48) % (uint64_t)(height - region.top));
    fuzz_require(sk_decoder_open_packed(part, data, size, &width, &height) == STOKER_OK &&
                     sk_decoder_pixels(part, &region, &some) == STOKER_OK,
                 "a region of what can be decoded can be, too");
    for (int32_t y = region.top; y < region.top + region.height; y++)
        fuzz_require(
            memcmp(all.data + (size_t)y * all.stride + 3 * (size_t)region.left,
                   some.data + (size_t)(y - some.area.top) * some.stride + 3 * (size_t)(region.left - some.area.left),
                   3 * (size_t)region.width) == 0,
            "a region is cut out of the whole");
}

static void tables_agree(const uint8_t *data, size_t size)
{
    uint8_t *group = calloc(1, SK_DCT_READABLE);
    int16_t blocks[2][8][64];
    uint8_t last[2][8];
    int32_t tables;
    const sk_kernels *const *all = sk_kernels_all(&tables);

    fuzz_require(group != NULL, "memory");
    memcpy(group, data, size < SK_DCT_READABLE ? size : SK_DCT_READABLE);
    int32_t expected = all[0]->dct_unpack(group, blocks[0][0], blocks[0][4], last[0], last[0] + 4);

    for (int32_t t = 1; t < tables; t++) {
        int32_t got = all[t]->dct_unpack(group, blocks[1][0], blocks[1][4], last[1], last[1] + 4);

        fuzz_require(got == expected, "tables agree on a group's bytes");
        fuzz_require(got < 0 ||
                         (memcmp(blocks[0], blocks[1], sizeof blocks[0]) == 0 && memcmp(last[0], last[1], 8) == 0),
                     "tables agree on a group's values");
    }
    free(group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sk_decoder *whole, *part;
    sk_coefficients image = {0};

    if (whole == NULL) {
        stoker_image_settings settings;

        fuzz_require(sk_kernel_init() == STOKER_OK, "kernels");
        stoker_image_default_settings(&settings);
        settings.max_pixels = MOST_PIXELS;
        whole = sk_decoder_create(&settings);
        part = sk_decoder_create(&settings);
    }
    uint8_t *exact = malloc(size + (size == 0)); /* so that a look past the end is seen */

    fuzz_require(exact != NULL, "memory");
    memcpy(exact, data, size);
    regions_agree(whole, part, exact, size, fuzz_hash(data, size, 0));
    if (size < 65536)
        (void)sk_dct_read(exact, size, &image);
    sk_coefficients_free(&image);
    if (size > 0)
        tables_agree(data, size);
    free(exact);
    return 0;
}
