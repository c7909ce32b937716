/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_lossless.c: each sample is a prediction from its neighbours (T.81 table H.1) plus a Huffman-coded difference modulo 2^16.
 *
 * A difference's category is its Huffman symbol, 0..16; 16 stands for 32768 and has no further bits. The first line after the start
 * and after each restart is predicted from the left alone, its first sample from half the range. Damage within the data ends in zero
 * bits, as elsewhere in JPEG.
 */
#include "image/jpeg_lossless.h"

#include <stdio.h>
#include <string.h>

#include "image/codec.h"

#define MAX_COMPONENTS 4
#define TABLES         4
#define BLOCK          65536 /* bytes that Pillow reads at a time */

typedef struct table {
    bool defined;
    uint8_t symbol[256];
    int32_t largest[18]; /* code of each length; -1: none; [17] a guard */
    int32_t offset[17];  /* symbol index = code + offset[length] */
} table;

typedef struct component {
    uint8_t id;
    uint8_t table;
} component;

typedef struct lossless {
    const uint8_t *data;
    size_t size, at;
    table tables[TABLES];
    component part[MAX_COMPONENTS];
    int32_t components, width, height;
    int32_t predictor, shift;
    uint32_t restart_interval, next_restart;
    uint64_t bits;
    int32_t bit_count;
    int32_t made_up; /* of those, the last are zeros that stand for missing data */
    bool starved;    /* made-up bits have been used since the last restart */
    bool marker_hit; /* no more entropy-coded bytes */
    bool wants_more; /* bits were wanted past the end of the file */
    bool damaged;
    bool adobe_ycc, adobe, jfif;
} lossless;

static uint32_t read_16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static stoker_status define_tables(lossless *l, const uint8_t *body, size_t length)
{
    while (length > 0) {
        if (length < 17)
            return sk_fail(STOKER_ERR_DATA, "JPEG: a Huffman table is cut short");
        uint32_t total = 0;
        int32_t code = 0;
        uint8_t where = body[0];

        for (int i = 1; i <= 16; i++)
            total += body[i];
        if (total > 256 || length < 17 + total)
            return sk_fail(STOKER_ERR_DATA, "JPEG: a Huffman table of %u codes is cut short", total);
        if (where < TABLES) { /* class 0; tables of class 1 are not used by lossless scans */
            table *t = &l->tables[where];
            int32_t first = 0;

            memset(t, 0, sizeof *t);
            memcpy(t->symbol, body + 17, total);
            for (int i = 1; i <= 16; i++) {
                t->offset[i] = first - code;
                code += body[i];
                if (code > 1 << i)
                    return sk_fail(STOKER_ERR_DATA, "JPEG: a Huffman table has more codes than fit");
                t->largest[i] = body[i] > 0 ? code - 1 : -1;
                first += body[i];
                code <<= 1;
            }
            t->defined = true;
        }
        body += 17 + total;
        length -= 17 + total;
    }
    return STOKER_OK;
}

static stoker_status read_scan(lossless *l, const uint8_t *body, size_t length)
{
    if (length < 1 || length != 4 + 2 * (size_t)body[0])
        return sk_fail(STOKER_ERR_DATA, "JPEG: a scan header of %zu bytes", length);
    if (body[0] != l->components)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "JPEG: unsupported: a lossless file with a scan for each component");
    for (int32_t i = 0; i < l->components; i++) {
        const uint8_t *entry = body + 1 + 2 * i;

        l->part[i].table = entry[1] >> 4;
        if (entry[0] != l->part[i].id || l->part[i].table >= TABLES || !l->tables[l->part[i].table].defined)
            return sk_fail(STOKER_ERR_DATA, "JPEG: a lossless scan names a component or table that there is not");
    }
    const uint8_t *end = body + 1 + 2 * l->components;

    l->predictor = end[0];
    l->shift = end[2] & 15;
    if (l->predictor < 1 || l->predictor > 7 || end[1] != 0 || end[2] >> 4 != 0 || l->shift >= 8)
        return sk_fail(STOKER_ERR_DATA, "JPEG: invalid lossless parameters: predictor %d, point transform %d",
                       l->predictor, l->shift);
    return STOKER_OK;
}

static stoker_status read_frame(lossless *l, const uint8_t *body, size_t length)
{
    if (length < 6 + 3 * (size_t)l->components)
        return sk_fail(STOKER_ERR_DATA, "JPEG: a frame header is cut short");
    for (int32_t i = 0; i < l->components; i++) {
        l->part[i].id = body[6 + 3 * i];
        if (body[7 + 3 * i] != 0x11)
            return sk_fail(STOKER_ERR_UNSUPPORTED, "JPEG: unsupported: lossless with subsampling");
    }
    return STOKER_OK;
}

/* Walks the segments to the first byte of the scan. sk_jpeg_markers has seen that they are whole. */
static stoker_status read_headers(lossless *l)
{
    bool scan = false;

    l->at = 2;
    while (!scan) {
        while (l->at < l->size && l->data[l->at] != 0xFF)
            l->at++;
        while (l->at < l->size && l->data[l->at] == 0xFF)
            l->at++;
        if (l->size - l->at < 3 || l->at >= l->size)
            return sk_fail(STOKER_ERR_DATA, "JPEG: the file ends before its image data");
        uint8_t marker = l->data[l->at++];

        if (marker == 0 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8))
            continue;
        size_t length = read_16(l->data + l->at);

        if (length < 2 || l->size - l->at < length)
            return sk_fail(STOKER_ERR_DATA, "JPEG: a segment at byte %zu is cut short", l->at);
        const uint8_t *body = l->data + l->at + 2;
        stoker_status status = STOKER_OK;

        l->at += length;
        length -= 2;
        if (marker == 0xC3) {
            status = read_frame(l, body, length);
        } else if (marker == 0xC4) {
            status = define_tables(l, body, length);
        } else if (marker == 0xDD && length >= 2) {
            l->restart_interval = read_16(body);
        } else if (marker == 0xE0 && length >= 5 && memcmp(body, "JFIF", 5) == 0) {
            l->jfif = true;
        } else if (marker == 0xEE && length >= 12 && memcmp(body, "Adobe", 5) == 0) {
            l->adobe = true;
            l->adobe_ycc = body[11] != 0;
        } else if (marker == 0xDA) {
            status = read_scan(l, body, length);
            scan = true;
        }
        if (status != STOKER_OK)
            return status;
    }
    return STOKER_OK;
}

static void fill_bits(lossless *l)
{
    while (l->bit_count <= 48) {
        uint64_t byte = 0;

        if (!l->marker_hit && l->at < l->size) {
            byte = l->data[l->at];
            if (byte != 0xFF) {
                l->at++;
            } else if (l->at + 1 < l->size && l->data[l->at + 1] == 0) {
                l->at += 2;
            } else if (l->at + 1 < l->size && l->data[l->at + 1] == 0xFF) {
                l->at++; /* padding before a marker, or before a zero */
                continue;
            } else {
                byte = 0;
                /* At the very end an FF alone is neither data nor marker. */
                if (l->at + 1 >= l->size)
                    l->at = l->size;
                else
                    l->marker_hit = true;
            }
        }
        if (!l->marker_hit && l->at >= l->size && byte == 0)
            l->wants_more = true;
        if (l->marker_hit)
            l->made_up += 8;
        l->bits |= byte << (56 - l->bit_count);
        l->bit_count += 8;
    }
}

static uint32_t take_bits(lossless *l, int32_t count)
{
    if (count == 0)
        return 0;
    if (l->bit_count < count)
        fill_bits(l);
    uint32_t value = (uint32_t)(l->bits >> (64 - count));

    l->bits <<= count;
    l->bit_count -= count;
    if (l->bit_count < l->made_up)
        l->starved = l->damaged = true;
    return value;
}

static int32_t take_difference(lossless *l, const table *t)
{
    int32_t code = 0, category = -1;

    for (int32_t length = 1; length <= 16; length++) {
        code = code << 1 | (int32_t)take_bits(l, 1);
        if (t->largest[length] >= 0 && code <= t->largest[length]) {
            category = t->symbol[(code + t->offset[length]) & 255];
            break;
        }
    }
    if (category < 0)
        (void)take_bits(l, 1); /* libjpeg gives up at the 17th bit */
    if (category < 0 || category > 16) {
        l->damaged = true;
        return 0;
    }
    if (category == 0)
        return 0;
    if (category == 16)
        return 32768;
    int32_t value = (int32_t)take_bits(l, category);

    return value < 1 << (category - 1) ? value - (1 << category) + 1 : value;
}

static int32_t predict(int32_t predictor, int32_t left, int32_t above, int32_t above_left)
{
    switch (predictor) {
    case 1:
        return left;
    case 2:
        return above;
    case 3:
        return above_left;
    case 4:
        return left + above - above_left;
    case 5:
        return left + ((above - above_left) >> 1);
    case 6:
        return above + ((left - above_left) >> 1);
    default:
        return (left + above) >> 1;
    }
}

/* Steps over the restart marker that must be next. Where another stands there, libjpeg leaves it for later if it is no restart marker
 * or one of the next two, passes over it if it is one of the last two (or no marker at all), and else takes it for the right one. */
static void restart(lossless *l)
{
    uint32_t wanted = l->next_restart;

    l->next_restart = (wanted + 1) & 7;
    l->bits = 0;
    l->bit_count = 0;
    l->made_up = 0;
    l->marker_hit = false;
    for (;; l->at++) {
        if (l->at + 1 >= l->size) {
            l->wants_more = true;
            return;
        }
        uint8_t marker = l->data[l->at + 1];

        if (l->data[l->at] != 0xFF || marker == 0 || marker == 0xFF)
            continue;
        uint32_t ahead = ((uint32_t)marker - 0xD0 - wanted) & 7;
        bool is_restart = marker >= 0xD0 && marker <= 0xD7;

        if (is_restart && ahead == 0)
            break;
        l->damaged = true;
        if (marker < 0xC0 || (is_restart && ahead >= 6))
            continue;
        if (is_restart && ahead > 2)
            break;
        l->marker_hit = true;
        return;
    }
    l->at += 2;
    l->starved = false;
}

/* Rows of differences become samples (before the point transform) in two rows by turns, then bytes in `out`, interleaved. */
static void decode_rows(lossless *l, uint16_t *rows, uint8_t *out)
{
    size_t row = (size_t)l->width * (size_t)l->components;
    uint32_t mcus = 0;
    int32_t start = 1 << (8 - l->shift - 1);
    bool first_line = true, no_data = false;

    for (int32_t y = 0; y < l->height; y++) {
        uint16_t *now = rows + (size_t)(y & 1) * row;
        const uint16_t *before = rows + (size_t)(~y & 1) * row;

        for (int32_t x = 0; x < l->width; x++) {
            if (l->restart_interval != 0 && mcus == l->restart_interval) {
                restart(l);
                mcus = 0;
                first_line = true;
            }
            if (x == 0)
                no_data = l->starved; /* libjpeg begins anew with each row that has no data at all */
            first_line = first_line || no_data;
            mcus++;
            for (int32_t c = 0; c < l->components; c++) {
                size_t i = (size_t)x * (size_t)l->components + (size_t)c;
                int32_t left = x > 0 ? now[i - (size_t)l->components] : 0;
                int32_t prediction;

                if (first_line)
                    prediction = x > 0 ? left : start;
                else if (x == 0)
                    prediction = before[i];
                else
                    prediction = predict(l->predictor, left, before[i], before[i - (size_t)l->components]);
                now[i] = (uint16_t)prediction;
                if (!no_data)
                    now[i] = (uint16_t)(prediction + take_difference(l, &l->tables[l->part[c].table]));
            }
        }
        first_line = false;
        for (size_t i = 0; i < row; i++)
            out[(size_t)y * row + i] = (uint8_t)(now[i] << l->shift);
    }
}

/* Whether libjpeg would take the Huffman tables in `length` bytes, of which `there` are in the file. */
static bool tables_are_sound(const uint8_t *body, size_t length, size_t there)
{
    while (length > 16) {
        size_t total = 0;

        if (there < 17)
            return true; /* it waits for the rest */
        for (int i = 1; i <= 16; i++)
            total += body[i];
        if (total > 256 || total > length - 17)
            return false;
        if (there - 17 < total)
            return true;
        if ((body[0] & ~0x10) >= TABLES)
            return false;
        body += 17 + total;
        length -= 17 + total;
        there -= 17 + total;
    }
    return length == 0;
}

/* After the last row libjpeg reads markers up to EOI, in what Pillow has read of the file; a frame, a scan, a second start and an
 * unknown marker are errors there. */
static stoker_status check_rest(const lossless *l)
{
    size_t visible = (l->at + BLOCK - 1) / BLOCK * BLOCK;
    size_t end = visible < l->size ? visible : l->size;

    for (size_t at = l->at; at + 1 < end;) {
        uint8_t marker = l->data[at + 1];

        if (l->data[at] != 0xFF || marker == 0 || marker == 0xFF) {
            at++;
            continue;
        }
        at += 2;
        if (marker == 0xD9)
            break;
        if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7))
            continue;
        if (marker == 0xDA) { /* a second scan; where its header is cut off, libjpeg waits for the rest */
            size_t count = end - at < 3 ? 0 : l->data[at + 2];

            if (end - at < 3 ||
                (count >= 1 && count <= 4 && read_16(l->data + at) == 2 * count + 6 && end - at < 2 * count + 6))
                break;
        }
        bool known = marker == 0xC4 || marker == 0xCC || (marker >= 0xDB && marker <= 0xDD) ||
                     (marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE;

        if (!known)
            return sk_fail(STOKER_ERR_DATA, "JPEG: a marker FF %02X follows the image data", marker);
        if (end - at < 2)
            break;
        size_t length = read_16(l->data + at);

        /* Of a quantisation or arithmetic table the number is checked. */
        bool numbered = end - at < 3 || length < 3 || (marker != 0xDB && marker != 0xCC) ||
                        (marker == 0xDB ? (l->data[at + 2] & 15) < 4 : l->data[at + 2] < 32);
        bool sound = length >= 2 && numbered && (marker != 0xDD || length == 4) &&
                     (marker != 0xC4 || tables_are_sound(l->data + at + 2, length - 2, end - at - 2));

        if (!sound)
            return sk_fail(STOKER_ERR_DATA, "JPEG: a broken segment FF %02X follows the image data", marker);
        if (length > end - at)
            break;
        at += length;
    }
    return STOKER_OK;
}

void sk_jpeg_lossless_free(sk_jpeg_lossless *self)
{
    sk_buffer_free(&self->pixels);
    sk_buffer_free(&self->rows);
}

stoker_status sk_jpeg_lossless_decode(sk_jpeg_lossless *self, const uint8_t *data, size_t size,
                                      const sk_jpeg_info *info, sk_pixels *out, char *warning)
{
    lossless l = {
        .data = data, .size = size, .components = info->components, .width = info->width, .height = info->height};
    size_t row = (size_t)info->width * (size_t)info->components;
    size_t total;
    stoker_status status = read_headers(&l);

    if (status != STOKER_OK)
        return status;
    /* libjpeg-turbo converts no colours in lossless files, and takes 3 components for RGB unless a marker says YCbCr. */
    if ((info->components == 4 && l.adobe_ycc) || (info->components == 3 && (l.jfif || l.adobe_ycc)))
        return sk_fail(STOKER_ERR_UNSUPPORTED,
                       "JPEG: unsupported: lossless with another colour space than gray, RGB or CMYK");
    if (l.restart_interval % (uint32_t)info->width != 0)
        return sk_fail(STOKER_ERR_DATA, "JPEG: a lossless restart interval must be whole rows");
    if (!sk_multiply((info->components == 4 ? 4 : 3) * (size_t)info->width, (size_t)info->height, &total))
        return sk_fail(STOKER_ERR_LIMIT, "JPEG: %d x %d pixels do not fit in memory", info->width, info->height);
    status = sk_buffer_reserve(&self->pixels, total);
    if (status == STOKER_OK)
        status = sk_buffer_reserve(&self->rows, 2 * row * sizeof(uint16_t));
    if (status != STOKER_OK)
        return status;
    uint8_t *pixels = self->pixels.data;

    memset(self->rows.data, 0, 2 * row * sizeof(uint16_t));
    decode_rows(&l, (uint16_t *)self->rows.data, pixels);
    if (l.wants_more)
        return sk_fail(STOKER_ERR_DATA, "JPEG: image file is truncated");
    status = check_rest(&l);
    if (status != STOKER_OK)
        return status;
    if (info->components == 1) {
        for (size_t i = row * (size_t)info->height; i-- > 0;)
            pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = pixels[i];
    }
    if (info->components == 4)
        sk_jpeg_to_rgb(pixels, pixels, (size_t)info->width * (size_t)info->height, 4);
    snprintf(warning, SK_WARNING_SIZE, "%srare kind: lossless", l.damaged ? "corrupt JPEG data; " : "");
    *out = (sk_pixels){.data = pixels,
                       .stride = 3 * (size_t)info->width,
                       .channels = 3,
                       .full_width = info->width,
                       .full_height = info->height,
                       .area = {0, 0, info->width, info->height}};
    return STOKER_OK;
}
