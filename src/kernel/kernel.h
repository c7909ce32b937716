/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h: the hot loops, one table for each instruction set. The scalar version is the reference; each other version
 * gives the same bytes (tests/check_kernels.c). Kernels allocate nothing and check nothing: their callers have done
 * both.
 */
#ifndef SK_KERNEL_KERNEL_H
#define SK_KERNEL_KERNEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Resampling weights of one axis: output i is the sum over k < count[i] of source first[i] + k times
 * weight[i × size + k], in 22 fractional bits, plus a half, shifted right by 22 and clipped to 0..255 (Pillow's
 * Resample.c). Weights from count[i] on are zero. */
typedef struct sk_taps {
    int32_t outputs;
    int32_t size; /* weights an output */
    const int32_t *first;
    const int32_t *count;
    const int32_t *weight;
} sk_taps;

#define SK_WEIGHT_BITS 22

/* A row (or several) for the horizontal pass. */
typedef struct sk_rows {
    uint8_t *out;
    size_t out_stride;
    const uint8_t *in; /* source pixel `in_first` of the first row */
    size_t in_stride;
    int32_t in_first;
    int32_t in_width; /* pixels readable from `in` in each row */
    int32_t rows;
    int32_t channels; /* 1 or 3, interleaved */
    int32_t from, to; /* output pixels; out[0] is pixel `from` */
} sk_rows;

/* 1 / x as a float and what that float lacks: value / x is fma(value, high, value × low), nearly always rounded as a
 * division would be. */
typedef struct sk_inverse {
    float high, low;
} sk_inverse;

static inline sk_inverse sk_inverse_of(float x)
{
    float high = 1.0f / x;

    return (sk_inverse){high, fmaf(-high, x, 1.0f) / x};
}

/* How a pixel becomes a float: the table, and the parameters of the arithmetic where that is known to give the table.
 */
typedef struct sk_normal {
    const float (*table)[256]; /* one a channel */
    const float *mean;
    const sk_inverse *deviation; /* one a channel */
    sk_inverse unit;
    int32_t by_arithmetic; /* 1: (v × unit - mean) × deviation, each step rounded to float32, equals the table */
} sk_normal;

/* A plane of bytes seen through a window of width × height: margin_top rows of `fill`, then `rows` rows of source, then
 * fill to the end; each row of source is margin_left bytes of fill, `count` bytes (back to front where `flip`), then
 * fill. */
typedef struct sk_window {
    const uint8_t *in;   /* the first byte in memory of the first row of source that shows */
    ptrdiff_t in_stride; /* bytes to the next one; negative where the picture stands on its head */
    int32_t width, height;
    int32_t margin_top, rows;
    int32_t margin_left, count;
    int32_t flip;
    int32_t stream; /* 1: floats go past the caches to memory, where `out` allows it; `drain` before others read them */
    uint8_t fill;
} sk_window;

/* The rows y .. y + height of a window. */
static inline sk_window sk_window_rows(const sk_window *window, int32_t y, int32_t height)
{
    sk_window part = *window;
    int32_t first = window->margin_top > y ? window->margin_top : y;
    int32_t end = window->margin_top + window->rows < y + height ? window->margin_top + window->rows : y + height;

    part.height = height;
    part.margin_top = first < y + height ? first - y : height;
    part.rows = end > first ? end - first : 0;
    if (part.rows > 0)
        part.in += (first - window->margin_top) * window->in_stride;
    return part;
}

typedef struct sk_kernels {
    const char *name;

    /* Bytes that resample_pack needs for the outputs from .. to of `taps` (0: nothing to pack), and packing. */
    size_t (*resample_packed_size)(const sk_taps *taps, int32_t from, int32_t to, int32_t channels);
    void (*resample_pack)(const sk_taps *taps, int32_t from, int32_t to, int32_t channels, void *packed);
    void (*resample_rows)(const sk_rows *rows, const sk_taps *taps, const void *packed);

    /* One row of the vertical pass: out[i] from in[k × stride + i], i < bytes, k < count. */
    void (*resample_column)(uint8_t *out, const uint8_t *in, size_t stride, size_t bytes, const int32_t *weight,
                            int32_t count);

    /* Interleaved RGB to three float planes (plane: elements between them), back to front where `flip`. */
    void (*rgb_to_planes_f32)(float *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip,
                              const sk_normal *normal);
    /* Interleaved RGB to interleaved floats. */
    void (*rgb_to_rgb_f32)(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal);
    /* A window of a plane, written as width × height floats or bytes without gaps. `channel` chooses the table. */
    void (*window_to_f32)(float *out, const sk_window *window, const sk_normal *normal, int32_t channel);
    void (*window_to_u8)(uint8_t *out, const sk_window *window);
    /* What this thread streamed is in memory before what it writes next. */
    void (*drain)(void);
    /* Three byte planes (plane: bytes between them) to interleaved RGB. */
    void (*planes_to_rgb_u8)(uint8_t *out, const uint8_t *in, size_t plane, int32_t count);
    /* One gray or planar row to floats. `channel` chooses the table. */
    void (*plane_to_f32)(float *out, const uint8_t *in, int32_t width, int32_t flip, const sk_normal *normal,
                         int32_t channel);
    /* Interleaved RGB bytes to three byte planes. */
    void (*rgb_to_planes_u8)(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, int32_t flip);
    /* Interleaved RGB bytes as they are. */
    void (*rgb_to_rgb_u8)(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip);
    /* A row of bytes, back to front where `flip`. */
    void (*plane_to_u8)(uint8_t *out, const uint8_t *in, int32_t width, int32_t flip);

    /* Floats to 16-bit floats, to nearest, ties to even. */
    void (*f32_to_f16)(uint16_t *out, const float *in, int32_t count);
    void (*f32_to_bf16)(uint16_t *out, const float *in, int32_t count);

    /* JPEG (bit for bit what libjpeg-turbo's vector code gives). `blocks` adjacent blocks of 8 × 8: 64 quantised
     * coefficients each, row by row; last[b] is the zigzag index of the last that may be nonzero (0: only DC), all
     * behind it are zero; quant: 64, row by row. Writes 8 rows of 8 × blocks bytes, row y at out + y × stride. */
    void (*idct)(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                 const uint16_t *quant);
    /* `width` samples to 2 × width. in[-1] and in[width] are read: the neighbour, or a copy of the edge. */
    void (*upsample_h2v1)(uint8_t *out, const uint8_t *in, int32_t width);
    /* The same from two rows, the nearer and the farther one. */
    void (*upsample_h2v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width);
    /* `width` samples between two rows; bias 1 (the row above the near one's middle) or 2 (below). */
    void (*upsample_h1v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias);
    /* Planes to interleaved RGB. */
    void (*ycc_to_rgb)(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width);
    void (*gray_to_rgb)(uint8_t *out, const uint8_t *y, int32_t width);

    /* A pack's group of DCT blocks (docs/pack-format.md): four blocks and the four below them, to 4 × 64 coefficients row by row each, and
     * for each block the zigzag place of the last coefficient that may be nonzero. Returns the group's bytes, or -1 where these are no
     * group; what `upper` and `lower` then hold is unspecified. SK_DCT_READABLE bytes must be readable from `group` on. */
    int32_t (*dct_unpack)(const uint8_t *group, int16_t *upper, int16_t *lower, uint8_t *upper_last,
                          uint8_t *lower_last);
} sk_kernels;

#define SK_DCT_WIDEST    10 /* bits of a magnitude */
#define SK_DCT_DC_WIDEST 12 /* bits of a DC value above the group's least */
#define SK_DCT_GROUP                                                                                                   \
    724 /* bytes of the largest group: head 3, steps 16, DC 12, 63 places of 10, and of a sign byte each */
#define SK_DCT_READABLE 832 /* with what vector versions read beyond it */

/* Of a zigzag place, the place in a block row by row. */
extern const uint8_t sk_zigzag[64];

/* Chooses the table by STOKER_CPU or by what the processor has; a wrong STOKER_CPU is STOKER_ERR_ARGUMENT. Any thread,
 * any number of times. */
stoker_status sk_kernel_init(void);

/* The table chosen (the scalar one before sk_kernel_init). */
const sk_kernels *sk_kernels_get(void);

/* Every table that this processor can run, for tests; *count of them, the scalar one first. */
const sk_kernels *const *sk_kernels_all(int32_t *count);

/* "scalar", "avx2", "avx512" or "neon". */
const char *sk_cpu_name(void);

extern const sk_kernels sk_kernels_scalar;

/* The scalar horizontal pass of row `y` from output pixel `from` on, for the ends of rows in vector versions. */
void sk_scalar_resample_row(const sk_rows *rows, const sk_taps *taps, int32_t y, int32_t from);

/* For tables that stream nothing. */
void sk_scalar_drain(void);

/* The scalar JPEG kernels (scalar/jpeg.c), for tables that have no version of their own. */
void sk_scalar_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                    const uint16_t *quant);
void sk_scalar_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width);
void sk_scalar_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width);
void sk_scalar_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias);
void sk_scalar_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width);
void sk_scalar_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width);
int32_t sk_scalar_dct_unpack(const uint8_t *group, int16_t *upper, int16_t *lower, uint8_t *upper_last,
                             uint8_t *lower_last); /* scalar/dct.c */

#endif
