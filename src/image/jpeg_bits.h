/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_bits.h: the bits of a JPEG scan, written with their stuffed zeros (ITU-T T.81, B.1.1.5). Which bits, says jpeg_encode.c.
 */
#ifndef SK_IMAGE_JPEG_BITS_H
#define SK_IMAGE_JPEG_BITS_H

#include <stdint.h>
#include <string.h>

/* Begins with `word` 0 and `room` 64. Whoever writes looks after the room at `at`: bits take twice their bytes at most. */
typedef struct sk_bits_out {
    uint8_t *at;
    uint64_t word; /* its low 64 - room bits are yet to be stored; above them lies what was stored before */
    int32_t room;
} sk_bits_out;

static inline void sk_bits_store_byte(sk_bits_out *bits, uint8_t byte)
{
    *bits->at++ = byte;
    if (byte == 0xFF)
        *bits->at++ = 0;
}

static inline void sk_bits_store(sk_bits_out *bits, uint64_t word)
{
    const uint64_t highs = 0x8080808080808080u, ones = 0x0101010101010101u;

    if (__builtin_expect((word & highs & ~(word + ones)) == 0, 1)) { /* no byte is FF */
        uint64_t bytes = __builtin_bswap64(word);

        memcpy(bits->at, &bytes, sizeof bytes);
        bits->at += sizeof bytes;
        return;
    }
    for (int shift = 56; shift >= 0; shift -= 8)
        sk_bits_store_byte(bits, (uint8_t)(word >> shift));
}

/* The low `count` bits of `value`, 0..32; those above are 0. */
static inline void sk_bits_put(sk_bits_out *bits, uint64_t value, int32_t count)
{
    bits->room -= count;
    if (__builtin_expect(bits->room >= 0, 1)) {
        bits->word = bits->word << count | value;
        return;
    }
    sk_bits_store(bits, bits->word << (count + bits->room) | value >> -bits->room);
    bits->word = value;
    bits->room += 64;
}

/* Stores all whole bytes. The number of bits, 0..7, that are left over for a last one. */
static inline int32_t sk_bits_flush(sk_bits_out *bits)
{
    int32_t count = 64 - bits->room;

    for (; count >= 8; count -= 8)
        sk_bits_store_byte(bits, (uint8_t)(bits->word >> (count - 8)));
    bits->room = 64 - count;
    return count;
}

/* After sk_bits_flush, which left `count` bits, not 0: stores them with the low bits of `pad` after them. */
static inline void sk_bits_pad(sk_bits_out *bits, int32_t count, uint8_t pad)
{
    sk_bits_store_byte(bits, (uint8_t)(bits->word << (8 - count) | (pad & 0xFFu >> count)));
    bits->room = 64;
}

#endif
