/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h: reading files and listing folders. Writing is image/write.h's; what a file means is its reader's.
 */
#ifndef SK_BASE_FILE_H
#define SK_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

/* Reads the whole file `path`, relative to the folder `folder_fd` (AT_FDCWD: the working folder), into `buffer`; *size bytes. A file
 * that grows or shrinks meanwhile is read to where it ends. `shown` is the path for messages. `most`: an upper bound in bytes, beyond
 * which it is refused with STOKER_ERR_LIMIT. */
stoker_status sk_file_read_at(int folder_fd, const char *path, const char *shown, size_t most, sk_buffer *buffer,
                              size_t *size);
stoker_status sk_file_read(const char *path, size_t most, sk_buffer *buffer, size_t *size);

#define SK_FILE_ANY_SIZE ((size_t)1 << 62)

bool sk_path_is_folder(const char *path);
bool sk_path_is_file(const char *path);

/* "folder/name" in memory that sk_free takes back; NULL on lack of memory. */
char *sk_path_join(const char *folder, const char *name);

/* The part of a path after the last '/'. */
const char *sk_path_name(const char *path);

bool sk_starts_with(const char *text, const char *start);
bool sk_ends_with(const char *text, const char *end);

#endif
