/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_cache.h: files in the user's cache folder: $XDG_CACHE_HOME/stoker/index, or ~/.cache/stoker/index. What is in them is
 * folder_index.c's. Nothing here is an error: where there is no such folder, or it may not be written, there are no files.
 */
#ifndef SK_DATASET_FOLDER_CACHE_H
#define SK_DATASET_FOLDER_CACHE_H

#include <stdbool.h>

/* Opens the file that belongs to `key` for reading: a regular file of this user's own. -1: there is none. */
int sk_cache_open(const char *key);

/* A file being written, under a temporary name. */
typedef struct sk_cache_file {
    int fd;
    int folder_fd;
    char name[40], temporary[40];
} sk_cache_file;

/* Makes the folder too. False: it cannot be done, and there is nothing to finish. */
bool sk_cache_create(const char *key, sk_cache_file *file);

/* Gives the file its name (`whole`) in place of what had it, and then removes those other files of this folder that `is_gone` says are of no
 * more use, and temporary files that a killed process left; or takes the file back. */
void sk_cache_finish(sk_cache_file *file, bool whole, bool (*is_gone)(int fd));

#endif
