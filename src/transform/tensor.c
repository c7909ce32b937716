/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c: dtype and layout.
 *
 * ToTensor is v / 255 and Normalize (v - mean) / std, each step rounded to float32
 * (torchvision/transforms/_functional_tensor.py: div, sub_, div_). A value has 256 possible inputs a channel, so a
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

/* IEEE 754 binary32 → binary16, nearest even. */
static uint16_t to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00); /* NaN */
    if (magnitude >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    if (magnitude < 0x38800000) {
        /* Subnormal: the float whose unit in the last place is 2^-24 does the rounding. */
        float shifted = fabsf(value) + 0.5f;

        return (uint16_t)(sign | (bits_of(shifted) - bits_of(0.5f)));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((magnitude - 0x38000000) >> 13));
}

/* binary32 → bfloat16, nearest even. */
static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* What the vector kernels compute: quotients by a reciprocal and one step of correction with fused multiply-adds, which
 * gives the correctly rounded quotient unless the reciprocal is unlucky (Markstein, "Computation of elementary
 * functions on the IBM RISC System/6000", 1990); so all 256 inputs are tried. */
static float quotient(float value, float divisor)
{
    float reciprocal = 1.0f / divisor;
    float guess = value * reciprocal;

    return fmaf(fmaf(-guess, divisor, value), reciprocal, guess);
}

static bool division_gives_table(const stoker_spec *spec)
{
    for (int c = 0; c < 3; c++) {
        for (int v = 0; v < 256; v++) {
            float result = quotient(quotient((float)v, 255.0f) - spec->mean[c], spec->std[c]);

            if (bits_of(result) != bits_of(spec->table[c][v]))
                return false;
        }
    }
    return true;
}

void sk_tensor_prepare(stoker_spec *spec)
{
    int normals = 0;

    for (int c = 0; c < 3; c++) {
        spec->mean[c] = 0.0f;
        spec->std[c] = 1.0f;
        for (int v = 0; v < 256; v++)
            spec->table[c][v] = (float)v / 255.0f;
    }
    for (int32_t i = 0; i < spec->count; i++) {
        const sk_op *op = &spec->op[i];

        if (op->kind != SK_OP_NORMALIZE)
            continue;
        normals++;
        for (int c = 0; c < 3; c++) {
            spec->mean[c] = op->mean[op->channels == 1 ? 0 : c];
            spec->std[c] = op->std[op->channels == 1 ? 0 : c];
            for (int v = 0; v < 256; v++) {
                float centred = spec->table[c][v] - spec->mean[c];

                spec->table[c][v] = centred / spec->std[c];
            }
        }
    }
    spec->normal_count = normals;
    spec->by_division = normals <= 1 && division_gives_table(spec);
    for (int c = 0; c < 3; c++) {
        for (int v = 0; v < 256; v++)
            spec->half[c][v] = spec->dtype == STOKER_BF16 ? to_bf16(spec->table[c][v]) : to_f16(spec->table[c][v]);
    }
}

static sk_normal normal_of(const stoker_spec *spec)
{
    return (sk_normal){
        .table = spec->table, .mean = spec->mean, .std = spec->std, .by_division = spec->by_division ? 1 : 0};
}

static void row_f32(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip, float *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    sk_normal normal = normal_of(spec);
    size_t width = (size_t)shape.width;
    size_t plane = width * (size_t)shape.height;

    if (shape.channels == 1) {
        kernels->plane_to_f32(out + (size_t)y * width, row, shape.width, flip, &normal, 0);
    } else if (spec->layout == STOKER_NCHW) {
        kernels->rgb_to_planes_f32(out + (size_t)y * width, plane, row, shape.width, flip, &normal);
    } else {
        float *to = out + (size_t)y * width * 3;

        for (size_t x = 0; x < width; x++) {
            const uint8_t *pixel = row + 3 * (flip ? width - 1 - x : x);

            for (size_t c = 0; c < 3; c++)
                to[3 * x + c] = spec->table[c][pixel[c]];
        }
    }
}

static void row_half(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip,
                     uint16_t *out)
{
    size_t width = (size_t)shape.width;
    size_t channels = (size_t)shape.channels;
    size_t plane = width * (size_t)shape.height;
    bool planar = spec->layout == STOKER_NCHW;

    for (size_t c = 0; c < channels; c++) {
        uint16_t *to = planar ? out + c * plane + (size_t)y * width : out + (size_t)y * width * channels + c;
        size_t step = planar ? 1 : channels;
        const uint16_t *table = spec->half[c];

        for (size_t x = 0; x < width; x++)
            to[x * step] = table[row[channels * (flip ? width - 1 - x : x) + c]];
    }
}

static void row_u8(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip, uint8_t *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    size_t width = (size_t)shape.width;
    size_t plane = width * (size_t)shape.height;

    if (shape.channels == 1) {
        kernels->plane_to_u8(out + (size_t)y * width, row, shape.width, flip);
    } else if (spec->layout == STOKER_NCHW) {
        kernels->rgb_to_planes_u8(out + (size_t)y * width, plane, row, shape.width, flip);
    } else {
        uint8_t *to = out + (size_t)y * width * 3;

        if (!flip) {
            memcpy(to, row, 3 * width);
            return;
        }
        for (size_t x = 0; x < width; x++)
            memcpy(to + 3 * x, row + 3 * (width - 1 - x), 3);
    }
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

/* A window into interleaved memory or 16-bit floats: element by element through the table. */
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

void sk_tensor_window(const stoker_spec *spec, sk_shape shape, int32_t channel, const sk_window *window, void *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    size_t start = (size_t)channel * (size_t)shape.width * (size_t)shape.height;

    if (spec->layout == STOKER_NCHW && spec->dtype == STOKER_F32) {
        sk_normal normal = normal_of(spec);

        kernels->window_to_f32((float *)out + start, window, &normal, channel);
    } else if (spec->layout == STOKER_NCHW && spec->dtype == STOKER_U8) {
        kernels->window_to_u8((uint8_t *)out + start, window);
    } else {
        window_by_element(spec, shape, channel, window, out);
    }
}
