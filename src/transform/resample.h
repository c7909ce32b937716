/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.h: Pillow's Image.resize, bit for bit, for any part of its result.
 */
#ifndef SK_TRANSFORM_RESAMPLE_H
#define SK_TRANSFORM_RESAMPLE_H

#include "base/memory.h"
#include "base/status.h"
#include "image/image.h"
#include "kernel/kernel.h"

typedef enum sk_filter {
    SK_FILTER_NEAREST,
    SK_FILTER_BOX,
    SK_FILTER_BILINEAR,
    SK_FILTER_HAMMING,
    SK_FILTER_BICUBIC,
    SK_FILTER_LANCZOS
} sk_filter;

const char *sk_filter_name(sk_filter filter);

/* Weights of one axis, made for one (in, out, filter) and kept until another is asked for. Starts as {0}. */
typedef struct sk_axis {
    int32_t in, out;
    sk_filter filter;
    sk_taps taps;
    sk_buffer first, count, weight, exact; /* memory of `taps`, and of the weights before rounding */
    sk_buffer packed;                      /* the kernel's own form of a part of them */
    int32_t packed_from, packed_to, packed_channels;
} sk_axis;

void sk_axis_free(sk_axis *axis);

/* Makes `axis` ready for resizing `in` pixels to `out`; at once if it is already. */
stoker_status sk_axis_make(sk_axis *axis, int32_t in, int32_t out, sk_filter filter);

/* Memory that resizing uses again for each image. Starts as {0}. */
typedef struct sk_resampler {
    sk_axis horizontal, vertical;
    sk_buffer between; /* rows after the first pass */
} sk_resampler;

void sk_resampler_free(sk_resampler *resampler);

/* Computes the part `area` of `source` (whole size full_width × full_height) resized to width × height; `source` must
 * cover what the axes need. Writes area.height rows of area.width × channels bytes to `out`, tightly packed. */
stoker_status sk_resample(sk_resampler *resampler, const sk_pixels *source, int32_t width, int32_t height,
                          sk_filter filter, const sk_rect *area, uint8_t *out);

/* The part of a full_width × full_height source that `area` of the result (width × height in all) needs. */
void sk_resample_needs(sk_rect *needs, int32_t full_width, int32_t full_height, int32_t width, int32_t height,
                       sk_filter filter, const sk_rect *area);

#endif
