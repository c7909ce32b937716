/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.h: a list of transforms, parsed and checked. What the transforms do to pixels is plan.c's, resample.c's and
 * tensor.c's.
 */
#ifndef SK_TRANSFORM_SPEC_H
#define SK_TRANSFORM_SPEC_H

#include <stdbool.h>

#include "base/status.h"
#include "kernel/kernel.h"
#include "transform/resample.h"

typedef enum sk_op_kind {
    SK_OP_RESIZE,
    SK_OP_CENTER_CROP,
    SK_OP_RANDOM_CROP,
    SK_OP_PAD,
    SK_OP_RANDOM_RESIZED_CROP,
    SK_OP_HORIZONTAL_FLIP,
    SK_OP_VERTICAL_FLIP,
    SK_OP_GRAYSCALE,
    SK_OP_TO_TENSOR,
    SK_OP_NORMALIZE,
    SK_OP_TO
} sk_op_kind;

typedef enum sk_padding_mode { SK_PAD_CONSTANT, SK_PAD_EDGE, SK_PAD_REFLECT, SK_PAD_SYMMETRIC } sk_padding_mode;

/* One transform with all its arguments; which of them count follows from its kind. */
typedef struct sk_op {
    sk_op_kind kind;
    int32_t height, width; /* size; of a resize to a shorter side, height alone and width 0 */
    int32_t max_size;      /* 0: none */
    sk_filter filter;
    int32_t padding[4]; /* left, top, right, bottom */
    bool pad_if_needed;
    uint8_t fill[3];
    sk_padding_mode mode;
    double scale[2], ratio[2];
    double p;
    int32_t gray_channels; /* 1 or 3 */
    bool reciprocal;       /* to_tensor multiplies by 1 / 255 */
    int32_t channels;      /* of mean and std: 1 or 3 */
    float mean[3], std[3];
    stoker_dtype dtype;
    stoker_layout layout;
} sk_op;

struct stoker_spec {
    int32_t count;
    sk_op op[STOKER_MAX_TRANSFORMS];
    char *text; /* canonical */
    stoker_dtype dtype;
    stoker_layout layout;
    bool scaled;          /* 0..255 becomes 0..1 */
    int32_t normal_count; /* of normalize transforms */
    /* What a pixel value of channel c becomes, each step rounded to float32 as torch does it. Unused for u8. */
    float table[3][256];
    /* The same as bits of a 16-bit type (f16, bf16). */
    uint16_t half[3][256];
    /* With at most one normalize: its parameters, and whether the vector kernels' arithmetic gives `table`. */
    float mean[3];
    sk_inverse deviation[3], unit;
    bool by_arithmetic;
};

/* "bilinear" …; used by the canonical text and error messages. */
const char *sk_op_name(sk_op_kind kind);

#endif
