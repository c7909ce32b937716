/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/idx_file.h"

#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "dataset/kind.h"

#define MAX_HEADER (4 + 4 * SK_IDX_MAX_DIMENSIONS)
#define MAX_RATIO  1032       /* bytes that a byte of deflate can stand for at most (zlib's technical notes) */
#define FEED       (1u << 30) /* bytes handed to zlib at once; its counts have 32 bits */

static const struct {
    uint8_t type, width;
    const char *name;
} types[] = {
    {8, 1, "8-bit unsigned integers"}, {9, 1, "8-bit signed integers"}, {11, 2, "16-bit integers"},
    {12, 4, "32-bit integers"},        {13, 4, "32-bit floats"},        {14, 8, "64-bit floats"},
};

const char *sk_idx_type_name(uint8_t type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].type == type)
            return types[i].name;
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------------------- gzip -------- */

typedef struct gzip_reader {
    z_stream stream;
    const uint8_t *next;
    size_t left; /* bytes of the file not handed to zlib yet */
    bool ended;
} gzip_reader;

static void *take_memory(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return sk_calloc(count, size);
}

static void give_memory(void *unused, void *memory)
{
    (void)unused;
    sk_free(memory);
}

static stoker_status gzip_open(gzip_reader *self, const uint8_t *data, size_t size)
{
    memset(self, 0, sizeof *self);
    self->stream.zalloc = take_memory;
    self->stream.zfree = give_memory;
    self->next = data;
    self->left = size;
    if (inflateInit2(&self->stream, 16 + MAX_WBITS) != Z_OK) /* 16: gzip's header and checksum */
        return sk_fail(STOKER_ERR_MEMORY, "out of memory for unpacking");
    return STOKER_OK;
}

static void gzip_feed(gzip_reader *self)
{
    size_t bytes = self->left < FEED ? self->left : FEED;

    self->stream.next_in = (Bytef *)self->next; /* zlib's interface lacks a const; it only reads */
    self->stream.avail_in = (uInt)bytes;
    self->next += bytes;
    self->left -= bytes;
}

/* A member is over: another one may follow, or zeros that fill a block, as Python's gzip has it. */
static stoker_status gzip_next_member(gzip_reader *self, const char *path)
{
    for (;;) {
        if (self->stream.avail_in == 0 && self->left > 0)
            gzip_feed(self);
        if (self->stream.avail_in == 0) {
            self->ended = true;
            return STOKER_OK;
        }
        if (*self->stream.next_in != 0)
            break;
        self->stream.next_in++;
        self->stream.avail_in--;
    }
    if (*self->stream.next_in != 0x1f)
        return sk_fail(STOKER_ERR_DATA, "%s: other bytes follow the gzipped ones", path);
    inflateReset(&self->stream);
    return STOKER_OK;
}

/* Up to `size` more bytes; fewer only at the end. */
static stoker_status gzip_read(gzip_reader *self, const char *path, uint8_t *out, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size && !self->ended) {
        size_t room = size - *got < FEED ? size - *got : FEED;

        if (self->stream.avail_in == 0 && self->left > 0)
            gzip_feed(self);
        self->stream.next_out = out + *got;
        self->stream.avail_out = (uInt)room;
        int code = inflate(&self->stream, Z_NO_FLUSH);

        *got += room - self->stream.avail_out;
        if (code == Z_STREAM_END) {
            stoker_status status = gzip_next_member(self, path);

            if (status != STOKER_OK)
                return status;
        } else if (code == Z_BUF_ERROR && self->stream.avail_in == 0 && self->left == 0) {
            return sk_fail(STOKER_ERR_DATA, "%s: the gzipped bytes end early, after %lu bytes unpacked", path,
                           self->stream.total_out);
        } else if (code == Z_MEM_ERROR) {
            return sk_fail(STOKER_ERR_MEMORY, "%s: out of memory for unpacking", path);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return sk_fail(STOKER_ERR_DATA, "%s: broken gzip (%s), after %lu bytes unpacked", path,
                           self->stream.msg != NULL ? self->stream.msg : "a dictionary is asked for",
                           self->stream.total_out);
        }
    }
    return STOKER_OK;
}

/* ------------------------------------------------------------------------------------------------ header -------- */

/* Whether these are an idx file's first four bytes. */
static bool begins(const uint8_t *head, size_t size)
{
    return size >= 4 && head[0] == 0 && head[1] == 0 && sk_idx_type_name(head[2]) != NULL && head[3] > 0;
}

static uint32_t read_big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Reads the header from the file's first bytes. *total is the size that the whole file must have. */
static stoker_status read_header(const char *path, const uint8_t *head, size_t size, sk_idx_file *out, size_t *total)
{
    if (!begins(head, size))
        return sk_fail(STOKER_ERR_DATA, "%s: not an idx file but %s", path,
                       sk_kind_of_bytes(head, size < SK_KIND_HEAD ? size : SK_KIND_HEAD));
    out->type = head[2];
    out->dimensions = head[3];
    if (out->dimensions > SK_IDX_MAX_DIMENSIONS)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: an idx file of %d dimensions", path, out->dimensions);
    size_t header = 4 + 4 * (size_t)out->dimensions;

    if (size < header)
        return sk_fail(STOKER_ERR_DATA, "%s: %zu bytes; the header alone takes %zu", path, size, header);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].type == out->type)
            out->width = types[i].width;
    }
    size_t bytes = out->width;

    for (int i = 0; i < SK_IDX_MAX_DIMENSIONS; i++) {
        out->extent[i] = i < out->dimensions ? read_big_endian(head + 4 + 4 * (size_t)i) : 1;
        if (!sk_multiply(bytes, (size_t)out->extent[i], &bytes) || bytes > SIZE_MAX / 2)
            return sk_fail(STOKER_ERR_DATA, "%s: the header claims more than memory can hold", path);
    }
    *total = header + bytes;
    return STOKER_OK;
}

static stoker_status fail_size(const char *path, size_t total, const char *there)
{
    return sk_fail(STOKER_ERR_DATA, "%s: the header (byte 4 on) asks for %zu bytes in all; there are %s", path, total,
                   there);
}

/* Unpacks `packed` into out->bytes: first the header, which says how much must come. */
static stoker_status unpack(const char *path, const uint8_t *packed, size_t size, sk_idx_file *out)
{
    uint8_t head[SK_KIND_HEAD], beyond;
    size_t used = 0, more, total = 0;
    gzip_reader reader;
    stoker_status status = gzip_open(&reader, packed, size);

    if (status != STOKER_OK)
        return status;
    status = gzip_read(&reader, path, head, 4, &used);
    if (status == STOKER_OK && begins(head, used))
        status = gzip_read(&reader, path, head + 4, 4 * (size_t)(head[3] < 4 ? head[3] : 4), &more);
    else if (status == STOKER_OK) /* more of it tells what it is instead */
        status = gzip_read(&reader, path, head + used, sizeof head - used, &more);
    if (status == STOKER_OK)
        status = read_header(path, head, used + more, out, &total);
    if (status != STOKER_OK)
        goto done;
    used += more;
    if (total / MAX_RATIO > size) {
        status = fail_size(path, total, "fewer, for so small a gzipped file cannot hold them");
        goto done;
    }
    status = sk_buffer_reserve(&out->bytes, total);
    if (status != STOKER_OK)
        goto done;
    memcpy(out->bytes.data, head, used);
    status = gzip_read(&reader, path, out->bytes.data + used, total - used, &more);
    if (status == STOKER_OK && more < total - used)
        status = fail_size(path, total, "fewer");
    if (status == STOKER_OK) /* reads the checksum too */
        status = gzip_read(&reader, path, &beyond, 1, &more);
    if (status == STOKER_OK && more > 0)
        status = fail_size(path, total, "more");
done:
    inflateEnd(&reader.stream);
    return status;
}

stoker_status sk_idx_file_read(const char *path, sk_idx_file *out)
{
    sk_buffer packed = {0};
    size_t size = 0, total = 0;

    memset(out, 0, sizeof *out);
    stoker_status status = sk_file_read(path, SK_FILE_ANY_SIZE, &out->bytes, &size);

    if (status == STOKER_OK && size >= 2 && out->bytes.data[0] == 0x1f && out->bytes.data[1] == 0x8b) {
        packed = out->bytes;
        out->bytes = (sk_buffer){0};
        status = unpack(path, packed.data, size, out);
    } else if (status == STOKER_OK) {
        status = read_header(path, out->bytes.data, size, out, &total);
        if (status == STOKER_OK && size != total)
            status = fail_size(path, total, size < total ? "fewer" : "more");
    }
    sk_buffer_free(&packed);
    if (status == STOKER_OK)
        out->data = out->bytes.data + 4 + 4 * (size_t)out->dimensions;
    else
        sk_idx_file_free(out);
    return status;
}

void sk_idx_file_free(sk_idx_file *file)
{
    sk_buffer_free(&file->bytes);
    file->data = NULL;
}

int sk_idx_file_peek(const char *path)
{
    uint8_t head[SK_KIND_HEAD], start[4];
    const uint8_t *at = head;
    size_t size = sk_kind_head(path, head);

    if (size >= 2 && head[0] == 0x1f && head[1] == 0x8b) {
        gzip_reader reader;

        if (gzip_open(&reader, head, size) != STOKER_OK)
            return 0;
        if (gzip_read(&reader, path, start, sizeof start, &size) != STOKER_OK)
            size = 0;
        inflateEnd(&reader.stream);
        at = start;
    }
    return begins(at, size) ? at[3] : 0;
}
