/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg_huffman.h"

#define MOST_DC 11 /* bits of a value in baseline files (T.81, tables F.1 and F.2) */
#define MOST_AC 10

static uint32_t pack(int32_t value, int32_t step, int32_t drop)
{
    return (uint32_t)value << 16 | (uint32_t)step << 8 | (uint32_t)drop;
}

/* The entry for the bits `next` (SK_HUFFMAN_BITS of them) that begin with a code of `length` bits for `symbol`. */
static uint32_t entry_of(uint32_t next, int32_t length, uint32_t symbol)
{
    int32_t size = (int32_t)(symbol & 15), run = (int32_t)(symbol >> 4);

    if (size == 0)
        return pack(0, run == 15 ? 16 : SK_HUFFMAN_END, length);
    if (length + size > SK_HUFFMAN_BITS)
        return pack(length, (int32_t)symbol, 0);
    int32_t value = (int32_t)(next >> (SK_HUFFMAN_BITS - length - size)) & ((1 << size) - 1);

    if (value < 1 << (size - 1))
        value -= (1 << size) - 1;
    return pack(value, run + 1, length + size);
}

static bool is_same(const sk_huffman *table, const uint8_t counts[16], const uint8_t *symbols, size_t count)
{
    return table->ready && memcmp(table->counts, counts, 16) == 0 && memcmp(table->symbols, symbols, count) == 0;
}

static bool make(sk_huffman *table, const uint8_t counts[16], const uint8_t *symbols, size_t count, bool dc)
{
    table->ready = false;
    for (size_t i = 0; i < count; i++) {
        if (dc ? symbols[i] > MOST_DC : (symbols[i] & 15) > MOST_AC)
            return false;
    }
    uint32_t code = 0;
    size_t at = 0;

    for (int32_t length = 1; length <= 16; length++, code <<= 1) {
        table->symbol[length] = (int32_t)at - (int32_t)code;
        for (int32_t i = 0; i < counts[length - 1]; i++, code++, at++) {
            if (code + 1 >= 1u << length) /* too many codes, or one of ones only, which is reserved */
                return false;
            if (length > SK_HUFFMAN_BITS)
                continue;
            uint32_t first = code << (SK_HUFFMAN_BITS - length);

            for (uint32_t j = 0; j < 1u << (SK_HUFFMAN_BITS - length); j++)
                table->entry[first + j] = entry_of(first + j, length, symbols[at]);
        }
        table->end[length] = code << (16 - length);
        if (length == SK_HUFFMAN_BITS) {
            for (uint32_t j = code; j < 1u << SK_HUFFMAN_BITS; j++)
                table->entry[j] = 0; /* a longer code */
        }
    }
    memcpy(table->counts, counts, 16);
    memcpy(table->symbols, symbols, count);
    table->ready = true;
    return true;
}

bool sk_huffman_make_dc(sk_huffman *table, const uint8_t counts[16], const uint8_t *symbols, size_t count)
{
    return is_same(table, counts, symbols, count) || make(table, counts, symbols, count, true);
}

bool sk_huffman_make_ac(sk_huffman_pairs *table, const uint8_t counts[16], const uint8_t *symbols, size_t count)
{
    if (is_same(&table->one, counts, symbols, count))
        return true;
    if (!make(&table->one, counts, symbols, count, false))
        return false;
    for (uint32_t i = 0; i < 1u << SK_HUFFMAN_BITS; i++) {
        uint32_t first = table->one.entry[i], drop = first & 255, step = first >> 8 & 255;
        uint32_t second =
            drop == 0 || step == SK_HUFFMAN_END ? 0 : table->one.entry[i << drop & ((1u << SK_HUFFMAN_BITS) - 1)];
        uint64_t value = first >> 16, value_2 = value, step_2 = 0;

        if ((second & 255) != 0 && drop + (second & 255) <= SK_HUFFMAN_BITS) {
            drop += second & 255;
            step_2 = second >> 8 & 255;
            value_2 = second >> 16;
        }
        if (drop == 0 && first != 0) /* a code of `value` bits for the symbol `step` */
            table->pair[i] = (uint64_t)(step & 15) << 48 | value << 32 | ((step >> 4) + 1) << 8;
        else
            table->pair[i] = drop == 0 ? 0 : value_2 << 48 | value << 32 | step_2 << 16 | step << 8 | drop;
    }
    return true;
}

int32_t sk_huffman_long(const sk_huffman *table, sk_bits *bits, uint32_t entry, int32_t *step)
{
    int32_t length = (int32_t)(entry >> 16);
    uint32_t symbol = entry >> 8 & 255;

    sk_bits_fill(bits); /* a code and its value are 27 bits at most */
    if (length == 0) {
        uint32_t next = (uint32_t)(bits->word >> 48);

        length = SK_HUFFMAN_BITS + 1;
        while (length <= 16 && next >= table->end[length])
            length++;
        if (length > 16) {
            *step = SK_HUFFMAN_BROKEN;
            return 0;
        }
        symbol = table->symbols[((int32_t)(next >> (16 - length)) + table->symbol[length]) & 255];
    }
    int32_t size = (int32_t)(symbol & 15), run = (int32_t)(symbol >> 4);

    sk_bits_drop(bits, length);
    if (size ==
        0) { /* no change of DC; 16 zeros of AC, or the block's end (also by what baseline files should not have) */
        *step = run == 15 ? 16 : SK_HUFFMAN_END;
        return 0;
    }
    int32_t value = (int32_t)(bits->word >> (64 - size));

    sk_bits_drop(bits, size);
    *step = run + 1;
    return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}
