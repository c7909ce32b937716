/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c: a spec and a sample's draws, run.
 *
 * resolve() turns transforms into steps with every number known: cut, pad, resize, flip, gray. needs() walks them
 * backwards from the whole result to the part of each step's input that counts, ending at the region to decode. run()
 * walks forwards and computes just those parts: a cut is only another view, flips at the end of the way are left to the
 * last store, which also makes floats.
 */
#include "transform/plan.h"

#include <math.h>
#include <string.h>

#include "transform/draw.h"
#include "transform/resample.h"
#include "transform/spec.h"
#include "transform/tensor.h"

typedef enum step_kind {
    STEP_CUT,
    STEP_PAD,
    STEP_RESIZE,
    STEP_FLIP_HORIZONTAL,
    STEP_FLIP_VERTICAL,
    STEP_GRAY
} step_kind;

typedef struct step {
    step_kind kind;
    sk_size in, out;   /* whole sizes */
    int32_t left, top; /* cut: where; pad: how much before */
    sk_padding_mode mode;
    uint8_t fill[3];
    sk_filter filter;
    int32_t channels_in, channels_out;
    sk_rect need_in; /* the part of the input that is computed */
    sk_rect need_out;
} step;

/* random_crop gives up to three pads and a cut; the other transforms one or two steps. */
#define MAX_STEPS (4 * STOKER_MAX_TRANSFORMS)

typedef struct steps {
    int32_t count;
    step step[MAX_STEPS];
    sk_size out;
    int32_t channels;
    int32_t tail; /* steps from here on are flips, left to the store */
} steps;

struct sk_workspace {
    sk_resampler resampler;
    sk_buffer image[2]; /* results of steps, by turns */
    sk_buffer map[2];   /* source columns and rows of a pad */
    sk_buffer pixels;   /* a planar sample made interleaved */
    int32_t stream;     /* 1: past the caches */
};

sk_workspace *sk_workspace_create(void)
{
    return sk_calloc(1, sizeof(sk_workspace));
}

void sk_workspace_stream(sk_workspace *workspace, bool stream)
{
    workspace->stream = stream ? 1 : 0;
}

void sk_workspace_destroy(sk_workspace *workspace)
{
    if (workspace == NULL)
        return;
    sk_resampler_free(&workspace->resampler);
    for (int i = 0; i < 2; i++) {
        sk_buffer_free(&workspace->image[i]);
        sk_buffer_free(&workspace->map[i]);
    }
    sk_buffer_free(&workspace->pixels);
    sk_free(workspace);
}

/* ------------------------------------------------------------------------------------------------ resolve -------- */

static step *add_step(steps *all, step_kind kind, sk_size in, sk_size out)
{
    step *s = &all->step[all->count++];

    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->in = in;
    s->out = out;
    s->channels_in = s->channels_out = all->channels;
    all->out = out;
    return s;
}

static void add_cut(steps *all, int32_t left, int32_t top, int32_t width, int32_t height)
{
    step *s = add_step(all, STEP_CUT, all->out, (sk_size){width, height});

    s->left = left;
    s->top = top;
}

static stoker_status add_pad(steps *all, const int32_t padding[4], sk_padding_mode mode, const uint8_t fill[3])
{
    sk_op pad = {.kind = SK_OP_PAD};
    sk_size out;

    if (padding[0] == 0 && padding[1] == 0 && padding[2] == 0 && padding[3] == 0)
        return STOKER_OK;
    if (mode == SK_PAD_CONSTANT && all->channels == 1 && (fill[0] != fill[1] || fill[0] != fill[2]))
        return sk_fail(STOKER_ERR_ARGUMENT, "a fill of three colours (%d,%d,%d) on an image of one channel", fill[0],
                       fill[1], fill[2]);
    memcpy(pad.padding, padding, sizeof pad.padding);
    stoker_status status = sk_op_size(&pad, all->out, &out);

    if (status != STOKER_OK)
        return status;
    step *s = add_step(all, STEP_PAD, all->out, out);

    s->left = padding[0];
    s->top = padding[1];
    s->mode = mode;
    memcpy(s->fill, fill, sizeof s->fill);
    return STOKER_OK;
}

static void add_resize(steps *all, sk_size out, sk_filter filter)
{
    if (out.width == all->out.width && out.height == all->out.height)
        return; /* Pillow copies */
    add_step(all, STEP_RESIZE, all->out, out)->filter = filter;
}

/* The draw of transform `i`, or an error: the caller may have made it up. */
static stoker_status take_draw(const sk_draws *draws, int32_t *next, int32_t i, stoker_draw_kind kind,
                               const stoker_draw **out)
{
    if (*next >= draws->count || draws->draw[*next].transform != i || draws->draw[*next].kind != (int32_t)kind)
        return sk_fail(STOKER_ERR_ARGUMENT, "the draws do not fit the spec: none for transform %d", i);
    *out = &draws->draw[(*next)++];
    return STOKER_OK;
}

static stoker_status check_crop(const int32_t value[4], sk_size size)
{
    if (value[0] < 0 || value[1] < 0 || value[2] < 1 || value[3] < 1 || value[0] > size.height - value[2] ||
        value[1] > size.width - value[3])
        return sk_fail(STOKER_ERR_ARGUMENT,
                       "the crop (top %d, left %d, height %d, width %d) does not lie in an image of %d x %d pixels",
                       value[0], value[1], value[2], value[3], size.width, size.height);
    return STOKER_OK;
}

static stoker_status add_center_crop(steps *all, const sk_op *op)
{
    static const uint8_t black[3];
    int32_t wide = op->width > all->out.width ? op->width - all->out.width : 0;
    int32_t high = op->height > all->out.height ? op->height - all->out.height : 0;
    int32_t padding[4] = {wide / 2, high / 2, (wide + 1) / 2, (high + 1) / 2};
    stoker_status status = add_pad(all, padding, SK_PAD_CONSTANT, black);

    if (status != STOKER_OK)
        return status;
    if (all->out.width == op->width && all->out.height == op->height)
        return STOKER_OK;
    add_cut(all, (int32_t)nearbyint((all->out.width - op->width) / 2.0),
            (int32_t)nearbyint((all->out.height - op->height) / 2.0), op->width, op->height);
    return STOKER_OK;
}

static stoker_status resolve_op(steps *all, const sk_op *op, int32_t i, const sk_draws *draws, int32_t *next)
{
    const stoker_draw *draw = NULL;
    stoker_status status;
    int32_t padding[4];
    sk_size out;

    switch (op->kind) {
    case SK_OP_RESIZE:
        status = sk_op_size(op, all->out, &out);
        if (status == STOKER_OK)
            add_resize(all, out, op->filter);
        return status;
    case SK_OP_CENTER_CROP:
        return add_center_crop(all, op);
    case SK_OP_RANDOM_CROP:
        status = take_draw(draws, next, i, STOKER_DRAW_CROP, &draw);
        if (status != STOKER_OK)
            return status;
        /* Three pads one after another, as torchvision has them: a reflection of a reflection differs from one of both.
         */
        sk_random_crop_padding(op, all->out, padding);
        status = add_pad(all, op->padding, op->mode, op->fill);
        if (status == STOKER_OK)
            status = add_pad(all, (int32_t[]){padding[0] - op->padding[0], 0, padding[2] - op->padding[2], 0}, op->mode,
                             op->fill);
        if (status == STOKER_OK)
            status = add_pad(all, (int32_t[]){0, padding[1] - op->padding[1], 0, padding[3] - op->padding[3]}, op->mode,
                             op->fill);
        if (status == STOKER_OK)
            status = check_crop(draw->value, all->out);
        if (status == STOKER_OK && (draw->value[2] != op->height || draw->value[3] != op->width))
            status = sk_fail(STOKER_ERR_ARGUMENT, "a draw of random_crop has another size than the spec");
        if (status == STOKER_OK)
            add_cut(all, draw->value[1], draw->value[0], op->width, op->height);
        return status;
    case SK_OP_PAD:
        return add_pad(all, op->padding, op->mode, op->fill);
    case SK_OP_RANDOM_RESIZED_CROP:
        status = take_draw(draws, next, i, STOKER_DRAW_CROP, &draw);
        if (status == STOKER_OK)
            status = check_crop(draw->value, all->out);
        if (status != STOKER_OK)
            return status;
        add_cut(all, draw->value[1], draw->value[0], draw->value[3], draw->value[2]);
        add_resize(all, (sk_size){op->width, op->height}, op->filter);
        return STOKER_OK;
    case SK_OP_HORIZONTAL_FLIP:
    case SK_OP_VERTICAL_FLIP:
        status = take_draw(draws, next, i, STOKER_DRAW_FLIP, &draw);
        if (status == STOKER_OK && draw->value[0] != 0)
            add_step(all, op->kind == SK_OP_HORIZONTAL_FLIP ? STEP_FLIP_HORIZONTAL : STEP_FLIP_VERTICAL, all->out,
                     all->out);
        return status;
    case SK_OP_GRAYSCALE:
        if (all->channels != op->gray_channels || all->channels == 3)
            add_step(all, STEP_GRAY, all->out, all->out)->channels_out = op->gray_channels;
        all->channels = op->gray_channels;
        return STOKER_OK;
    case SK_OP_NORMALIZE:
        if (op->channels > all->channels)
            return sk_fail(STOKER_ERR_ARGUMENT, "normalize with %d means on an image of %d channel", op->channels,
                           all->channels);
        return STOKER_OK;
    case SK_OP_TO_TENSOR:
    case SK_OP_TO:
        return STOKER_OK;
    }
    return STOKER_OK;
}

static stoker_status resolve(const stoker_spec *spec, const sk_draws *draws, int32_t width, int32_t height,
                             int32_t channels, steps *all)
{
    int32_t next = 0;

    all->count = 0;
    all->channels = channels;
    all->out = (sk_size){width, height};
    for (int32_t i = 0; i < spec->count; i++) {
        stoker_status status = resolve_op(all, &spec->op[i], i, draws, &next);

        if (status != STOKER_OK)
            return status;
    }
    if (next != draws->count)
        return sk_fail(STOKER_ERR_ARGUMENT, "the draws do not fit the spec: %d are left over", draws->count - next);
    all->tail = all->count;
    while (all->tail > 0 && (all->step[all->tail - 1].kind == STEP_FLIP_HORIZONTAL ||
                             all->step[all->tail - 1].kind == STEP_FLIP_VERTICAL))
        all->tail--;
    return STOKER_OK;
}

/* -------------------------------------------------------------------------------------------------- needs -------- */

/* Where pixel `at` of an axis padded by `before` comes from: -1 for fill. numpy.pad's modes, which torchvision uses. */
static int32_t padded_source(int32_t at, int32_t before, int32_t size, sk_padding_mode mode)
{
    int32_t i = at - before;

    if (i >= 0 && i < size)
        return i;
    switch (mode) {
    case SK_PAD_CONSTANT:
        return -1;
    case SK_PAD_EDGE:
        return i < 0 ? 0 : size - 1;
    case SK_PAD_REFLECT: {
        int32_t period = 2 * (size - 1);

        if (period == 0)
            return 0;
        i = ((i % period) + period) % period;
        return i < size ? i : period - i;
    }
    case SK_PAD_SYMMETRIC: {
        int32_t period = 2 * size;

        i = ((i % period) + period) % period;
        return i < size ? i : period - 1 - i;
    }
    }
    return -1;
}

/* The source interval that outputs from .. from + count of a padded axis need; at least one pixel, so that a region is
 * never empty. */
static void padded_needs(int32_t from, int32_t count, int32_t before, int32_t size, sk_padding_mode mode,
                         int32_t *need_from, int32_t *need_count)
{
    int32_t low = size, high = -1;

    if (mode == SK_PAD_CONSTANT || mode == SK_PAD_EDGE) {
        int32_t first = from - before, last = from + count - 1 - before;

        low = first < 0 ? 0 : first >= size ? size - 1 : first;
        high = last < 0 ? 0 : last >= size ? size - 1 : last;
    } else {
        for (int32_t i = from; i < from + count; i++) {
            int32_t source = padded_source(i, before, size, mode);

            low = source < low ? source : low;
            high = source > high ? source : high;
        }
    }
    *need_from = low;
    *need_count = high - low + 1;
}

/* From the whole result back to the region of the source. */
static void needs(steps *all, sk_rect *region)
{
    sk_rect need = {0, 0, all->out.width, all->out.height};

    for (int32_t i = all->count - 1; i >= 0; i--) {
        step *s = &all->step[i];

        s->need_out = need;
        switch (s->kind) {
        case STEP_CUT:
            need.left += s->left;
            need.top += s->top;
            break;
        case STEP_PAD:
            padded_needs(s->need_out.left, s->need_out.width, s->left, s->in.width, s->mode, &need.left, &need.width);
            padded_needs(s->need_out.top, s->need_out.height, s->top, s->in.height, s->mode, &need.top, &need.height);
            break;
        case STEP_RESIZE:
            sk_resample_needs(&need, s->in.width, s->in.height, s->out.width, s->out.height, s->filter, &s->need_out);
            break;
        case STEP_FLIP_HORIZONTAL:
            need.left = s->in.width - need.left - need.width;
            break;
        case STEP_FLIP_VERTICAL:
            need.top = s->in.height - need.top - need.height;
            break;
        case STEP_GRAY:
            break;
        }
        s->need_in = need;
    }
    *region = need;
}

/* ------------------------------------------------------------------------------------------- steps forward -------- */

static const uint8_t *pixel_at(const sk_pixels *pixels, int32_t x, int32_t y)
{
    return pixels->data + (size_t)(y - pixels->area.top) * pixels->stride +
           (size_t)(x - pixels->area.left) * (size_t)pixels->channels;
}

/* Columns from .. to of a padded row, pixel by pixel; `row` < 0: all of it is fill. */
static void pad_columns(const step *s, const sk_pixels *in, const int32_t *column, int32_t row, int32_t from,
                        int32_t to, uint8_t *out)
{
    size_t channels = (size_t)in->channels;

    out += (size_t)from * channels;
    for (int32_t x = from; x < to; x++, out += channels) {
        const uint8_t *pixel = row < 0 || column[x] < 0 ? s->fill : pixel_at(in, column[x], row);

        for (size_t c = 0; c < channels; c++)
            out[c] = pixel[c];
    }
}

static stoker_status run_pad(sk_workspace *workspace, const step *s, const sk_pixels *in, uint8_t *out)
{
    const sk_rect *area = &s->need_out;
    size_t channels = (size_t)in->channels;
    stoker_status status = sk_buffer_reserve(&workspace->map[0], (size_t)area->width * sizeof(int32_t));

    if (status != STOKER_OK)
        return status;
    int32_t *column = (int32_t *)workspace->map[0].data;
    int32_t begin = s->left - area->left; /* columns begin .. end are the picture itself, in every mode */
    int32_t end = begin + s->in.width;

    begin = begin < 0 ? 0 : begin > area->width ? area->width : begin;
    end = end > area->width ? area->width : end < begin ? begin : end;
    for (int32_t x = 0; x < area->width; x++)
        column[x] = padded_source(area->left + x, s->left, s->in.width, s->mode);
    for (int32_t y = 0; y < area->height; y++, out += (size_t)area->width * channels) {
        int32_t row = padded_source(area->top + y, s->top, s->in.height, s->mode);

        if (row < 0 || begin == end) {
            pad_columns(s, in, column, row, 0, area->width, out);
            continue;
        }
        pad_columns(s, in, column, row, 0, begin, out);
        memcpy(out + (size_t)begin * channels, pixel_at(in, column[begin], row), (size_t)(end - begin) * channels);
        pad_columns(s, in, column, row, end, area->width, out);
    }
    return STOKER_OK;
}

static void run_flip(const step *s, const sk_pixels *in, uint8_t *out)
{
    const sk_rect *area = &s->need_out;
    size_t channels = (size_t)in->channels;
    size_t row_bytes = (size_t)area->width * channels;

    for (int32_t y = 0; y < area->height; y++) {
        uint8_t *to = out + (size_t)y * row_bytes;

        if (s->kind == STEP_FLIP_VERTICAL) {
            memcpy(to, pixel_at(in, area->left, s->in.height - 1 - (area->top + y)), row_bytes);
            continue;
        }
        for (int32_t x = 0; x < area->width; x++)
            memcpy(to + (size_t)x * channels, pixel_at(in, s->in.width - 1 - (area->left + x), area->top + y),
                   channels);
    }
}

/* Pillow's RGB → L: ITU-R 601-2 luma in 16 fractional bits, rounded (Pillow's Convert.c: L24). */
static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static void run_gray(const step *s, const sk_pixels *in, uint8_t *out)
{
    const sk_rect *area = &s->need_out;

    for (int32_t y = 0; y < area->height; y++) {
        const uint8_t *from = pixel_at(in, area->left, area->top + y);

        for (int32_t x = 0; x < area->width; x++, from += s->channels_in) {
            uint8_t value = s->channels_in == 3 ? luma(from) : from[0];

            for (int32_t c = 0; c < s->channels_out; c++)
                *out++ = value;
        }
    }
}

/* Runs one step over `pixels`, which becomes its result. `turn` chooses the buffer that `pixels` does not lie in. */
static stoker_status run_step(sk_workspace *workspace, const step *s, int *turn, sk_pixels *pixels)
{
    size_t size;

    if (s->kind == STEP_CUT) {
        pixels->area.left -= s->left;
        pixels->area.top -= s->top;
        pixels->full_width = s->out.width;
        pixels->full_height = s->out.height;
        return STOKER_OK;
    }
    size_t row_bytes = (size_t)s->need_out.width * (size_t)s->channels_out;

    if (!sk_multiply(row_bytes, (size_t)s->need_out.height, &size))
        return sk_fail(STOKER_ERR_LIMIT, "an image on the way would have %d x %d pixels", s->need_out.width,
                       s->need_out.height);
    stoker_status status = sk_buffer_reserve(&workspace->image[*turn], size);

    if (status != STOKER_OK)
        return status;
    uint8_t *out = workspace->image[*turn].data;

    switch (s->kind) {
    case STEP_PAD:
        status = run_pad(workspace, s, pixels, out);
        break;
    case STEP_RESIZE:
        status = sk_resample(&workspace->resampler, pixels, s->out.width, s->out.height, s->filter, &s->need_out, out);
        break;
    case STEP_FLIP_HORIZONTAL:
    case STEP_FLIP_VERTICAL:
        run_flip(s, pixels, out);
        break;
    case STEP_GRAY:
        run_gray(s, pixels, out);
        break;
    case STEP_CUT:
        break;
    }
    *pixels = (sk_pixels){.data = out,
                          .stride = row_bytes,
                          .channels = s->channels_out,
                          .full_width = s->out.width,
                          .full_height = s->out.height,
                          .area = s->need_out};
    *turn = 1 - *turn;
    return status;
}

/* Whether the flips at the end of the way turn rows, columns. */
static void tail_flips(const steps *all, bool *horizontal, bool *vertical)
{
    *horizontal = *vertical = false;
    for (int32_t i = all->tail; i < all->count; i++) {
        if (all->step[i].kind == STEP_FLIP_HORIZONTAL)
            *horizontal = !*horizontal;
        else
            *vertical = !*vertical;
    }
}

static bool covers(const sk_rect *outer, const sk_rect *inner)
{
    return outer->left <= inner->left && outer->top <= inner->top &&
           outer->left + outer->width >= inner->left + inner->width &&
           outer->top + outer->height >= inner->top + inner->height;
}

static stoker_status run_steps(const stoker_spec *spec, sk_workspace *workspace, steps *all, const sk_pixels *source,
                               void *out)
{
    sk_pixels pixels = *source;
    sk_shape shape = {all->channels, all->out.height, all->out.width};
    bool flip_horizontal, flip_vertical;
    sk_rect region;
    int turn = 0;

    needs(all, &region);
    if (!covers(&pixels.area, &region))
        return sk_fail(STOKER_ERR_ARGUMENT, "the pixels given do not cover the region needed");
    for (int32_t i = 0; i < all->tail; i++) {
        stoker_status status = run_step(workspace, &all->step[i], &turn, &pixels);

        if (status != STOKER_OK)
            return status;
    }
    tail_flips(all, &flip_horizontal, &flip_vertical);
    for (int32_t y = 0; y < shape.height; y++)
        sk_tensor_row(spec, shape, y, pixel_at(&pixels, 0, flip_vertical ? shape.height - 1 - y : y), flip_horizontal,
                      out);
    return STOKER_OK;
}

stoker_status sk_spec_run(const stoker_spec *spec, sk_workspace *workspace, const sk_pixels *pixels,
                          const sk_draws *draws, void *out)
{
    steps all;
    stoker_status status = resolve(spec, draws, pixels->full_width, pixels->full_height, pixels->channels, &all);

    return status == STOKER_OK ? run_steps(spec, workspace, &all, pixels, out) : status;
}

/* ------------------------------------------------------------------------------------------ planar samples -------- */

/* The window that cuts and constant pads, in that order of any number, leave: output (x, y) is source (x + left, y +
 * top), or fill outside the source. False where another step, or a second fill, is in the way. */
static bool as_window(const steps *all, int32_t *left, int32_t *top, uint8_t fill[3])
{
    bool padded = false;

    *left = *top = 0;
    memset(fill, 0, 3);
    for (int32_t i = 0; i < all->tail; i++) {
        const step *s = &all->step[i];

        if (s->kind == STEP_CUT) {
            *left += s->left;
            *top += s->top;
        } else if (s->kind == STEP_PAD && s->mode == SK_PAD_CONSTANT && !padded && i == 0) {
            *left -= s->left;
            *top -= s->top;
            memcpy(fill, s->fill, 3);
            padded = true;
        } else {
            return false;
        }
    }
    return true;
}

static void run_window(const stoker_spec *spec, const steps *all, const uint8_t *planes, int32_t width, int32_t height,
                       int32_t left, int32_t top, const uint8_t fill[3], int32_t stream, void *out)
{
    sk_shape shape = {all->channels, all->out.height, all->out.width};
    bool flip_horizontal, flip_vertical;
    int32_t begin = left < 0 ? 0 : left > width ? width : left; /* columns of the source that show */
    int32_t end = left + shape.width > width ? width : left + shape.width < begin ? begin : left + shape.width;
    int32_t margin_left = left < 0 ? (-left < shape.width ? -left : shape.width) : 0;
    int32_t margin_right = shape.width - margin_left - (end - begin);

    int32_t above = top < 0 ? (-top < shape.height ? -top : shape.height) : 0; /* rows of fill before the source */
    int32_t stop = top + shape.height > height ? height - top : shape.height;
    int32_t rows = stop > above ? stop - above : 0;

    tail_flips(all, &flip_horizontal, &flip_vertical);
    sk_window window = {.in_stride = flip_vertical ? -(ptrdiff_t)width : width,
                        .width = shape.width,
                        .height = shape.height,
                        .margin_top = flip_vertical ? shape.height - above - rows : above,
                        .rows = rows,
                        .margin_left = flip_horizontal ? margin_right : margin_left,
                        .count = end - begin,
                        .flip = flip_horizontal,
                        .stream = stream};
    size_t first =
        rows > 0 ? (size_t)(top + above + (flip_vertical ? rows - 1 : 0)) * (size_t)width + (size_t)begin : 0;

    sk_window windows[3];

    for (int32_t c = 0; c < shape.channels; c++) {
        windows[c] = window;
        windows[c].fill = fill[c];
        windows[c].in = planes + (size_t)c * (size_t)height * (size_t)width + first;
    }
    sk_tensor_windows(spec, shape, windows, out);
}

stoker_status sk_spec_run_planar(const stoker_spec *spec, sk_workspace *workspace, const uint8_t *planes, int32_t width,
                                 int32_t height, int32_t channels, const sk_draws *draws, void *out)
{
    steps all;
    int32_t left, top;
    uint8_t fill[3];
    stoker_status status = resolve(spec, draws, width, height, channels, &all);

    if (status != STOKER_OK)
        return status;
    if (as_window(&all, &left, &top, fill)) {
        run_window(spec, &all, planes, width, height, left, top, fill, workspace->stream, out);
        return STOKER_OK;
    }
    size_t plane = (size_t)width * (size_t)height;

    status = sk_buffer_reserve(&workspace->pixels, plane * (size_t)channels);
    if (status != STOKER_OK)
        return status;
    uint8_t *pixels = workspace->pixels.data;

    if (channels == 3)
        sk_kernels_get()->planes_to_rgb_u8(pixels, planes, plane, (int32_t)plane);
    else
        memcpy(pixels, planes, plane);
    sk_pixels source = {.data = pixels,
                        .stride = (size_t)width * (size_t)channels,
                        .channels = channels,
                        .full_width = width,
                        .full_height = height,
                        .area = {0, 0, width, height}};

    return run_steps(spec, workspace, &all, &source, out);
}

/* -------------------------------------------------------------------------------------------------- shapes -------- */

stoker_status sk_spec_shape(const stoker_spec *spec, const sk_draws *draws, int32_t width, int32_t height,
                            int32_t channels, sk_shape *shape, sk_rect *region)
{
    steps all;
    stoker_status status = resolve(spec, draws, width, height, channels, &all);

    if (status != STOKER_OK)
        return status;
    needs(&all, region);
    *shape = (sk_shape){all.channels, all.out.height, all.out.width};
    return STOKER_OK;
}

bool sk_spec_fixed_shape(const stoker_spec *spec, int32_t width, int32_t height, int32_t channels, sk_shape *shape)
{
    bool known = width > 0 && height > 0;
    sk_size size = {width, height};

    for (int32_t i = 0; i < spec->count; i++) {
        const sk_op *op = &spec->op[i];

        if (op->kind == SK_OP_CENTER_CROP || op->kind == SK_OP_RANDOM_CROP || op->kind == SK_OP_RANDOM_RESIZED_CROP ||
            (op->kind == SK_OP_RESIZE && op->width != 0)) {
            size = (sk_size){op->width, op->height};
            known = true;
        } else if (known && sk_op_size(op, size, &size) != STOKER_OK) {
            return false;
        }
        if (op->kind == SK_OP_GRAYSCALE)
            channels = op->gray_channels;
    }
    *shape = (sk_shape){channels, size.height, size.width};
    return known;
}

size_t sk_spec_bytes(const stoker_spec *spec, sk_shape shape)
{
    static const size_t element[] = {[STOKER_U8] = 1, [STOKER_F16] = 2, [STOKER_BF16] = 2, [STOKER_F32] = 4};

    return (size_t)shape.channels * (size_t)shape.height * (size_t)shape.width * element[spec->dtype];
}
