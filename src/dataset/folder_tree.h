/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_tree.h: a folder of class folders, listed: which image files there are, in torchvision's order. Reading them is folder.c's, keeping
 * the list in a file is folder_index.c's.
 *
 * Memory: names lie in one arena, each once; a sample is its folder's number and its name's place (8 bytes and the name).
 */
#ifndef SK_DATASET_FOLDER_TREE_H
#define SK_DATASET_FOLDER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The structs of fixed size are the index file's records too. */

typedef struct sk_tree_folder {
    uint64_t path;  /* in `paths`, relative to the root; "" is the root */
    uint64_t names; /* in `names`: where its files' names begin */
    int32_t label;  /* -1: the root */
    int32_t zero;
} sk_tree_folder;

typedef struct sk_tree_file {
    uint32_t folder;
    uint32_t name; /* from its folder's `names` on */
} sk_tree_file;

/* A folder as it was when its listing began: where all four are the same, what it holds is too. */
typedef struct sk_tree_stamp {
    uint64_t device, inode;
    int64_t modified, changed; /* nanoseconds since 1970; INT64_MAX for times that do not fit */
} sk_tree_stamp;

typedef struct sk_tree {
    char *root;
    int root_fd;
    sk_tree_folder *folders; /* the root, then class by class, in a class by path: all that were listed */
    size_t folder_count, folder_room;
    sk_tree_stamp *stamps; /* of the folders; NULL once they are of no use */
    size_t stamp_room;
    sk_tree_file *files; /* the samples */
    size_t file_count, file_room;
    sk_tree_file *
        links; /* symbolic links that lead to no folder: they may, one day, while the folder that holds them stays the same */
    size_t link_count, link_room;
    uint32_t *classes; /* their folders' numbers, by label */
    size_t class_count, class_room;
    char *paths; /* strings with their NUL, known by their offset, since it moves */
    size_t paths_used, paths_room;
    char *names;
    size_t names_used, names_room;
    int64_t begun;      /* when listing began, ns since 1970 */
    uint64_t looked_at; /* entries of all folders */
    void *block;        /* the memory that all of these arrays point into; NULL: each is its own */
    size_t block_size;
    bool mapped; /* the block is a file's */
} sk_tree;

/* Opens `root` for what follows. On failure of any of these `tree` is to be closed all the same. */
stoker_status sk_tree_open(const char *root, sk_tree *tree);

/* Lists all below the root. */
stoker_status sk_tree_list(sk_tree *tree);

/* Forgets what only an index needs. */
void sk_tree_trim(sk_tree *tree);

void sk_tree_close(sk_tree *tree);

static inline const char *sk_tree_path(const sk_tree *tree, uint32_t folder)
{
    return tree->paths + tree->folders[folder].path;
}

static inline const char *sk_tree_name(const sk_tree *tree, const sk_tree_file *file)
{
    return tree->names + tree->folders[file->folder].names + file->name;
}

/* Room for `more` further elements of the array that `array` points to. */
stoker_status sk_tree_room(void *array, size_t count, size_t more, size_t *room, size_t size);

#endif
