/* SPDX-License-Identifier: Apache-2.0 */
#include "image/exif.h"

#include <string.h>

#define ORIENTATION 0x0112

/* Types of a tag's values (TIFF 6.0, section 2). */
enum {
    TYPE_BYTE = 1,
    TYPE_ASCII,
    TYPE_SHORT,
    TYPE_LONG,
    TYPE_RATIONAL,
    TYPE_SIGNED_BYTE,
    TYPE_UNDEFINED,
    TYPE_SIGNED_SHORT,
    TYPE_SIGNED_LONG,
    TYPE_SIGNED_RATIONAL,
    TYPE_FLOAT,
    TYPE_DOUBLE,
    TYPE_IFD,
    TYPE_LONG8 = 16
};

typedef struct block {
    const uint8_t *data;
    size_t size;
    bool big_endian;
} block;

static uint64_t number(const block *b, const uint8_t *bytes, int count)
{
    uint64_t value = 0;

    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[b->big_endian ? i : count - 1 - i];
    return value;
}

/* Bytes of one value, or 0 for a type that Pillow does not know. */
static uint64_t type_size(uint32_t type)
{
    switch (type) {
    case TYPE_BYTE:
    case TYPE_ASCII:
    case TYPE_SIGNED_BYTE:
    case TYPE_UNDEFINED:
        return 1;
    case TYPE_SHORT:
    case TYPE_SIGNED_SHORT:
        return 2;
    case TYPE_LONG:
    case TYPE_SIGNED_LONG:
    case TYPE_FLOAT:
    case TYPE_IFD:
        return 4;
    case TYPE_RATIONAL:
    case TYPE_SIGNED_RATIONAL:
    case TYPE_DOUBLE:
    case TYPE_LONG8:
        return 8;
    default:
        return 0;
    }
}

/* The first value as Python's dictionary would look it up: numbers of any type are equal where their values are. */
static int orientation_of(const block *b, uint32_t type, const uint8_t *bytes)
{
    double value = 1;
    uint32_t low = (uint32_t)number(b, bytes, type_size(type) >= 4 ? 4 : (int)type_size(type));

    switch (type) {
    case TYPE_SHORT:
    case TYPE_LONG:
    case TYPE_IFD:
        value = low;
        break;
    case TYPE_SIGNED_BYTE:
        value = (int8_t)low;
        break;
    case TYPE_SIGNED_SHORT:
        value = (int16_t)low;
        break;
    case TYPE_SIGNED_LONG:
        value = (int32_t)low;
        break;
    case TYPE_LONG8:
        value = (double)number(b, bytes, 8);
        break;
    case TYPE_RATIONAL:
    case TYPE_SIGNED_RATIONAL: {
        uint32_t below = (uint32_t)number(b, bytes + 4, 4);
        int64_t top = type == TYPE_RATIONAL ? (int64_t)low : (int32_t)low;
        int64_t bottom = type == TYPE_RATIONAL ? (int64_t)below : (int32_t)below;

        if (bottom != 0 && top % bottom == 0) {
            int64_t whole = top / bottom;

            value = (double)whole;
        }
        break;
    }
    case TYPE_FLOAT: {
        float f;

        memcpy(&f, &low, sizeof f);
        value = (double)f;
        break;
    }
    case TYPE_DOUBLE: {
        uint64_t bits = number(b, bytes, 8);

        memcpy(&value, &bits, sizeof value);
        break;
    }
    default: /* bytes and text are no numbers */
        break;
    }
    for (int orientation = 2; orientation <= 8; orientation++)
        if (value == orientation)
            return orientation;
    return 1;
}

stoker_status sk_exif_orientation(const uint8_t *exif, size_t size, int prefixes, int *orientation, bool *found)
{
    *orientation = 1;
    *found = false;
    for (int i = 0; i < prefixes && size >= 6 && memcmp(exif, "Exif\0\0", 6) == 0; i++) {
        exif += 6;
        size -= 6;
    }
    if (size == 0)
        return STOKER_OK;
    if (size < 8 ||
        (memcmp(exif, "MM\0\x2A", 4) != 0 && memcmp(exif, "II\x2A\0", 4) != 0 && memcmp(exif, "MM\x2A\0", 4) != 0 &&
         memcmp(exif, "MM\0\x2B", 4) != 0 && memcmp(exif, "II\0\x2A", 4) != 0))
        return sk_fail(STOKER_ERR_DATA, "broken EXIF: it does not begin with a byte order");
    block b = {exif, size, exif[0] == 'M'};
    uint64_t at = number(&b, exif + 4, 4);
    uint64_t sizes = 0; /* of all values that lie outside the list so far */

    if (at + 2 > size)
        return STOKER_OK;
    uint64_t tags = number(&b, exif + at, 2);

    at += 2;
    for (; tags > 0 && at + 12 <= size; tags--, at += 12) {
        uint32_t tag = (uint32_t)number(&b, exif + at, 2);
        uint32_t type = (uint32_t)number(&b, exif + at + 2, 2);
        uint64_t value_size = number(&b, exif + at + 4, 4) * type_size(type);
        uint64_t value_at = at + 8;

        if (value_size > 4) {
            value_at = number(&b, exif + at + 8, 4);
            sizes += value_size;
            if (sizes > size)
                continue; /* more than the block could hold: Pillow skips the tag */
            if (value_at + value_size > size)
                return STOKER_OK; /* the value is cut off: Pillow reads no further */
        }
        if (tag != ORIENTATION || value_size == 0 || value_size < type_size(type))
            continue;
        *orientation = orientation_of(&b, type, exif + value_at);
        *found = true;
        return STOKER_OK;
    }
    return STOKER_OK;
}

int sk_xmp_orientation(const uint8_t *xmp, size_t size)
{
    static const char name[] = "tiff:Orientation";
    size_t length = sizeof name - 1;

    for (size_t i = 0; i + length < size; i++) {
        if (memcmp(xmp + i, name, length) != 0)
            continue;
        size_t at = i + length;

        if (xmp[at] == '>')
            at += 1;
        else if (at + 1 < size && xmp[at] == '=' && xmp[at + 1] == '"')
            at += 2;
        else
            continue;
        if (at < size && xmp[at] >= '0' && xmp[at] <= '9')
            return xmp[at] >= '2' && xmp[at] <= '8' ? xmp[at] - '0' : 1;
    }
    return 1;
}
