/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_dct.c: the pack's code for coefficients: every kernel table against the scalar one on groups right and wrong, beside pages that
 * must not be touched; coefficients written and read back; pixels against libjpeg's, whole and by region; damage anywhere is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "by_libjpeg.h"
#include "image/dct.h"
#include "kernel/kernel.h"

static sk_random dice;

static int32_t below(int32_t n)
{
    return (int32_t)sk_random_below(&dice, (uint32_t)n);
}

typedef struct unpacked {
    int16_t blocks[8][64];
    uint8_t last[8];
    int32_t size;
} unpacked;

static unpacked unpack(const sk_kernels *table, const uint8_t *group)
{
    unpacked out;

    memset(&out, 0x55, sizeof out);
    out.size = table->dct_unpack(group, out.blocks[0], out.blocks[4], out.last, out.last + 4);
    return out;
}

/* SK_DCT_READABLE bytes that end where a page begins that nobody may read. */
static uint8_t *guarded(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED && page > SK_DCT_READABLE);
    assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
    return memory + page - SK_DCT_READABLE;
}

static void tables_agree(void **state)
{
    int32_t tables, good = 0;
    const sk_kernels *const *all = sk_kernels_all(&tables);
    uint8_t *group = guarded();

    (void)state;
    sk_random_make(&dice, 1, 0, 0, 0);
    for (int32_t round = 0; round < 60000; round++) {
        for (int32_t i = 0; i < SK_DCT_READABLE; i++)
            group[i] = (uint8_t)below(256);
        if (round % 8 != 0) { /* a head that may be right: steps about 2, which keeps widths */
            group[1] = (uint8_t)(below(16) | below(13) << 4);
            group[2] = (uint8_t)below(64);
            for (int32_t i = 0; i < 16; i++) {
                group[3 + i] = 0xaa;
                if (round % 3 == 0)
                    group[3 + i] ^= (uint8_t)(1 << 2 * below(4));
            }
            group[3] = (uint8_t)((group[3] & 0xf0) | below(round % 5 == 0 ? 16 : 9));
        }
        unpacked expected = unpack(&sk_kernels_scalar, group);

        good += expected.size > 0;
        assert_in_range(expected.size + 1, 0, SK_DCT_GROUP + 1);
        for (int32_t t = 1; t < tables; t++) {
            unpacked got = unpack(all[t], group);

            assert_int_equal(got.size, expected.size);
            if (expected.size > 0)
                assert_memory_equal(&got, &expected, sizeof got);
        }
    }
    assert_true(good > 20000);
}

/* A JPEG of noise and smooth parts, in memory that free takes back. */
static uint8_t *draw(int32_t width, int32_t height, const by_libjpeg_options *options, size_t *size)
{
    size_t bytes = (size_t)width * (size_t)height * (options->gray ? 1 : 3);
    uint8_t *pixels = malloc(bytes);

    assert_non_null(pixels);
    for (size_t i = 0; i < bytes; i++)
        pixels[i] = (uint8_t)(i / 1000 % 3 == 0 ? below(256) : (int32_t)(i / 7 % 256));
    uint8_t *file = by_libjpeg_encode(pixels, width, height, options, size);

    assert_non_null(file);
    free(pixels);
    return file;
}

static void region_equals(sk_decoder *decoder, const uint8_t *rgb, int32_t width, const sk_rect *region)
{
    sk_pixels got;

    assert_int_equal(sk_decoder_pixels(decoder, region, &got), STOKER_OK);
    for (int32_t y = 0; y < region->height; y++)
        assert_memory_equal(got.data + (size_t)(region->top + y - got.area.top) * got.stride +
                                3 * (size_t)(region->left - got.area.left),
                            rgb + 3 * ((size_t)(region->top + y) * (size_t)width + (size_t)region->left),
                            3 * (size_t)region->width);
}

static void images_come_back(void **state)
{
    static const by_libjpeg_options kinds[] = {
        {.h = 1, .v = 1, .gray = 1}, {.h = 1, .v = 1}, {.h = 2, .v = 1}, {.h = 1, .v = 2}, {.h = 2, .v = 2}};
    sk_decoder *decoder = sk_decoder_create(NULL);
    sk_coefficients image = {0}, back = {0};
    sk_buffer out = {0};

    (void)state;
    sk_random_make(&dice, 2, 0, 0, 0);
    for (int32_t round = 0; round < 400; round++) {
        by_libjpeg_options kind = kinds[round % 5];
        int32_t width = 5 + below(round % 10 == 0 ? 400 : 90), height = 1 + below(90), got_width, got_height;
        size_t size, packed_size;
        long warnings;
        bool taken;

        kind.quality = 1 + below(100);
        kind.progressive = round % 7 == 0;
        uint8_t *file = draw(width, height, &kind, &size);
        uint8_t *rgb = by_libjpeg_decode(file, size, width * height, &got_width, &got_height, &warnings);

        assert_non_null(rgb);
        assert_int_equal(sk_coefficients_read(&image, file, size, &taken), STOKER_OK);
        assert_true(taken);
        assert_int_equal(sk_dct_encode(&image, 1 + below(8), &out, &packed_size, &taken), STOKER_OK);
        assert_true(taken);
        assert_int_equal(sk_dct_read(out.data, packed_size, &back), STOKER_OK);
        for (int c = 0; c < (kind.gray ? 1 : 3); c++) {
            const sk_plane *plane = &image.plane[c];

            assert_memory_equal(plane->quant, back.plane[c].quant, sizeof plane->quant);
            assert_memory_equal(plane->blocks, back.plane[c].blocks,
                                (size_t)plane->across * (size_t)plane->down * 64 * sizeof(int16_t));
        }
        /* Just so many bytes, so that a look past them is seen by the sanitizer. */
        uint8_t *exact = malloc(packed_size);

        assert_non_null(exact);
        memcpy(exact, out.data, packed_size);
        assert_int_equal(sk_decoder_open_packed(decoder, exact, packed_size, &got_width, &got_height), STOKER_OK);
        assert_int_equal(got_width, width);
        assert_int_equal(got_height, height);
        region_equals(decoder, rgb, width, &(sk_rect){0, 0, width, height});
        for (int i = 0; i < 10; i++) {
            sk_rect region = {below(width), below(height), 0, 0};

            region.width = 1 + below(width - region.left);
            region.height = 1 + below(height - region.top);
            region_equals(decoder, rgb, width, &region);
        }
        free(exact);
        free(rgb);
        free(file);
    }
    sk_buffer_free(&out);
    sk_coefficients_free(&image);
    sk_coefficients_free(&back);
    sk_decoder_destroy(decoder);
}

static void damage_is_seen(void **state)
{
    sk_decoder *decoder = sk_decoder_create(NULL);
    sk_coefficients image = {0}, back = {0};
    sk_buffer out = {0};
    size_t size, packed_size;
    bool taken;
    int32_t width, height;
    sk_pixels pixels;

    (void)state;
    sk_random_make(&dice, 3, 0, 0, 0);
    uint8_t *file = draw(75, 50, &(by_libjpeg_options){.h = 2, .v = 2, .quality = 80}, &size);

    assert_int_equal(sk_coefficients_read(&image, file, size, &taken), STOKER_OK);
    assert_int_equal(sk_dct_encode(&image, 1, &out, &packed_size, &taken), STOKER_OK);
    uint8_t *copy = malloc(packed_size);

    assert_non_null(copy);
    for (size_t bit = 0; bit < 8 * packed_size; bit++) {
        memcpy(copy, out.data, packed_size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        stoker_status status = sk_decoder_open_packed(decoder, copy, packed_size, &width, &height);

        if (status == STOKER_OK)
            status = sk_decoder_pixels(decoder, NULL, &pixels);
        assert_true(status == STOKER_ERR_DATA || status == STOKER_ERR_UNSUPPORTED);
        assert_int_not_equal(sk_dct_read(copy, packed_size, &back), STOKER_OK);
    }
    for (size_t cut = 0; cut < packed_size; cut++) {
        uint8_t *part = malloc(cut + 1);

        assert_non_null(part);
        memcpy(part, out.data, cut);
        assert_int_not_equal(sk_decoder_open_packed(decoder, part, cut, &width, &height), STOKER_OK);
        free(part);
    }
    free(copy);
    free(file);
    sk_buffer_free(&out);
    sk_coefficients_free(&image);
    sk_coefficients_free(&back);
    sk_decoder_destroy(decoder);
}

/* What the form has no room for is refused, at its very edge. */
static void edges_of_range(void **state)
{
    static const struct {
        int place, value;
        bool taken;
    } cases[] = {{0, 2047, true},  {0, 2048, false}, {0, -2048, true},  {0, -2049, false}, {1, 1023, true},
                 {1, 1024, false}, {1, -1023, true}, {1, -1024, false}, {63, -1023, true}, {63, INT16_MIN, false}};
    sk_coefficients image = {.width = 8, .height = 8, .components = 1}, back = {0};
    sk_buffer out = {0};
    size_t size;
    bool taken;

    (void)state;
    image.plane[0].h = image.plane[0].v = 1;
    assert_int_equal(sk_coefficients_lay_out(&image), STOKER_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(image.plane[0].blocks, 0, 64 * sizeof(int16_t));
        for (int k = 0; k < 64; k++)
            image.plane[0].quant[k] = 1;
        image.plane[0].blocks[cases[i].place] = (int16_t)cases[i].value;
        assert_int_equal(sk_dct_encode(&image, 1, &out, &size, &taken), STOKER_OK);
        assert_int_equal(taken, cases[i].taken);
        if (taken) {
            assert_int_equal(sk_dct_read(out.data, size, &back), STOKER_OK);
            assert_memory_equal(back.plane[0].blocks, image.plane[0].blocks, 64 * sizeof(int16_t));
        }
    }
    sk_buffer_free(&out);
    sk_coefficients_free(&image);
    sk_coefficients_free(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_agree),
        cmocka_unit_test(images_come_back),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(edges_of_range),
    };

    if (sk_kernel_init() != STOKER_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
