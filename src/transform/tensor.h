/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h: the end of the way: bytes of pixels → the spec's dtype and layout, flipped where asked, written once.
 */
#ifndef SK_TRANSFORM_TENSOR_H
#define SK_TRANSFORM_TENSOR_H

#include "base/status.h"
#include "kernel/kernel.h"
#include "transform/plan.h"

/* Fills the spec's tables from its transforms (called once, by the parser). */
void sk_tensor_prepare(stoker_spec *spec);

/* Writes one interleaved row as row `y` of a tensor of `shape` at `out`. `flip`: back to front. */
void sk_tensor_row(const stoker_spec *spec, sk_shape shape, int32_t y, const uint8_t *row, int32_t flip, void *out);

/* Writes a window of a plane of the sample as channel `channel` of the tensor. */
void sk_tensor_window(const stoker_spec *spec, sk_shape shape, int32_t channel, const sk_window *window, void *out);

#endif
