/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c: crops and flips (docs/random.md). The algorithms are torchvision's (RandomResizedCrop.get_params,
 * RandomCrop.get_params); the bits are Philox's.
 */
#include "transform/draw.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

#define TRIES    10        /* of random_resized_crop, as in torchvision */
#define MAX_SIDE (1 << 24) /* pixels: of any image on the way */

double sk_exp(double x)
{
    /* e^x = 2^k e^r with |r| <= ln 2 / 2; ln 2 in two parts so that k × ln 2 is exact enough; Taylor to r^17 / 17!. */
    const double high = 6.93147180369123816490e-01, low = 1.90821492927058770002e-10;
    double k = floor(x / 6.93147180559945286227e-01 + 0.5);
    double r = (x - k * high) - k * low;
    double sum = 1.0;

    for (int n = 17; n > 0; n--)
        sum = 1.0 + r * sum / n;
    return ldexp(sum, (int)k);
}

double sk_log(double x)
{
    /* x = 2^k m with m in [sqrt 1/2, sqrt 2); log m = 2 atanh((m - 1) / (m + 1)), a series in odd powers. */
    int k;
    double m = frexp(x, &k);

    if (m < 0.70710678118654752440) {
        m *= 2.0;
        k--;
    }
    double t = (m - 1.0) / (m + 1.0);
    double square = t * t;
    double sum = 0.0;

    for (int n = 25; n > 0; n -= 2)
        sum = sum * square + 1.0 / n;
    return (double)k * 6.93147180559945286227e-01 + 2.0 * t * sum;
}

bool sk_op_is_random(const sk_op *op)
{
    return op->kind == SK_OP_RANDOM_CROP || op->kind == SK_OP_RANDOM_RESIZED_CROP ||
           op->kind == SK_OP_HORIZONTAL_FLIP || op->kind == SK_OP_VERTICAL_FLIP;
}

/* torchvision's _compute_resized_output_size. */
static void shorter_side(const sk_op *op, sk_size size, int64_t *width, int64_t *height)
{
    int64_t shorter = size.width <= size.height ? size.width : size.height;
    int64_t longer = size.width <= size.height ? size.height : size.width;
    int64_t new_shorter = op->height;
    int64_t new_longer = (int64_t)((double)(new_shorter * longer) / (double)shorter);

    if (op->max_size != 0 && new_longer > op->max_size) {
        new_shorter = (int64_t)((double)((int64_t)op->max_size * new_shorter) / (double)new_longer);
        new_longer = op->max_size;
    }
    *width = size.width <= size.height ? new_shorter : new_longer;
    *height = size.width <= size.height ? new_longer : new_shorter;
}

stoker_status sk_op_size(const sk_op *op, sk_size size, sk_size *out)
{
    int64_t width = size.width, height = size.height;

    switch (op->kind) {
    case SK_OP_RESIZE:
        if (op->width != 0) {
            width = op->width;
            height = op->height;
        } else {
            shorter_side(op, size, &width, &height);
        }
        if (width < 1 || height < 1)
            return sk_fail(STOKER_ERR_ARGUMENT, "resize(%d) of an image of %d x %d pixels gives %lld x %lld",
                           op->height, size.width, size.height, (long long)width, (long long)height);
        break;
    case SK_OP_CENTER_CROP:
    case SK_OP_RANDOM_CROP:
    case SK_OP_RANDOM_RESIZED_CROP:
        width = op->width;
        height = op->height;
        break;
    case SK_OP_PAD:
        width += (int64_t)op->padding[0] + op->padding[2];
        height += (int64_t)op->padding[1] + op->padding[3];
        break;
    case SK_OP_HORIZONTAL_FLIP:
    case SK_OP_VERTICAL_FLIP:
    case SK_OP_GRAYSCALE:
    case SK_OP_TO_TENSOR:
    case SK_OP_NORMALIZE:
    case SK_OP_TO:
        break;
    }
    if (width > MAX_SIDE || height > MAX_SIDE)
        return sk_fail(STOKER_ERR_LIMIT,
                       "%s of an image of %d x %d pixels gives %lld x %lld, over the limit of %d a side",
                       sk_op_name(op->kind), size.width, size.height, (long long)width, (long long)height, MAX_SIDE);
    *out = (sk_size){(int32_t)width, (int32_t)height};
    return STOKER_OK;
}

void sk_random_crop_padding(const sk_op *op, sk_size size, int32_t padding[4])
{
    memcpy(padding, op->padding, sizeof op->padding);
    if (!op->pad_if_needed)
        return;
    int64_t width = (int64_t)size.width + padding[0] + padding[2];
    int64_t height = (int64_t)size.height + padding[1] + padding[3];

    /* torchvision adds the whole difference on both sides. */
    if (width < op->width) {
        padding[0] += (int32_t)(op->width - width);
        padding[2] += (int32_t)(op->width - width);
    }
    if (height < op->height) {
        padding[1] += (int32_t)(op->height - height);
        padding[3] += (int32_t)(op->height - height);
    }
}

static stoker_status draw_crop(const sk_op *op, sk_size size, sk_random *random, int32_t value[4])
{
    int32_t padding[4];

    sk_random_crop_padding(op, size, padding);
    int64_t width = (int64_t)size.width + padding[0] + padding[2];
    int64_t height = (int64_t)size.height + padding[1] + padding[3];

    if (width < op->width || height < op->height)
        return sk_fail(STOKER_ERR_ARGUMENT,
                       "random_crop of %d x %d (width x height) does not fit in an image of %lld x %lld; "
                       "resize first or set pad_if_needed=true",
                       op->width, op->height, (long long)width, (long long)height);
    value[0] = (int32_t)sk_random_below(random, (uint32_t)(height - op->height + 1));
    value[1] = (int32_t)sk_random_below(random, (uint32_t)(width - op->width + 1));
    value[2] = op->height;
    value[3] = op->width;
    return STOKER_OK;
}

/* Python's round(): half to even. */
static double round_even(double x)
{
    return nearbyint(x);
}

static void draw_resized_crop(const sk_op *op, sk_size size, sk_random *random, int32_t value[4])
{
    double area = (double)size.width * (double)size.height;
    double low = sk_log(op->ratio[0]), high = sk_log(op->ratio[1]);

    for (int i = 0; i < TRIES; i++) {
        double target = area * (op->scale[0] + (op->scale[1] - op->scale[0]) * sk_random_unit(random));
        double aspect = sk_exp(low + (high - low) * sk_random_unit(random));
        double width = round_even(sqrt(target * aspect));
        double height = round_even(sqrt(target / aspect));

        if (width > 0 && width <= size.width && height > 0 && height <= size.height) {
            value[2] = (int32_t)height;
            value[3] = (int32_t)width;
            value[0] = (int32_t)sk_random_below(random, (uint32_t)(size.height - value[2] + 1));
            value[1] = (int32_t)sk_random_below(random, (uint32_t)(size.width - value[3] + 1));
            return;
        }
    }
    /* The central crop of the nearest allowed aspect ratio. */
    double ratio = (double)size.width / (double)size.height;

    value[2] = size.height;
    value[3] = size.width;
    if (ratio < op->ratio[0])
        value[2] = (int32_t)round_even(size.width / op->ratio[0]);
    else if (ratio > op->ratio[1])
        value[3] = (int32_t)round_even(size.height * op->ratio[1]);
    /* torchvision trusts these to fit; rounding of a tiny side may give 0, where PIL would raise. */
    value[2] = value[2] < 1 ? 1 : value[2];
    value[3] = value[3] < 1 ? 1 : value[3];
    value[0] = (size.height - value[2]) / 2;
    value[1] = (size.width - value[3]) / 2;
}

stoker_status sk_spec_draw(const stoker_spec *spec, uint64_t seed, uint64_t epoch, uint64_t sample, int32_t width,
                           int32_t height, sk_draws *out)
{
    sk_size size = {width, height};

    out->count = 0;
    for (int32_t i = 0; i < spec->count; i++) {
        const sk_op *op = &spec->op[i];
        stoker_status status = STOKER_OK;

        if (sk_op_is_random(op)) {
            stoker_draw *draw = &out->draw[out->count++];
            sk_random random;

            sk_random_make(&random, seed, epoch, sample, (uint32_t)i);
            memset(draw, 0, sizeof *draw);
            draw->transform = i;
            draw->kind = STOKER_DRAW_CROP;
            if (op->kind == SK_OP_RANDOM_CROP) {
                status = draw_crop(op, size, &random, draw->value);
            } else if (op->kind == SK_OP_RANDOM_RESIZED_CROP) {
                draw_resized_crop(op, size, &random, draw->value);
            } else {
                draw->kind = STOKER_DRAW_FLIP;
                draw->value[0] = sk_random_unit(&random) < op->p ? 1 : 0;
            }
        }
        if (status == STOKER_OK)
            status = sk_op_size(op, size, &size);
        if (status != STOKER_OK)
            return status;
    }
    return STOKER_OK;
}
