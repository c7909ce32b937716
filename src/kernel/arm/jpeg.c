/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg.c: JPEG's pixels with NEON, the arithmetic of scalar/jpeg.c: a block at a time, one row or column of it to a
 * vector; 16 samples of a row at once. The end of a row is done once more from where 16 samples end with it; rows
 * shorter than that are scalar.
 */
#include <arm_neon.h>
#include <stdbool.h>

#include "kernel/arm/arm.h"

#define STEP     16 /* samples */
#define LAST_LOW 9  /* up to here the zigzag stays within the first four rows and columns */

/* round(x * 2^13) */
enum factor {
    F0_298 = 2446,
    F0_390 = 3196,
    F0_541 = 4433,
    F0_765 = 6270,
    F0_899 = 7373,
    F1_175 = 9633,
    F1_501 = 12299,
    F1_847 = 15137,
    F1_961 = 16069,
    F2_053 = 16819,
    F2_562 = 20995,
    F3_072 = 25172,
};

/* Eight values of 32 bits. */
typedef struct wide {
    int32x4_t low, high;
} wide;

static inline wide plus(wide a, wide b)
{
    return (wide){vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)};
}

static inline wide minus(wide a, wide b)
{
    return (wide){vsubq_s32(a.low, b.low), vsubq_s32(a.high, b.high)};
}

/* a × p */
static inline wide times(int16x8_t a, int16_t p)
{
    return (wide){vmull_n_s16(vget_low_s16(a), p), vmull_high_n_s16(a, p)};
}

/* a × p + b × q */
static inline wide product(int16x8_t a, int16_t p, int16x8_t b, int16_t q)
{
    return (wide){vmlal_n_s16(vmull_n_s16(vget_low_s16(a), p), vget_low_s16(b), q),
                  vmlal_high_n_s16(vmull_high_n_s16(a, p), b, q)};
}

static inline wide scaled(int16x8_t a)
{
    return (wide){vshll_n_s16(vget_low_s16(a), 13), vshll_high_n_s16(a, 13)};
}

/* Takes off 11 fractional bits after the columns, 18 after the rows; rounds and saturates. */
static inline int16x8_t narrowed(wide a, bool rows)
{
    if (rows)
        return vqmovn_high_s32(vqmovn_s32(vrshrq_n_s32(a.low, 18)), vrshrq_n_s32(a.high, 18));
    return vqrshrn_high_n_s32(vqrshrn_n_s32(a.low, 11), a.high, 11);
}

static inline void butterfly(int16x8_t *first, int16x8_t *second, wide even, wide odd, bool rows)
{
    *first = narrowed(plus(even, odd), rows);
    *second = narrowed(minus(even, odd), rows);
}

static inline void transform(const int16x8_t in[8], int16x8_t out[8], bool rows)
{
    wide sum = scaled(vaddq_s16(in[0], in[4])), difference = scaled(vsubq_s16(in[0], in[4]));
    wide low = product(in[2], F0_541 + F0_765, in[6], F0_541), high = product(in[2], F0_541, in[6], F0_541 - F1_847);
    int16x8_t s37 = vaddq_s16(in[3], in[7]), s15 = vaddq_s16(in[1], in[5]);
    wide z37 = product(s37, F1_175 - F1_961, s15, F1_175), z15 = product(s37, F1_175, s15, F1_175 - F0_390);

    butterfly(&out[0], &out[7], plus(sum, low), plus(product(in[1], F1_501 - F0_899, in[7], -F0_899), z15), rows);
    butterfly(&out[1], &out[6], plus(difference, high), plus(product(in[3], F3_072 - F2_562, in[5], -F2_562), z37),
              rows);
    butterfly(&out[2], &out[5], minus(difference, high), plus(product(in[3], -F2_562, in[5], F2_053 - F2_562), z15),
              rows);
    butterfly(&out[3], &out[4], minus(sum, low), plus(product(in[1], -F0_899, in[7], F0_298 - F0_899), z37), rows);
}

/* The same where in[4..7] are zero. */
static inline void transform_low(const int16x8_t in[4], int16x8_t out[8], bool rows)
{
    wide sum = scaled(in[0]), low = times(in[2], F0_541 + F0_765), high = times(in[2], F0_541);

    butterfly(&out[0], &out[7], plus(sum, low), product(in[1], F1_501 - F0_899 + F1_175 - F0_390, in[3], F1_175), rows);
    butterfly(&out[1], &out[6], plus(sum, high), product(in[1], F1_175, in[3], F3_072 - F2_562 + F1_175 - F1_961),
              rows);
    butterfly(&out[2], &out[5], minus(sum, high), product(in[1], F1_175 - F0_390, in[3], F1_175 - F2_562), rows);
    butterfly(&out[3], &out[4], minus(sum, low), product(in[1], F1_175 - F0_899, in[3], F1_175 - F1_961), rows);
}

static inline int16x8_t even_pairs(int16x8_t a, int16x8_t b)
{
    return vreinterpretq_s16_s32(vtrn1q_s32(vreinterpretq_s32_s16(a), vreinterpretq_s32_s16(b)));
}

static inline int16x8_t odd_pairs(int16x8_t a, int16x8_t b)
{
    return vreinterpretq_s16_s32(vtrn2q_s32(vreinterpretq_s32_s16(a), vreinterpretq_s32_s16(b)));
}

/* Rows to columns. */
static inline void transpose(const int16x8_t in[8], int16x8_t out[8])
{
    int16x8_t four[8]; /* four[j] of each half: columns j and j + 4 of four rows */

    for (int half = 0; half < 8; half += 4) {
        int16x8_t even01 = vtrn1q_s16(in[half], in[half + 1]), odd01 = vtrn2q_s16(in[half], in[half + 1]);
        int16x8_t even23 = vtrn1q_s16(in[half + 2], in[half + 3]), odd23 = vtrn2q_s16(in[half + 2], in[half + 3]);

        four[half] = even_pairs(even01, even23);
        four[half + 1] = even_pairs(odd01, odd23);
        four[half + 2] = odd_pairs(even01, even23);
        four[half + 3] = odd_pairs(odd01, odd23);
    }
    for (int j = 0; j < 4; j++) {
        int64x2_t above = vreinterpretq_s64_s16(four[j]), below = vreinterpretq_s64_s16(four[j + 4]);

        out[j] = vreinterpretq_s16_s64(vtrn1q_s64(above, below));
        out[j + 4] = vreinterpretq_s16_s64(vtrn2q_s64(above, below));
    }
}

/* Columns still without their 128 to rows of bytes. */
static inline void store_block(uint8_t *out, size_t stride, const int16x8_t columns[8])
{
    uint8x8_t c[8];

    for (int k = 0; k < 8; k++)
        c[k] = veor_u8(vreinterpret_u8_s8(vqmovn_s16(columns[k])), vdup_n_u8(0x80));
    uint8x8x2_t p01 = vtrn_u8(c[0], c[1]), p23 = vtrn_u8(c[2], c[3]), p45 = vtrn_u8(c[4], c[5]),
                p67 = vtrn_u8(c[6], c[7]);

    for (int odd = 0; odd < 2; odd++) { /* rows 0, 2, 4, 6, then 1, 3, 5, 7 */
        uint16x4x2_t left = vtrn_u16(vreinterpret_u16_u8(p01.val[odd]), vreinterpret_u16_u8(p23.val[odd]));
        uint16x4x2_t right = vtrn_u16(vreinterpret_u16_u8(p45.val[odd]), vreinterpret_u16_u8(p67.val[odd]));

        for (int k = 0; k < 2; k++) {
            uint32x2x2_t both = vtrn_u32(vreinterpret_u32_u16(left.val[k]), vreinterpret_u32_u16(right.val[k]));
            uint8_t *at = out + (size_t)(odd + 2 * k) * stride;

            vst1_u8(at, vreinterpret_u8_u32(both.val[0]));
            vst1_u8(at + 4 * stride, vreinterpret_u8_u32(both.val[1]));
        }
    }
}

static inline int16x8_t row_of(const int16_t *coefficients, const uint16_t *quant, int y)
{
    return vmulq_s16(vld1q_s16(coefficients + 8 * y), vreinterpretq_s16_u16(vld1q_u16(quant + 8 * y)));
}

static inline void idct_mean(uint8_t *out, size_t stride, int16_t coefficient, uint16_t quant)
{
    /* times 4 wraps, as in the scalar version */
    int32_t mean = (int16_t)(uint16_t)((uint32_t)(coefficient * (int32_t)quant) << 2);
    int8x8_t sample = vqmovn_s16(vdupq_n_s16((int16_t)((mean + 16) >> 5)));
    uint8x8_t row = veor_u8(vreinterpret_u8_s8(sample), vdup_n_u8(0x80));

    for (size_t y = 0; y < 8; y++)
        vst1_u8(out + y * stride, row);
}

static inline void idct_block(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last,
                              const uint16_t *quant)
{
    int16x8_t in[8], between[8];
    bool low = *last <= LAST_LOW;

    if (*last == 0) {
        idct_mean(out, stride, coefficients[0], quant[0]);
        return;
    }
    for (int y = 0; y < (low ? 4 : 8); y++)
        in[y] = row_of(coefficients, quant, y);
    /* Blocks with only the first row wrap where others saturate: leave values for which that matters to scalar. */
    if (vmaxvq_s16(in[0]) >= 0x2000 || vminvq_s16(in[0]) < -0x2000) {
        sk_scalar_idct(out, stride, coefficients, last, 1, quant);
        return;
    }
    if (low) {
        transform_low(in, between, false);
        transpose(between, in);
        transform_low(in, between, true);
    } else {
        transform(in, between, false);
        transpose(between, in);
        transform(in, between, true);
    }
    store_block(out, stride, between);
}

void sk_neon_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                  const uint16_t *quant)
{
    for (int32_t b = 0; b < blocks; b++)
        idct_block(out + 8 * (size_t)b, stride, coefficients + 64 * (size_t)b, last + b, quant);
}

/* --------------------------------------------------------------------------------------------- upsampling -------- */

/* Where the step after the one at `i` begins: right behind it, or 16 samples before the end of the row. */
static inline int32_t next_step(int32_t i, int32_t width)
{
    return i + STEP < width && i + 2 * STEP > width ? width - STEP : i + STEP;
}

/* Sixteen values of 16 bits. */
typedef struct sums {
    uint16x8_t low, high;
} sums;

static inline sums three_to_one(uint8x16_t a, uint8x16_t b)
{
    uint8x16_t three = vdupq_n_u8(3);

    return (sums){vmlal_u8(vmovl_u8(vget_low_u8(b)), vget_low_u8(a), vget_low_u8(three)),
                  vmlal_high_u8(vmovl_high_u8(b), a, three)};
}

static inline sums raised(sums a, uint16_t by)
{
    return (sums){vaddq_u16(a.low, vdupq_n_u16(by)), vaddq_u16(a.high, vdupq_n_u16(by))};
}

void sk_neon_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width)
{
    if (width < STEP) {
        sk_scalar_upsample_h2v1(out, in, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        uint8x16_t here = vld1q_u8(in + i);
        sums left = raised(three_to_one(here, vld1q_u8(in + i - 1)), 1);
        sums right = three_to_one(here, vld1q_u8(in + i + 1)); /* plus 2: rounded */
        uint8x16x2_t pairs = {{vshrn_high_n_u16(vshrn_n_u16(left.low, 2), left.high, 2),
                               vrshrn_high_n_u16(vrshrn_n_u16(right.low, 2), right.high, 2)}};

        vst2q_u8(out + 2 * (size_t)i, pairs);
    }
}

static inline sums column_sums(const uint8_t *near, const uint8_t *far)
{
    return three_to_one(vld1q_u8(near), vld1q_u8(far));
}

static inline sums three_times_plus(sums a, sums b)
{
    return (sums){vmlaq_n_u16(b.low, a.low, 3), vmlaq_n_u16(b.high, a.high, 3)};
}

void sk_neon_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width)
{
    if (width < STEP) {
        sk_scalar_upsample_h2v2(out, near, far, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        sums here = column_sums(near + i, far + i);
        sums left = three_times_plus(here, column_sums(near + i - 1, far + i - 1)); /* plus 8: rounded */
        sums right = raised(three_times_plus(here, column_sums(near + i + 1, far + i + 1)), 7);
        uint8x16x2_t pairs = {{vrshrn_high_n_u16(vrshrn_n_u16(left.low, 4), left.high, 4),
                               vshrn_high_n_u16(vshrn_n_u16(right.low, 4), right.high, 4)}};

        vst2q_u8(out + 2 * (size_t)i, pairs);
    }
}

void sk_neon_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias)
{
    if (width < STEP) {
        sk_scalar_upsample_h1v2(out, near, far, width, bias);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        sums both = raised(column_sums(near + i, far + i), (uint16_t)bias);

        vst1q_u8(out + i, vshrn_high_n_u16(vshrn_n_u16(both.low, 2), both.high, 2));
    }
}

/* ------------------------------------------------------------------------------------------------- colour -------- */

/* 2 × (v - 128) of 8 bytes v. */
static inline int16x8_t twice_signed(uint8x8_t v)
{
    return vshlq_n_s16(vreinterpretq_s16_u16(vsubl_u8(v, vdup_n_u8(128))), 1);
}

/* y + round(chroma × factor / 2^15) to bytes. With chroma of 256 values, the factors used below give what 16 fractional
 * bits give. */
static inline uint8x8_t by_one(int16x8_t y, int16x8_t chroma, int16_t factor)
{
    return vqmovun_s16(vaddq_s16(y, vqrdmulhq_n_s16(chroma, factor)));
}

static inline uint8x8_t green_of(int16x8_t y, int16x8_t blue, int16x8_t red)
{
    wide both = product(blue, -11277, red, -23401);

    return vqmovun_s16(vaddq_s16(y, vrshrn_high_n_s32(vrshrn_n_s32(both.low, 16), both.high, 16)));
}

static inline uint8x8x3_t to_rgb(uint8x8_t y, uint8x8_t cb, uint8x8_t cr)
{
    int16x8_t light = vreinterpretq_s16_u16(vmovl_u8(y)), blue = twice_signed(cb), red = twice_signed(cr);

    return (uint8x8x3_t){{by_one(light, red, 22971), green_of(light, blue, red), by_one(light, blue, 29033)}};
}

void sk_neon_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    if (width < STEP) {
        sk_scalar_ycc_to_rgb(out, y, cb, cr, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        uint8x16_t light = vld1q_u8(y + i), blue = vld1q_u8(cb + i), red = vld1q_u8(cr + i);
        uint8x8x3_t low = to_rgb(vget_low_u8(light), vget_low_u8(blue), vget_low_u8(red));
        uint8x8x3_t high = to_rgb(vget_high_u8(light), vget_high_u8(blue), vget_high_u8(red));
        uint8x16x3_t pixels;

        for (int c = 0; c < 3; c++)
            pixels.val[c] = vcombine_u8(low.val[c], high.val[c]);
        vst3q_u8(out + 3 * (size_t)i, pixels);
    }
}

void sk_neon_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width)
{
    if (width < STEP) {
        sk_scalar_gray_to_rgb(out, y, width);
        return;
    }
    for (int32_t i = 0; i < width; i = next_step(i, width)) {
        uint8x16_t gray = vld1q_u8(y + i);

        vst3q_u8(out + 3 * (size_t)i, (uint8x16x3_t){{gray, gray, gray}});
    }
}
