/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/folder_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define LONGEST_EXTENSION  5  /* bytes with the dot */
#define LEAST_FOR_COUNTING 64 /* fewer names are sorted sooner by comparing */

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};

/* --------------------------------------------------------------------------------------------- comparing -------- */

/* The code point at *at, which moves on. */
static uint32_t next_code_point(const uint8_t **at)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *p = *at;
    int length = p[0] < 0x80                   ? 1
                 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                 : (p[0] & 0xf0) == 0xe0       ? 3
                 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                               : 0;
    uint32_t c = length < 2 ? p[0] : p[0] & (0x7fu >> length);

    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) { /* also at the NUL */
            length = 0;
            break;
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    if (length == 0 || c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        *at += 1;
        return 0xdc00u + p[0];
    }
    *at += length;
    return c;
}

int sk_name_compare(const char *a, const char *b)
{
    const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;

    while (*x == *y && *x < 0x80) {
        if (*x == 0)
            return 0;
        x++, y++;
    }
    while (*x != 0 && *y != 0) {
        uint32_t c = next_code_point(&x), d = next_code_point(&y);

        if (c != d)
            return c < d ? -1 : 1;
    }
    return (*x != 0) - (*y != 0);
}

/* -------------------------------------------------------------------------------------------- extensions -------- */

bool sk_name_is_image(const char *name, size_t length)
{
    char end[LONGEST_EXTENSION + 1];
    size_t n = 0;

    /* From the last dot on. Not strcasecmp, which follows the locale: Turkish lower case has no i for I. */
    while (n < LONGEST_EXTENSION && n < length) {
        char c = name[length - ++n];

        end[LONGEST_EXTENSION - n] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
        if (c == '.')
            break;
    }
    end[LONGEST_EXTENSION] = '\0';
    for (size_t i = 0; n > 0 && i < sizeof extensions / sizeof extensions[0]; i++) {
        if (strcmp(end + LONGEST_EXTENSION - n, extensions[i]) == 0)
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------- order -------- */

static int compare_names(const void *a, const void *b, void *text)
{
    return sk_name_compare((const char *)text + ((const sk_name *)a)->at,
                           (const char *)text + ((const sk_name *)b)->at);
}

static bool is_ascii(const char *text, size_t size)
{
    unsigned char all = 0;

    for (size_t i = 0; i < size; i++)
        all |= (unsigned char)text[i];
    return all < 0x80;
}

static size_t common_start(const sk_name *names, size_t count, const char *text)
{
    const char *first = text + names[0].at;
    size_t common = strlen(first);

    for (size_t i = 1; i < count; i++) {
        const char *name = text + names[i].at;

        if (strncmp(name, first, common) == 0)
            continue;
        for (common = 0; name[common] == first[common];) /* they differ before the end of both */
            common++;
    }
    return common;
}

/* Eight bytes as a number that is ordered as they are; zeros after the end. */
static uint64_t key_of(const char *name)
{
    uint64_t key = 0;
    int used = 0;

    for (; used < 8 && name[used] != '\0'; used++)
        key = key << 8 | (unsigned char)name[used];
    return used == 0 ? 0 : key << 8 * (8 - used);
}

/* By key: counting, from the last byte to the first, only bytes that differ. */
static void sort_by_key(sk_name *names, sk_name *other, size_t count)
{
    uint64_t differing = 0;
    sk_name *from = names, *to = other;

    for (size_t i = 1; i < count; i++)
        differing |= names[i].key ^ names[0].key;
    for (int shift = 0; shift < 64; shift += 8) {
        size_t place[256] = {0}, sum = 0;

        if ((differing >> shift & 0xff) == 0)
            continue;
        for (size_t i = 0; i < count; i++)
            place[from[i].key >> shift & 0xff]++;
        for (int value = 0; value < 256; value++) {
            size_t here = place[value];

            place[value] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[place[from[i].key >> shift & 0xff]++] = from[i];
        sk_name *swap = from;

        from = to;
        to = swap;
    }
    if (from != names)
        memcpy(names, from, count * sizeof *names);
}

stoker_status sk_names_sort(sk_name *names, size_t count, const char *text, size_t begin, size_t end)
{
    if (count < 2)
        return STOKER_OK;
    if (count < LEAST_FOR_COUNTING || !is_ascii(text + begin, end - begin)) {
        qsort_r(names, count, sizeof *names, compare_names, (void *)(uintptr_t)text);
        return STOKER_OK;
    }
    sk_name *other = sk_realloc_array(NULL, count, sizeof *other);

    if (other == NULL)
        return STOKER_ERR_MEMORY;
    size_t common = common_start(names, count, text);

    for (size_t i = 0; i < count; i++)
        names[i].key = key_of(text + names[i].at + common);
    sort_by_key(names, other, count);
    sk_free(other);
    for (size_t i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count && names[i + same].key == names[i].key;)
            same++;
        if (same > 1)
            qsort_r(names + i, same, sizeof *names, compare_names, (void *)(uintptr_t)text);
    }
    return STOKER_OK;
}
