/* SPDX-License-Identifier: Apache-2.0 */
#include "image/sniff.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "image/image.h"

#define TEXT_LOOK 512 /* bytes looked at to tell text from binary */

/* A signature at a fixed place. */
typedef struct signature {
    size_t offset;
    size_t size;
    const char *bytes;
    const char *name;
} signature;

#define AT(offset, bytes, name) {offset, sizeof(bytes) - 1, bytes, name}

/* In this order; the longer of two with the same beginning first. */
static const signature signatures[] = {
    AT(0, "GIF87a", "GIF image"),
    AT(0, "GIF89a", "GIF image"),
    AT(0, "II*\0", "TIFF image"),
    AT(0, "MM\0*", "TIFF image"),
    AT(0, "II+\0", "TIFF image"),
    AT(0, "MM\0+", "TIFF image"),
    AT(0, "\0\0\0\x0CjP  \r\n\x87\n", "JPEG 2000 image"),
    AT(0, "\xFF\x4F\xFF\x51", "JPEG 2000 image"),
    AT(0, "\0\0\0\x0CJXL \r\n\x87\n", "JPEG XL image"),
    AT(0, "\xFF\x0A", "JPEG XL image"),
    AT(4, "ftypavif", "AVIF image"),
    AT(4, "ftypavis", "AVIF image"),
    AT(4, "ftypheic", "HEIC image"),
    AT(4, "ftypheix", "HEIC image"),
    AT(4, "ftyphevc", "HEIC image"),
    AT(4, "ftyphevx", "HEIC image"),
    AT(4, "ftypheim", "HEIC image"),
    AT(4, "ftypheis", "HEIC image"),
    AT(4, "ftypmif1", "HEIF image"),
    AT(4, "ftypmsf1", "HEIF image"),
    AT(4, "ftyp", "MP4 or QuickTime film"),
    AT(0, "8BPS", "Photoshop image"),
    AT(0, "\0\0\1\0", "ICO image"),
    AT(0, "\0\0\2\0", "CUR image"),
    AT(0, "icns", "ICNS image"),
    AT(0, "DDS ", "DDS image"),
    AT(0, "qoif", "QOI image"),
    AT(0, "gimp xcf", "GIMP image"),
    AT(0, "\x76\x2F\x31\x01", "OpenEXR image"),
    AT(0, "#?RADIANCE", "Radiance HDR image"),
    AT(0, "SIMPLE  =", "FITS image"),
    AT(0, "\xC5\xD0\xD3\xC6", "EPS image"),
    AT(0, "%!PS", "PostScript file"),
    AT(0, "%PDF-", "PDF file"),
    AT(0, "\x1F\x8B", "gzip-compressed file"),
    AT(0, "BZh", "bzip2-compressed file"),
    AT(0,
       "\xFD"
       "7zXZ\0",
       "xz-compressed file"),
    AT(0, "\x28\xB5\x2F\xFD", "zstd-compressed file"),
    AT(0, "PK\3\4", "zip archive"),
    AT(0, "PK\5\6", "zip archive"),
    AT(0, "7z\xBC\xAF\x27\x1C", "7-Zip archive"),
    AT(0, "Rar!\x1A\7", "RAR archive"),
    AT(257, "ustar", "tar archive"),
    AT(0, "\x93NUMPY", "NumPy array"),
    AT(0, "\x89HDF\r\n\x1A\n", "HDF5 file"),
    AT(0, "RIFF", "RIFF file (sound or film)"),
    AT(0, "\x1A\x45\xDF\xA3", "Matroska film"),
    AT(0, "<?xml", "XML or SVG text"),
    AT(0, "<svg", "SVG text"),
    AT(0,
       "\x7F"
       "ELF",
       "program"),
};

#undef AT

static bool begins(const uint8_t *data, size_t size, size_t offset, const char *bytes, size_t count)
{
    return size >= offset && size - offset >= count && memcmp(data + offset, bytes, count) == 0;
}

/* Windows and OS/2 bitmaps: "BM" and one of the header sizes in use. */
static bool is_bmp(const uint8_t *data, size_t size)
{
    if (size < 18 || data[0] != 'B' || data[1] != 'M' || data[15] != 0 || data[16] != 0 || data[17] != 0)
        return false;
    switch (data[14]) {
    case 12:
    case 16:
    case 40:
    case 52:
    case 56:
    case 64:
    case 108:
    case 124:
        return true;
    default:
        return false;
    }
}

/* P1 … P7, Pf, PF and a blank. */
static const char *netpbm(const uint8_t *data, size_t size)
{
    if (size < 3 || data[0] != 'P' || !(isspace(data[2]) || data[2] == '#'))
        return NULL;
    switch (data[1]) {
    case '1':
    case '4':
        return "PBM image";
    case '2':
    case '5':
        return "PGM image";
    case '3':
    case '6':
        return "PPM image";
    case '7':
        return "PAM image";
    case 'f':
    case 'F':
        return "PFM image";
    default:
        return NULL;
    }
}

static bool is_html(const uint8_t *data, size_t size)
{
    static const char *const starts[] = {"<!doctype html", "<html", "<head", "<body"};
    size_t at = size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;

    while (at < size && isspace(data[at]))
        at++;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t length = strlen(starts[i]);

        if (size - at >= length && strncasecmp((const char *)data + at, starts[i], length) == 0)
            return true;
    }
    return false;
}

static bool is_text(const uint8_t *data, size_t size)
{
    size_t look = size < TEXT_LOOK ? size : TEXT_LOOK;

    for (size_t i = 0; i < look; i++)
        if ((data[i] < 0x20 && !isspace(data[i])) || data[i] == 0x7F)
            return false;
    return look >= 8;
}

/* JPEG-LS begins as JPEG does; its frame header tells it: FF F7. */
static bool is_jpeg_ls(const uint8_t *data, size_t size)
{
    size_t at = 2;

    while (at + 4 <= size && data[at] == 0xFF) {
        uint8_t marker = data[at + 1];

        if (marker == 0xF7)
            return true;
        if (marker == 0xFF) {
            at++;
            continue;
        }
        if (marker < 0xC0 || marker == 0xDA || (marker >= 0xD0 && marker <= 0xD9))
            return false;
        at += 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
    }
    return false;
}

sk_format sk_image_sniff(const uint8_t *data, size_t size, const char **name)
{
    const char *unused = NULL;
    const char **out = name != NULL ? name : &unused;

    /* The three that are read, by what Pillow's plugins accept. */
    if (begins(data, size, 0, "\xFF\xD8\xFF", 3)) {
        *out = "JPEG-LS image";
        if (is_jpeg_ls(data, size))
            return SK_FORMAT_OTHER;
        *out = "JPEG image";
        return SK_FORMAT_JPEG;
    }
    if (begins(data, size, 0, "\x89PNG\r\n\x1A\n", 8)) {
        *out = "PNG image";
        return SK_FORMAT_PNG;
    }
    if (begins(data, size, 0, "RIFF", 4) && begins(data, size, 8, "WEBP", 4)) {
        *out = "WebP image";
        return SK_FORMAT_WEBP;
    }
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const signature *s = &signatures[i];

        if (begins(data, size, s->offset, s->bytes, s->size)) {
            *out = s->name;
            return SK_FORMAT_OTHER;
        }
    }
    if (is_bmp(data, size)) {
        *out = "BMP image";
        return SK_FORMAT_OTHER;
    }
    *out = netpbm(data, size);
    if (*out != NULL)
        return SK_FORMAT_OTHER;
    if (size == 0)
        *out = "an empty file";
    else if (is_html(data, size))
        *out = "an HTML page";
    else if (is_text(data, size))
        *out = "a text";
    else
        *out = "of no known kind";
    return SK_FORMAT_UNKNOWN;
}

stoker_status sk_sniff_refuse(const uint8_t *data, size_t size)
{
    const char *name;

    if (sk_image_sniff(data, size, &name) == SK_FORMAT_OTHER)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "unsupported: %s%s", name,
                       strstr(name, "image") == NULL ? ", not an image" : "");
    return sk_fail(STOKER_ERR_DATA, "not an image: %s", name);
}

const char *sk_format_of_name(const char *path)
{
    static const struct {
        const char *extension, *format;
    } names[] = {{".jpg", "jpeg"},  {".jpeg", "jpeg"}, {".jpe", "jpeg"},
                 {".jfif", "jpeg"}, {".png", "png"},   {".webp", "webp"}};
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');

    if (dot == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(dot, names[i].extension) == 0)
            return names[i].format;
    return NULL;
}
