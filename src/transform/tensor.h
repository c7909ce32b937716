/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h: the end of the way: bytes of pixels → the spec's dtype and layout, flipped where asked, written once.
 */
#ifndef SK_TRANSFORM_TENSOR_H
#define SK_TRANSFORM_TENSOR_H

#include "base/status.h"
#include "transform/plan.h"

/* Fills the spec's tables from its transforms (called once, by the parser). */
void sk_tensor_prepare(stoker_spec *spec);

/* Writes one interleaved row as row `y` of a tensor of `shape` at `out`. `flip`: back to front. */
void sk_tensor_row(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip, void *out);

/* A row of a planar sample: `margin_left` pixels of the fill value, then `count` pixels of `in` (back to front where
 * `flip`), then fill to the row's end, as row `y` of channel `channel`. */
typedef struct sk_span {
    const uint8_t *in; /* first byte of the span in memory, whichever way it is read */
    int32_t margin_left, count;
    int32_t flip;
    uint8_t fill;
} sk_span;
void sk_tensor_span(const stoker_spec *spec, sk_shape shape, int32_t channel, int32_t y, const sk_span *span,
                    void *out);

#endif
