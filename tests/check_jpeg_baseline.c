/* SPDX-License-Identifier: Apache-2.0 */
/* check_jpeg_baseline.c: our own decoder takes the usual files, and gives libjpeg's pixels or leaves the file to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_libjpeg.h"
#include "image/jpeg_baseline.h"
#include "kernel/kernel.h"

enum { LARGEST = 150 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

/* Flat, smooth or noisy. */
static void fill(uint8_t *pixels, int width, int height, int channels)
{
    uint32_t noise = draw(3) * draw(120) + 1, slope = draw(7), base = draw(256);

    for (int i = 0; i < width * height * channels; i++)
        pixels[i] = (uint8_t)(base + (uint32_t)(i / channels % width) * slope + draw(noise));
}

static uint8_t *random_file(by_libjpeg_options *options, int *width, int *height, size_t *size)
{
    static uint8_t pixels[LARGEST * LARGEST * 3];

    *width = 1 + (int)draw(LARGEST);
    *height = 1 + (int)draw(LARGEST);
    *options = (by_libjpeg_options){.quality = 1 + (int)draw(100), .h = 1, .v = 1, .optimize = (int)draw(2)};
    options->gray = draw(5) == 0;
    if (!options->gray) {
        options->h = 1 + (int)draw(2);
        options->v = 1 + (int)draw(2);
    }
    options->restart = draw(2) == 0 ? 0 : 1 + (int)draw(draw(2) == 0 ? 5 : 200);
    fill(pixels, *width, *height, options->gray ? 1 : 3);
    return by_libjpeg_encode(pixels, *width, *height, options, size);
}

static sk_rect random_region(int width, int height)
{
    sk_rect region = {.left = (int32_t)draw((uint32_t)width), .top = (int32_t)draw((uint32_t)height)};

    region.width = 1 + (int32_t)draw((uint32_t)(width - region.left));
    region.height = 1 + (int32_t)draw((uint32_t)(height - region.top));
    if (draw(8) == 0)
        region = (sk_rect){0, 0, width, height};
    return region;
}

/* Decodes a region and compares it with libjpeg's whole image. True if the file was taken. */
static bool same_as_libjpeg(sk_jpeg_baseline *decoder, const uint8_t *data, size_t size, sk_rect region,
                            const uint8_t *whole)
{
    sk_jpeg_info info;
    sk_pixels pixels;
    bool done = false;

    if (sk_jpeg_markers(data, size, &info) != STOKER_OK)
        return false;
    if (region.left + region.width > info.width || region.top + region.height > info.height)
        return false; /* the damage is in the size */
    assert_int_equal(sk_jpeg_baseline_decode(decoder, data, size, &info, &region, &pixels, &done), STOKER_OK);
    if (!done)
        return false;
    assert_non_null(whole);
    assert_true(pixels.area.left <= region.left && pixels.area.top <= region.top);
    assert_true(pixels.area.left + pixels.area.width >= region.left + region.width);
    for (int32_t y = 0; y < pixels.area.height; y++) {
        const uint8_t *got = pixels.data + (size_t)y * pixels.stride;
        const uint8_t *right =
            whole + 3 * ((size_t)(pixels.area.top + y) * (size_t)info.width + (size_t)pixels.area.left);

        assert_memory_equal(got, right, 3 * (size_t)pixels.area.width);
    }
    return true;
}

static void sound_files_are_taken(void **unused)
{
    static sk_jpeg_baseline decoder;

    (void)unused;
    for (int turn = 0; turn < 3000; turn++) {
        by_libjpeg_options options;
        int width, height;
        size_t size;
        long warnings;
        uint8_t *file = random_file(&options, &width, &height, &size);
        uint8_t *whole = by_libjpeg_decode(file, size, LARGEST * LARGEST, &width, &height, &warnings);

        for (int i = 0; i < 4; i++) {
            bool taken = same_as_libjpeg(&decoder, file, size, random_region(width, height), whole);

            assert_true(taken || (options.h == 2 && width <= 4));
        }
        free(whole);
        free(file);
    }
    sk_jpeg_baseline_free(&decoder);
}

/* A damaged file is either as sound as libjpeg finds it, or not taken. */
static void damage_is_left_to_libjpeg(void **unused)
{
    static sk_jpeg_baseline decoder;
    int taken = 0;

    (void)unused;
    for (int turn = 0; turn < 6000; turn++) {
        by_libjpeg_options options;
        int width, height;
        size_t size;
        long warnings;
        uint8_t *file = random_file(&options, &width, &height, &size);
        uint32_t header = draw(2) == 0 ? 0 : (uint32_t)size / 3;

        for (uint32_t i = 0; i <= draw(3); i++) {
            size_t at = header + draw((uint32_t)size - header);

            file[at] = draw(3) == 0 ? (uint8_t)(file[at] ^ 1u << draw(8)) : (uint8_t)draw(256);
        }
        if (draw(8) == 0)
            size -= draw((uint32_t)size / 2);
        if (draw(3) == 0) { /* a hole: an interval may end before its last MCU */
            size_t at = size / 2 + draw((uint32_t)(size / 2)), hole = 1 + draw(20);

            hole = hole < size - at ? hole : size - at;
            memmove(file + at, file + at + hole, size - at - hole);
            size -= hole;
        }
        uint8_t *whole = by_libjpeg_decode(file, size, LARGEST * LARGEST * 4, &width, &height, &warnings);

        if (width > 0 && height > 0 && width <= 4 * LARGEST && height <= 4 * LARGEST) {
            sk_rect all = {0, 0, width, height};

            taken += same_as_libjpeg(&decoder, file, size, random_region(width, height), whole);
            if (same_as_libjpeg(&decoder, file, size, all, whole))
                assert_int_equal(warnings, 0);
        }
        free(whole);
        free(file);
    }
    assert_true(taken > 500);
    sk_jpeg_baseline_free(&decoder);
}

/* The bits of the next interval are not this one's. */
static void intervals_end_where_they_end(void **unused)
{
    static sk_jpeg_baseline decoder;
    static uint8_t pixels[64 * 64 * 3];
    int taken = 0;

    (void)unused;
    for (int turn = 0; turn < 1000; turn++) {
        by_libjpeg_options options = {.quality = 90, .h = 1, .v = 1, .restart = 2 + (int)draw(6)};
        int width, height;
        size_t size;
        long warnings;

        fill(pixels, 64, 64, 3);
        uint8_t *file = by_libjpeg_encode(pixels, 64, 64, &options, &size);
        size_t at = size / 3 + draw((uint32_t)(size / 2)), hole = 1 + draw(60);

        hole = hole < size - at ? hole : size - at;
        memmove(file + at, file + at + hole, size - at - hole);
        size -= hole;
        uint8_t *whole = by_libjpeg_decode(file, size, 64 * 64, &width, &height, &warnings);

        for (int i = 0; i < 20; i++)
            taken += same_as_libjpeg(&decoder, file, size, random_region(64, 64), whole);
        free(whole);
        free(file);
    }
    assert_true(taken > 500);
    sk_jpeg_baseline_free(&decoder);
}

static void other_kinds_are_left(void **unused)
{
    static sk_jpeg_baseline decoder;
    static uint8_t pixels[64 * 64 * 3];
    by_libjpeg_options options = {.quality = 80, .h = 2, .v = 2, .progressive = 1};
    size_t size;

    (void)unused;
    fill(pixels, 64, 64, 3);
    uint8_t *file = by_libjpeg_encode(pixels, 64, 64, &options, &size);

    assert_false(same_as_libjpeg(&decoder, file, size, (sk_rect){0, 0, 64, 64}, NULL));
    free(file);
    options = (by_libjpeg_options){.quality = 80, .h = 4, .v = 1};
    file = by_libjpeg_encode(pixels, 64, 64, &options, &size);
    assert_false(same_as_libjpeg(&decoder, file, size, (sk_rect){0, 0, 64, 64}, NULL));
    free(file);
    sk_jpeg_baseline_free(&decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_files_are_taken),
        cmocka_unit_test(damage_is_left_to_libjpeg),
        cmocka_unit_test(intervals_end_where_they_end),
        cmocka_unit_test(other_kinds_are_left),
    };

    if (sk_kernel_init() != STOKER_OK)
        return 1;
    return cmocka_run_group_tests_name("our JPEG decoder against libjpeg", tests, NULL, NULL);
}
