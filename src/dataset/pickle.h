/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h: reads a Python pickle without running what it asks for.
 *
 * Python's own unpickler calls any function that a file names. This one builds None, booleans, integers, bytes, text, lists, tuples,
 * dicts and NumPy arrays, in protocols 0 to 5, and refuses everything else by name. Work and memory are bounded by the file's size.
 * What the values mean is cifar_pickle.c's.
 */
#ifndef SK_DATASET_PICKLE_H
#define SK_DATASET_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SK_PICKLE_MAX_DIMENSIONS 4

typedef enum sk_pickle_kind {
    SK_PICKLE_NONE,
    SK_PICKLE_BOOL,
    SK_PICKLE_INT,
    SK_PICKLE_FLOAT, /* its value is not kept */
    SK_PICKLE_BYTES, /* also Python 2's str, and bytearrays */
    SK_PICKLE_TEXT,  /* UTF-8 */
    SK_PICKLE_LIST,
    SK_PICKLE_TUPLE,
    SK_PICKLE_DICT,
    SK_PICKLE_ARRAY,
    SK_PICKLE_DTYPE, /* of NumPy */
    SK_PICKLE_GLOBAL /* one of the few functions and classes that are known */
} sk_pickle_kind;

typedef struct sk_pickle_value {
    sk_pickle_kind kind;
    char element;        /* ARRAY, DTYPE: 'u' unsigned, 'i' signed, 'b' boolean, 'f' float; 0 as long as unknown */
    uint8_t width;       /* ARRAY, DTYPE: bytes an element */
    bool big_endian;     /* ARRAY, DTYPE */
    bool columns_first;  /* ARRAY: Fortran order */
    int64_t number;      /* BOOL, INT; GLOBAL: which */
    const uint8_t *data; /* BYTES, TEXT, ARRAY: in the file's bytes or the pickle's memory */
    size_t size;         /* bytes */
    uint32_t *items; /* LIST, TUPLE: the elements' ids; DICT: key, value, key, value …; ARRAY: one, the shape's tuple */
    uint32_t count, room;
    uint8_t *own; /* what `data` points to where it is not the file */
} sk_pickle_value;

typedef struct sk_pickle sk_pickle;

/* `data` must outlive the pickle. `shown` is the file's name for messages. sk_pickle_free takes it back, and takes NULL. */
stoker_status sk_pickle_read(const char *shown, const uint8_t *data, size_t size, sk_pickle **out);
void sk_pickle_free(sk_pickle *pickle);

const sk_pickle_value *sk_pickle_root(const sk_pickle *pickle);
const sk_pickle_value *sk_pickle_item(const sk_pickle *pickle, const sk_pickle_value *list, uint32_t index);

/* The value under a key that is the bytes or the text `key`; NULL if there is none or `dict` is no dict. */
const sk_pickle_value *sk_pickle_find(const sk_pickle *pickle, const sk_pickle_value *dict, const char *key);

/* An array's extents; its number of dimensions. Their product times the width is the array's size, as was checked. */
int sk_pickle_shape(const sk_pickle *pickle, const sk_pickle_value *array, int64_t shape[SK_PICKLE_MAX_DIMENSIONS]);

/* Element `index` of an array of integers or booleans of any width and byte order. */
bool sk_pickle_array_integer(const sk_pickle_value *array, size_t index, int64_t *out);

/* How a pickle begins: protocol 2 and up by their mark, 0 and 1 by a dict. */
bool sk_pickle_begins(const uint8_t *head, size_t size);

#endif
