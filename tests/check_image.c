/* SPDX-License-Identifier: Apache-2.0 */
/* check_image.c: decoders under lack of memory, over many broken files, and over each other's remains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "image/image.h"
#include "image/write.h"

enum { WIDTH = 61, HEIGHT = 47, FORMATS = 2 };

typedef struct file {
    uint8_t *data;
    size_t size;
} file;

static file files[FORMATS]; /* the same picture as PNG and as JPEG */

static int make_files(void **state)
{
    static const char *const names[FORMATS] = {"/tmp/stoker-image-%ld.png", "/tmp/stoker-image-%ld.jpg"};
    uint8_t *rgb = malloc(WIDTH * HEIGHT * 3);

    (void)state;
    if (rgb == NULL)
        return 1;
    for (int i = 0; i < WIDTH * HEIGHT * 3; i++)
        rgb[i] = (uint8_t)(i * 7 + i / 99);
    for (int i = 0; i < FORMATS; i++) {
        char path[64];

        snprintf(path, sizeof path, names[i], (long)getpid());
        stoker_status status =
            i == 0 ? sk_png_write(path, rgb, WIDTH, HEIGHT) : sk_jpeg_write(path, rgb, WIDTH, HEIGHT, 90, 1);
        FILE *in = status == STOKER_OK ? fopen(path, "rb") : NULL;

        if (in == NULL)
            return 1;
        files[i].data = malloc(1 << 20);
        files[i].size = files[i].data != NULL ? fread(files[i].data, 1, 1 << 20, in) : 0;
        fclose(in);
        unlink(path);
    }
    free(rgb);
    return 0;
}

static int free_files(void **state)
{
    (void)state;
    for (int i = 0; i < FORMATS; i++)
        free(files[i].data);
    return 0;
}

static stoker_status decode(sk_decoder *decoder, const file *from, size_t size, sk_pixels *pixels)
{
    int32_t width, height;
    stoker_status status = sk_decoder_open(decoder, from->data, size, &width, &height);

    return status == STOKER_OK ? sk_decoder_pixels(decoder, NULL, pixels) : status;
}

static void lack_of_memory(void **state)
{
    (void)state;
    for (int i = 0; i < FORMATS; i++) {
        long n;

        for (n = 1; n < 1000; n++) {
            sk_pixels pixels;

            sk_memory_fail_after(n);
            sk_decoder *decoder = sk_decoder_create(NULL);
            stoker_status status =
                decoder != NULL ? decode(decoder, &files[i], files[i].size, &pixels) : STOKER_ERR_MEMORY;

            sk_memory_fail_after(0);
            if (status != STOKER_OK && decoder != NULL) {
                assert_int_equal(status, STOKER_ERR_MEMORY);
                /* The decoder is none the worse for it. */
                assert_int_equal(decode(decoder, &files[i], files[i].size, &pixels), STOKER_OK);
            }
            sk_decoder_destroy(decoder);
            if (status == STOKER_OK)
                break;
        }
        assert_true(n > 1 && n < 1000);
    }
}

/* A hundred thousand errors leave nothing behind. */
static void broken_files_do_not_grow_memory(void **state)
{
    sk_decoder *decoder = sk_decoder_create(NULL);
    size_t before = 0;

    (void)state;
    assert_non_null(decoder);
    for (int n = 0; n < 100000; n++) {
        const file *from = &files[n % FORMATS];
        uint8_t *place = from->data + 40 + (size_t)n * 31 % (from->size - 40);
        sk_pixels pixels;

        *place ^= 0x55;
        decode(decoder, from, (size_t)n * 17 % from->size + 1, &pixels);
        *place ^= 0x55;
        if (n == 20000)
            before = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks <= before + 65536);
    for (int i = 0; i < FORMATS; i++) {
        sk_pixels pixels;

        assert_int_equal(decode(decoder, &files[i], files[i].size, &pixels), STOKER_OK);
    }
    sk_decoder_destroy(decoder);
}

/* Copies a JPEG file without its segments of one kind. */
static size_t without_segments(uint8_t *out, const file *from, uint8_t marker)
{
    size_t at = 2, size = 2;

    memcpy(out, from->data, 2);
    while (from->data[at + 1] != 0xDA) {
        size_t length = 2 + ((size_t)from->data[at + 2] << 8 | from->data[at + 3]);

        if (from->data[at + 1] != marker) {
            memcpy(out + size, from->data + at, length);
            size += length;
        }
        at += length;
    }
    memcpy(out + size, from->data + at, from->size - at);
    return size + from->size - at;
}

/* A file that lacks its tables is broken, even after one that had them: what a sample looks like must not depend on the
 * sample before it. */
static void tables_of_the_file_before(void **state)
{
    file lacking = {malloc(1 << 20), 0};
    sk_decoder *decoder = sk_decoder_create(NULL);
    sk_rect part = {3, 3, 5, 5};
    sk_pixels pixels;
    int32_t width, height;

    (void)state;
    assert_non_null(decoder);
    assert_non_null(lacking.data);
    lacking.size = without_segments(lacking.data, &files[1], 0xDB);
    assert_true(lacking.size < files[1].size);
    assert_int_equal(decode(decoder, &lacking, lacking.size, &pixels), STOKER_ERR_DATA);
    assert_int_equal(decode(decoder, &files[1], files[1].size, &pixels), STOKER_OK);
    assert_int_equal(decode(decoder, &lacking, lacking.size, &pixels), STOKER_ERR_DATA);
    assert_int_equal(decode(decoder, &files[1], files[1].size, &pixels), STOKER_OK);
    assert_int_equal(sk_decoder_open(decoder, lacking.data, lacking.size, &width, &height), STOKER_OK);
    assert_int_equal(sk_decoder_pixels(decoder, &part, &pixels), STOKER_ERR_DATA);
    sk_decoder_destroy(decoder);
    free(lacking.data);
}

static void calls_out_of_order(void **state)
{
    sk_decoder *decoder = sk_decoder_create(NULL);
    sk_rect outside = {0, 0, WIDTH + 1, 1};
    sk_pixels pixels;
    int32_t width, height;

    (void)state;
    assert_non_null(decoder);
    assert_int_equal(sk_decoder_pixels(decoder, NULL, &pixels), STOKER_ERR_STATE);
    assert_int_equal(sk_decoder_open(decoder, files[0].data, files[0].size, &width, &height), STOKER_OK);
    assert_int_equal(sk_decoder_pixels(decoder, &outside, &pixels), STOKER_ERR_ARGUMENT);
    assert_int_equal(sk_decoder_pixels(decoder, NULL, &pixels), STOKER_OK);
    assert_int_equal(sk_decoder_pixels(decoder, NULL, &pixels), STOKER_OK); /* again, of the same image */
    assert_int_equal(sk_decoder_open(decoder, files[0].data, 3, &width, &height), STOKER_ERR_DATA);
    assert_int_equal(sk_decoder_pixels(decoder, NULL, &pixels), STOKER_ERR_STATE);
    sk_decoder_destroy(decoder);
    sk_decoder_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lack_of_memory),
        cmocka_unit_test(broken_files_do_not_grow_memory),
        cmocka_unit_test(tables_of_the_file_before),
        cmocka_unit_test(calls_out_of_order),
    };

    return cmocka_run_group_tests(tests, make_files, free_files);
}
