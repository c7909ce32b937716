/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_rewrite.c: see the header.
 *
 * The symbols of AC do not depend on where intervals begin, and those of DC only at these places; so what a file takes with intervals of
 * some length is known from counts, before any is written.
 */
#include "image/jpeg_rewrite.h"

#include <string.h>

#include "image/exif.h"
#include "image/jpeg_encode.h"
#include "image/jpeg_markers.h"
#include "kernel/kernel.h"

enum {
    SOF0 = 0xC0,
    DHT = 0xC4,
    SOI = 0xD8,
    EOI = 0xD9,
    SOS = 0xDA,
    DQT = 0xDB,
    DRI = 0xDD,
    APP0 = 0xE0,
    APP1 = 0xE1,
    APP14 = 0xEE
};

#define MOST_DC_BITS   11 /* of a baseline file's values (T.81, tables F.1 and F.2) */
#define MOST_AC        1023
#define SHORTEST       56   /* pixels of an interval: what is shorter costs more than it saves */
#define GROWTH         1.01 /* of the file with a recipe, over the original */
#define RECIPE         100  /* bytes that a recipe takes beside what it holds of segments left out */
#define TABLE_SEGMENT  21   /* bytes of a DHT segment beside its symbols */
#define FRAME_SEGMENTS 512  /* bytes, at most, of those written here but DHT */

typedef struct rewriting {
    const sk_coefficients *image;
    const uint8_t *file;
    size_t size, header; /* of the original */
    bool keep_xmp, was_baseline;
    size_t kept;       /* bytes of segments that are kept */
    int32_t classes;   /* pairs of tables: luma's, chroma's */
    sk_jpeg_scan scan; /* of all components */
    uint64_t bits;     /* of the scan, markers among them */
    uint32_t ac[2][256];
    sk_huffman_list dc_list[2], ac_list[2];
    sk_huffman_code dc_code[2], ac_code[2];
    uint8_t *to;
} rewriting;

/* ------------------------------------------------------------------------------------------------ segments --------- */

/* The next segment from *at on: its marker, and past it in *at; fill bytes are left out of *segment. -1 where there is none. */
static int next_segment(const uint8_t *file, size_t size, size_t *at, size_t *segment)
{
    size_t from = *at;

    while (from < size && file[from] == 0xFF && size - from >= 2 && file[from + 1] == 0xFF)
        from++;
    if (size - from < 4 || file[from] != 0xFF)
        return -1;
    size_t length = (size_t)file[from + 2] << 8 | file[from + 3];

    if (length < 2 || size - from - 2 < length)
        return -1;
    *segment = from;
    *at = from + 2 + length;
    return file[from + 1];
}

size_t sk_jpeg_header_size(const uint8_t *file, size_t size)
{
    size_t at = 2, segment;
    int marker;

    if (size < 4 || file[0] != 0xFF || file[1] != SOI)
        return 0;
    do
        marker = next_segment(file, size, &at, &segment);
    while (marker >= 0 && marker != SOS);
    return marker == SOS ? at : 0;
}

static bool begins(const uint8_t *body, size_t length, const char *name, size_t name_length)
{
    return length >= name_length && memcmp(body, name, name_length) == 0;
}

static bool is_kept(const rewriting *r, int marker, const uint8_t *body, size_t length)
{
    static const char xmp[] = "http://ns.adobe.com/xap/1.0/";

    if (marker == APP0)
        return begins(body, length, "JFIF", 4);
    if (marker == APP14)
        return begins(body, length, "Adobe", 5);
    return marker == APP1 &&
           (begins(body, length, "Exif", 4) || (r->keep_xmp && begins(body, length, xmp, sizeof xmp)));
}

/* Copies what is kept to r->to, if that is not NULL, and counts its bytes. */
static void keep_segments(rewriting *r)
{
    r->kept = 0;
    for (size_t at = 2, segment = 2; at < r->header;) {
        int marker = next_segment(r->file, r->size, &at, &segment);
        size_t length = at - segment;

        if (marker < 0 || !is_kept(r, marker, r->file + segment + 4, length - 4))
            continue; /* not < 0: these have been walked before */
        if (r->to != NULL)
            r->to = (uint8_t *)memcpy(r->to, r->file + segment, length) + length;
        r->kept += length;
    }
}

/* --------------------------------------------------------------------------------------------------- tables -------- */

/* The bits of all symbols and of the values after them. */
static uint64_t bits_of(const sk_huffman_list *list, const uint32_t frequency[256])
{
    uint64_t bits = 0;
    int32_t at = 0;

    for (uint32_t length = 1; length <= 16; length++) {
        for (int32_t i = 0; i < list->counts[length - 1]; i++, at++)
            bits += (uint64_t)frequency[list->symbols[at]] * (length + (list->symbols[at] & 15));
    }
    return bits;
}

static int32_t class_of(int32_t component)
{
    return component > 0;
}

/* DC differences of a component's block that begins an interval of `restart` MCUs: takes each, as it was counted without intervals, out of
 * `frequency` and puts what it is now in. */
static void count_restarts(const rewriting *r, int32_t c, int64_t restart, uint32_t frequency[256])
{
    const sk_jpeg_scan *scan = &r->scan;
    const sk_plane *plane = &r->image->plane[c];
    size_t row_values = (size_t)plane->across * 64;
    int32_t h = scan->h[c], v = scan->v[c];

    for (int64_t mcu = restart; mcu < (int64_t)scan->across * scan->down; mcu += restart) {
        int64_t row = mcu / scan->across, column = mcu % scan->across, before = mcu - 1;
        const int16_t *block = plane->blocks + (size_t)(row * v) * row_values + (size_t)(column * h) * 64;
        const int16_t *last = plane->blocks + (size_t)(before / scan->across * v + v - 1) * row_values +
                              (size_t)(before % scan->across * h + h - 1) * 64;

        frequency[sk_jpeg_bits_of(block[0] - last[0])]--;
        frequency[sk_jpeg_bits_of(block[0])]++;
    }
}

static bool baseline_dc(const uint32_t frequency[256])
{
    for (int32_t i = MOST_DC_BITS + 1; i <= 17; i++) {
        if (frequency[i] != 0)
            return false;
    }
    return true;
}

/* Makes DC's tables for intervals of `restart` MCUs. The bytes that the file then takes, about; 0 where baseline has no codes for it. */
static uint64_t try_restart(rewriting *r, int64_t restart, uint32_t dc[3][256], uint64_t ac_bits)
{
    uint32_t frequency[2][256] = {{0}};
    uint64_t bits = ac_bits;
    size_t tables = 0;

    for (int32_t c = 0; c < r->scan.components; c++) {
        uint32_t own[256];

        memcpy(own, dc[c], sizeof own);
        count_restarts(r, c, restart, own);
        for (int32_t i = 0; i < 256; i++)
            frequency[class_of(c)][i] += own[i];
    }
    for (int32_t i = 0; i < r->classes; i++) {
        if (!baseline_dc(frequency[i]))
            return 0;
        sk_huffman_optimal(&r->dc_list[i], frequency[i]);
        bits += bits_of(&r->dc_list[i], frequency[i]);
        tables += (size_t)(2 * TABLE_SEGMENT + r->dc_list[i].count + r->ac_list[i].count);
    }
    r->scan.restart = restart;
    sk_jpeg_scan_lay_out(&r->scan, r->image);
    bits += (uint64_t)r->scan.intervals * 20; /* a marker, and half a byte that is not filled */
    r->bits = bits;
    return bits / 8 + bits / 8 / 256 + tables + r->kept; /* about one byte in 256 is stuffed */
}

/* Chooses the intervals' length and makes the tables. False where baseline has no codes for the image. */
static bool choose(rewriting *r)
{
    uint32_t dc[3][256], ac[3][256], widest;
    uint64_t ac_bits = 0;
    int32_t mcu_width = r->scan.components == 1 ? 8 : 8 * r->image->plane[0].h;

    sk_jpeg_count(r->image, &r->scan, dc, ac, &widest);
    if (widest > MOST_AC)
        return false;
    for (int32_t c = 0; c < r->scan.components; c++) {
        for (int32_t i = 0; i < 256; i++)
            r->ac[class_of(c)][i] += ac[c][i];
    }
    for (int32_t i = 0; i < r->classes; i++) {
        sk_huffman_optimal(&r->ac_list[i], r->ac[i]);
        ac_bits += bits_of(&r->ac_list[i], r->ac[i]);
    }
    double budget = GROWTH * (double)r->size - (double)(r->header - r->kept) - RECIPE;

    if (!r->was_baseline) /* other codes are shorter */
        budget = GROWTH * (double)try_restart(r, r->scan.across, dc, ac_bits);
    for (int32_t restart = 1; restart <= r->scan.across; restart++) {
        if (r->scan.across % restart != 0 || (restart * mcu_width < SHORTEST && restart < r->scan.across))
            continue;
        uint64_t bytes = try_restart(r, restart, dc, ac_bits);

        if (bytes == 0)
            return false;
        if ((double)bytes <= budget)
            break;
    }
    for (int32_t i = 0; i < r->classes; i++) {
        if (!sk_huffman_code_make(&r->dc_code[i], &r->dc_list[i]) ||
            !sk_huffman_code_make(&r->ac_code[i], &r->ac_list[i]))
            return false;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------- writing -------- */

static void put(rewriting *r, int32_t byte)
{
    *r->to++ = (uint8_t)byte;
}

static void put_two(rewriting *r, int32_t value)
{
    put(r, value >> 8);
    put(r, value);
}

static void begin_segment(rewriting *r, int32_t marker, int32_t body)
{
    put(r, 0xFF);
    put(r, marker);
    put_two(r, 2 + body);
}

/* The number of the table that component `c` shares with one before it, or its own. */
static int32_t quant_of(const sk_coefficients *image, int32_t c)
{
    for (int32_t i = 0; i < c; i++) {
        if (memcmp(image->plane[i].quant, image->plane[c].quant, sizeof image->plane[c].quant) == 0)
            return i;
    }
    return c;
}

static void put_frame(rewriting *r)
{
    const sk_coefficients *image = r->image;

    for (int32_t c = 0; c < image->components; c++) {
        if (quant_of(image, c) != c)
            continue;
        begin_segment(r, DQT, 65);
        put(r, c);
        for (int32_t i = 0; i < 64; i++)
            put(r, image->plane[c].quant[sk_zigzag[i]]);
    }
    begin_segment(r, SOF0, 6 + 3 * image->components);
    put(r, 8);
    put_two(r, image->height);
    put_two(r, image->width);
    put(r, image->components);
    for (int32_t c = 0; c < image->components; c++) {
        put(r, image->plane[c].id);
        put(r, image->plane[c].h << 4 | image->plane[c].v);
        put(r, quant_of(image, c));
    }
}

static void put_table(rewriting *r, const sk_huffman_list *list, int32_t number)
{
    begin_segment(r, DHT, 17 + list->count);
    put(r, number);
    for (int32_t i = 0; i < 16; i++)
        put(r, list->counts[i]);
    for (int32_t i = 0; i < list->count; i++)
        put(r, list->symbols[i]);
}

static void put_header(rewriting *r)
{
    put(r, 0xFF);
    put(r, SOI);
    keep_segments(r);
    put_frame(r);
    for (int32_t i = 0; i < r->classes; i++) {
        put_table(r, &r->dc_list[i], i);
        put_table(r, &r->ac_list[i], 0x10 | i);
    }
    begin_segment(r, DRI, 2);
    put_two(r, (int32_t)r->scan.restart);
    begin_segment(r, SOS, 4 + 2 * r->scan.components);
    put(r, r->scan.components);
    for (int32_t c = 0; c < r->scan.components; c++) {
        put(r, r->image->plane[c].id);
        put(r, class_of(c) << 4 | class_of(c));
    }
    put(r, 0);
    put(r, 63);
    put(r, 0);
}

static bool begin(rewriting *r)
{
    sk_jpeg_info info;

    r->header = sk_jpeg_header_size(r->file, r->size);
    if (r->header == 0 || sk_jpeg_markers(r->file, r->size, &info) != STOKER_OK)
        return false;
    r->keep_xmp = info.xmp != NULL && sk_xmp_orientation(info.xmp, info.xmp_size) > 1;
    r->was_baseline = info.frame == SOF0 || info.frame == SOF0 + 1;
    keep_segments(r);
    r->classes = r->image->components == 1 ? 1 : 2;
    r->scan = (sk_jpeg_scan){.components = r->image->components, .last = 63};
    for (int32_t c = 0; c < r->scan.components; c++) {
        r->scan.plane[c] = c;
        r->scan.dc[c] = &r->dc_code[class_of(c)];
        r->scan.ac[c] = &r->ac_code[class_of(c)];
    }
    sk_jpeg_scan_lay_out(&r->scan, r->image);
    return true;
}

stoker_status sk_jpeg_restart(const sk_coefficients *image, const uint8_t *file, size_t size, sk_buffer *out,
                              size_t *out_size, bool *taken)
{
    rewriting r = {.image = image, .file = file, .size = size};
    size_t scan_size;

    *taken = false;
    if (!begin(&r) || !choose(&r))
        return STOKER_OK;
    size_t header = r.kept + FRAME_SEGMENTS + (size_t)4 * (TABLE_SEGMENT + 256);
    size_t room =
        2 * (size_t)(r.bits / 8 + 1); /* were each byte stuffed; a marker and padding were counted as 20 bits */
    stoker_status status = sk_buffer_reserve(out, header + room + SK_JPEG_SLACK);

    if (status != STOKER_OK)
        return status;
    r.to = out->data;
    put_header(&r);
    if (!sk_jpeg_encode(image, &r.scan, NULL, NULL, r.to, room, &scan_size))
        return STOKER_OK;
    r.to += scan_size;
    put(&r, 0xFF);
    put(&r, EOI);
    *out_size = (size_t)(r.to - out->data);
    *taken = true;
    return STOKER_OK;
}
