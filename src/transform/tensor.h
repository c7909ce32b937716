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

/* Writes a tensor of `shape` from one window for each channel. */
void sk_tensor_windows(const stoker_spec *spec, sk_shape shape, const sk_window *windows, void *out);

#endif
