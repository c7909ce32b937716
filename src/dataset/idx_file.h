/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx_file.h: one file of the idx format (http://yann.lecun.com/exdb/mnist/), plain or gzipped: a big-endian header of element type and
 * extents, then the elements. Which files make a dataset is idx.c's.
 */
#ifndef SK_DATASET_IDX_FILE_H
#define SK_DATASET_IDX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

#define SK_IDX_MAX_DIMENSIONS 4

typedef struct sk_idx_file {
    sk_buffer bytes; /* the whole file, unpacked */
    const uint8_t *data;
    uint8_t type;  /* 8 unsigned bytes, 9 signed bytes, 11 16-bit, 12 32-bit, 13 float, 14 double */
    uint8_t width; /* bytes an element */
    int dimensions;
    int64_t extent[SK_IDX_MAX_DIMENSIONS]; /* 1 where there is no such dimension */
} sk_idx_file;

/* Reads a file by its content, whatever its name's ending. Its size must be what the header says, to the byte; nothing is allocated that
 * the bytes there cannot fill. */
stoker_status sk_idx_file_read(const char *path, sk_idx_file *out);
void sk_idx_file_free(sk_idx_file *file);

/* "8-bit unsigned integers", …; NULL for none of the format's types. Static. */
const char *sk_idx_type_name(uint8_t type);

/* The number of dimensions that the file at `path`, plain or gzipped, announces; 0 if it is no idx file. */
int sk_idx_file_peek(const char *path);

#endif
