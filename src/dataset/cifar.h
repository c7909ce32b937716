/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar.h: what CIFAR's two layouts share: lists of class names.
 */
#ifndef SK_DATASET_CIFAR_H
#define SK_DATASET_CIFAR_H

#include "dataset/dataset.h"

typedef struct sk_class_names {
    char **name;
    int32_t count;
} sk_class_names;

stoker_status sk_class_names_add(sk_class_names *names, const char *text, size_t length);
stoker_status sk_class_names_read(sk_class_names *names, const char *path);  /* one name a line */
const char *sk_class_names_get(const sk_class_names *names, int32_t number); /* NULL if none */
void sk_class_names_free(sk_class_names *names);

#endif
