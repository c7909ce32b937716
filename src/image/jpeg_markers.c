/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg_markers.h"

#include <string.h>

#define SOI  0xD8
#define SOS  0xDA
#define DQT  0xDB
#define DHP  0xDE
#define APP0 0xE0
#define APP1 0xE1
#define APP2 0xE2

#define EXIF_NAME 6 /* bytes of "Exif" and two zeros */

typedef struct walk {
    const uint8_t *data;
    size_t size;
    size_t at;
    uint8_t *joined; /* where the EXIF block is put together, or NULL */
} walk;

/* The body of a segment whose length field is next. Pillow reads length - 2 bytes, and nothing where that is not positive. */
static stoker_status read_segment(walk *w, const uint8_t **body, size_t *length)
{
    *body = NULL;
    *length = 0;
    if (w->size - w->at < 2)
        return sk_fail(STOKER_ERR_DATA, "JPEG: the file ends within a segment's length (byte %zu)", w->at);
    size_t claimed = (size_t)w->data[w->at] << 8 | w->data[w->at + 1];

    w->at += 2;
    *length = claimed > 2 ? claimed - 2 : 0;
    *body = w->data + w->at;
    if (w->size - w->at < *length)
        return sk_fail(STOKER_ERR_DATA,
                       "JPEG: truncated: a segment of %zu bytes at byte %zu runs past the end of the file", *length,
                       w->at);
    w->at += *length;
    return STOKER_OK;
}

static stoker_status read_frame(walk *w, uint8_t marker, sk_jpeg_info *info)
{
    const uint8_t *body;
    size_t length, at = w->at;
    stoker_status status = read_segment(w, &body, &length);

    if (status != STOKER_OK)
        return status;
    if (length < 6)
        return sk_fail(STOKER_ERR_DATA, "JPEG: a frame header of %zu bytes is too short", length);
    if (body[0] != 8)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "JPEG: unsupported: %d bits a sample", body[0]);
    info->height = body[1] << 8 | body[2];
    info->width = body[3] << 8 | body[4];
    info->components = body[5];
    if (info->components != 1 && info->components != 3 && info->components != 4)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "JPEG: unsupported: %d components", info->components);
    if ((length - 6) % 3 != 0)
        return sk_fail(STOKER_ERR_DATA, "JPEG: a frame header of %zu bytes has half a component", length);
    info->frame = marker;
    info->frame_at = at;
    return STOKER_OK;
}

/* Pillow looks into the tables to name the file's quality, and refuses one that is cut short. */
static stoker_status check_tables(walk *w)
{
    const uint8_t *body;
    size_t length;
    stoker_status status = read_segment(w, &body, &length);

    while (status == STOKER_OK && length > 0) {
        size_t table = 1 + (body[0] >> 4 == 0 ? 64 : 128);

        if (length < table)
            return sk_fail(STOKER_ERR_DATA, "JPEG: a quantisation table is cut short (byte %zu)", w->at);
        body += table;
        length -= table;
    }
    return status;
}

static void note_exif(const walk *w, const uint8_t *body, size_t length, sk_jpeg_info *info)
{
    size_t name = info->exif == NULL ? 0 : EXIF_NAME;

    if (info->exif == NULL) {
        info->exif = body;
        info->exif_size = length;
    }
    if (w->joined != NULL)
        memcpy(w->joined + info->joined_size, body + name, length - name);
    info->joined_size += length - name;
}

static void note_application(const walk *w, uint8_t marker, const uint8_t *body, size_t length, sk_jpeg_info *info)
{
    static const char xmp[] = "http://ns.adobe.com/xap/1.0/";

    if (marker == APP0 && length >= 12 && memcmp(body, "JFIF", 4) == 0) {
        if (body[7] == 1 || body[7] == 2)
            info->has_density = true;
    } else if (marker == APP1 && length >= EXIF_NAME && memcmp(body, "Exif\0\0", EXIF_NAME) == 0) {
        note_exif(w, body, length, info);
    } else if (marker == APP1 && length >= sizeof xmp && memcmp(body, xmp, sizeof xmp) == 0) {
        info->xmp = body + sizeof xmp;
        info->xmp_size = length - sizeof xmp;
    } else if (marker == APP2 && length >= 4 && memcmp(body, "MPF\0", 4) == 0) {
        info->multi_picture = true;
    }
}

/* Whether a marker's segment has a length and a body (in Pillow's table: has a handler). */
static bool has_body(uint8_t marker)
{
    return (marker >= 0xC0 && marker <= 0xCF && marker != 0xC8) || (marker >= SOS && marker <= 0xEF) || marker == 0xFE;
}

static bool is_frame(uint8_t marker)
{
    return (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) || marker == DHP;
}

static stoker_status walk_segments(const uint8_t *data, size_t size, sk_jpeg_info *info, uint8_t *joined)
{
    walk w = {.data = data, .size = size, .at = 3, .joined = joined};
    uint8_t before = 0xFF; /* the third byte of the file, which the sniff saw */

    memset(info, 0, sizeof *info);
    for (;;) {
        const uint8_t *body;
        size_t length;
        stoker_status status;

        if (before != 0xFF) {
            if (w.at >= size)
                break;
            before = data[w.at++];
            continue;
        }
        if (w.at >= size)
            break;
        uint8_t marker = data[w.at++];

        if (marker == 0xFF)
            continue; /* padding */
        if (marker == 0x00) {
            if (w.at >= size)
                break;
            before = data[w.at++];
            continue;
        }
        if (marker < 0xC0)
            return sk_fail(STOKER_ERR_DATA, "JPEG: no marker found: bytes FF %02X at byte %zu", marker, w.at - 2);
        if (is_frame(marker)) {
            status = read_frame(&w, marker, info);
        } else if (marker == DQT) {
            status = check_tables(&w);
        } else if (has_body(marker)) {
            status = read_segment(&w, &body, &length);
            if (status == STOKER_OK)
                note_application(&w, marker, body, length, info);
        } else {
            status = STOKER_OK;
        }
        if (status != STOKER_OK)
            return status;
        if (marker == SOS) {
            if (info->components == 0)
                return sk_fail(STOKER_ERR_DATA, "JPEG: a scan comes before the frame header");
            if (info->width == 0 || info->height == 0)
                return sk_fail(STOKER_ERR_DATA, "JPEG: an image of %d x %d pixels", info->width, info->height);
            return STOKER_OK;
        }
        if (w.at >= size)
            break;
        before = data[w.at++];
    }
    return sk_fail(STOKER_ERR_DATA, "JPEG: the file ends before its image data");
}

stoker_status sk_jpeg_markers(const uint8_t *data, size_t size, sk_jpeg_info *info)
{
    return walk_segments(data, size, info, NULL);
}

void sk_jpeg_join_exif(const uint8_t *data, size_t size, const sk_jpeg_info *info, uint8_t *joined)
{
    sk_jpeg_info again;

    if (info->joined_size > 0)
        (void)walk_segments(data, size, &again, joined); /* as well as it went before */
}

bool sk_jpeg_scan_ends(const uint8_t *data, size_t size, size_t at, uint8_t *next)
{
    while (at + 1 < size) {
        const uint8_t *found = memchr(data + at, 0xFF, size - 1 - at);

        if (found == NULL)
            return false;
        at = (size_t)(found - data) + 1;
        uint8_t marker = data[at];

        if (marker == 0xFF)
            continue; /* padding: the second may begin the marker */
        if (marker == 0x00 || (marker >= 0xD0 && marker <= 0xD7)) {
            at++;
            continue;
        }
        *next = marker;
        return true;
    }
    return false;
}
