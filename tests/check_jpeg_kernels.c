/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_jpeg_kernels.c: the JPEG kernels of every table against libjpeg, every byte. Pictures are made of random
 * coefficients (not of pixels), plain ones and ones that no encoder would write, and decoded by libjpeg: what overflows
 * there must overflow here. On Arm, pictures that overflow are compared with the scalar kernels alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <jpeglib.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "kernel/kernel.h"

#define MOST_COMPONENTS 3
#define EDGE            64 /* bytes on each side of a row that kernels may look at */

static const uint8_t natural[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

static sk_random dice;

static int32_t between(int32_t low, int32_t high)
{
    return low + (int32_t)sk_random_below(&dice, (uint32_t)(high - low + 1));
}

/* One component: its blocks as coefficients, whole MCUs, and its samples as the kernels make them. */
typedef struct component {
    int32_t h, v;          /* sampling factors */
    int32_t across, down;  /* blocks */
    int32_t width, height; /* samples that belong to the picture */
    uint16_t quant[64];
    int16_t *coefficients;
    uint8_t *last;
    uint8_t *samples; /* across × 8 wide */
} component;

typedef struct picture {
    int32_t width, height, components;
    int32_t most_h, most_v;
    bool arithmetic; /* its code holds any 16-bit coefficient; Huffman's stop at 10 bits */
    component part[MOST_COMPONENTS];
} picture;

static void *allocate(size_t size)
{
    void *memory = calloc(size + 1, 1);

    assert_non_null(memory);
    return memory;
}

static picture picture_make(int32_t width, int32_t height, int32_t components, int32_t h, int32_t v)
{
    picture made = {.width = width, .height = height, .components = components, .most_h = h, .most_v = v};

    for (int32_t c = 0; c < components; c++) {
        component *part = &made.part[c];

        part->h = c == 0 ? h : 1;
        part->v = c == 0 ? v : 1;
        part->across = (width + 8 * h - 1) / (8 * h) * part->h;
        part->down = (height + 8 * v - 1) / (8 * v) * part->v;
        part->width = (width * part->h + h - 1) / h;
        part->height = (height * part->v + v - 1) / v;
        size_t blocks = (size_t)part->across * (size_t)part->down;

        part->coefficients = allocate(blocks * 64 * sizeof(int16_t));
        part->last = allocate(blocks);
        part->samples = allocate(blocks * 64);
    }
    return made;
}

static void picture_free(picture *made)
{
    for (int32_t c = 0; c < made->components; c++) {
        free(made->part[c].coefficients);
        free(made->part[c].last);
        free(made->part[c].samples);
    }
}

static void set_last(component *part)
{
    for (int32_t b = 0; b < part->across * part->down; b++) {
        const int16_t *block = part->coefficients + 64 * (size_t)b;
        int32_t k = 63;

        while (k > 0 && block[natural[k]] == 0)
            k--;
        part->last[b] = (uint8_t)(between(0, 15) == 0 ? between(k, 63) : k); /* "may be": also too large */
    }
}

/* ------------------------------------------------------------------------------------------------- libjpeg -------- */

typedef struct encoded {
    unsigned char *bytes;
    unsigned long size;
} encoded;

static void say_nothing(j_common_ptr jpeg, int level)
{
    if (level < 0)
        jpeg->err->num_warnings++;
}

static encoded encode(const picture *made)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jvirt_barray_ptr arrays[MOST_COMPONENTS];
    encoded result = {0};

    jpeg.err = jpeg_std_error(&errors);
    errors.emit_message = say_nothing;
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &result.bytes, &result.size);
    jpeg.image_width = (JDIMENSION)made->width;
    jpeg.image_height = (JDIMENSION)made->height;
    jpeg.input_components = made->components;
    jpeg.in_color_space = made->components == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(&jpeg);
    jpeg.arith_code = made->arithmetic;
    for (int c = 0; c < made->components; c++) {
        const component *part = &made->part[c];
        if (jpeg.quant_tbl_ptrs[c] == NULL)
            jpeg.quant_tbl_ptrs[c] = jpeg_alloc_quant_table((j_common_ptr)&jpeg);
        for (int i = 0; i < 64; i++) /* jpeg_add_quant_table would stop at 32767 */
            jpeg.quant_tbl_ptrs[c]->quantval[i] = part->quant[i];
        jpeg.comp_info[c].quant_tbl_no = c;
        jpeg.comp_info[c].h_samp_factor = part->h;
        jpeg.comp_info[c].v_samp_factor = part->v;
        arrays[c] = jpeg.mem->request_virt_barray((j_common_ptr)&jpeg, JPOOL_IMAGE, FALSE, (JDIMENSION)part->across,
                                                  (JDIMENSION)part->down, (JDIMENSION)part->v);
    }
    jpeg_write_coefficients(&jpeg, arrays);
    for (int c = 0; c < made->components; c++) {
        const component *part = &made->part[c];

        for (int32_t y = 0; y < part->down; y++) {
            JBLOCKARRAY row = jpeg.mem->access_virt_barray((j_common_ptr)&jpeg, arrays[c], (JDIMENSION)y, 1, TRUE);

            memcpy(row[0], part->coefficients + (size_t)y * (size_t)part->across * 64,
                   (size_t)part->across * sizeof(JBLOCK));
        }
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return result;
}

static uint8_t *decode(const encoded *file, J_COLOR_SPACE space)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;

    jpeg.err = jpeg_std_error(&errors);
    errors.emit_message = say_nothing;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file->bytes, file->size);
    assert_int_equal(jpeg_read_header(&jpeg, TRUE), JPEG_HEADER_OK);
    jpeg.out_color_space = space;
    jpeg_start_decompress(&jpeg);
    size_t stride = (size_t)jpeg.output_width * (size_t)jpeg.output_components;
    uint8_t *pixels = allocate(stride * jpeg.output_height);

    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = pixels + stride * jpeg.output_scanline;

        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    assert_int_equal(errors.num_warnings, 0);
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return pixels;
}

/* -------------------------------------------------------------------------------------------- coefficients -------- */

typedef enum kind { REALISTIC, SPARSE, DENSE, EXTREME, FIRST_ROW, KINDS } kind;

/* The largest coefficient: what Huffman codes hold, or any that the arithmetic code holds (differences of DC too). */
static int32_t largest(const picture *made)
{
    return made->arithmetic ? 16383 : 1023;
}

static void make_quant(component *part, kind what)
{
    for (int i = 0; i < 64; i++)
        part->quant[i] = (uint16_t)(what == REALISTIC ? between(1, 8 + i) : between(1, 255));
    if (what >= EXTREME && between(0, 2) != 0) {
        for (int i = 0; i < 64; i++)
            part->quant[i] = (uint16_t)between(1, between(0, 1) == 0 ? 2000 : 65535);
    }
}

static void make_block(int16_t *block, kind what, int32_t most, const uint16_t *quant)
{
    int32_t count = what == DENSE || what == EXTREME ? 64 : what == FIRST_ROW ? 8 : between(0, 12);

    memset(block, 0, 64 * sizeof *block);
    block[0] = (int16_t)between(-1024 / quant[0], 1023 / quant[0]);
    for (int32_t k = 1; k < count; k++) {
        int32_t at = what == FIRST_ROW ? k : what == SPARSE ? between(0, 63) : natural[k];
        int32_t range = what == REALISTIC ? 1 + 300 / (quant[at] * (k + 1))
                        : what == DENSE   ? 1 + 500 / quant[at]
                                          : most;

        block[at] = (int16_t)between(-range, range);
        if (range == most && between(0, 2) == 0)
            block[at] = (int16_t)(between(0, 1) == 0 ? -most : most);
    }
    if (what >= EXTREME) {
        block[0] = (int16_t)between(-most, most);
        if (between(0, 1) == 0) { /* products around the ends of 16 bits and of the shortcut's 14 */
            int32_t near = (between(0, 1) == 0 ? 32767 : 8191) + between(-40, 40);
            int32_t dc = (between(0, 1) == 0 ? near : -near) / quant[0];

            block[0] = (int16_t)(dc < -most ? -most : dc > most ? most : dc);
        }
        if (between(0, 7) == 0)
            memset(block + 1, 0, 63 * sizeof *block);
    }
}

static void fill(picture *made, kind what)
{
    for (int32_t c = 0; c < made->components; c++) {
        component *part = &made->part[c];

        make_quant(part, what);
        for (int32_t b = 0; b < part->across * part->down; b++)
            make_block(part->coefficients + 64 * (size_t)b, what, largest(made), part->quant);
        set_last(part);
    }
}

/* ------------------------------------------------------------------------------------------------- kernels -------- */

static void make_samples(component *part, const sk_kernels *kernels)
{
    size_t stride = 8 * (size_t)part->across;

    for (int32_t y = 0; y < part->down; y++) {
        size_t first = (size_t)y * (size_t)part->across;

        kernels->idct(part->samples + first * 64, stride, part->coefficients + first * 64, part->last + first,
                      part->across, part->quant);
    }
}

/* A row of samples with the edges copied outwards, at rows[EDGE]. */
static const uint8_t *edged(uint8_t *row, const component *part, int32_t y)
{
    y = y < 0 ? 0 : y >= part->height ? part->height - 1 : y;
    const uint8_t *samples = part->samples + (size_t)y * 8 * (size_t)part->across;

    memcpy(row + EDGE, samples, (size_t)part->width);
    row[EDGE - 1] = samples[0];
    row[EDGE + part->width] = samples[part->width - 1];
    return row + EDGE;
}

/* Row `y` of the picture of a component, upsampled. */
static void make_row(uint8_t *out, const picture *made, const component *part, int32_t y, const sk_kernels *kernels)
{
    static uint8_t near_room[20000], far_room[20000];
    int32_t h = made->most_h / part->h, v = made->most_v / part->v;
    const uint8_t *near = edged(near_room, part, y / v);
    const uint8_t *far = edged(far_room, part, y / v + (y % v == 0 ? -1 : 1));

    if (h == 2 && v == 2)
        kernels->upsample_h2v2(out, near, far, part->width);
    else if (h == 2)
        kernels->upsample_h2v1(out, near, part->width);
    else if (v == 2)
        kernels->upsample_h1v2(out, near, far, part->width, 1 + y % v);
    else
        memcpy(out, near, (size_t)part->width);
}

static void check_picture(picture *made, const uint8_t *ycc, const uint8_t *rgb, const sk_kernels *kernels,
                          const char *what)
{
    static uint8_t planes[MOST_COMPONENTS][20000], interleaved[60000];
    size_t n = (size_t)made->components, width = (size_t)made->width;

    for (int32_t c = 0; c < made->components; c++)
        make_samples(&made->part[c], kernels);
    for (int32_t y = 0; y < made->height; y++) {
        for (size_t c = 0; c < n; c++) {
            make_row(planes[c], made, &made->part[c], y, kernels);
            for (size_t x = 0; x < width; x++) {
                uint8_t expected = ycc[((size_t)y * width + x) * n + c];

                if (planes[c][x] != expected)
                    fail_msg("%s: %s, %d x %d, component %zu, x %zu, y %d: %d, not %d", kernels->name, what,
                             made->width, made->height, c, x, y, planes[c][x], expected);
            }
        }
        if (n == 1)
            kernels->gray_to_rgb(interleaved, planes[0], made->width);
        else
            kernels->ycc_to_rgb(interleaved, planes[0], planes[1], planes[2], made->width);
        if (memcmp(interleaved, rgb + (size_t)y * width * 3, width * 3) != 0)
            fail_msg("%s: %s, RGB of row %d differs", kernels->name, what, y);
    }
}

/* Where coefficients overflow, libjpeg-turbo's vector code for Arm gives other samples than that for x86-64. The kernels
 * give x86-64's everywhere. */
static bool is_libjpeg_the_reference(kind what)
{
#ifdef __aarch64__
    return what == REALISTIC || what == DENSE;
#else
    (void)what;
    return true;
#endif
}

static void check_samples(picture *made, const sk_kernels *kernels, const char *what)
{
    for (int32_t c = 0; c < made->components; c++) {
        component *part = &made->part[c];
        size_t size = (size_t)part->across * (size_t)part->down * 64;
        uint8_t *expected = allocate(size);

        make_samples(part, &sk_kernels_scalar);
        memcpy(expected, part->samples, size);
        memset(part->samples, 0, size);
        make_samples(part, kernels);
        if (memcmp(expected, part->samples, size) != 0)
            fail_msg("%s: %s, samples of component %d differ from scalar", kernels->name, what, c);
        free(expected);
    }
}

static void check_all_tables(picture *made, kind what, const char *name)
{
    int32_t count;
    const sk_kernels *const *tables = sk_kernels_all(&count);

    for (int32_t i = 1; i < count; i++)
        check_samples(made, tables[i], name);
    if (!is_libjpeg_the_reference(what))
        return;
    encoded file = encode(made);
    uint8_t *ycc = decode(&file, made->components == 1 ? JCS_GRAYSCALE : JCS_YCbCr), *rgb = decode(&file, JCS_RGB);

    for (int32_t i = 0; i < count; i++)
        check_picture(made, ycc, rgb, tables[i], name);
    free(ycc);
    free(rgb);
    free(file.bytes);
}

/* --------------------------------------------------------------------------------------------------- tests -------- */

static const char *const kind_name[KINDS] = {"realistic", "sparse", "dense", "extreme", "first row"};

/* 40 pictures × 5 kinds × 512 blocks. */
static void gray_blocks(bool arithmetic)
{
    for (int round = 0; round < 40; round++) {
        for (kind what = REALISTIC; what < KINDS; what++) {
            picture made = picture_make(8 * 37, 8 * 14, 1, 1, 1);

            made.arithmetic = arithmetic;
            fill(&made, what);
            check_all_tables(&made, what, kind_name[what]);
            picture_free(&made);
        }
    }
}

static void test_idct(void **state)
{
    (void)state;
    gray_blocks(false);
}

/* Coefficients of 15 bits. */
static void test_idct_beyond_huffman(void **state)
{
    (void)state;
#ifdef C_ARITH_CODING_SUPPORTED
    gray_blocks(true);
#else
    skip();
#endif
}

static void test_upsampling(void **state)
{
    static const int32_t factors[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

    (void)state;
    for (int round = 0; round < 60; round++) {
        for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
            /* libjpeg interpolates across only where chroma is more than two samples wide */
            picture made = picture_make(between(5, 300), between(1, 70), 3, factors[i][0], factors[i][1]);

            kind what = (kind)(round % 4);

            fill(&made, what);
            check_all_tables(&made, what, "upsampled");
            picture_free(&made);
        }
    }
}

/* DC and the first row and column of the block whose samples are base + x + 8 y. */
static void make_ramp(int16_t *block, int32_t base)
{
    memset(block, 0, 64 * sizeof *block);
    block[0] = (int16_t)lrint(8 * (base + 31.5 - 128));
    for (int k = 1; k < 8; k++) {
        double sum = 0;

        for (int x = 0; x < 8; x++)
            sum += x * cos((2 * x + 1) * k * acos(-1.0) / 16);
        sum *= sqrt(2); /* times sqrt(8) for the other direction, times 1/2 */
        block[k] = (int16_t)lrint(sum);
        block[8 * k] = (int16_t)lrint(8 * sum);
    }
}

/* Every (Y, Cb, Cr): one block for each Cb, Cr and quarter of Y, Cb and Cr constant, Y a ramp. */
static void test_every_colour(void **state)
{
    picture made = picture_make(8 * 1024, 8 * 256, 3, 1, 1);

    (void)state;
    for (int i = 0; i < 64; i++) {
        made.part[0].quant[i] = 1;
        made.part[1].quant[i] = made.part[2].quant[i] = 8;
    }
    for (int32_t b = 0; b < 1024 * 256; b++) {
        int32_t blue = (b >> 2 & 255) - 128, red = (b >> 10) - 128;

        make_ramp(made.part[0].coefficients + 64 * (size_t)b, 64 * (b & 3));
        made.part[1].coefficients[64 * (size_t)b] = (int16_t)blue;
        made.part[2].coefficients[64 * (size_t)b] = (int16_t)red;
    }
    for (int c = 0; c < 3; c++)
        set_last(&made.part[c]);
    encoded file = encode(&made);
    uint8_t *ycc = decode(&file, JCS_YCbCr), *rgb = decode(&file, JCS_RGB);
    size_t pixels = (size_t)made.width * (size_t)made.height, seen = 0;
    uint8_t *met = allocate((size_t)1 << 24);
    int32_t count;
    const sk_kernels *const *tables = sk_kernels_all(&count);

    for (size_t i = 0; i < pixels; i++) {
        size_t colour = (size_t)ycc[3 * i] << 16 | (size_t)ycc[3 * i + 1] << 8 | ycc[3 * i + 2];

        seen += met[colour] == 0;
        met[colour] = 1;
    }
    assert_int_equal(seen, (size_t)1 << 24);
    for (int32_t t = 0; t < count; t++)
        check_picture(&made, ycc, rgb, tables[t], "every colour");
    free(met);
    free(ycc);
    free(rgb);
    free(file.bytes);
    picture_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idct),
        cmocka_unit_test(test_idct_beyond_huffman),
        cmocka_unit_test(test_upsampling),
        cmocka_unit_test(test_every_colour),
    };

    sk_random_make(&dice, 8, 8, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
