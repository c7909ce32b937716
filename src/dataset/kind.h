/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind.h: what a file that is no dataset looks like, in words for messages. Image formats by name are image/sniff.h's.
 */
#ifndef SK_DATASET_KIND_H
#define SK_DATASET_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SK_KIND_HEAD 512 /* bytes from a file's start that are enough to tell */

/* "an HTML page", "a zip archive", "a JPEG image" …; never NULL: "unknown bytes" where nothing fits. Static. */
const char *sk_kind_of_bytes(const uint8_t *head, size_t size);

/* The first bytes of the regular file `path`; 0 where it is none or cannot be read. Never waits on a pipe or a device. */
size_t sk_kind_head(const char *path, uint8_t head[SK_KIND_HEAD]);

/* "a folder", "a named pipe", … of a file mode; NULL for a regular file. Static. */
const char *sk_kind_of_mode(unsigned mode);

#endif
