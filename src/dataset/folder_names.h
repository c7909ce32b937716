/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_names.h: file names as torchvision sees them: which are images', and which comes first.
 */
#ifndef SK_DATASET_FOLDER_NAMES_H
#define SK_DATASET_FOLDER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* As Python compares file names: by code point, a byte that is no UTF-8 counting as U+DC00 + byte (PEP 383). */
int sk_name_compare(const char *a, const char *b);

bool sk_name_is_image(const char *name, size_t length);

typedef struct sk_name {
    uint64_t key; /* the sort's own */
    size_t at;    /* in the text */
    bool link;    /* whatever goes along with it */
} sk_name;

/* Sorts names that lie one after another, each with its NUL, in text[begin .. end), and are all there is in there. */
stoker_status sk_names_sort(sk_name *names, size_t count, const char *text, size_t begin, size_t end);

#endif
