/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_index.h: a listed tree kept in a file, so that it need not be listed again.
 *
 * The file lies in the user's cache folder under a name made from the root's real path. It holds the tree's arrays as they are in memory, and
 * is mapped. It is believed only if it is whole (checksum, every offset in bounds) and if every folder listed is the one that it was, with the
 * same times of change: a file or folder that is added, removed or renamed changes its folder's times. Links that led to no folder are looked at
 * again too. Anything else is no error: the tree is listed, as if there were no index.
 */
#ifndef SK_DATASET_FOLDER_INDEX_H
#define SK_DATASET_FOLDER_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "dataset/folder_tree.h"

/* A change is seen by a folder's times only where it comes later than the times' grain after the listing. FAT's is 2 s, the others' are
 * finer; clocks' ticks come on top. */
#define SK_INDEX_MARGIN_NS INT64_C(3000000000)

/* Fills the arrays of an opened tree from the index of the folder `real_path`; false where there is none to be believed. */
bool sk_index_load(const char *real_path, sk_tree *tree);

/* Writes the index of a listed tree, or does not: where there is no cache folder to write in, no room, or a folder was changed so shortly
 * before that a further change might not be seen. Removes the indexes of folders that are gone. */
void sk_index_write(const char *real_path, const sk_tree *tree);

/* Points the tree's arrays into the bytes of an index, which must be aligned as by malloc. False, and the tree as it was, where the bytes are no
 * whole index, or not that of `real_path` (NULL: of any). */
bool sk_index_parse(void *bytes, size_t size, const char *real_path, sk_tree *tree);

#endif
