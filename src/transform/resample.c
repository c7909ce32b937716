/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.c: weights and passes. The weights are computed in double, normalised, and rounded to 22 fractional bits, in
 * the order of operations that Pillow's Resample.c uses, since each rounding shows in the result. Two passes, 8-bit in
 * between, the second one's needs deciding what the first one makes. A pass whose size does not change is left out.
 * Nearest is Pillow's affine path, whose source coordinate is summed up step by step.
 */
#include "transform/resample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const char *const filter_names[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};

const char *sk_filter_name(sk_filter filter)
{
    return filter_names[filter];
}

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming(double x)
{
    x = fabs(x);
    if (x == 0.0)
        return 1.0;
    if (x >= 1.0)
        return 0.0;
    x = x * M_PI;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x)); /* Pillow's constants are floats */
}

static double bicubic(double x)
{
    const double a = -0.5; /* the sharpness that Pillow chose */

    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double sinc(double x)
{
    if (x == 0.0)
        return 1.0;
    x = x * M_PI;
    return sin(x) / x;
}

static double lanczos(double x)
{
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

typedef struct filter_shape {
    double (*value)(double x);
    double support; /* source pixels on each side, at scale 1 */
} filter_shape;

static const filter_shape shapes[] = {
    [SK_FILTER_BOX] = {box, 0.5},         [SK_FILTER_BILINEAR] = {bilinear, 1.0}, [SK_FILTER_HAMMING] = {hamming, 1.0},
    [SK_FILTER_BICUBIC] = {bicubic, 2.0}, [SK_FILTER_LANCZOS] = {lanczos, 3.0},
};

void sk_axis_free(sk_axis *axis)
{
    sk_buffer_free(&axis->first);
    sk_buffer_free(&axis->count);
    sk_buffer_free(&axis->weight);
    sk_buffer_free(&axis->exact);
    sk_buffer_free(&axis->packed);
    memset(axis, 0, sizeof *axis);
}

static stoker_status axis_reserve(sk_axis *axis, int32_t out, int32_t size)
{
    size_t weights;

    if (!sk_multiply((size_t)out, (size_t)size, &weights) || weights > SIZE_MAX / sizeof(double))
        return sk_fail(STOKER_ERR_LIMIT, "resampling to %d pixels needs too many weights", out);
    stoker_status status = sk_buffer_reserve(&axis->first, (size_t)out * sizeof(int32_t));

    if (status == STOKER_OK)
        status = sk_buffer_reserve(&axis->count, (size_t)out * sizeof(int32_t));
    if (status == STOKER_OK)
        status = sk_buffer_reserve(&axis->weight, weights * sizeof(int32_t));
    if (status == STOKER_OK)
        status = sk_buffer_reserve(&axis->exact, (size_t)size * sizeof(double));
    return status;
}

/* Nearest: one tap of weight one; Pillow adds the step up from the first centre, so errors of addition count. */
static void nearest_taps(int32_t in, int32_t out, int32_t *first, int32_t *count, int32_t *weight)
{
    double step = (double)in / out;
    double at = step * 0.5;

    for (int32_t i = 0; i < out; i++) {
        int32_t source = (int32_t)at;

        first[i] = source < in ? source : in - 1;
        count[i] = 1;
        weight[i] = 1 << SK_WEIGHT_BITS;
        at += step;
    }
}

static int32_t round_weight(double weight)
{
    double scaled = weight * (1 << SK_WEIGHT_BITS);

    return weight < 0 ? (int32_t)(-0.5 + scaled) : (int32_t)(0.5 + scaled);
}

/* The taps of output `i`: from (inclusive) and to (exclusive), as sk_axis_make has them. */
static void tap_bounds(int32_t in, int32_t out, sk_filter filter, int32_t i, int32_t *from, int32_t *to)
{
    double scale = (double)in / out;

    if (filter == SK_FILTER_NEAREST) {
        double at = scale * 0.5;

        for (int32_t k = 0; k < i; k++)
            at += scale;
        *from = (int32_t)at < in ? (int32_t)at : in - 1;
        *to = *from + 1;
        return;
    }
    double support = shapes[filter].support * (scale < 1.0 ? 1.0 : scale);
    double centre = (i + 0.5) * scale;

    *from = (int32_t)(centre - support + 0.5);
    *to = (int32_t)(centre + support + 0.5);
    *from = *from < 0 ? 0 : *from;
    *to = *to > in ? in : *to;
}

stoker_status sk_axis_make(sk_axis *axis, int32_t in, int32_t out, sk_filter filter)
{
    if (axis->in == in && axis->out == out && axis->filter == filter)
        return STOKER_OK;
    double scale = (double)in / out;
    double filter_scale = scale < 1.0 ? 1.0 : scale;
    double support = filter == SK_FILTER_NEAREST ? 0.0 : shapes[filter].support * filter_scale;
    int32_t size = filter == SK_FILTER_NEAREST ? 1 : (int32_t)ceil(support) * 2 + 1;

    axis->in = 0; /* not made, should memory run out */
    axis->packed_to = 0;
    stoker_status status = axis_reserve(axis, out, size);

    if (status != STOKER_OK)
        return status;
    int32_t *first = (int32_t *)axis->first.data;
    int32_t *count = (int32_t *)axis->count.data;
    int32_t *weight = (int32_t *)axis->weight.data;
    double *exact = (double *)axis->exact.data;

    if (filter == SK_FILTER_NEAREST) {
        nearest_taps(in, out, first, count, weight);
    } else {
        double inverse = 1.0 / filter_scale;

        for (int32_t i = 0; i < out; i++) {
            double centre = (i + 0.5) * scale;
            double sum = 0.0;
            int32_t *row = weight + (size_t)i * (size_t)size;
            int32_t from, to;

            tap_bounds(in, out, filter, i, &from, &to);
            first[i] = from;
            count[i] = to - from;
            for (int32_t k = 0; k < to - from; k++) {
                exact[k] = shapes[filter].value((k + from - centre + 0.5) * inverse);
                sum += exact[k];
            }
            for (int32_t k = 0; k < to - from; k++)
                row[k] = round_weight(sum != 0.0 ? exact[k] / sum : exact[k]);
            for (int32_t k = to - from; k < size; k++)
                row[k] = 0;
        }
    }
    axis->taps = (sk_taps){.outputs = out, .size = size, .first = first, .count = count, .weight = weight};
    axis->in = in;
    axis->out = out;
    axis->filter = filter;
    return STOKER_OK;
}

/* The kernel's own form of the weights of outputs from .. to; kept while the axis stays the same. */
static stoker_status axis_pack(sk_axis *axis, int32_t from, int32_t to, int32_t channels)
{
    const sk_kernels *kernels = sk_kernels_get();

    if (axis->packed_from == from && axis->packed_to == to && axis->packed_channels == channels)
        return STOKER_OK;
    size_t size = kernels->resample_packed_size(&axis->taps, from, to, channels);

    if (size > 0) {
        stoker_status status = sk_buffer_reserve(&axis->packed, size);

        if (status != STOKER_OK)
            return status;
        kernels->resample_pack(&axis->taps, from, to, channels, axis->packed.data);
    }
    axis->packed_from = from;
    axis->packed_to = to;
    axis->packed_channels = channels;
    return STOKER_OK;
}

void sk_resampler_free(sk_resampler *resampler)
{
    sk_axis_free(&resampler->horizontal);
    sk_axis_free(&resampler->vertical);
    sk_buffer_free(&resampler->between);
}

/* The interval of the source that outputs from .. from + count need; bounds never fall from one output to the next. */
static void interval_needs(int32_t in, int32_t out, sk_filter filter, int32_t from, int32_t count, int32_t *need_from,
                           int32_t *need_count)
{
    int32_t low, high, ignored;

    *need_from = from;
    *need_count = count;
    if (in == out)
        return;
    tap_bounds(in, out, filter, from, &low, &ignored);
    tap_bounds(in, out, filter, from + count - 1, &ignored, &high);
    *need_from = low;
    *need_count = high - low;
}

void sk_resample_needs(sk_rect *needs, int32_t full_width, int32_t full_height, int32_t width, int32_t height,
                       sk_filter filter, const sk_rect *area)
{
    interval_needs(full_width, width, filter, area->left, area->width, &needs->left, &needs->width);
    interval_needs(full_height, height, filter, area->top, area->height, &needs->top, &needs->height);
}

/* Pillow 13 makes the vertical pass first where that pays: where the height shrinks, by more than twice what the width
 * shrinks by (python-pillow/Pillow #9549). Earlier versions never do. */
static bool vertical_first(int32_t in_width, int32_t in_height, int32_t width, int32_t height)
{
    return height < in_height && (int64_t)in_height - height > 2 * ((int64_t)in_width - width);
}

/* Rows of bytes, tightly packed or not. */
typedef struct sk_plane {
    const uint8_t *data;
    size_t stride;
} sk_plane;

/* needs.height source rows → area.height rows of `row_bytes`. */
static void vertical_pass(const sk_axis *axis, sk_plane in, size_t row_bytes, const sk_rect *area, const sk_rect *needs,
                          uint8_t *out)
{
    const sk_kernels *kernels = sk_kernels_get();
    const sk_taps *taps = &axis->taps;

    for (int32_t y = 0; y < area->height; y++) {
        int32_t i = area->top + y;
        const uint8_t *from = in.data + (size_t)(taps->first[i] - needs->top) * in.stride;

        kernels->resample_column(out + (size_t)y * row_bytes, from, in.stride, row_bytes,
                                 taps->weight + (size_t)i * (size_t)taps->size, taps->count[i]);
    }
}

/* Rows of needs.width source pixels → rows of area.width pixels. */
static stoker_status horizontal_pass(sk_axis *axis, sk_plane in, int32_t rows, int32_t channels, const sk_rect *area,
                                     const sk_rect *needs, uint8_t *out)
{
    stoker_status status = axis_pack(axis, area->left, area->left + area->width, channels);

    if (status != STOKER_OK)
        return status;
    sk_rows work = {.out = out,
                    .out_stride = (size_t)area->width * (size_t)channels,
                    .in = in.data,
                    .in_stride = in.stride,
                    .in_first = needs->left,
                    .in_width = needs->width,
                    .rows = rows,
                    .channels = channels,
                    .from = area->left,
                    .to = area->left + area->width};

    sk_kernels_get()->resample_rows(&work, &axis->taps, axis->packed.data);
    return STOKER_OK;
}

stoker_status sk_resample(sk_resampler *resampler, const sk_pixels *source, int32_t width, int32_t height,
                          sk_filter filter, const sk_rect *area, uint8_t *out)
{
    sk_axis *horizontal = &resampler->horizontal, *vertical = &resampler->vertical;
    bool change_width = width != source->full_width, change_height = height != source->full_height;
    size_t channels = (size_t)source->channels;
    size_t out_bytes = (size_t)area->width * channels;
    stoker_status status = STOKER_OK;
    sk_rect needs;

    if (change_width)
        status = sk_axis_make(horizontal, source->full_width, width, filter);
    if (status == STOKER_OK && change_height)
        status = sk_axis_make(vertical, source->full_height, height, filter);
    if (status != STOKER_OK)
        return status;
    sk_resample_needs(&needs, source->full_width, source->full_height, width, height, filter, area);
    size_t in_bytes = (size_t)needs.width * channels;
    sk_plane in = {.data = source->data + (size_t)(needs.top - source->area.top) * source->stride +
                           (size_t)(needs.left - source->area.left) * channels,
                   .stride = source->stride};

    if (!change_width && !change_height) {
        for (int32_t y = 0; y < area->height; y++)
            memcpy(out + (size_t)y * out_bytes, in.data + (size_t)y * in.stride, out_bytes);
        return STOKER_OK;
    }
    if (!change_height)
        return horizontal_pass(horizontal, in, needs.height, source->channels, area, &needs, out);
    if (!change_width) {
        vertical_pass(vertical, in, out_bytes, area, &needs, out);
        return STOKER_OK;
    }
    if (vertical_first(source->full_width, source->full_height, width, height)) {
        status = sk_buffer_reserve(&resampler->between, in_bytes * (size_t)area->height);
        if (status != STOKER_OK)
            return status;
        vertical_pass(vertical, in, in_bytes, area, &needs, resampler->between.data);
        return horizontal_pass(horizontal, (sk_plane){resampler->between.data, in_bytes}, area->height,
                               source->channels, area, &needs, out);
    }
    status = sk_buffer_reserve(&resampler->between, out_bytes * (size_t)needs.height);
    if (status == STOKER_OK)
        status = horizontal_pass(horizontal, in, needs.height, source->channels, area, &needs, resampler->between.data);
    if (status == STOKER_OK)
        vertical_pass(vertical, (sk_plane){resampler->between.data, out_bytes}, out_bytes, area, &needs, out);
    return status;
}
