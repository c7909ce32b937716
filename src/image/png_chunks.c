/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png_chunks.h"

#include <string.h>

#define PIECE_SIZE      65536                         /* Pillow's ImageFile.MAXBLOCK */
#define MAX_TEXT_CHUNK  ((size_t)1 << 20)             /* bytes a compressed text may inflate to; as Pillow */
#define MAX_TEXT_MEMORY ((size_t)64 * MAX_TEXT_CHUNK) /* characters of all texts together; as Pillow */
#define TEXT_STEP       ((size_t)32768)               /* room for a text that is only measured */

typedef struct chunk {
    char name[5];
    size_t at;       /* of its content */
    uint32_t length; /* bytes, as claimed */
    const uint8_t *content;
} chunk;

static uint32_t be32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool named(const chunk *c, const char *name)
{
    return memcmp(c->name, name, 4) == 0;
}

static bool same_text(const uint8_t *text, size_t size, const char *other)
{
    return size == strlen(other) && memcmp(text, other, size) == 0;
}

static size_t left(const sk_png_file *file)
{
    return file->size - file->at;
}

static void skip(sk_png_file *file, size_t bytes)
{
    file->at += bytes < left(file) ? bytes : left(file);
}

/* ------------------------------------------------------------------------------------------------ inflating ---- */

static void *zlib_allocate(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return sk_calloc(count, size);
}

static void zlib_free(void *unused, void *memory)
{
    (void)unused;
    sk_free(memory);
}

stoker_status sk_png_inflate_begin(sk_png_tools *tools)
{
    if (tools->ready) {
        inflateReset(&tools->inflater);
        return STOKER_OK;
    }
    memset(&tools->inflater, 0, sizeof tools->inflater);
    tools->inflater.zalloc = zlib_allocate;
    tools->inflater.zfree = zlib_free;
    if (inflateInit(&tools->inflater) != Z_OK)
        return sk_fail(STOKER_ERR_MEMORY, "out of memory: an inflater");
    tools->ready = true;
    return STOKER_OK;
}

void sk_png_tools_free(sk_png_tools *tools)
{
    if (tools->ready)
        inflateEnd(&tools->inflater);
    sk_buffer_free(&tools->text);
    sk_buffer_free(&tools->raw_profile.buffer);
    sk_buffer_free(&tools->xmp.buffer);
    memset(tools, 0, sizeof *tools);
}

/* Inflates a compressed text into tools->text; *size is -1 if it is not a sound zlib stream (one without its end counts
 * as sound). */
static stoker_status inflate_text(sk_png_tools *tools, const chunk *c, const uint8_t *data, size_t data_size,
                                  int64_t *size)
{
    z_stream *inflater = &tools->inflater;
    size_t room = data_size < TEXT_STEP / 4 ? TEXT_STEP : MAX_TEXT_CHUNK;
    stoker_status status = sk_png_inflate_begin(tools);

    if (status == STOKER_OK)
        status = sk_buffer_reserve(&tools->text, room);
    if (status != STOKER_OK)
        return status;
    inflater->next_in = (z_const Bytef *)data;
    inflater->avail_in = (uInt)data_size;
    inflater->next_out = tools->text.data;
    inflater->avail_out = (uInt)room;
    int result = inflate(inflater, Z_SYNC_FLUSH);

    if (room < MAX_TEXT_CHUNK && inflater->avail_out == 0 && result != Z_STREAM_END) {
        /* Rare: it inflates more than four times. Begin again with all the room there may be. */
        status = sk_png_inflate_begin(tools);
        if (status == STOKER_OK)
            status = sk_buffer_reserve(&tools->text, MAX_TEXT_CHUNK);
        if (status != STOKER_OK)
            return status;
        room = MAX_TEXT_CHUNK;
        inflater->next_in = (z_const Bytef *)data;
        inflater->avail_in = (uInt)data_size;
        inflater->next_out = tools->text.data;
        inflater->avail_out = (uInt)room;
        result = inflate(inflater, Z_SYNC_FLUSH);
    }
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        *size = -1;
        return result == Z_MEM_ERROR ? sk_fail(STOKER_ERR_MEMORY, "out of memory: an inflater") : STOKER_OK;
    }
    if (inflater->avail_out == 0 && inflater->avail_in > 0 && result != Z_STREAM_END)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: chunk %s at byte %zu inflates to more than %zu bytes", c->name,
                       c->at, MAX_TEXT_CHUNK);
    *size = (int64_t)(room - inflater->avail_out);
    return STOKER_OK;
}

/* -------------------------------------------------------------------------------------------- single chunks ---- */

static stoker_status too_short(const chunk *c)
{
    return sk_fail(STOKER_ERR_DATA, "broken PNG: chunk %s at byte %zu is too short (%u bytes)", c->name, c->at,
                   c->length);
}

static bool legal_kind(int depth, int color)
{
    switch (color) {
    case SK_PNG_GRAY:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case SK_PNG_PALETTE:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case SK_PNG_RGB:
    case SK_PNG_GRAY_ALPHA:
    case SK_PNG_RGBA:
        return depth == 8 || depth == 16;
    default:
        return false;
    }
}

static stoker_status read_header(sk_png_file *file, const chunk *c)
{
    if (c->length < 13)
        return too_short(c);
    file->width = be32(c->content);
    file->height = be32(c->content + 4);
    if (legal_kind(c->content[8], c->content[9])) {
        file->depth = c->content[8];
        file->color = c->content[9];
    }
    if (c->content[12] != 0)
        file->interlaced = true;
    if (c->content[11] != 0)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: unknown filter method %d", c->content[11]);
    return STOKER_OK;
}

/* Whether an alpha list is what Pillow takes for a single transparent entry: 255 … 255 0 255 … 255, after which it lets
 * a line feed pass. */
static bool one_entry_transparent(const uint8_t *alphas, size_t size)
{
    size_t zeros = 0;

    if (size > 0 && alphas[size - 1] == '\n')
        size--;
    for (size_t i = 0; i < size; i++) {
        if (alphas[i] != 0 && alphas[i] != 255)
            return false;
        zeros += alphas[i] == 0;
    }
    return zeros == 1;
}

static stoker_status read_transparency(sk_png_file *file, const chunk *c)
{
    if (file->depth == 0)
        return STOKER_OK;
    if (file->color == SK_PNG_PALETTE)
        file->transparency = one_entry_transparent(c->content, c->length) ? SK_PNG_ONE_COLOR : SK_PNG_ALPHA_LIST;
    if ((file->color == SK_PNG_GRAY && c->length < 2) || (file->color == SK_PNG_RGB && c->length < 6))
        return too_short(c);
    if (file->color == SK_PNG_GRAY || file->color == SK_PNG_RGB)
        file->transparency = file->color == SK_PNG_GRAY ? SK_PNG_ONE_COLOR : SK_PNG_THREE_SAMPLES;
    return STOKER_OK;
}

static stoker_status read_profile(sk_png_tools *tools, const chunk *c)
{
    const uint8_t *end = c->length > 0 ? memchr(c->content, 0, c->length) : NULL;
    size_t method = end != NULL ? (size_t)(end - c->content) + 1 : 0;
    int64_t size;

    if (method >= c->length)
        return too_short(c);
    if (c->content[method] != 0)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: unknown compression method %d in chunk iCCP", c->content[method]);
    return inflate_text(tools, c, c->content + method + 1, c->length - method - 1, &size);
}

static stoker_status count_text(sk_png_file *file, size_t characters)
{
    file->text_memory += characters;
    if (file->text_memory > MAX_TEXT_MEMORY)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: its texts take more than %zu bytes", MAX_TEXT_MEMORY);
    return STOKER_OK;
}

static stoker_status keep_text(sk_png_text *kept, const uint8_t *text, size_t size)
{
    stoker_status status = sk_buffer_reserve(&kept->buffer, size + 1);

    if (status != STOKER_OK)
        return status;
    if (size > 0)
        memcpy(kept->buffer.data, text, size);
    kept->size = size;
    kept->found = true;
    return STOKER_OK;
}

/* Texts go into the same table as what Pillow knows of the image, so a text under one of these names changes how the
 * image is read. */
static stoker_status note_text(sk_png_file *file, sk_png_tools *tools, const uint8_t *key, size_t key_size,
                               const uint8_t *text, size_t size)
{
    if (same_text(key, key_size, "interlace"))
        file->interlaced = size > 0;
    else if (same_text(key, key_size, "transparency"))
        file->transparency = SK_PNG_NONSENSE;
    else if (same_text(key, key_size, "bbox"))
        file->frame_is_text = true;
    else if (same_text(key, key_size, "default_image"))
        file->default_image = size > 0;
    else if (tools->keep_texts && same_text(key, key_size, "Raw profile type exif"))
        return keep_text(&tools->raw_profile, text, size);
    else if (tools->keep_texts && same_text(key, key_size, "XML:com.adobe.xmp"))
        return keep_text(&tools->xmp, text, size);
    return STOKER_OK;
}

/* tEXt and zTXt: key, NUL, text. */
static stoker_status read_text(sk_png_file *file, sk_png_tools *tools, const chunk *c, bool compressed)
{
    const uint8_t *end = c->length > 0 ? memchr(c->content, 0, c->length) : NULL;
    size_t key_size = end != NULL ? (size_t)(end - c->content) : c->length;
    const uint8_t *text = c->content + c->length;
    size_t size = 0;

    if (end != NULL) {
        text = end + 1;
        size = c->length - key_size - 1;
    }
    if (compressed && size > 0) {
        int64_t inflated;

        if (text[0] != 0)
            return sk_fail(STOKER_ERR_DATA, "broken PNG: unknown compression method %d in chunk zTXt", text[0]);
        stoker_status status = inflate_text(tools, c, text + 1, size - 1, &inflated);

        if (status != STOKER_OK)
            return status;
        text = tools->text.data;
        size = inflated > 0 ? (size_t)inflated : 0;
    }
    if (key_size == 0)
        return STOKER_OK;
    if (!compressed && same_text(c->content, key_size, "exif")) {
        file->exif = text;
        file->exif_size = size;
        file->has_exif = true;
        file->exif_is_text = true;
    }
    stoker_status status = note_text(file, tools, c->content, key_size, text, size);

    return status == STOKER_OK ? count_text(file, size) : status;
}

/* Characters of a UTF-8 text, or -1 if it is not one (RFC 3629: no surrogates, no overlong forms). */
static int64_t utf8_length(const uint8_t *text, size_t size)
{
    int64_t characters = 0;

    for (size_t i = 0; i < size; characters++) {
        uint32_t code = text[i];
        size_t more = code < 0x80 ? 0 : code >= 0xC2 && code < 0xE0 ? 1 : code >= 0xE0 && code < 0xF0 ? 2 : 3;

        if ((code >= 0x80 && code < 0xC2) || code > 0xF4 || more >= size - i)
            return -1;
        code &= more == 0 ? 0x7Fu : 0x3Fu >> more;
        for (size_t k = 1; k <= more; k++) {
            if ((text[i + k] & 0xC0) != 0x80)
                return -1;
            code = code << 6 | (text[i + k] & 0x3Fu);
        }
        if ((more == 2 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) ||
            (more == 3 && (code < 0x10000 || code > 0x10FFFF)))
            return -1;
        i += more + 1;
    }
    return characters;
}

/* iTXt: key, NUL, compressed?, method, language, NUL, translated key, NUL, text. Ill-formed ones are passed over. */
static stoker_status read_international_text(sk_png_file *file, sk_png_tools *tools, const chunk *c)
{
    const uint8_t *limit = c->content + c->length;
    const uint8_t *key_end = c->length > 0 ? memchr(c->content, 0, c->length) : NULL;

    if (key_end == NULL || limit - key_end - 1 < 2)
        return STOKER_OK;
    const uint8_t *language = key_end + 3;
    const uint8_t *language_end = language < limit ? memchr(language, 0, (size_t)(limit - language)) : NULL;

    if (language_end == NULL)
        return STOKER_OK;
    const uint8_t *translated = language_end + 1;
    const uint8_t *translated_end = translated < limit ? memchr(translated, 0, (size_t)(limit - translated)) : NULL;

    if (translated_end == NULL)
        return STOKER_OK;
    const uint8_t *text = translated_end + 1;
    size_t size = (size_t)(limit - text);
    size_t key_size = (size_t)(key_end - c->content);

    if (key_end[1] != 0) {
        int64_t inflated;

        if (key_end[2] != 0)
            return STOKER_OK;
        stoker_status status = inflate_text(tools, c, text, size, &inflated);

        if (status != STOKER_OK || inflated < 0)
            return status;
        text = tools->text.data;
        size = (size_t)inflated;
    }
    if (tools->keep_texts && same_text(c->content, key_size, "XML:com.adobe.xmp")) {
        stoker_status status = keep_text(&tools->xmp, text, size);

        if (status != STOKER_OK)
            return status;
    }
    int64_t characters = utf8_length(text, size);

    if (characters < 0 || utf8_length(language, (size_t)(language_end - language)) < 0 ||
        utf8_length(translated, (size_t)(translated_end - translated)) < 0)
        return STOKER_OK;
    stoker_status status = note_text(file, tools, c->content, key_size, text, size);

    return status == STOKER_OK ? count_text(file, (size_t)characters) : status;
}

/* ------------------------------------------------------------------------------------------------ animation ---- */

static stoker_status read_animation(sk_png_file *file, const chunk *c)
{
    if (c->length < 8)
        return too_short(c);
    uint32_t frames = be32(c->content);

    if (file->frames >= 0)
        file->frames = -1; /* two of them: not an animation after all */
    else if (frames != 0 && frames <= 0x80000000u)
        file->frames = frames;
    return STOKER_OK;
}

static stoker_status out_of_sequence(const chunk *c)
{
    return sk_fail(STOKER_ERR_DATA, "broken PNG: animation chunk %s at byte %zu is out of sequence", c->name, c->at);
}

static stoker_status read_frame_control(sk_png_file *file, const chunk *c)
{
    if (c->length < 26)
        return too_short(c);
    int64_t sequence = be32(c->content);

    if (sequence != file->sequence + 1)
        return out_of_sequence(c);
    file->sequence = sequence;
    uint64_t width = be32(c->content + 4), height = be32(c->content + 8);
    uint64_t x = be32(c->content + 12), y = be32(c->content + 16);

    if (x + width > file->width || y + height > file->height)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: an animation's frame lies outside the image");
    file->has_frame = true;
    file->frame_is_text = false;
    file->frame_left = (uint32_t)x;
    file->frame_top = (uint32_t)y;
    file->frame_width = (uint32_t)width;
    file->frame_height = (uint32_t)height;
    return STOKER_OK;
}

/* fdAT: a sequence number, then what IDAT holds. Reads the number. */
static stoker_status read_frame_data(sk_png_file *file, const chunk *c)
{
    if (c->length < 4 || left(file) < 4)
        return too_short(c);
    int64_t sequence = be32(file->data + file->at);

    skip(file, 4);
    if (file->sequence < 0 || sequence != file->sequence + 1)
        return out_of_sequence(c);
    file->sequence = sequence;
    return STOKER_OK;
}

/* ------------------------------------------------------------------------------------------------- the walk ---- */

/* Reads a chunk's head; false at the end of the file or where no chunk begins. */
static bool next_chunk(sk_png_file *file, chunk *c)
{
    if (left(file) < 8)
        return false;
    const uint8_t *head = file->data + file->at;

    for (int i = 0; i < 4; i++) {
        uint8_t letter = head[4 + i];

        if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
              (letter >= '0' && letter <= '9') || letter == '_'))
            return false;
    }
    c->length = be32(head);
    memcpy(c->name, head + 4, 4);
    c->name[4] = 0;
    file->at += 8;
    c->at = file->at;
    c->content = NULL;
    return true;
}

static stoker_status no_chunk(const sk_png_file *file)
{
    if (left(file) < 8)
        return sk_fail(STOKER_ERR_DATA, "truncated PNG: it ends at byte %zu, within or before its image data",
                       file->size);
    return sk_fail(STOKER_ERR_DATA, "broken PNG: no chunk begins at byte %zu", file->at);
}

/* Reads a chunk's content, which must be whole, and what it says. Not for IDAT, fdAT and IEND. */
static stoker_status read_content(sk_png_file *file, sk_png_tools *tools, chunk *c)
{
    if (c->length > left(file))
        return sk_fail(STOKER_ERR_DATA, "truncated PNG: chunk %s at byte %zu claims %u bytes, %zu are left", c->name,
                       c->at, c->length, left(file));
    c->content = file->data + file->at;
    skip(file, c->length);
    if (named(c, "IHDR"))
        return read_header(file, c);
    if (named(c, "PLTE") && file->color == SK_PNG_PALETTE && !file->has_data) {
        file->palette = c->content;
        file->palette_size = c->length;
        file->has_palette = true;
    }
    if (named(c, "tRNS"))
        return read_transparency(file, c);
    if (named(c, "iCCP"))
        return read_profile(tools, c);
    if (named(c, "tEXt") || named(c, "zTXt"))
        return read_text(file, tools, c, named(c, "zTXt"));
    if (named(c, "iTXt"))
        return read_international_text(file, tools, c);
    if (named(c, "eXIf")) {
        file->exif = c->content;
        file->exif_size = c->length;
        file->has_exif = true;
        file->exif_is_text = false;
    }
    if (named(c, "acTL"))
        return read_animation(file, c);
    if (named(c, "fcTL"))
        return read_frame_control(file, c);
    if ((named(c, "gAMA") && c->length < 4) || (named(c, "cHRM") && c->length < 32) ||
        (named(c, "sRGB") && c->length < 1) || (named(c, "pHYs") && c->length < 9))
        return too_short(c);
    return STOKER_OK;
}

static stoker_status check_sum(sk_png_file *file, const chunk *c)
{
    if (left(file) < 4)
        return sk_fail(STOKER_ERR_DATA, "truncated PNG: it ends within chunk %s", c->name);
    uLong sum = crc32(crc32(0, NULL, 0), (const Bytef *)c->name, 4);

    if (c->length > 0)
        sum = crc32_z(sum, c->content, c->length);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    sum = be32(file->data + file->at); /* else no fuzzer would get past here */
#endif
    if (sum != be32(file->data + file->at))
        return sk_fail(STOKER_ERR_DATA, "broken PNG: wrong checksum of chunk %s at byte %zu", c->name, c->at);
    skip(file, 4);
    return STOKER_OK;
}

stoker_status sk_png_chunks_open(sk_png_file *file, sk_png_tools *tools, const uint8_t *data, size_t size)
{
    chunk c;

    memset(file, 0, sizeof *file);
    file->data = data;
    file->size = size;
    file->at = SK_PNG_MAGIC_SIZE;
    file->frames = -1;
    file->sequence = -1;
    tools->raw_profile.found = false;
    tools->xmp.found = false;
    for (;;) {
        if (!next_chunk(file, &c))
            return no_chunk(file);
        if (named(&c, "IEND") || (named(&c, "IDAT") && file->depth != 0) || named(&c, "fdAT"))
            break;
        if (named(&c, "IDAT") && !file->has_frame && file->frames >= 0)
            file->default_image = true; /* image data before any header are passed over like an unknown chunk */
        stoker_status status = read_content(file, tools, &c);

        if (status == STOKER_OK)
            status = check_sum(file, &c);
        if (status != STOKER_OK)
            return status;
    }
    file->has_data = !named(&c, "IEND");
    file->data_left = c.length;
    if (named(&c, "fdAT")) {
        stoker_status status = read_frame_data(file, &c);

        if (status != STOKER_OK)
            return status;
        file->data_left -= 4;
    }
    if (!file->has_data)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: it has no image data");
    if (file->depth == 0)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: no header, or one of an unknown kind");
    if (file->width == 0 || file->height == 0)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: size %u x %u", file->width, file->height);
    if (file->frame_is_text)
        return sk_fail(STOKER_ERR_DATA, "broken PNG: a text takes the place of an animation's frame");
    if (!file->has_frame && file->frames >= 0)
        file->default_image = true;
    file->animated = file->frames >= 0 && file->frames + file->default_image > 1;
    return STOKER_OK;
}

stoker_status sk_png_chunks_data(sk_png_file *file, const uint8_t **piece, size_t *size)
{
    chunk c;

    while (file->data_left == 0) {
        skip(file, 4); /* the checksum, which Pillow passes over here */
        if (!next_chunk(file, &c))
            return no_chunk(file);
        if (!named(&c, "IDAT") && !named(&c, "DDAT") && !named(&c, "fdAT"))
            return sk_fail(STOKER_ERR_DATA, "truncated PNG: its image data end at byte %zu, before the image is full",
                           c.at);
        file->data_left = c.length;
        if (named(&c, "fdAT")) {
            stoker_status status = read_frame_data(file, &c);

            if (status != STOKER_OK)
                return status;
            file->data_left -= 4;
        }
    }
    size_t wanted = file->data_left < PIECE_SIZE ? file->data_left : PIECE_SIZE;

    file->data_left -= wanted;
    *piece = file->data + file->at;
    *size = wanted < left(file) ? wanted : left(file);
    if (*size == 0)
        return no_chunk(file);
    skip(file, *size);
    return STOKER_OK;
}

stoker_status sk_png_chunks_finish(sk_png_file *file, sk_png_tools *tools)
{
    chunk c;

    skip(file, file->data_left);
    for (;;) {
        stoker_status status;

        skip(file, 4);
        if (!next_chunk(file, &c)) {
            file->no_end = true;
            return STOKER_OK;
        }
        if (named(&c, "IEND") || (named(&c, "fcTL") && file->animated))
            return STOKER_OK;
        if (named(&c, "IDAT") || named(&c, "fdAT")) {
            if (named(&c, "fdAT")) {
                status = read_frame_data(file, &c);
                if (status != STOKER_OK)
                    return status;
                c.length -= 4;
            }
            if (c.length > left(file))
                return sk_fail(STOKER_ERR_DATA, "truncated PNG: chunk %s at byte %zu claims %u bytes, %zu are left",
                               c.name, c.at, c.length, left(file));
            skip(file, c.length);
            continue;
        }
        status = read_content(file, tools, &c);
        if (status != STOKER_OK)
            return status;
    }
}
