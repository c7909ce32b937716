/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c: dtype and layout.
 *
 * ToTensor is v / 255 and Normalize (v - mean) / std, each step rounded to float32
 * (torchvision/transforms/_functional_tensor.py: div, sub_, div_); v2.ToDtype multiplies by 1 / 255 instead, which
 * differs in the last bit of many levels. A value has 256 possible inputs a channel, so a
 * table holds the exact results; f16 and bf16 are rounded from them to nearest, ties to even, as torch's .half() and
 * .bfloat16() do.
 */
#include "transform/tensor.h"

#include <math.h>
#include <string.h>

#include "kernel/kernel.h"
#include "transform/spec.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* What the vector kernels compute. The multiplication by an inverse in two parts gives the correctly rounded quotient
 * unless that lies within some 2^-47 of the middle between two floats; so all 256 inputs are tried. */
static float multiply(float value, sk_inverse by)
{
    return fmaf(value, by.high, value * by.low);
}

static bool arithmetic_gives_table(const stoker_spec *spec)
{
    for (int c = 0; c < 3; c++) {
        for (int v = 0; v < 256; v++) {
            float result = multiply(multiply((float)v, spec->unit) - spec->mean[c], spec->deviation[c]);

            if (bits_of(result) != bits_of(spec->table[c][v]))
                return false;
        }
    }
    return true;
}

void sk_tensor_prepare(stoker_spec *spec)
{
    int normals = 0;
    bool reciprocal = false;

    for (int32_t i = 0; i < spec->count; i++)
        reciprocal = reciprocal || (spec->op[i].kind == SK_OP_TO_TENSOR && spec->op[i].reciprocal);
    spec->unit = reciprocal ? (sk_inverse){(float)(1.0 / 255.0), 0.0f} : sk_inverse_of(255.0f);
    for (int c = 0; c < 3; c++) {
        spec->mean[c] = 0.0f;
        spec->deviation[c] = sk_inverse_of(1.0f);
        for (int v = 0; v < 256; v++)
            spec->table[c][v] = reciprocal ? (float)v * (float)(1.0 / 255.0) : (float)v / 255.0f;
    }
    for (int32_t i = 0; i < spec->count; i++) {
        const sk_op *op = &spec->op[i];

        if (op->kind != SK_OP_NORMALIZE)
            continue;
        normals++;
        for (int c = 0; c < 3; c++) {
            spec->mean[c] = op->mean[op->channels == 1 ? 0 : c];
            float deviation = op->std[op->channels == 1 ? 0 : c];

            spec->deviation[c] = sk_inverse_of(deviation);
            for (int v = 0; v < 256; v++) {
                float centred = spec->table[c][v] - spec->mean[c];

                spec->table[c][v] = centred / deviation;
            }
        }
    }
    spec->normal_count = normals;
    spec->by_arithmetic = normals <= 1 && arithmetic_gives_table(spec);
    for (int c = 0; c < 3; c++) {
        if (spec->dtype == STOKER_BF16)
            sk_kernels_scalar.f32_to_bf16(spec->half[c], spec->table[c], 256);
        else
            sk_kernels_scalar.f32_to_f16(spec->half[c], spec->table[c], 256);
    }
}

static sk_normal normal_of(const stoker_spec *spec)
{
    return (sk_normal){.table = spec->table,
                       .mean = spec->mean,
                       .deviation = spec->deviation,
                       .unit = spec->unit,
                       .by_arithmetic = spec->by_arithmetic ? 1 : 0};
}

static void row_f32(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip, float *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    sk_normal normal = normal_of(spec);
    size_t width = (size_t)shape.width;
    size_t plane = width * (size_t)shape.height;

    if (shape.channels == 1)
        kernels->plane_to_f32(out + (size_t)y * width, row, shape.width, flip, &normal, 0);
    else if (spec->layout == STOKER_NCHW)
        kernels->rgb_to_planes_f32(out + (size_t)y * width, plane, row, shape.width, flip, &normal);
    else
        kernels->rgb_to_rgb_f32(out + (size_t)y * width * 3, row, shape.width, flip, &normal);
}

static void to_half(const stoker_spec *spec, uint16_t *out, const float *in, int32_t count)
{
    if (spec->dtype == STOKER_BF16)
        sk_kernels_get()->f32_to_bf16(out, in, count);
    else
        sk_kernels_get()->f32_to_f16(out, in, count);
}

#define WINDOW_PIXELS 1024 /* of a window that are put together on the stack before they become a tensor */
#define CHUNK         256  /* pixels of a row that become floats on the stack before they become 16-bit floats */

static void row_half(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip,
                     uint16_t *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    sk_normal normal = normal_of(spec);
    float value[3 * CHUNK];
    size_t channels = (size_t)shape.channels;
    size_t start = (size_t)y * (size_t)shape.width;
    size_t plane = (size_t)shape.width * (size_t)shape.height;

    for (int32_t x = 0; x < shape.width; x += CHUNK) {
        int32_t n = shape.width - x < CHUNK ? shape.width - x : CHUNK;
        const uint8_t *from = row + channels * (size_t)(flip ? shape.width - x - n : x);

        if (channels == 1) {
            kernels->plane_to_f32(value, from, n, flip, &normal, 0);
            to_half(spec, out + start + (size_t)x, value, n);
        } else if (spec->layout == STOKER_NHWC) {
            kernels->rgb_to_rgb_f32(value, from, n, flip, &normal);
            to_half(spec, out + 3 * (start + (size_t)x), value, 3 * n);
        } else {
            kernels->rgb_to_planes_f32(value, CHUNK, from, n, flip, &normal);
            for (size_t c = 0; c < 3; c++)
                to_half(spec, out + c * plane + start + (size_t)x, value + c * CHUNK, n);
        }
    }
}

static void row_u8(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip, uint8_t *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    size_t width = (size_t)shape.width;
    size_t plane = width * (size_t)shape.height;

    if (shape.channels == 1)
        kernels->plane_to_u8(out + (size_t)y * width, row, shape.width, flip);
    else if (spec->layout == STOKER_NCHW)
        kernels->rgb_to_planes_u8(out + (size_t)y * width, plane, row, shape.width, flip);
    else
        kernels->rgb_to_rgb_u8(out + (size_t)y * width * 3, row, shape.width, flip);
}

void sk_tensor_row(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip, void *out)
{
    switch (spec->dtype) {
    case STOKER_U8:
        row_u8(spec, shape, y, row, flip, out);
        return;
    case STOKER_F16:
    case STOKER_BF16:
        row_half(spec, shape, y, row, flip, out);
        return;
    case STOKER_F32:
        row_f32(spec, shape, y, row, flip, out);
        return;
    }
}

/* A wide window into interleaved memory or to 16-bit floats: element by element through the table. */
static void window_by_element(const stoker_spec *spec, sk_shape shape, int32_t channel, const sk_window *window,
                              void *out)
{
    bool planar = spec->layout == STOKER_NCHW;
    size_t step = planar ? 1 : (size_t)shape.channels;
    size_t place = planar ? (size_t)channel * (size_t)shape.width * (size_t)shape.height : (size_t)channel;

    for (int32_t y = 0; y < shape.height; y++) {
        int32_t row = y - window->margin_top;
        bool inside = row >= 0 && row < window->rows;
        const uint8_t *in = inside ? window->in + row * window->in_stride : window->in;

        for (int32_t x = 0; x < shape.width; x++, place += step) {
            int32_t at = x - window->margin_left;
            bool source = inside && at >= 0 && at < window->count;
            uint8_t value = !source ? window->fill : in[window->flip ? window->count - 1 - at : at];

            if (spec->dtype == STOKER_U8)
                ((uint8_t *)out)[place] = value;
            else if (spec->dtype == STOKER_F32)
                ((float *)out)[place] = spec->table[channel][value];
            else
                ((uint16_t *)out)[place] = spec->half[channel][value];
        }
    }
}

/* 16-bit floats: some rows at a time by way of floats on the stack. */
static void window_half(const stoker_spec *spec, const sk_window *window, int32_t channel, uint16_t *out)
{
    sk_normal normal = normal_of(spec);
    float value[WINDOW_PIXELS];
    int32_t most = WINDOW_PIXELS / window->width;

    for (int32_t y = 0; y < window->height; y += most) {
        int32_t rows = window->height - y < most ? window->height - y : most;
        sk_window part = sk_window_rows(window, y, rows);

        sk_kernels_get()->window_to_f32(value, &part, &normal, channel);
        to_half(spec, out + (size_t)y * (size_t)window->width, value, rows * window->width);
    }
}

/* Interleaved: some rows at a time, put together on the stack and then made as one row of an image is. */
static void windows_interleaved(const stoker_spec *spec, const sk_window *windows, void *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    uint8_t planes[3][WINDOW_PIXELS], pixels[3 * WINDOW_PIXELS];
    int32_t width = windows[0].width, height = windows[0].height, most = WINDOW_PIXELS / width;
    size_t pixel_bytes = sk_spec_bytes(spec, (sk_shape){3, 1, 1});

    for (int32_t y = 0; y < height; y += most) {
        int32_t rows = height - y < most ? height - y : most;
        sk_shape row = {3, 1, rows * width};

        for (int c = 0; c < 3; c++) {
            sk_window part = sk_window_rows(&windows[c], y, rows);

            kernels->window_to_u8(planes[c], &part);
        }
        kernels->planes_to_rgb_u8(pixels, planes[0], WINDOW_PIXELS, row.width);
        sk_tensor_row(spec, row, 0, pixels, 0, (uint8_t *)out + (size_t)y * (size_t)width * pixel_bytes);
    }
}

static void window_planar(const stoker_spec *spec, sk_shape shape, int32_t channel, const sk_window *window, void *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    size_t start = (size_t)channel * (size_t)shape.width * (size_t)shape.height;
    bool half = spec->dtype == STOKER_F16 || spec->dtype == STOKER_BF16;

    if (half && window->width > WINDOW_PIXELS) {
        window_by_element(spec, shape, channel, window, out);
    } else if (half) {
        window_half(spec, window, channel, (uint16_t *)out + start);
    } else if (spec->dtype == STOKER_F32) {
        sk_normal normal = normal_of(spec);

        kernels->window_to_f32((float *)out + start, window, &normal, channel);
    } else {
        kernels->window_to_u8((uint8_t *)out + start, window);
    }
}

void sk_tensor_windows(const stoker_spec *spec, sk_shape shape, const sk_window *windows, void *out)
{
    bool interleaved = spec->layout == STOKER_NHWC && shape.channels > 1;

    if (interleaved && shape.width <= WINDOW_PIXELS) {
        windows_interleaved(spec, windows, out);
        return;
    }
    for (int32_t c = 0; c < shape.channels; c++) {
        if (interleaved)
            window_by_element(spec, shape, c, &windows[c], out);
        else
            window_planar(spec, shape, c, &windows[c], out);
    }
}
