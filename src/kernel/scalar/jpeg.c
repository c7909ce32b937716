/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg.c: from dequantisation to RGB, the part of JPEG that is the same for every pixel. Reference for the vector
 * versions, and equal, bit for bit, to what libjpeg-turbo's vector code makes of the same coefficients with its default
 * settings (tests/check_jpeg_kernels.c).
 *
 * The transform is that of Loeffler, Ligtenberg and Moschytz, "Practical Fast 1-D DCT Algorithms with 11
 * Multiplications", ICASSP 1989, in the form with 12 multiplications where each path has one; constants have 13
 * fractional bits, and the values between columns and rows have 2. Rotations that share a factor are multiplied out, so
 * that each is two products and a sum: that is what vector code does with 16-bit inputs, and why sums made before a
 * product are kept to 16 bits.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/kernel.h"

#define SIDE         8
#define CONST_BITS   13
#define BETWEEN_BITS 2 /* fractional bits of what the columns leave for the rows */

/* round(x * 2^13), named by the factor's first digits. */
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

static int16_t wrap(int32_t value)
{
    return (int16_t)(uint16_t)value;
}

static int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Eight values to eight sums of 13 more fractional bits. |sum| < 2115 * 10^6 whatever the input, so no step leaves 32
 * bits. */
static inline void transform(const int16_t in[SIDE], int32_t out[SIDE])
{
    int32_t sum = wrap(in[0] + in[4]) * (1 << CONST_BITS), difference = wrap(in[0] - in[4]) * (1 << CONST_BITS);
    int32_t low = in[2] * (F0_541 + F0_765) + in[6] * F0_541, high = in[2] * F0_541 + in[6] * (F0_541 - F1_847);
    int32_t even[4] = {sum + low, difference + high, difference - high, sum - low};

    int16_t s37 = wrap(in[3] + in[7]), s15 = wrap(in[1] + in[5]);
    int32_t z37 = s37 * (F1_175 - F1_961) + s15 * F1_175, z15 = s37 * F1_175 + s15 * (F1_175 - F0_390);
    int32_t odd[4] = {
        in[1] * (F1_501 - F0_899) - in[7] * F0_899 + z15,
        in[3] * (F3_072 - F2_562) - in[5] * F2_562 + z37,
        in[5] * (F2_053 - F2_562) - in[3] * F2_562 + z15,
        in[7] * (F0_298 - F0_899) - in[1] * F0_899 + z37,
    };

    for (int k = 0; k < 4; k++) {
        out[k] = even[k] + odd[k];
        out[7 - k] = even[k] - odd[k];
    }
}

static int32_t rounded(int32_t value, int bits)
{
    return (value + (1 << (bits - 1))) >> bits;
}

static uint8_t to_sample(int32_t value)
{
    return (uint8_t)(clamp(value, -128, 127) + 128);
}

static bool is_row_zero_only(const int16_t *coefficients)
{
    int32_t any = 0;

    for (int i = SIDE; i < SIDE * SIDE; i++)
        any |= coefficients[i];
    return any == 0;
}

static void idct_columns(int16_t between[SIDE * SIDE], const int16_t *coefficients, const uint16_t *quant)
{
    for (int x = 0; x < SIDE; x++) {
        int16_t in[SIDE];
        int32_t out[SIDE];

        for (int y = 0; y < SIDE; y++)
            in[y] = wrap(coefficients[SIDE * y + x] * (int32_t)quant[SIDE * y + x]);
        transform(in, out);
        for (int y = 0; y < SIDE; y++)
            between[SIDE * y + x] = (int16_t)clamp(rounded(out[y], CONST_BITS - BETWEEN_BITS), INT16_MIN, INT16_MAX);
    }
}

static void idct_block(uint8_t *out, size_t stride, const int16_t *coefficients, const uint16_t *quant)
{
    int16_t between[SIDE * SIDE];
    int32_t sums[SIDE];

    if (is_row_zero_only(coefficients)) {
        /* All columns are constant, and all rows equal. The reference multiplies by 4 here without saturation. */
        for (int x = 0; x < SIDE; x++)
            between[x] = wrap(wrap(coefficients[x] * (int32_t)quant[x]) * (1 << BETWEEN_BITS));
        transform(between, sums);
        for (int x = 0; x < SIDE; x++)
            out[x] = to_sample(rounded(sums[x], CONST_BITS + BETWEEN_BITS + 3));
        for (size_t y = 1; y < SIDE; y++)
            memcpy(out + y * stride, out, SIDE);
        return;
    }
    idct_columns(between, coefficients, quant);
    for (size_t y = 0; y < SIDE; y++) {
        transform(between + SIDE * y, sums);
        for (size_t x = 0; x < SIDE; x++)
            out[y * stride + x] = to_sample(rounded(sums[x], CONST_BITS + BETWEEN_BITS + 3));
    }
}

void sk_scalar_idct(uint8_t *out, size_t stride, const int16_t *coefficients, const uint8_t *last, int32_t blocks,
                    const uint16_t *quant)
{
    for (int32_t b = 0; b < blocks; b++, out += SIDE, coefficients += SIDE * SIDE) {
        if (last[b] != 0) {
            idct_block(out, stride, coefficients, quant);
            continue;
        }
        int16_t mean = wrap(wrap(coefficients[0] * (int32_t)quant[0]) * (1 << BETWEEN_BITS));
        uint8_t sample = to_sample(rounded(mean, BETWEEN_BITS + 3));

        for (size_t y = 0; y < SIDE; y++)
            memset(out + y * stride, sample, SIDE);
    }
}

/* --------------------------------------------------------------------------------------------- upsampling -------- */

/* A sample of the finer grid is 3/4 of the nearer coarse sample and 1/4 of the farther one, in each direction; the
 * roundings alternate, so that they do not brighten. */
void sk_scalar_upsample_h2v1(uint8_t *out, const uint8_t *in, int32_t width)
{
    for (ptrdiff_t i = 0; i < width; i++) {
        out[2 * i] = (uint8_t)((3 * in[i] + in[i - 1] + 1) >> 2);
        out[2 * i + 1] = (uint8_t)((3 * in[i] + in[i + 1] + 2) >> 2);
    }
}

void sk_scalar_upsample_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width)
{
    int32_t left = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];

    for (ptrdiff_t i = 0; i < width; i++) {
        int32_t right = 3 * near[i + 1] + far[i + 1];

        out[2 * i] = (uint8_t)((3 * here + left + 8) >> 4);
        out[2 * i + 1] = (uint8_t)((3 * here + right + 7) >> 4);
        left = here;
        here = right;
    }
}

void sk_scalar_upsample_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t width, int32_t bias)
{
    for (int32_t i = 0; i < width; i++)
        out[i] = (uint8_t)((3 * near[i] + far[i] + bias) >> 2);
}

/* ------------------------------------------------------------------------------------------------- colour -------- */

static uint8_t to_byte(int32_t value)
{
    return (uint8_t)clamp(value, 0, 255);
}

/* JFIF: 1.402 Cr, 0.344136 Cb + 0.714136 Cr, 1.772 Cb, in 16 fractional bits. */
void sk_scalar_ycc_to_rgb(uint8_t *out, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    for (int32_t i = 0; i < width; i++) {
        int32_t blue = cb[i] - 128, red = cr[i] - 128;

        *out++ = to_byte(y[i] + rounded(91881 * red, 16));
        *out++ = to_byte(y[i] + rounded(-22554 * blue - 46802 * red, 16));
        *out++ = to_byte(y[i] + rounded(116130 * blue, 16));
    }
}

void sk_scalar_gray_to_rgb(uint8_t *out, const uint8_t *y, int32_t width)
{
    for (int32_t i = 0; i < width; i++, out += 3)
        memset(out, y[i], 3);
}
