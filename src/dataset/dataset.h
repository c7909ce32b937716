/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h: where the bytes are.
 *
 * dataset.c opens by sniffing; each format is one file that fills a sk_reader. A reader hands out a sample's encoded bytes
 * or its raw pixels, and its label; it never decodes. Nothing here knows of order, threads or transforms. Each reader call
 * may come from any number of threads at once.
 */
#ifndef SK_DATASET_DATASET_H
#define SK_DATASET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef enum sk_sample_kind {
    SK_SAMPLE_ENCODED = 0,    /* an image file's bytes */
    SK_SAMPLE_PLANAR = 1,     /* raw pixels, channels × height × width */
    SK_SAMPLE_INTERLEAVED = 2 /* raw pixels, height × width × channels (gray: channels 1) */
} sk_sample_kind;

typedef struct sk_sample {
    sk_sample_kind kind;
    bool packed;                     /* encoded in a pack's own code, not as an image file (image/dct.h) */
    const uint8_t *data;             /* into a mapped file, the caller's arrays, or `scratch` */
    size_t size;                     /* bytes */
    int32_t width, height, channels; /* of raw samples */
    int64_t label;
    const uint8_t
        *label_byte; /* where not NULL the label is what lies here: not read yet, since that takes a cache miss */
} sk_sample;

typedef struct sk_reader sk_reader;

/* What a format implements. `self` is the format's own struct, whose first member is a sk_reader. */
typedef struct sk_reader_ops {
    void (*destroy)(sk_reader *self);
    /* The sample's bytes. `scratch` belongs to the calling thread and is used when the bytes are not in memory already. A
     * failure's message names the file. */
    stoker_status (*fetch)(const sk_reader *self, int64_t index, sk_buffer *scratch, sk_sample *out);
    int64_t (*label)(const sk_reader *self, int64_t index);
    /* As stoker_dataset_where. */
    size_t (*where)(const sk_reader *self, int64_t index, char *buffer, size_t size);
    const char *(*class_name)(const sk_reader *self, int32_t label); /* NULL if none */
    /* May be NULL. The sample will be fetched soon: ask the system to read ahead. */
    void (*will_need)(const sk_reader *self, int64_t index);
    /* May be NULL, where samples are raw. Bytes of the sample's file, 0 where that cannot be told. */
    int64_t (*bytes)(const sk_reader *self, int64_t index);
} sk_reader_ops;

struct sk_reader {
    const sk_reader_ops *ops;
    const char *format;    /* static: "imagefolder", "cifar10", … */
    int64_t size;          /* samples */
    int64_t train_size;    /* of these, samples of the training part (they come first) */
    int64_t test_size;     /* samples of the test part; train_size + test_size == size, or both 0 without parts */
    int32_t classes;       /* 0 if unknown */
    int32_t channels;      /* 3, or 1 */
    int32_t width, height; /* that all samples share, or 0 */
    int32_t encoded;       /* 1 if samples are image files */
};

/* The public handle: a reader and how its samples are decoded. */
struct stoker_dataset {
    sk_reader *reader;
    stoker_image_settings image;
};

/* Each format's open. `*matched` is false (and the status STOKER_OK, *out NULL) where `path` is something else; once a
 * format claims the path, its errors are the caller's answer. */
typedef stoker_status (*sk_reader_open)(const char *path, const stoker_dataset_settings *settings, bool *matched,
                                        sk_reader **out);
stoker_status sk_cifar_open(const char *path, const stoker_dataset_settings *settings, bool *matched,
                            sk_reader **out); /* cifar.c: the binary layout */
stoker_status sk_cifar_pickle_open(const char *path, const stoker_dataset_settings *settings, bool *matched,
                                   sk_reader **out); /* cifar_pickle.c, over pickle.c */
stoker_status sk_idx_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out);
stoker_status sk_pack_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out);
stoker_status sk_folder_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out);

/* dataset.c: tries the formats one after another; says what was looked for when nothing matches. */
stoker_status sk_dataset_open_path(const char *path, const stoker_dataset_settings *settings, sk_reader **out);

/* arrays.c, subset.c: as the public stoker_dataset_from_arrays, _subset and _concat say. The parts stay their owner's. */
stoker_status sk_arrays_open(const uint8_t *images, int64_t count, int32_t height, int32_t width, int32_t channels,
                             const int64_t *labels, sk_reader **out);
stoker_status sk_subset_open(const sk_reader *base, const int64_t *indices, int64_t count, sk_reader **out);
stoker_status sk_concat_open(sk_reader *const *parts, int32_t count, sk_reader **out);

#endif
