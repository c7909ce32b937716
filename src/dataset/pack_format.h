/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_format.h: where what lies in a pack file (docs/pack-format.md). All numbers are little-endian. Reading one as a dataset is
 * pack.c's, writing is src/pack's.
 */
#ifndef SK_DATASET_PACK_FORMAT_H
#define SK_DATASET_PACK_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"

#define SK_PACK_MAGIC      "STOKRPK\n" /* of a finished pack; 8 bytes */
#define SK_PACK_UNFINISHED "STOKRPT\n" /* while it is being written */
#define SK_PACK_VERSION    1
#define SK_PACK_HEADER     4096
#define SK_PACK_ALIGNMENT  64

/* The header. */
enum {
    SK_HEADER_VERSION = 8,    /* u32 */
    SK_HEADER_FILE_SIZE = 16, /* u64 */
    SK_HEADER_SAMPLES = 24,   /* u64 */
    SK_HEADER_TRAIN = 32,     /* u64: of these, training samples, which come first */
    SK_HEADER_TEST = 40,      /* u64; both 0 where no parts are told apart */
    SK_HEADER_CLASSES = 48,   /* u32 */
    SK_HEADER_CHANNELS = 52,  /* u32: 3 or 1 */
    SK_HEADER_WIDTH = 56,     /* u32, u32: of all samples, or 0 */
    SK_HEADER_HEIGHT = 60,
    SK_HEADER_INDEX = 64, /* u64: offset of the index, 48 bytes a sample */
    SK_HEADER_NAMES = 72, /* u64, u64: offset and bytes of the class names */
    SK_HEADER_NAMES_SIZE = 80,
    SK_HEADER_NAMES_CHECK = 88, /* u64 */
    SK_HEADER_FINGERPRINT = 96, /* XXH3-128 of the index */
    SK_HEADER_MODE = 112,       /* u32 */
    SK_HEADER_ENCODED = 116,    /* u32: 1 where the source's samples were image files */
    SK_HEADER_JOB =
        128, /* u64: what the packer was asked for; an interrupted one goes on only if it is asked the same */
    SK_HEADER_ORIGIN = 192, /* 32 bytes: the source's format, zeros behind it */
    SK_HEADER_CHECK = 4088  /* u64, of the 4088 bytes before */
};

/* An index record. */
#define SK_INDEX_RECORD 48
enum {
    SK_INDEX_OFFSET = 0,    /* u64: of the payload */
    SK_INDEX_SIZE = 8,      /* u64: its bytes */
    SK_INDEX_CHECK = 16,    /* u64: of the payload */
    SK_INDEX_LABEL = 24,    /* i64 */
    SK_INDEX_WIDTH = 32,    /* u32: pixels, of raw samples */
    SK_INDEX_HEIGHT = 36,   /* u32 */
    SK_INDEX_ENCODING = 40, /* u8: sk_pack_encoding */
    SK_INDEX_CHANNELS = 41, /* u8: of raw samples */
    SK_INDEX_OWN_CHECK = 44 /* u32: low half of the hash of the 44 bytes before, seed: the sample's number */
};

/* What stands before each payload. */
#define SK_RECORD_HEAD  128
#define SK_RECORD_MAGIC 0x43455253u /* "SREC" */
enum {
    SK_RECORD_NUMBER = 8,       /* u64: the sample's */
    SK_RECORD_PATH_SIZE = 16,   /* u32: bytes of the source path, behind the payload */
    SK_RECORD_RECIPE_SIZE = 20, /* u32: bytes behind the path that give back the original file */
    SK_RECORD_TAIL_CHECK = 24,  /* u64: of path and recipe */
    SK_RECORD_SOURCE_SIZE = 32, /* u64: bytes of the source's sample */
    SK_RECORD_SOURCE_HASH = 40, /* XXH3-128 of these */
    SK_RECORD_INDEX = 64,       /* 48 bytes: the index record */
    SK_RECORD_CHECK = 120       /* u64, of the 120 bytes before */
};

typedef enum sk_pack_encoding {
    SK_PACK_ORIGINAL = 0,    /* the source's bytes */
    SK_PACK_DCT = 1,         /* image/dct.h */
    SK_PACK_JPEG = 2,        /* a JPEG file with restart intervals */
    SK_PACK_PLANAR = 3,      /* raw, channels × height × width */
    SK_PACK_INTERLEAVED = 4, /* raw, height × width × channels */
    SK_PACK_ENCODINGS = 5
} sk_pack_encoding;

static inline uint32_t sk_get_32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t sk_get_64(const uint8_t *at)
{
    return sk_get_32(at) | (uint64_t)sk_get_32(at + 4) << 32;
}

static inline void sk_put_32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static inline void sk_put_64(uint8_t *at, uint64_t value)
{
    sk_put_32(at, (uint32_t)value);
    sk_put_32(at + 4, (uint32_t)(value >> 32));
}

/* A record in parts. */
typedef struct sk_pack_record {
    uint64_t offset, size, check;
    int64_t label;
    uint32_t width, height;
    uint8_t encoding, channels;
} sk_pack_record;

static inline void sk_pack_record_write(const sk_pack_record *record, uint64_t number, uint8_t out[SK_INDEX_RECORD])
{
    memset(out, 0, SK_INDEX_RECORD);
    sk_put_64(out + SK_INDEX_OFFSET, record->offset);
    sk_put_64(out + SK_INDEX_SIZE, record->size);
    sk_put_64(out + SK_INDEX_CHECK, record->check);
    sk_put_64(out + SK_INDEX_LABEL, (uint64_t)record->label);
    sk_put_32(out + SK_INDEX_WIDTH, record->width);
    sk_put_32(out + SK_INDEX_HEIGHT, record->height);
    out[SK_INDEX_ENCODING] = record->encoding;
    out[SK_INDEX_CHANNELS] = record->channels;
    sk_put_32(out + SK_INDEX_OWN_CHECK, (uint32_t)sk_hash64(out, SK_INDEX_OWN_CHECK, number));
}

static inline int64_t sk_pack_record_label(const uint8_t at[SK_INDEX_RECORD])
{
    return (int64_t)sk_get_64(at + SK_INDEX_LABEL);
}

/* Whether the record is sound in itself and its payload lies within `begin` .. `end`. */
static inline bool sk_pack_record_read(const uint8_t at[SK_INDEX_RECORD], uint64_t number, uint64_t begin, uint64_t end,
                                       sk_pack_record *out)
{
    out->offset = sk_get_64(at + SK_INDEX_OFFSET);
    out->size = sk_get_64(at + SK_INDEX_SIZE);
    out->check = sk_get_64(at + SK_INDEX_CHECK);
    out->label = sk_pack_record_label(at);
    out->width = sk_get_32(at + SK_INDEX_WIDTH);
    out->height = sk_get_32(at + SK_INDEX_HEIGHT);
    out->encoding = at[SK_INDEX_ENCODING];
    out->channels = at[SK_INDEX_CHANNELS];
    if (!sk_hash_fits(sk_get_32(at + SK_INDEX_OWN_CHECK), (uint32_t)sk_hash64(at, SK_INDEX_OWN_CHECK, number)))
        return false;
    if (out->encoding >= SK_PACK_ENCODINGS || out->offset < begin + SK_RECORD_HEAD || out->offset > end ||
        out->size > end - out->offset || out->offset % SK_PACK_ALIGNMENT != 0)
        return false;
    if (out->encoding != SK_PACK_PLANAR && out->encoding != SK_PACK_INTERLEAVED)
        return true;
    return (out->channels == 1 || out->channels == 3) && out->width >= 1 && out->height >= 1 &&
           out->width <= INT32_MAX && out->height <= INT32_MAX && out->size % out->channels == 0 &&
           (uint64_t)out->width * out->height == out->size / out->channels;
}

#endif
