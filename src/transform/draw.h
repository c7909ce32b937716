/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.h: what is random, from (seed, epoch, sample, transform) alone; and sizes, which both drawing and running need.
 */
#ifndef SK_TRANSFORM_DRAW_H
#define SK_TRANSFORM_DRAW_H

#include "transform/plan.h"
#include "transform/spec.h"

typedef struct sk_size {
    int32_t width, height;
} sk_size;

/* The size of the result of `op` on an image of `size`; random_crop and random_resized_crop give their own size. Fails
 * where torchvision raises and where a size passes the limit. */
stoker_status sk_op_size(const sk_op *op, sk_size size, sk_size *out);

/* The padding that random_crop applies to an image of `size`: its own, then what pad_if_needed adds. Left, top, right,
 * bottom. */
void sk_random_crop_padding(const sk_op *op, sk_size size, int32_t padding[4]);

/* Whether `op` draws. */
bool sk_op_is_random(const sk_op *op);

/* exp and log from additions, multiplications and divisions alone, the same on every platform; within 2 units in the
 * last place for |x| < 700 and x > 0. */
double sk_exp(double x);
double sk_log(double x);

#endif
