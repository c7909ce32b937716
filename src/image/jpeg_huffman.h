/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_huffman.h: JPEG's Huffman codes (ITU-T T.81 annexes C and F.2.2), read from bytes without stuffing. One look-up mostly finds two
 * AC codes with the bits of their values. What to do with the values is jpeg_baseline.c's.
 */
#ifndef SK_IMAGE_JPEG_HUFFMAN_H
#define SK_IMAGE_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SK_HUFFMAN_BITS   10  /* that a look-up takes; the tables should fit the cache */
#define SK_HUFFMAN_END    128 /* the step that ends a block: past any place in it */
#define SK_HUFFMAN_BROKEN 64  /* the step of bits that are no code: past the block, and short of SK_HUFFMAN_END */

/* A table made ready. An entry holds the value (16 bits), the step from the place before (8), and the bits to drop (8). Where the value
 * does not fit, the bits are 0, the value's place holds the code's length (0: longer than the look-up) and the step's the symbol. */
typedef struct sk_huffman {
    uint32_t entry[1 << SK_HUFFMAN_BITS];
    uint32_t end[17];   /* by length: the first 16 bits, left-aligned, that belong to longer codes */
    int32_t symbol[17]; /* by length: what to add to a code for its place in `symbols` */
    uint8_t counts[16]; /* codes of each length, as in the file */
    uint8_t symbols[256];
    bool ready;
} sk_huffman;

/* The same for AC, two values at a time: from the low bits up, bits to drop (8), first step (8), second step (16; 0 and the first value
 * again where there is no second), first value (16), second value (16). Where the first does not fit, the bits are 0, and the values'
 * places hold the lengths of the code and of its value; all is 0 where the code itself is longer than the look-up. */
typedef struct sk_huffman_pairs {
    sk_huffman one;
    uint64_t pair[1 << SK_HUFFMAN_BITS];
} sk_huffman_pairs;

/* Makes a table from the `counts` and `symbols` of a file. False where it is no code, or one with values of more bits than baseline
 * files have (11 for DC, 10 for AC). The same table again costs nothing. */
bool sk_huffman_make_dc(sk_huffman *table, const uint8_t counts[16], const uint8_t *symbols, size_t count);
bool sk_huffman_make_ac(sk_huffman_pairs *table, const uint8_t counts[16], const uint8_t *symbols, size_t count);

/* The next bits: `count` of them at the top of `word`. Reading runs ahead of what is used by up to 8 bytes. */
typedef struct sk_bits {
    const uint8_t *at;
    uint64_t word;
    int32_t count;
} sk_bits;

/* At least 56 bits from here on. */
static inline void sk_bits_fill(sk_bits *bits)
{
    uint64_t next;

    memcpy(&next, bits->at, sizeof next);
    bits->word |= __builtin_bswap64(next) >> bits->count;
    bits->at += 7 - (bits->count >> 3);
    bits->count |= 56;
}

static inline void sk_bits_drop(sk_bits *bits, int32_t count)
{
    bits->word <<= count;
    bits->count -= count;
}

/* A value that does not fit the look-up, whose entry of `table` is given. *step as in an entry. */
int32_t sk_huffman_long(const sk_huffman *table, sk_bits *bits, uint32_t entry, int32_t *step);

/* The next value by a single look-up. */
static inline int32_t sk_huffman_next(const sk_huffman *table, sk_bits *bits, int32_t *step)
{
    sk_bits_fill(bits);
    uint32_t entry = table->entry[bits->word >> (64 - SK_HUFFMAN_BITS)];
    int32_t drop = (int32_t)(entry & 255);

    if (__builtin_expect(drop == 0, 0))
        return sk_huffman_long(table, bits, entry, step);
    sk_bits_drop(bits, drop);
    *step = (int32_t)(entry >> 8 & 255);
    return (int32_t)entry >> 16;
}

#endif
