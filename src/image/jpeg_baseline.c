/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_baseline.c: see the header.
 *
 * The scan is first copied without its stuffed zeros, which also shows where it ends. Then rows of MCUs are decoded one after another:
 * bits → coefficients, coefficients → samples, samples → RGB, all of one row while it is in the cache. Blocks outside the region are
 * read and not kept; restart intervals without any of its blocks are not read at all.
 *
 * Upsampling is libjpeg's "fancy" one: each chroma sample's neighbours count a quarter. So a region is decoded with two pixels more on
 * each side, and with chroma of half height the last row of pixels of a row of MCUs waits for the next.
 */
#include "image/jpeg_baseline.h"

#include "kernel/kernel.h"

enum { SOI = 0xD8, EOI = 0xD9, SOS = 0xDA, DQT = 0xDB, DRI = 0xDD, DHT = 0xC4, APP0 = 0xE0, APP14 = 0xEE, COM = 0xFE };

#define MARGIN      2    /* pixels around the region where chroma is of half size: a sample on each side */
#define BITS_AHEAD  4096 /* readable bytes past the scan: more than an MCU takes (6 blocks × 64 × 27 bits) */
#define PLANE_SIDE  64   /* bytes beside a plane's rows, for the copies of edge samples and for whole vectors */
#define NO_RESTARTS INT64_MAX

typedef struct component {
    int32_t h, v; /* sampling factors: blocks of an MCU across and down */
    const sk_huffman *dc;
    const sk_huffman_pairs *ac;
    const uint16_t *quant;
    int32_t width, height; /* samples of the whole image, libjpeg's downsampled size */
    int16_t *coefficients; /* v rows of blocks, `row_blocks` each */
    uint8_t *last;         /* one a block */
    int32_t row_blocks;
    uint8_t *plane; /* first sample of the row that is kept from the MCUs above; 8 × v rows follow */
    size_t stride;
} component;

typedef struct decoding {
    sk_jpeg_baseline *self;
    const uint8_t *data;
    size_t size, at;
    const sk_jpeg_info *info;
    const sk_kernels *kernels;
    uint16_t quant[4][64]; /* in natural order */
    bool has_quant[4];
    bool jfif, adobe, framed;
    uint8_t adobe_transform;
    component component[3];
    uint8_t id[3], quant_of[3];
    int32_t components, h, v; /* h, v: of luma, the largest */
    int32_t mcus_across, mcus_down;
    int64_t restart; /* MCUs of an interval */
    int64_t intervals;
    int32_t left, top, right, bottom; /* the pixels to make; right and bottom are past the end, here and below */
    int32_t mcu_left, mcu_top, mcu_right, mcu_bottom; /* that they need */
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
    sk_buffer_free(&self->planes);
    sk_buffer_free(&self->line);
    sk_buffer_free(&self->pixels);
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
    d->components = body[5];
    if ((body[1] << 8 | body[2]) != d->info->height || (body[3] << 8 | body[4]) != d->info->width)
        return false;
    if ((d->components != 1 && d->components != 3) || length != 6 + 3 * (size_t)d->components)
        return false;
    for (int c = 0; c < d->components; c++) {
        const uint8_t *at = body + 6 + 3 * c;

        d->id[c] = at[0];
        d->component[c].h = at[1] >> 4;
        d->component[c].v = at[1] & 15;
        d->quant_of[c] = at[2];
        if (at[2] > 3)
            return false;
    }
    d->h = d->component[0].h;
    d->v = d->component[0].v;
    if (d->components == 1)
        return d->h == 1 && d->v == 1;
    return (d->h == 1 || d->h == 2) && (d->v == 1 || d->v == 2) && d->component[1].h == 1 && d->component[1].v == 1 &&
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
    if (!d->framed || length != 4 + 2 * (size_t)d->components || body[0] != d->components)
        return false;
    for (int c = 0; c < d->components; c++) {
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
        d->component[c].quant = d->quant[d->quant_of[c]];
    }
    const uint8_t *spectral = body + 1 + 2 * d->components;

    return spectral[0] == 0 && spectral[1] == 63 && spectral[2] == 0 && (d->components == 1 || is_ycc(d));
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

/* Sizes that follow from the header and the region. */
static void lay_out(decoding *d, const sk_rect *region)
{
    int32_t width = d->info->width, height = d->info->height, across = 8 * d->h, down = 8 * d->v;
    int32_t beside = d->h == 2 ? MARGIN : 0, above = d->v == 2 ? MARGIN : 0;

    d->mcus_across = (width + across - 1) / across;
    d->mcus_down = (height + down - 1) / down;
    d->left = region->left - region->left % d->h; /* where a chroma sample begins */
    d->top = region->top;
    d->right = region->left + region->width;
    d->bottom = region->top + region->height;
    d->mcu_left = d->left > beside ? (d->left - beside) / across : 0;
    d->mcu_top = d->top > above ? (d->top - above) / down : 0;
    d->mcu_right = width - d->right > beside ? (d->right + beside + across - 1) / across : d->mcus_across;
    d->mcu_bottom = height - d->bottom > above ? (d->bottom + above + down - 1) / down : d->mcus_down;
    d->mcu_blocks = d->components == 1 ? 1 : (size_t)(d->h * d->v) + 2;
    for (int c = 0; c < d->components; c++) {
        component *part = &d->component[c];

        part->width = (width * part->h + d->h - 1) / d->h;
        part->height = (height * part->v + d->v - 1) / d->v;
        part->row_blocks = (d->mcu_right - d->mcu_left) * part->h;
    }
    int64_t mcus = (int64_t)d->mcus_across * d->mcus_down;

    if (d->restart == 0)
        d->restart = NO_RESTARTS;
    d->intervals = d->restart == NO_RESTARTS ? 1 : (mcus + d->restart - 1) / d->restart;
}

static stoker_status make_room(decoding *d)
{
    int32_t mcus = d->mcu_right - d->mcu_left;
    size_t blocks = (size_t)mcus * d->mcu_blocks, planes = 0, pixels;
    size_t width = (size_t)mcus * 8 * (size_t)d->h; /* at most 65,536 + 16 */

    for (int c = 0; c < d->components; c++) {
        d->component[c].stride = (size_t)d->component[c].row_blocks * 8 + 2 * (size_t)PLANE_SIDE;
        planes += d->component[c].stride * (size_t)(8 * d->component[c].v + 1);
    }
    if (!sk_multiply(3 * (width + 1), (size_t)(d->bottom - d->top), &pixels))
        return sk_fail(STOKER_ERR_LIMIT, "JPEG: %d x %d pixels do not fit in memory", d->info->width, d->info->height);
    stoker_status status = sk_buffer_reserve(&d->self->blocks, blocks * (64 * sizeof(int16_t) + 1));

    if (status == STOKER_OK)
        status = sk_buffer_reserve(&d->self->planes, planes);
    if (status == STOKER_OK)
        status = sk_buffer_reserve(&d->self->line, 2 * (width + 2 * (size_t)PLANE_SIDE));
    if (status == STOKER_OK)
        status = sk_buffer_reserve(&d->self->pixels, pixels);
    if (status != STOKER_OK)
        return status;
    int16_t *coefficients = (int16_t *)(void *)d->self->blocks.data;
    uint8_t *last = d->self->blocks.data + blocks * 64 * sizeof(int16_t), *plane = d->self->planes.data;

    for (int c = 0; c < d->components; c++) {
        component *part = &d->component[c];
        size_t count = (size_t)part->row_blocks * (size_t)part->v;

        part->coefficients = coefficients;
        part->last = last;
        part->plane = plane + PLANE_SIDE;
        coefficients += count * 64;
        last += count;
        plane += part->stride * (size_t)(8 * part->v + 1);
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
    for (int c = 0; c < d->components; c++) {
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

/* ---------------------------------------------------------------------------------------- samples and pixels -------- */

static uint8_t *plane_row(const component *part, int32_t row)
{
    return part->plane + (size_t)row * part->stride;
}

/* Where values leave 16 bits, libjpeg-turbo's vector code for Arm gives other samples than that for x86-64, which the kernels follow.
 * What the columns leave is at most 4 × 1.387 (2 fractional bits, √2 cos π/16) times the column's sum of magnitudes, and the rows then add
 * values four columns apart in 16 bits. Dequantised values wrap to 16 bits in both. Only damage and drawn noise go further. */
static bool is_libjpeg_like_ours(const component *part)
{
#ifdef __aarch64__
    enum { MOST = 5900 }; /* 32767 / 5.548, less what rounding adds */

    for (int32_t b = 0; b < part->v * part->row_blocks; b++) {
        const int16_t *block = part->coefficients + (size_t)b * 64;
        int32_t sum[4] = {0};

        for (int i = 0; i < 64; i++) {
            int32_t value = (int16_t)(uint16_t)(block[i] * part->quant[i]);

            sum[i % 4] += value < 0 ? -value : value;
        }
        if (sum[0] > MOST || sum[1] > MOST || sum[2] > MOST || sum[3] > MOST)
            return false;
    }
#else
    (void)part;
#endif
    return true;
}

/* Coefficients of a row of MCUs → samples, with copies of the picture's edge samples beside them. False: libjpeg would make others. */
static bool make_samples(const decoding *d)
{
    for (int c = 0; c < d->components; c++) {
        const component *part = &d->component[c];
        int32_t first = d->mcu_left * part->h * 8, past = part->width - first;

        if (!is_libjpeg_like_ours(part))
            return false;
        for (int32_t y = 0; y < part->v; y++)
            d->kernels->idct(plane_row(part, 1 + 8 * y), part->stride,
                             part->coefficients + (size_t)y * (size_t)part->row_blocks * 64,
                             part->last + (size_t)y * (size_t)part->row_blocks, part->row_blocks, part->quant);
        if (c == 0 || d->h == 1)
            continue;
        for (int32_t y = 1; y <= 8 * part->v; y++) {
            uint8_t *row = plane_row(part, y);

            if (first == 0)
                row[-1] = row[0];
            if (past <= part->row_blocks * 8)
                row[past] = row[past - 1];
        }
    }
    return true;
}

/* The chroma of image row `y` at full width: of `count` samples from sample `from` of the planes on. `base`: the image's chroma row that
 * is row 0 of the plane. */
static const uint8_t *chroma_line(const decoding *d, const component *part, int32_t y, int32_t base, int32_t from,
                                  int32_t count, uint8_t *line)
{
    int32_t near = y / d->v;
    const uint8_t *near_row = plane_row(part, near - base) + from;

    if (d->v == 1) {
        if (d->h == 1)
            return near_row;
        d->kernels->upsample_h2v1(line, near_row, count);
        return line;
    }
    int32_t far = y % 2 == 0 ? near - 1 : near + 1;

    far = far < 0 ? 0 : far >= part->height ? part->height - 1 : far;
    const uint8_t *far_row = plane_row(part, far - base) + from;

    if (d->h == 2)
        d->kernels->upsample_h2v2(line, near_row, far_row, count);
    else
        d->kernels->upsample_h1v2(line, near_row, far_row, count, y % 2 == 0 ? 1 : 2);
    return line;
}

/* Rows of pixels that are complete once row `mcu` of MCUs is: with chroma of half height the last one of it waits for the next. */
static void make_pixels(const decoding *d, int32_t mcu)
{
    int32_t down = 8 * d->v, wait = d->v == 2 ? 1 : 0;
    int32_t from = mcu * down - wait, to = (mcu + 1) * down - (mcu + 1 == d->mcus_down ? 0 : wait);
    int32_t width = d->right - d->left, luma = d->left - d->mcu_left * 8 * d->h, chroma = luma / d->h;
    int32_t count = (width + d->h - 1) / d->h;
    size_t line_size = d->self->line.capacity / 2;

    from = from < d->top ? d->top : from;
    to = to < d->bottom ? to : d->bottom;
    for (int32_t y = from; y < to; y++) {
        uint8_t *out = d->self->pixels.data + (size_t)(y - d->top) * 3 * (size_t)width;
        const uint8_t *light = plane_row(&d->component[0], y - mcu * down + 1) + luma;

        if (d->components == 1) {
            d->kernels->gray_to_rgb(out, light, width);
            continue;
        }
        const uint8_t *cb = chroma_line(d, &d->component[1], y, mcu * 8 - 1, chroma, count, d->self->line.data);
        const uint8_t *cr =
            chroma_line(d, &d->component[2], y, mcu * 8 - 1, chroma, count, d->self->line.data + line_size);

        d->kernels->ycc_to_rgb(out, light, cb, cr, width);
    }
}

/* Each plane's last row becomes the row above the next MCUs. */
static void keep_last_rows(const decoding *d)
{
    for (int c = 0; c < d->components; c++) {
        const component *part = &d->component[c];

        memcpy(plane_row(part, 0) - PLANE_SIDE, plane_row(part, 8 * part->v) - PLANE_SIDE, part->stride);
    }
}

/* All rows of the region. False: not a sound scan. */
static bool decode_rows(const decoding *d)
{
    scan s = {.interval = -1};

    if (d->restart == NO_RESTARTS)
        begin_interval(d, &s, 0);
    for (int32_t row = d->mcu_top; row < d->mcu_bottom; row++) {
        int64_t first = (int64_t)row * d->mcus_across;

        if (!skip_to(d, &s, first + d->mcu_left) || !keep_to(d, &s, first + d->mcu_right) || !make_samples(d))
            return false;
        make_pixels(d, row);
        if (d->v == 2)
            keep_last_rows(d);
    }
    return s.mcu < (int64_t)d->mcus_across * d->mcus_down || ends_well(d, &s);
}

stoker_status sk_jpeg_baseline_decode(sk_jpeg_baseline *self, const uint8_t *data, size_t size,
                                      const sk_jpeg_info *info, const sk_rect *region, sk_pixels *out, bool *done)
{
    decoding d = {.self = self, .data = data, .size = size, .info = info, .kernels = sk_kernels_get()};
    bool sound = false;

    *done = false;
    if (!read_header(&d) || d.components != info->components)
        return STOKER_OK;
    lay_out(&d, region);
    if (d.h == 2 && d.component[d.components - 1].width <= 2) /* libjpeg then repeats samples instead */
        return STOKER_OK;
    stoker_status status = unstuff(&d, &sound);

    if (status == STOKER_OK && sound)
        status = make_room(&d);
    if (status != STOKER_OK || !sound || !decode_rows(&d))
        return status;
    self->end = d.at;
    *out = (sk_pixels){.data = self->pixels.data,
                       .stride = 3 * (size_t)(d.right - d.left),
                       .channels = 3,
                       .full_width = info->width,
                       .full_height = info->height,
                       .area = {d.left, d.top, d.right - d.left, d.bottom - d.top}};
    *done = true;
    return STOKER_OK;
}
