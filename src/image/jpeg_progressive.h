/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_progressive.h: what jpeg_encode.c and jpeg_progressive.c, the blocks of progressive scans (ITU-T T.81 annex G), share.
 */
#ifndef SK_IMAGE_JPEG_PROGRESSIVE_H
#define SK_IMAGE_JPEG_PROGRESSIVE_H

#include "image/jpeg_bits.h"
#include "image/jpeg_encode.h"

#define SK_JPEG_CORRECTIONS 1000 /* bits that libjpeg holds back at most while a run of finished blocks goes on */

typedef struct sk_jpeg_coder {
    sk_bits_out bits;
    const sk_jpeg_scan *scan;
    uint32_t valid;          /* bit 31: all symbols had codes */
    int32_t before[3];       /* DC values */
    uint32_t run;            /* blocks that ended early and are not written yet; only in scans of one component */
    uint32_t corrections;    /* bits held back with that run */
    uint64_t places[8][256]; /* of a row's non-zero values, the zigzag places, one a bit */
    uint8_t correction[SK_JPEG_CORRECTIONS];
} sk_jpeg_coder;

/* The zigzag places of a block's non-zero values. */
static inline uint64_t sk_jpeg_places(const sk_jpeg_coder *self, const int16_t *block)
{
    uint8_t nonzero[64];
    uint64_t places = 0;

    for (int i = 0; i < 64; i++)
        nonzero[i] = block[i] != 0;
    for (int row = 0; row < 8; row++) {
        uint64_t bytes;

        memcpy(&bytes, nonzero + 8 * row, sizeof bytes);
        places |=
            self->places[row][bytes * 0x0102040810204080u >> 56]; /* the lowest bits of the bytes, the first lowest */
    }
    return places;
}

/* The code of a symbol, and after it `count` bits (0..16) of `value`. */
static inline void sk_jpeg_put(sk_jpeg_coder *self, sk_bits_out *bits, const sk_huffman_code *code, uint32_t symbol,
                               uint32_t value, uint32_t count)
{
    uint32_t entry = code->entry[symbol];

    self->valid &= entry;
    sk_bits_put(bits, (uint64_t)(entry >> 8 & 0xFFFF) << count | value, (int32_t)((entry & 255) + count));
}

/* The bits that tell a value from others of its size (T.81, F.1.2.1). */
static inline uint32_t sk_jpeg_value_bits(int32_t value, uint32_t size)
{
    return (uint32_t)(value - (value < 0 ? 1 : 0)) & ((1u << size) - 1);
}

/* A block of the scan's component `c`. */
typedef void sk_jpeg_block_coder(sk_jpeg_coder *self, int32_t c, const int16_t *block);

/* That of a progressive scan. */
sk_jpeg_block_coder *sk_jpeg_progressive_coder(const sk_jpeg_scan *scan);

/* Writes what is held back. */
void sk_jpeg_end_run(sk_jpeg_coder *self);

#endif
