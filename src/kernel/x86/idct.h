/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idct.h: the transform of scalar/jpeg.c in vectors of 16-bit integers, one block to each lane of 128 bits. Included
 * once by each instruction set, which defines `vector` and V(operation), the intrinsic of that name. No include guard:
 * this is a template.
 */

typedef struct wide { /* 32-bit values of elements 0..3 and 4..7 of each lane */
    vector low, high;
} wide;

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

#define COLUMN_BITS 11 /* fractional bits that the pass over columns takes off; it leaves 2 */
#define ROW_BITS    18

static inline wide interleave(vector a, vector b)
{
    return (wide){V(unpacklo_epi16)(a, b), V(unpackhi_epi16)(a, b)};
}

/* a × p + b × q of what was interleaved. */
static inline wide product(wide ab, int p, int q)
{
    vector factors = V(set1_epi32)((int)((uint32_t)q << 16 | (uint16_t)p));

    return (wide){V(madd_epi16)(ab.low, factors), V(madd_epi16)(ab.high, factors)};
}

static inline wide plus(wide a, wide b)
{
    return (wide){V(add_epi32)(a.low, b.low), V(add_epi32)(a.high, b.high)};
}

static inline wide minus(wide a, wide b)
{
    return (wide){V(sub_epi32)(a.low, b.low), V(sub_epi32)(a.high, b.high)};
}

static inline vector narrowed(wide a, int bits)
{
    return V(packs_epi32)(V(srai_epi32)(a.low, bits), V(srai_epi32)(a.high, bits));
}

/* a × 2^13 and what rounds the shift by `bits` later. */
static inline wide scaled(vector a, int bits)
{
    if (bits == COLUMN_BITS) { /* the rounding fits below the 16 bits */
        wide shifted = interleave(V(set1_epi16)(1 << (COLUMN_BITS - 1 + 3)), a);

        return (wide){V(srai_epi32)(shifted.low, 3), V(srai_epi32)(shifted.high, 3)};
    }
    wide shifted = interleave(V(set1_epi16)(0), a);
    vector half = V(set1_epi32)(1 << (bits - 1));

    return (wide){V(add_epi32)(V(srai_epi32)(shifted.low, 3), half),
                  V(add_epi32)(V(srai_epi32)(shifted.high, 3), half)};
}

static inline void butterfly(vector *first, vector *second, wide even, wide odd, int bits)
{
    *first = narrowed(plus(even, odd), bits);
    *second = narrowed(minus(even, odd), bits);
}

static inline void transform(const vector in[8], vector out[8], int bits)
{
    wide sum = scaled(V(add_epi16)(in[0], in[4]), bits), difference = scaled(V(sub_epi16)(in[0], in[4]), bits);
    wide i26 = interleave(in[2], in[6]);
    wide low = product(i26, F0_541 + F0_765, F0_541), high = product(i26, F0_541, F0_541 - F1_847);
    wide even0 = plus(sum, low), even1 = plus(difference, high);
    wide even2 = minus(difference, high), even3 = minus(sum, low);

    wide z = interleave(V(add_epi16)(in[3], in[7]), V(add_epi16)(in[1], in[5]));
    wide z37 = product(z, F1_175 - F1_961, F1_175), z15 = product(z, F1_175, F1_175 - F0_390);
    wide i17 = interleave(in[1], in[7]), i35 = interleave(in[3], in[5]);

    butterfly(&out[0], &out[7], even0, plus(product(i17, F1_501 - F0_899, -F0_899), z15), bits);
    butterfly(&out[1], &out[6], even1, plus(product(i35, F3_072 - F2_562, -F2_562), z37), bits);
    butterfly(&out[2], &out[5], even2, plus(product(i35, -F2_562, F2_053 - F2_562), z15), bits);
    butterfly(&out[3], &out[4], even3, plus(product(i17, -F0_899, F0_298 - F0_899), z37), bits);
}

/* The same where in[4..7] are zero. */
static inline void transform_low(const vector in[4], vector out[8], int bits)
{
    wide i0 = scaled(in[0], bits);
    wide i2 = interleave(in[2], V(set1_epi16)(0)), i13 = interleave(in[1], in[3]);
    wide low = product(i2, F0_541 + F0_765, 0), high = product(i2, F0_541, 0);

    butterfly(&out[0], &out[7], plus(i0, low), product(i13, F1_501 - F0_899 + F1_175 - F0_390, F1_175), bits);
    butterfly(&out[1], &out[6], plus(i0, high), product(i13, F1_175, F3_072 - F2_562 + F1_175 - F1_961), bits);
    butterfly(&out[2], &out[5], minus(i0, high), product(i13, F1_175 - F0_390, F1_175 - F2_562), bits);
    butterfly(&out[3], &out[4], minus(i0, low), product(i13, F1_175 - F0_899, F1_175 - F1_961), bits);
}

/* Rows to columns within each lane. */
static inline void transpose(const vector in[8], vector out[8])
{
    vector a[8], b[8];

    for (int k = 0; k < 4; k++) {
        a[2 * k] = V(unpacklo_epi16)(in[k], in[k + 4]);
        a[2 * k + 1] = V(unpackhi_epi16)(in[k], in[k + 4]);
    }
    for (int k = 0; k < 4; k++) {
        b[2 * k] = V(unpacklo_epi16)(a[k], a[k + 4]);
        b[2 * k + 1] = V(unpackhi_epi16)(a[k], a[k + 4]);
    }
    for (int k = 0; k < 4; k++) {
        out[2 * k] = V(unpacklo_epi16)(b[k], b[k + 4]);
        out[2 * k + 1] = V(unpackhi_epi16)(b[k], b[k + 4]);
    }
}

/* Columns 0..3 only. */
static inline void transpose_low(const vector in[8], vector out[4])
{
    vector a[4], b[4];

    for (int k = 0; k < 4; k++)
        a[k] = V(unpacklo_epi16)(in[k], in[k + 4]);
    for (int k = 0; k < 2; k++) {
        b[2 * k] = V(unpacklo_epi16)(a[k], a[k + 2]);
        b[2 * k + 1] = V(unpackhi_epi16)(a[k], a[k + 2]);
    }
    for (int k = 0; k < 2; k++) {
        out[2 * k] = V(unpacklo_epi16)(b[k], b[k + 2]);
        out[2 * k + 1] = V(unpackhi_epi16)(b[k], b[k + 2]);
    }
}

/* Dequantised rows to columns of samples that are still without their 128, in 16 bits. */
static inline void idct_lanes(vector in[8], vector columns[8], bool low)
{
    vector between[8];

    if (low) {
        transform_low(in, between, COLUMN_BITS);
        transpose_low(between, in);
        transform_low(in, columns, ROW_BITS);
    } else {
        transform(in, between, COLUMN_BITS);
        transpose(between, in);
        transform(in, columns, ROW_BITS);
    }
}
