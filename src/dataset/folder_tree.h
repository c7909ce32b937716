/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_tree.h: a folder of class folders, listed: which image files there are, in torchvision's order. Reading them is folder.c's.
 *
 * Memory: names lie in one arena, each once; a sample is its folder's number and its name's place (12 bytes and the name).
 */
#ifndef SK_DATASET_FOLDER_TREE_H
#define SK_DATASET_FOLDER_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct sk_tree_folder {
    size_t path; /* in the text, relative to the root */
    int32_t label;
} sk_tree_folder;

typedef struct sk_tree_file {
    uint32_t folder;
    uint32_t name_high, name_low; /* a 64-bit place in the text, in 12 bytes with the folder */
} sk_tree_file;

typedef struct sk_tree {
    char *root;
    int root_fd;
    char *text; /* the arena: strings with their NUL, known by their offset, since it moves */
    size_t text_used, text_room;
    sk_tree_folder *folders; /* those that hold image files */
    size_t folder_count, folder_room;
    sk_tree_file *files; /* the samples */
    size_t file_count, file_room;
    size_t *classes; /* names' offsets */
    size_t class_count, class_room;
} sk_tree;

/* Lists all below `root`. On failure `out` is to be closed all the same. */
stoker_status sk_tree_open(const char *root, sk_tree *out);
void sk_tree_close(sk_tree *tree);

/* As Python compares file names: by code point, a byte that is no UTF-8 counting as U+DC00 + byte (PEP 383). */
int sk_name_compare(const char *a, const char *b);

#endif
