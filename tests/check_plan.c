/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_plan.c: three ways to the same tensor. An image given whole; only the region that sk_spec_shape names, in memory that ends
 * with it; and the same image as planes. Prints "N passed, N failed"; exit 1 if any failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "kernel/kernel.h"
#include "transform/plan.h"

static const char *const specs[] = {
    "",
    "random_crop(32,padding=4) random_horizontal_flip normalize(cifar10)",
    "random_crop(32,padding=4,fill=(9,8,7)) random_horizontal_flip random_vertical_flip to(u8,nchw)",
    "random_crop(32,padding=4) random_horizontal_flip to(bf16,nchw)",
    "random_crop(32,padding=4) random_vertical_flip normalize(cifar10) to(f16,nhwc)",
    "random_crop(30,padding=4,padding_mode=reflect) random_horizontal_flip normalize(cifar10)",
    "random_crop(70,pad_if_needed=true,padding_mode=symmetric) to(f32,nhwc)",
    "pad((40,3,0,50),fill=7) center_crop(20) random_vertical_flip to(u8,nchw)",
    "center_crop((90,5)) random_horizontal_flip normalize(0.5,0.5)",
    "center_crop(8) center_crop(4) random_vertical_flip to(f32)",
    "random_resized_crop(24) random_horizontal_flip normalize(imagenet)",
    "random_resized_crop((9,40),interpolation=lanczos) random_vertical_flip to(u8,nhwc)",
    "resize(50) center_crop(20) normalize(imagenet)",
    "random_horizontal_flip resize((20,90),bicubic) random_vertical_flip center_crop(9) grayscale(3)",
    "grayscale(3) random_horizontal_flip pad(3,padding_mode=edge) resize((5,7),box) random_crop(4)",
    "random_vertical_flip pad(90,padding_mode=symmetric) random_crop(12) resize(40,nearest) to(f16)",
};

static sk_random dice;

static int32_t between(int32_t low, int32_t high)
{
    return low + (int32_t)sk_random_below(&dice, (uint32_t)(high - low + 1));
}

static void *need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "%s\n", sk_message());
        exit(1);
    }
    return memory;
}

/* 0: equal; 1: not; -1: the draws do not go with such an image. */
static int check(const char *text, const stoker_spec *spec, sk_workspace *workspace)
{
    int32_t width = between(0, 1) == 0 ? 32 : between(1, 90), height = width == 32 ? 32 : between(1, 90);
    int32_t channels = between(0, 3) == 0 ? 1 : 3;
    size_t plane = (size_t)width * (size_t)height, pixel = (size_t)channels;
    sk_draws draws;
    sk_shape shape;
    sk_rect region;

    if (sk_spec_draw(spec, 1, 2, sk_random_u32(&dice), width, height, &draws) != STOKER_OK ||
        sk_spec_shape(spec, &draws, width, height, channels, &shape, &region) != STOKER_OK)
        return -1;
    size_t size = sk_spec_bytes(spec, shape), row = (size_t)region.width * pixel;
    uint8_t *image = need(malloc(plane * pixel)), *planes = need(malloc(plane * pixel));
    uint8_t *part = need(malloc(row * (size_t)region.height));
    uint8_t *out[3] = {need(malloc(size)), need(malloc(size)), need(malloc(size))};

    for (size_t i = 0; i < plane * pixel; i++) {
        image[i] = (uint8_t)sk_random_u32(&dice);
        planes[i % pixel * plane + i / pixel] = image[i];
    }
    for (size_t y = 0; y < (size_t)region.height; y++)
        memcpy(part + y * row, image + ((y + (size_t)region.top) * (size_t)width + (size_t)region.left) * pixel, row);
    sk_pixels whole = {.data = image,
                       .stride = (size_t)width * pixel,
                       .channels = channels,
                       .full_width = width,
                       .full_height = height,
                       .area = {0, 0, width, height}};
    sk_pixels cut = whole;

    cut.data = part;
    cut.stride = row;
    cut.area = region;
    bool good = sk_spec_run(spec, workspace, &whole, &draws, out[0]) == STOKER_OK &&
                sk_spec_run(spec, workspace, &cut, &draws, out[1]) == STOKER_OK &&
                sk_spec_run_planar(spec, workspace, planes, width, height, channels, &draws, out[2]) == STOKER_OK &&
                memcmp(out[0], out[1], size) == 0 && memcmp(out[0], out[2], size) == 0;

    if (!good)
        fprintf(stderr, "%s: '%s' on %d x %d x %d\n", sk_cpu_name(), text, width, height, channels);
    for (int i = 0; i < 3; i++)
        free(out[i]);
    free(image);
    free(planes);
    free(part);
    return good ? 0 : 1;
}

int main(void)
{
    long passed = 0, failed = 0;
    sk_workspace *workspace = need(sk_workspace_create());

    if (sk_kernel_init() != STOKER_OK) {
        fprintf(stderr, "%s\n", sk_message());
        return 1;
    }
    sk_random_make(&dice, 7, 0, 0, 0);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        stoker_spec *spec;

        if (stoker_spec_parse(specs[i], &spec) != STOKER_OK) {
            fprintf(stderr, "%s\n", sk_message());
            return 1;
        }
        for (int round = 0; round < 400; round++) {
            int result = check(specs[i], spec, workspace);

            passed += result == 0;
            failed += result > 0;
        }
        stoker_spec_free(spec);
    }
    sk_workspace_destroy(workspace);
    printf("%s: %ld passed, %ld failed\n", sk_cpu_name(), passed, failed);
    return failed == 0 && passed > 1000 ? 0 : 1;
}
