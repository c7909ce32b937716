/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_walk.h: what lies in a folder, and in all folders below it.
 */
#ifndef SK_DATASET_FOLDER_WALK_H
#define SK_DATASET_FOLDER_WALK_H

#include <sys/stat.h>

#include "dataset/folder_tree.h"

/* Lists the folder `top` of the root `at` (only its path and descriptor are used) and, but for the root itself ("", label -1), all below it
 * into `out`, a tree without classes that starts as {0}. The root's folders are not visited: their names, sorted, are told in *below, offsets
 * into *text, which are the caller's to free. On failure `out` is to be closed all the same. */
stoker_status sk_walk_class(const sk_tree *at, const char *name, int32_t label, sk_tree *out);
stoker_status sk_walk_root(const sk_tree *at, sk_tree *out, char **text, size_t **below, size_t *below_count);

sk_tree_stamp sk_stamp(const struct stat *about);

/* Whether the entry `name` of an open folder, a symbolic link, leads to a folder: 1 or 0, or -1 with errno where that cannot be told. One that
 * leads nowhere does not. In the root, where it might be a class, neither does one that runs in circles go unnoticed. */
int sk_link_to_folder(int folder_fd, const char *name, bool in_root);

#endif
