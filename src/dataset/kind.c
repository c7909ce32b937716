/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct known_start {
    size_t at, size;
    const char *bytes, *words;
} known_start;

static const known_start starts[] = {
    {0, 2, "\xff\xd8", "a JPEG image"},
    {0, 8, "\x89PNG\r\n\x1a\n", "a PNG image"},
    {0, 4, "GIF8", "a GIF image"},
    {8, 4, "WEBP", "a WebP image"},
    {0, 4, "II*\0", "a TIFF image"},
    {0, 4, "MM\0*", "a TIFF image"},
    {0, 2, "\x1f\x8b", "a gzip file; unpack it first"},
    {0, 6, "\xfd\x37zXZ\0", "an xz file; unpack it first"},
    {0, 4, "\x28\xb5\x2f\xfd", "a zstd file; unpack it first"},
    {0, 3, "BZh", "a bzip2 file; unpack it first"},
    {0, 4, "PK\3\4", "a zip archive; unpack it first"},
    {257, 5, "ustar", "a tar archive; unpack it first"},
    {0, 6, "\x93NUMPY", "a NumPy array file"},
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {0, 4, "PAR1", "a Parquet file"},
    {0, 4,
     "\x7f"
     "ELF",
     "a program"},
    {0, 4, "%PDF", "a PDF document"},
};

static bool begins_with_word(const uint8_t *head, size_t size, const char *word)
{
    size_t at = 0;

    while (at < size && (head[at] == ' ' || head[at] == '\t' || head[at] == '\r' || head[at] == '\n'))
        at++;
    return size - at >= strlen(word) && strncasecmp((const char *)head + at, word, strlen(word)) == 0;
}

static bool is_text(const uint8_t *head, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (head[i] == 0x7f || (head[i] < 0x20 && strchr("\t\n\r\f", head[i]) == NULL) || head[i] == 0)
            return false;
    }
    return true;
}

const char *sk_kind_of_bytes(const uint8_t *head, size_t size)
{
    if (size == 0)
        return "an empty file";
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        const known_start *known = &starts[i];

        if (size >= known->at + known->size && memcmp(head + known->at, known->bytes, known->size) == 0)
            return known->words;
    }
    if (begins_with_word(head, size, "<!doctype html") || begins_with_word(head, size, "<html"))
        return "an HTML page; a download may have gone wrong";
    if (begins_with_word(head, size, "<?xml") || begins_with_word(head, size, "<"))
        return "an XML page; a download may have gone wrong";
    if (size >= 2 && head[0] == 0x80 && head[1] <= 5)
        return "a Python pickle";
    return is_text(head, size) ? "text" : "unknown bytes";
}

size_t sk_kind_head(const char *path, uint8_t head[SK_KIND_HEAD])
{
    struct stat about;
    size_t used = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return 0;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        while (used < SK_KIND_HEAD) {
            ssize_t n = read(fd, head + used, SK_KIND_HEAD - used);

            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            used += (size_t)n;
        }
    }
    close(fd);
    return used;
}

const char *sk_kind_of_mode(unsigned mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a folder";
    case S_IFIFO:
        return "a named pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
    case S_IFBLK:
        return "a device";
    default:
        return NULL;
    }
}
