/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar.h: what CIFAR's two layouts share: the reader over batch files in memory, the search for the files of a folder, and class names
 * (cifar.c). How one file is read is the layout's own: cifar_binary.c, cifar_pickle.c.
 */
#ifndef SK_DATASET_CIFAR_H
#define SK_DATASET_CIFAR_H

#include "dataset/dataset.h"

#define SK_CIFAR_SIDE   32
#define SK_CIFAR_PIXELS (3 * SK_CIFAR_SIDE * SK_CIFAR_SIDE) /* bytes a sample */

typedef struct sk_class_names {
    char **name;
    int32_t count;
} sk_class_names;

stoker_status sk_class_names_add(sk_class_names *names, const char *text, size_t length);
const char *sk_class_names_get(const sk_class_names *names, int32_t number); /* NULL if none */
void sk_class_names_free(sk_class_names *names);

/* What a file's name says. */
typedef struct sk_cifar_name {
    int32_t labels; /* 1: CIFAR-10, 2: CIFAR-100 */
    bool test;
    long number; /* of a data_batch */
} sk_cifar_name;

typedef struct sk_cifar_file {
    char *path;
    sk_cifar_name named;
    sk_buffer bytes; /* the file, or what was taken out of it */
    size_t bytes_used;
    const uint8_t *pixels; /* of the first sample: planes red, green, blue */
    size_t pixel_stride;   /* bytes from one sample's to the next one's */
    const uint8_t *labels; /* of the first sample, one byte each */
    size_t label_stride;
    int64_t samples;
    int64_t first; /* number of the first sample in the dataset */
} sk_cifar_file;

typedef struct sk_cifar {
    sk_reader reader;
    const struct sk_cifar_layout *layout;
    sk_cifar_file *files; /* training files first */
    int32_t count;
    bool coarse;    /* CIFAR-100: coarse labels are asked for */
    int32_t labels; /* 1: CIFAR-10, 2: CIFAR-100; set by the layout's read */
    sk_class_names names;
} sk_cifar;

typedef struct sk_cifar_layout {
    const char *unit;                                        /* what a sample is called in messages */
    const char *below[3];                                    /* folders that the archives unpack to; NULL at the end */
    bool (*read_name)(const char *name, sk_cifar_name *out); /* false: not a batch file's name */
    bool (*claims)(const char *path, bool named);            /* a file that it should read; `named` by read_name */
    stoker_status (*read)(sk_cifar *self);                   /* all files; also sets self->labels */
    stoker_status (*read_names)(sk_cifar *self, const char *folder);
} sk_cifar_layout;

stoker_status sk_cifar_open_layout(const sk_cifar_layout *layout, const char *path,
                                   const stoker_dataset_settings *settings, bool *matched, sk_reader **out);

#endif
