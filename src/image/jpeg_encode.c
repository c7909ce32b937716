/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_encode.c: see the header. A block's non-zero values are found 64 at a time and then taken one by one, as most are zero.
 */
#include "image/jpeg_encode.h"

#include "image/jpeg_progressive.h"
#include "kernel/kernel.h"

#define LONGEST  16  /* bits of a code in a file */
#define RESERVED 256 /* a symbol that never comes: the longest code, of ones only, is its */

/* ---------------------------------------------------------------------------------------------------- tables ------- */

bool sk_huffman_code_make(sk_huffman_code *self, const sk_huffman_list *list)
{
    uint32_t code = 0;
    int32_t at = 0;

    memset(self, 0, sizeof *self);
    for (uint32_t length = 1; length <= LONGEST; length++, code <<= 1) {
        for (int32_t i = 0; i < list->counts[length - 1]; i++, code++, at++) {
            if (code >= 1u << length || at >= 256)
                return false;
            uint32_t *entry = &self->entry[list->symbols[at]];

            if (*entry == 0) /* of several codes for one symbol, the shortest */
                *entry = 1u << 31 | code << 8 | length;
        }
    }
    return true;
}

/* The least frequency, of these the last; -1 where there is none beside `other`. */
static int32_t find_least(const uint64_t *frequency, int32_t count, int32_t other)
{
    int32_t found = -1;

    for (int32_t i = 0; i < count; i++) {
        if (i != other && frequency[i] != 0 && (found < 0 || frequency[i] <= frequency[found]))
            found = i;
    }
    return found;
}

/* Of `count` symbols' frequencies, which are used up, the code lengths of Huffman's tree: T.81, figure K.1. */
static void grow_tree(uint64_t *frequency, int32_t count, int32_t *lengths)
{
    int32_t next[257]; /* those that hang on the same branch */

    for (int32_t i = 0; i < count; i++) {
        next[i] = -1;
        lengths[i] = 0;
    }
    for (;;) {
        int32_t one = find_least(frequency, count, -1), two = find_least(frequency, count, one), end = one;

        if (two < 0)
            return;
        frequency[one] += frequency[two];
        frequency[two] = 0;
        for (int32_t i = one; i >= 0; i = next[i]) {
            lengths[i]++;
            end = i;
        }
        next[end] = two;
        for (int32_t i = two; i >= 0; i = next[i])
            lengths[i]++;
    }
}

/* Moves codes up from lengths beyond 16: T.81, figure K.3. Then takes the reserved one, one of the longest, out. */
static void shorten(int32_t counts[258])
{
    int32_t longest = LONGEST;

    for (int32_t i = 257; i > LONGEST; i--) {
        while (counts[i] >
               0) { /* two of them: one takes their branch's place, the other a new one beside a shorter code */
            int32_t shorter = i - 2;

            while (counts[shorter] == 0)
                shorter--;
            counts[i] -= 2;
            counts[i - 1]++;
            counts[shorter + 1] += 2;
            counts[shorter]--;
        }
    }
    while (counts[longest] == 0)
        longest--;
    counts[longest]--;
}

void sk_huffman_optimal(sk_huffman_list *self, const uint32_t frequency[256])
{
    uint64_t some[257];
    int32_t symbol[257], lengths[257], counts[258] = {0}, most = 0, count = 0;

    for (int32_t i = 0; i < 256; i++) {
        if (frequency[i] != 0) {
            some[count] = frequency[i];
            symbol[count++] = i;
        }
    }
    some[count] = 1;
    symbol[count++] = RESERVED;
    grow_tree(some, count, lengths);
    for (int32_t i = 0; i < count; i++) {
        counts[lengths[i]]++;
        most = lengths[i] > most ? lengths[i] : most;
    }
    shorten(counts);
    self->count = 0;
    for (int32_t length = 1; length <= LONGEST; length++)
        self->counts[length - 1] = (uint8_t)counts[length];
    for (int32_t length = 1; length <= most; length++) { /* what had the shorter code in the tree has it in the table */
        for (int32_t i = 0; i < count; i++) {
            if (lengths[i] == length && symbol[i] != RESERVED)
                self->symbols[self->count++] = (uint8_t)symbol[i];
        }
    }
}

/* --------------------------------------------------------------------------------------------------- counting ------ */

static void make_places(sk_jpeg_coder *self)
{
    for (int32_t place = 0; place < 64; place++)
        self->places[sk_zigzag[place] >> 3][1 << (sk_zigzag[place] & 7)] = (uint64_t)1 << place;
    for (int32_t row = 0; row < 8; row++) {
        self->places[row][0] = 0;
        for (int32_t i = 1; i < 256; i++)
            self->places[row][i] = self->places[row][i & (i - 1)] | self->places[row][i & -i];
    }
}

void sk_jpeg_scan_lay_out(sk_jpeg_scan *scan, const sk_coefficients *image)
{
    const sk_plane *luma = &image->plane[0];
    int32_t h = 8 * luma->h, v = 8 * luma->v; /* of an MCU, in pixels */

    for (int32_t c = 0; c < scan->components; c++) {
        scan->h[c] = image->plane[scan->plane[c]].h;
        scan->v[c] = image->plane[scan->plane[c]].v;
    }
    if (scan->components == 1) { /* an MCU is a block then, and blocks without a pixel are left out: T.81, A.2.2 */
        h /= scan->h[0];
        v /= scan->v[0];
        scan->h[0] = scan->v[0] = 1;
    }
    scan->across = (image->width + h - 1) / h;
    scan->down = (image->height + v - 1) / v;
    int64_t mcus = (int64_t)scan->across * scan->down;

    scan->intervals = scan->restart == 0 ? 1 : (mcus + scan->restart - 1) / scan->restart;
}

static const int16_t *block_at(const sk_plane *plane, int32_t x, int32_t y)
{
    return plane->blocks + ((size_t)y * (size_t)plane->across + (size_t)x) * 64;
}

static uint32_t count_block(const sk_jpeg_coder *self, const int16_t *block, uint32_t frequency[256])
{
    int32_t before = 0;
    uint32_t widest = 0;

    for (uint64_t rest = sk_jpeg_places(self, block) & ~(uint64_t)1; rest != 0; rest &= rest - 1) {
        int32_t place = __builtin_ctzll(rest), value = block[sk_zigzag[place]], zeros = place - before - 1;
        uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);

        for (; zeros > 15; zeros -= 16)
            frequency[0xF0]++;
        frequency[((uint32_t)zeros << 4 | sk_jpeg_bits_of(value)) & 255]++;
        widest |= magnitude;
        before = place;
    }
    frequency[0] += before < 63;
    return widest;
}

void sk_jpeg_count(const sk_coefficients *image, const sk_jpeg_scan *scan, uint32_t dc[3][256], uint32_t ac[3][256],
                   uint32_t *widest)
{
    sk_jpeg_coder coder;

    make_places(&coder);
    memset(dc, 0, 3 * sizeof *dc);
    memset(ac, 0, 3 * sizeof *ac);
    *widest = 0;
    for (int32_t c = 0; c < scan->components; c++) {
        int32_t before = 0;

        for (int32_t row = 0; row < scan->down; row++) {
            for (int32_t x = 0; x < scan->across * scan->h[c] * scan->v[c]; x++) { /* blocks in the scan's order */
                int32_t h = scan->h[c], area = h * scan->v[c], within = x % area;
                const int16_t *block =
                    block_at(&image->plane[scan->plane[c]], x / area * h + within % h, row * scan->v[c] + within / h);

                *widest |= count_block(&coder, block, ac[c]);
                dc[c][sk_jpeg_bits_of(block[0] - before)]++;
                before = block[0];
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------------- writing ------ */

static void code_sequential(sk_jpeg_coder *self, int32_t c, const int16_t *block)
{
    const sk_huffman_code *ac = self->scan->ac[c];
    int32_t change = block[0] - self->before[c], before = 0;
    uint32_t size = sk_jpeg_bits_of(change);
    sk_bits_out bits = self->bits; /* in registers */

    self->before[c] = block[0];
    sk_jpeg_put(self, &bits, self->scan->dc[c], size, sk_jpeg_value_bits(change, size), size);
    for (uint64_t rest = sk_jpeg_places(self, block) & ~(uint64_t)1; rest != 0; rest &= rest - 1) {
        int32_t place = __builtin_ctzll(rest), value = block[sk_zigzag[place]];
        uint32_t zeros = (uint32_t)(place - before - 1);

        for (; __builtin_expect(zeros > 15, 0); zeros -= 16)
            sk_jpeg_put(self, &bits, ac, 0xF0, 0, 0);
        size = sk_jpeg_bits_of(value);
        sk_jpeg_put(self, &bits, ac, (zeros << 4) + size, sk_jpeg_value_bits(value, size), size);
        before = place;
    }
    if (before < 63)
        sk_jpeg_put(self, &bits, ac, 0, 0, 0);
    self->bits = bits;
}

typedef struct pads {
    uint8_t *value; /* of the interval to come */
    const uint8_t *like;
    const uint8_t *start; /* of what is written: the byte that is like like[0] */
    size_t room;
} pads;

static bool end_interval(sk_jpeg_coder *coder, pads *pad)
{
    sk_jpeg_end_run(coder);
    int32_t count = sk_bits_flush(&coder->bits);
    size_t at = (size_t)(coder->bits.at - pad->start);
    uint8_t value = 0xFF;

    if (at + (count > 0) > pad->room)
        return false;
    if (pad->like != NULL) /* the same in all bits where none are left over */
        *pad->value = count == 0 ? 0 : pad->like[at] & 0xFF >> count;
    if (pad->value != NULL)
        value = *pad->value++;
    if (count > 0)
        sk_bits_pad(&coder->bits, count, value);
    memset(coder->before, 0, sizeof coder->before);
    return true;
}

static void code_mcu(sk_jpeg_coder *coder, sk_jpeg_block_coder *code, const sk_coefficients *image, int32_t column,
                     int32_t row)
{
    const sk_jpeg_scan *scan = coder->scan;

    for (int32_t c = 0; c < scan->components; c++) {
        const sk_plane *plane = &image->plane[scan->plane[c]];

        for (int32_t y = 0; y < scan->v[c]; y++) {
            for (int32_t x = 0; x < scan->h[c]; x++)
                code(coder, c, block_at(plane, column * scan->h[c] + x, row * scan->v[c] + y));
        }
    }
}

bool sk_jpeg_encode(const sk_coefficients *image, const sk_jpeg_scan *scan, uint8_t *pad_values, const uint8_t *like,
                    uint8_t *out, size_t room, size_t *size)
{
    sk_jpeg_coder coder;
    sk_jpeg_block_coder *code = scan->progressive ? sk_jpeg_progressive_coder(scan) : code_sequential;
    pads pad = {.value = pad_values, .like = like, .start = out, .room = room};
    int64_t left = scan->restart, interval = 0; /* MCUs of this interval */

    coder.bits = (sk_bits_out){.at = out, .room = 64};
    coder.scan = scan;
    coder.valid = ~0u;
    coder.run = coder.corrections = 0;
    memset(coder.before, 0, sizeof coder.before);
    make_places(&coder);
    for (int32_t row = 0; row < scan->down; row++) {
        for (int32_t column = 0; column < scan->across; column++) {
            if (scan->restart != 0 && left-- == 0) {
                if (!end_interval(&coder, &pad) || (size_t)(coder.bits.at - out) + 2 > room)
                    return false;
                *coder.bits.at++ = 0xFF;
                *coder.bits.at++ = (uint8_t)(0xD0 + (interval++ & 7));
                left = scan->restart - 1;
            }
            code_mcu(&coder, code, image, column, row);
            if ((size_t)(coder.bits.at - out) > room)
                return false;
        }
    }
    if (!end_interval(&coder, &pad))
        return false;
    *size = (size_t)(coder.bits.at - out);
    return coder.valid >> 31 != 0 && *size <= room;
}
