/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_baseline.c: see the header.
 *
 * The scan is first copied without its stuffed zeros, which also shows where it ends. Then rows of MCUs are decoded one after another:
 * bits → coefficients, coefficients → samples, samples → RGB, all of one row while it is in the cache. Blocks outside the region are
 * read and not kept; restart intervals without any of its blocks are not read at all.
 */
#include "image/jpeg_baseline.h"

#include "kernel/kernel.h"

enum { SOI = 0xD8, EOI = 0xD9, SOS = 0xDA, DQT = 0xDB, DRI = 0xDD, DHT = 0xC4, APP0 = 0xE0, APP14 = 0xEE, COM = 0xFE };

#define BITS_AHEAD  4096 /* readable bytes past the scan: more than an MCU takes (6 blocks × 64 × 27 bits) */
#define NO_RESTARTS INT64_MAX

/* What reading a component's blocks goes by; the rest is in rows->part. */
typedef struct component {
    int32_t h, v;
    const sk_huffman *dc;
    const sk_huffman_pairs *ac;
    int16_t *coefficients; /* v rows of blocks, `row_blocks` each */
    uint8_t *last;         /* one a block */
    int32_t row_blocks;
} component;

typedef struct decoding {
    sk_jpeg_baseline *self;
    const uint8_t *data;
    size_t size, at;
    const sk_jpeg_info *info;
    sk_jpeg_rows *rows;
    uint16_t quant[4][64]; /* in natural order */
    bool has_quant[4];
    bool jfif, adobe, framed;
    uint8_t adobe_transform;
    component component[3];
    uint8_t id[3], quant_of[3];
    int64_t restart; /* MCUs of an interval */
    int64_t intervals;
    size_t mcu_blocks;
} decoding;

#define LAST_16 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63
#define LAST_64 LAST_16, LAST_16, LAST_16, LAST_16

/* Of a place in zigzag order. What ends a block short of its last place steps past it and has the value 0, as that place has. */
static const uint8_t natural[256] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26,      33,      40,      48, 41,
    34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22,      15,      23,      30, 37,
    44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, LAST_64, LAST_64, LAST_64,
};

void sk_jpeg_baseline_free(sk_jpeg_baseline *self)
{
    sk_buffer_free(&self->bits);
    sk_buffer_free(&self->starts);
    sk_buffer_free(&self->blocks);
    sk_jpeg_rows_free(&self->rows);
}

/* ---------------------------------------------------------------------------------------------- the header -------- */

static bool read_quant(decoding *d, const uint8_t *body, size_t length)
{
    for (; length >= 65; body += 65, length -= 65) {
        if (body[0] > 3) /* 16-bit tables among them */
            return false;
        for (int i = 0; i < 64; i++)
            d->quant[body[0]][natural[i]] = body[1 + i];
        d->has_quant[body[0]] = true;
    }
    return length == 0;
}

static bool read_huffman(decoding *d, bool defined[2][4], const uint8_t *body, size_t length)
{
    while (length >= 17) {
        size_t count = 0;
        uint8_t kind = body[0] >> 4, number = body[0] & 15;

        for (int i = 1; i <= 16; i++)
            count += body[i];
        if (kind > 1 || number > 3 || count > 256 || length < 17 + count)
            return false;
        if (kind == 0 ? !sk_huffman_make_dc(&d->self->dc[number], body + 1, body + 17, count)
                      : !sk_huffman_make_ac(&d->self->ac[number], body + 1, body + 17, count))
            return false;
        defined[kind][number] = true;
        body += 17 + count;
        length -= 17 + count;
    }
    return length == 0;
}

static bool read_frame(decoding *d, const uint8_t *body, size_t length)
{
    if (d->framed || length < 6 || body[0] != 8)
        return false;
    d->framed = true;
    d->rows->components = body[5];
    if ((body[1] << 8 | body[2]) != d->info->height || (body[3] << 8 | body[4]) != d->info->width)
        return false;
    if ((body[5] != 1 && body[5] != 3) || length != 6 + 3 * (size_t)body[5])
        return false;
    for (int c = 0; c < d->rows->components; c++) {
        const uint8_t *at = body + 6 + 3 * c;

        d->id[c] = at[0];
        d->rows->part[c].h = d->component[c].h = at[1] >> 4;
        d->rows->part[c].v = d->component[c].v = at[1] & 15;
        d->quant_of[c] = at[2];
        if (at[2] > 3)
            return false;
    }
    int32_t h = d->rows->h = d->component[0].h, v = d->rows->v = d->component[0].v;

    if (d->rows->components == 1)
        return h == 1 && v == 1;
    return (h == 1 || h == 2) && (v == 1 || v == 2) && d->component[1].h == 1 && d->component[1].v == 1 &&
           d->component[2].h == 1 && d->component[2].v == 1;
}

/* Whether libjpeg takes three components for YCbCr. */
static bool is_ycc(const decoding *d)
{
    if (d->jfif)
        return true;
    if (d->adobe)
        return d->adobe_transform == 1;
    return d->id[0] == 1 && d->id[1] == 2 && d->id[2] == 3;
}

static bool read_scan(decoding *d, bool defined[2][4], const uint8_t *body, size_t length)
{
    if (!d->framed || length != 4 + 2 * (size_t)d->rows->components || body[0] != d->rows->components)
        return false;
    for (int c = 0; c < d->rows->components; c++) {
        uint8_t dc = body[2 + 2 * c] >> 4, ac = body[2 + 2 * c] & 15;

        for (int other = 0; other < c; other++) {
            if (d->id[other] == d->id[c])
                return false;
        }
        if (body[1 + 2 * c] != d->id[c] || dc > 3 || ac > 3 || !defined[0][dc] || !defined[1][ac] ||
            !d->has_quant[d->quant_of[c]])
            return false;
        d->component[c].dc = &d->self->dc[dc];
        d->component[c].ac = &d->self->ac[ac];
        d->rows->part[c].quant = d->quant[d->quant_of[c]];
    }
    const uint8_t *spectral = body + 1 + 2 * d->rows->components;

    return spectral[0] == 0 && spectral[1] == 63 && spectral[2] == 0 && (d->rows->components == 1 || is_ycc(d));
}

/* Segments without a byte between them, up to the scan. */
static bool read_header(decoding *d)
{
    bool defined[2][4] = {{false}};

    if (d->size < 4 || d->data[0] != 0xFF || d->data[1] != SOI)
        return false;
    for (d->at = 2; d->size - d->at >= 4;) {
        const uint8_t *head = d->data + d->at, *body = head + 4;
        size_t length = (size_t)head[2] << 8 | head[3];
        uint8_t marker = head[1];
        bool good = true;

        if (head[0] != 0xFF || length < 2 || d->size - d->at - 2 < length)
            return false;
        d->at += 2 + length;
        length -= 2;
        if (marker == SOS)
            return read_scan(d, defined, body, length);
        if (marker == DQT)
            good = read_quant(d, body, length);
        else if (marker == DHT)
            good = read_huffman(d, defined, body, length);
        else if (marker == 0xC0 || marker == 0xC1)
            good = read_frame(d, body, length);
        else if (marker == DRI && length == 2)
            d->restart = body[0] << 8 | body[1];
        else if (marker == APP0 && length >= 14 && memcmp(body, "JFIF", 5) == 0)
            d->jfif = true, good = body[5] == 1; /* libjpeg has a word to say of other versions */
        else if (marker == APP14 && length >= 12 && memcmp(body, "Adobe", 5) == 0)
            d->adobe = true, d->adobe_transform = body[11];
        else
            good = (marker >= APP0 && marker <= 0xEF) || marker == COM;
        if (!good)
            return false;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------ the scan -------- */

/* Copies the scan to self->bits and notes where its intervals begin. *sound: they are all there, in order, and followed by the end of
 * the image. */
static stoker_status unstuff(decoding *d, bool *sound)
{
    const uint8_t *from = d->data + d->at, *end = d->data + d->size;
    size_t bytes;

    *sound = false;
    if (!sk_multiply((size_t)d->intervals + 1, sizeof(size_t), &bytes) || (uint64_t)d->intervals > d->size)
        return STOKER_OK; /* more intervals than bytes */
    stoker_status status = sk_buffer_reserve(&d->self->starts, bytes);

    if (status == STOKER_OK)
        status = sk_buffer_reserve(&d->self->bits, d->size - d->at + BITS_AHEAD);
    if (status != STOKER_OK)
        return status;
    size_t *starts = (size_t *)(void *)d->self->starts.data;
    uint8_t *to = d->self->bits.data;
    int64_t interval = 0;

    starts[0] = 0;
    for (;;) {
        const uint8_t *found = memchr(from, 0xFF, (size_t)(end - from));

        if (found == NULL || found + 1 == end)
            return STOKER_OK;
        size_t count = (size_t)(found - from) + (found[1] == 0);

        memcpy(to, from, count);
        to += count;
        from = found + 2;
        if (found[1] == 0)
            continue;
        starts[++interval] = (size_t)(to - d->self->bits.data);
        if (interval == d->intervals) {
            *sound = found[1] == EOI;
            break;
        }
        if (found[1] != 0xD0 + ((interval - 1) & 7))
            return STOKER_OK;
    }
    d->at = (size_t)(from - d->data);
    memset(to, 0, BITS_AHEAD);
    return STOKER_OK;
}

static void count_intervals(decoding *d)
{
    int64_t mcus = (int64_t)d->rows->mcus_across * d->rows->mcus_down;

    d->mcu_blocks = d->rows->components == 1 ? 1 : (size_t)(d->rows->h * d->rows->v) + 2;
    if (d->restart == 0)
        d->restart = NO_RESTARTS;
    d->intervals = d->restart == NO_RESTARTS ? 1 : (mcus + d->restart - 1) / d->restart;
}

static stoker_status make_room(decoding *d)
{
    sk_jpeg_rows *rows = d->rows;
    size_t blocks = (size_t)(rows->mcu_right - rows->mcu_left) * d->mcu_blocks;
    stoker_status status = sk_buffer_reserve(&d->self->blocks, blocks * (64 * sizeof(int16_t) + 1));

    if (status == STOKER_OK)
        status = sk_jpeg_rows_reserve(rows);
    if (status != STOKER_OK)
        return status;
    int16_t *coefficients = (int16_t *)(void *)d->self->blocks.data;
    uint8_t *last = d->self->blocks.data + blocks * 64 * sizeof(int16_t);

    for (int c = 0; c < rows->components; c++) {
        sk_jpeg_part *part = &rows->part[c];
        size_t count = (size_t)part->row_blocks * (size_t)part->v;

        part->blocks = d->component[c].coefficients = coefficients;
        part->last = d->component[c].last = last;
        part->next_row = d->component[c].row_blocks = part->row_blocks;
        coefficients += count * 64;
        last += count;
    }
    return STOKER_OK;
}

typedef long long quarter __attribute__((vector_size(32), may_alias)); /* of a block */

/* sk_bits_fill and sk_huffman_long over plain variables, which stay in registers: what is looked up next depends on all that was looked
 * up before, and hardly anything else here takes time. */
#define FILL()                                                                                                         \
    (memcpy(&next, at, sizeof next), word |= __builtin_bswap64(next) >> count, at += 7 - (count >> 3), count |= 56)
#define LONG(table, entry)                                                                                             \
    do {                                                                                                               \
        sk_bits rest = {at, word, count};                                                                              \
        value = sk_huffman_long(table, &rest, entry, &step);                                                           \
        at = rest.at, word = rest.word, count = rest.count;                                                            \
    } while (0)

/* One block, which goes to `out` if `kept`. False where the bits are no block. */
static inline __attribute__((always_inline)) bool read_block(sk_bits *bits, const component *part, int32_t *before,
                                                             bool kept, int16_t *out, uint8_t *last)
{
    const sk_huffman_pairs *ac = part->ac;
    const uint8_t *at = bits->at;
    uint64_t word = bits->word, next;
    int32_t count = bits->count, place = 0, step, value;

    for (int i = 0; kept && i < 4; i++)
        ((quarter *)(void *)out)[i] = (quarter){0, 0, 0, 0};
    FILL();
    uint32_t entry = part->dc->entry[word >> (64 - SK_HUFFMAN_BITS)];

    value = (int32_t)entry >> 16;
    if (__builtin_expect((entry & 255) == 0, 0)) {
        LONG(part->dc, entry);
        if (step == SK_HUFFMAN_BROKEN)
            return false;
    } else {
        word <<= entry & 63;
        count -= (int32_t)(entry & 63);
    }
    *before = (int32_t)((uint32_t)*before + (uint32_t)value);
    if (kept)
        out[0] = (int16_t)*before;
    do {
        FILL();
        for (int i = 0; i < 56 / SK_HUFFMAN_BITS && place < 63; i++) {
            uint32_t index = (uint32_t)(word >> (64 - SK_HUFFMAN_BITS));
            uint64_t pair = ac->pair[index];
            int32_t second = (int32_t)(pair >> 16 & 255);

            if (__builtin_expect((pair & 255) == 0, 0)) {
                FILL();
                if (pair != 0) { /* the code is known, and its value's bits lie beyond */
                    int32_t length = (int32_t)(pair >> 32 & 63), size = (int32_t)(pair >> 48 & 15);

                    word <<= length;
                    value = (int32_t)(word >> (64 - size));
                    value = value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
                    word <<= size;
                    count -= length + size;
                    step = (int32_t)(pair >> 8 & 255);
                } else {
                    LONG(&ac->one, 0);
                }
                place += step;
                if (kept)
                    out[natural[place]] = (int16_t)value;
                break;
            }
            place += (int32_t)(pair >> 8 & 255);
            if (kept)
                out[natural[place]] = (int16_t)(pair >> 32);
            if (__builtin_expect(place == 63, 0)) { /* the second value, if any, is another block's */
                word <<= ac->one.entry[index] & 255;
                count -= (int32_t)(ac->one.entry[index] & 255);
                break;
            }
            word <<= pair & 63; /* the bits that shifts go by on most processors: no step of its own */
            count -= (int32_t)(pair & 63);
            place += second;
            if (kept)
                out[natural[place]] = (int16_t)(pair >> 48);
        }
    } while (place < 63);
    *bits = (sk_bits){at, word, count};
    if (place > 63) {
        place -= SK_HUFFMAN_END;
        if (place < 0 || place > 63)
            return false;
    }
    if (kept)
        *last = (uint8_t)place;
    return true;
}

static __attribute__((noinline)) bool keep_block(sk_bits *bits, const component *part, int32_t *before, int16_t *out,
                                                 uint8_t *last)
{
    return read_block(bits, part, before, true, out, last);
}

static __attribute__((noinline)) bool skip_block(sk_bits *bits, const component *part, int32_t *before)
{
    return read_block(bits, part, before, false, NULL, NULL);
}

/* All blocks of an MCU. `column`: its place among those kept, or -1. */
static inline __attribute__((always_inline)) bool read_mcu(const decoding *d, sk_bits *bits, int32_t before[3],
                                                           int32_t column)
{
    for (int c = 0; c < d->rows->components; c++) {
        const component *part = &d->component[c];

        for (int32_t y = 0; y < part->v; y++) {
            for (int32_t x = 0; x < part->h; x++) {
                size_t block = (size_t)(y * part->row_blocks + column * part->h + x);
                bool kept = column >= 0;

                if (kept ? !keep_block(bits, part, &before[c], part->coefficients + block * 64, part->last + block)
                         : !skip_block(bits, part, &before[c]))
                    return false;
            }
        }
    }
    return true;
}

typedef struct scan {
    sk_bits bits;
    const uint8_t *limit; /* the interval's end, with what reading may be ahead */
    int64_t mcu;          /* the next */
    int64_t interval;     /* that it lies in; -1: none begun */
    int32_t before[3];    /* DC values */
} scan;

static void begin_interval(const decoding *d, scan *s, int64_t interval)
{
    const size_t *starts = (const size_t *)(const void *)d->self->starts.data;

    s->interval = interval;
    s->bits = (sk_bits){.at = d->self->bits.data + starts[interval]};
    s->limit = d->self->bits.data + starts[interval + 1] + sizeof(uint64_t);
    s->before[0] = s->before[1] = s->before[2] = 0;
    s->mcu = interval * (d->restart == NO_RESTARTS ? 0 : d->restart);
}

/* Bits of the interval that were not used; negative where there were not enough. */
static int64_t bits_left(const decoding *d, const scan *s)
{
    const size_t *starts = (const size_t *)(const void *)d->self->starts.data;
    int64_t used = (s->bits.at - d->self->bits.data) * 8 - s->bits.count;

    return (int64_t)starts[s->interval + 1] * 8 - used;
}

/* Whether the interval's bits were used up but for less than a byte. */
static bool ends_well(const decoding *d, const scan *s)
{
    return bits_left(d, s) >= 0 && bits_left(d, s) < 8;
}

/* Reads on to MCU `to`, keeping none (`column` < 0) or each, from that place on. */
static inline __attribute__((always_inline)) bool read_on(const decoding *d, scan *s, int64_t to, bool kept)
{
    scan here = *s; /* in registers */
    int32_t column = 0;

    while (here.mcu < to) {
        int64_t end = here.interval < 0 ? 0 : d->restart == NO_RESTARTS ? to : (here.interval + 1) * d->restart;

        if (here.mcu == end || here.interval < 0) {
            if (here.interval >= 0 && !ends_well(d, &here))
                return false;
            begin_interval(d, &here, here.interval + 1);
            continue;
        }
        end = end < to ? end : to;
        for (; here.mcu < end; here.mcu++, column++) {
            if (!read_mcu(d, &here.bits, here.before, kept ? column : -1) || here.bits.at > here.limit)
                return false;
        }
    }
    *s = here;
    return here.interval < 0 || bits_left(d, &here) >= 0;
}

static bool skip_to(const decoding *d, scan *s, int64_t to)
{
    if (d->restart != NO_RESTARTS && to / d->restart > s->interval) { /* intervals between need not be read */
        if (s->interval >= 0 && s->mcu == (s->interval + 1) * d->restart && !ends_well(d, s))
            return false;
        begin_interval(d, s, to / d->restart);
    }
    return read_on(d, s, to, false);
}

static bool keep_to(const decoding *d, scan *s, int64_t to)
{
    return read_on(d, s, to, true);
}

/* All rows of the region. False: not a sound scan. */
static bool decode_rows(decoding *d)
{
    scan s = {.interval = -1};
    sk_jpeg_rows *rows = d->rows;

    if (d->restart == NO_RESTARTS)
        begin_interval(d, &s, 0);
    for (int32_t row = rows->mcu_top; row < rows->mcu_bottom; row++) {
        int64_t first = (int64_t)row * rows->mcus_across;

        if (!skip_to(d, &s, first + rows->mcu_left) || !keep_to(d, &s, first + rows->mcu_right) ||
            !sk_jpeg_rows_make(rows, row))
            return false;
    }
    return s.mcu < (int64_t)rows->mcus_across * rows->mcus_down || ends_well(d, &s);
}

stoker_status sk_jpeg_baseline_decode(sk_jpeg_baseline *self, const uint8_t *data, size_t size,
                                      const sk_jpeg_info *info, const sk_rect *region, sk_pixels *out, bool *done)
{
    decoding d = {.self = self, .data = data, .size = size, .info = info, .rows = &self->rows};
    bool sound = false;

    *done = false;
    self->rows.kernels = sk_kernels_get();
    self->rows.width = info->width;
    self->rows.height = info->height;
    if (!read_header(&d) || self->rows.components != info->components)
        return STOKER_OK;
    sk_jpeg_rows_lay_out(&self->rows, region);
    if (!sk_jpeg_rows_can(&self->rows))
        return STOKER_OK;
    count_intervals(&d);
    stoker_status status = unstuff(&d, &sound);

    if (status == STOKER_OK && sound)
        status = make_room(&d);
    if (status != STOKER_OK || !sound || !decode_rows(&d))
        return status;
    self->end = d.at;
    sk_jpeg_rows_pixels(&self->rows, out);
    *done = true;
    return STOKER_OK;
}
