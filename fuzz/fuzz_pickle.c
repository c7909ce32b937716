/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pickle.c: Python pickles. Every value that a pickle holds can be read to its last byte; an array is as large as its shape
 * says; nothing is called.
 */
#include "fuzz.h"

#include "dataset/pickle.h"

#define MAX_DEPTH 20 /* a list may hold itself */

static uint64_t sum; /* keeps the reads from being left out */

static void walk(const sk_pickle *pickle, const sk_pickle_value *value, int depth, int *budget)
{
    int64_t shape[SK_PICKLE_MAX_DIMENSIONS], number;

    if (value == NULL || depth > MAX_DEPTH || --*budget < 0)
        return;
    switch (value->kind) {
    case SK_PICKLE_BYTES:
    case SK_PICKLE_TEXT:
        sum += fuzz_hash(value->data, value->size, 0);
        break;
    case SK_PICKLE_ARRAY: {
        int dimensions = sk_pickle_shape(pickle, value, shape);
        uint64_t size = value->width;

        for (int i = 0; i < dimensions; i++)
            size *= (uint64_t)shape[i];
        fuzz_require(size == value->size, "an array is as large as its shape says");
        sum += fuzz_hash(value->data, value->size, 0);
        if (size > 0 && sk_pickle_array_integer(value, value->size / value->width - 1, &number))
            sum += (uint64_t)number;
        break;
    }
    case SK_PICKLE_LIST:
    case SK_PICKLE_TUPLE:
        for (uint32_t i = 0; i < value->count; i++)
            walk(pickle, sk_pickle_item(pickle, value, i), depth + 1, budget);
        break;
    case SK_PICKLE_DICT:
        for (uint32_t i = 0; i < value->count; i++)
            walk(pickle, sk_pickle_item(pickle, value, i), depth + 1, budget);
        walk(pickle, sk_pickle_find(pickle, value, "data"), depth + 1, budget);
        walk(pickle, sk_pickle_find(pickle, value, "labels"), depth + 1, budget);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sk_pickle *pickle = NULL;
    int budget = 5000;

    if (sk_pickle_read("fuzz", data, size, &pickle) == STOKER_OK)
        walk(pickle, sk_pickle_root(pickle), 0, &budget);
    sk_pickle_free(pickle);
    return 0;
}
