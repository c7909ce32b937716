/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h: checked allocation.
 *
 * Every allocation of the library goes through here, so that sizes are multiplied with a check and tests can make the
 * n-th one fail. Aligned memory serves vector kernels and batches.
 */
#ifndef SK_BASE_MEMORY_H
#define SK_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define SK_ALIGNMENT 64 /* bytes: a cache line, and the widest vector register */

/* NULL and this thread's message ("out of memory: N bytes") on failure or overflow of count × size. A size of 0 gives a
 * pointer that can be freed. */
void *sk_malloc(size_t size);
void *sk_calloc(size_t count, size_t size);
void *sk_realloc_array(void *memory, size_t count, size_t size); /* `memory` stays valid on failure */
char *sk_strdup(const char *text);
void sk_free(void *memory); /* takes NULL */

/* SK_ALIGNMENT-aligned and readable for SK_ALIGNMENT bytes past `size`; freed by sk_aligned_free. */
void *sk_aligned_malloc(size_t size);
void sk_aligned_free(void *memory);

/* *out = a × b, or false on overflow. */
bool sk_multiply(size_t a, size_t b, size_t *out);

/* A buffer that only grows, for memory that a worker uses again for each sample. Starts as {0}. */
typedef struct sk_buffer {
    unsigned char *data;
    size_t capacity;
} sk_buffer;

/* Makes room for `size` bytes (contents are lost when it grows). Aligned as above. */
stoker_status sk_buffer_reserve(sk_buffer *buffer, size_t size);
void sk_buffer_free(sk_buffer *buffer);

/* For tests: the n-th allocation of this process from now on (1 = the next) fails, 0 switches it off. */
void sk_memory_fail_after(long n);

#endif
