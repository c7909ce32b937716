/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20) /* bytes; on other page sizes the hint is only less useful */

/* Shared state: the fault injector's countdown; 0 means off. */
static atomic_long countdown;

static bool injected_fault(void)
{
    if (atomic_load_explicit(&countdown, memory_order_relaxed) == 0)
        return false;
    return atomic_fetch_sub_explicit(&countdown, 1, memory_order_relaxed) == 1;
}

void sk_memory_fail_after(long n)
{
    atomic_store(&countdown, n);
}

static void *fail(size_t size)
{
    sk_fail(STOKER_ERR_MEMORY, "out of memory: %zu bytes", size);
    return NULL;
}

bool sk_multiply(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

void *sk_malloc(size_t size)
{
    void *memory = injected_fault() ? NULL : malloc(size > 0 ? size : 1);

    return memory != NULL ? memory : fail(size);
}

void *sk_calloc(size_t count, size_t size)
{
    size_t total;

    if (!sk_multiply(count, size, &total))
        return fail(SIZE_MAX);
    void *memory = injected_fault() ? NULL : calloc(1, total > 0 ? total : 1);

    return memory != NULL ? memory : fail(total);
}

void *sk_realloc_array(void *memory, size_t count, size_t size)
{
    size_t total;

    if (!sk_multiply(count, size, &total))
        return fail(SIZE_MAX);
    void *grown = injected_fault() ? NULL : realloc(memory, total > 0 ? total : 1);

    return grown != NULL ? grown : fail(total);
}

char *sk_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = sk_malloc(size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void sk_free(void *memory)
{
    free(memory);
}

/* Huge pages where whole ones lie inside: fewer page faults for fresh memory, and far fewer walks through page tables
 * where samples are read in random order. */
static size_t alignment_of(size_t size)
{
    return size >= HUGE_PAGE ? HUGE_PAGE : SK_ALIGNMENT;
}

void *sk_aligned_malloc(size_t size)
{
    void *memory = NULL;

    if (size > SIZE_MAX - 2 * SK_ALIGNMENT || injected_fault())
        return fail(size);
    size_t padded = (size + 2 * SK_ALIGNMENT - 1) / SK_ALIGNMENT * SK_ALIGNMENT;

    if (posix_memalign(&memory, alignment_of(padded), padded) != 0)
        return fail(size);
    if (padded >= HUGE_PAGE) /* a hint: a kernel without it is no fault */
        (void)madvise(memory, padded / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return memory;
}

void sk_aligned_free(void *memory)
{
    free(memory);
}

stoker_status sk_buffer_reserve(sk_buffer *buffer, size_t size)
{
    if (size <= buffer->capacity && buffer->data != NULL)
        return STOKER_OK;
    size_t roomy =
        size <= SIZE_MAX / 2 ? size + size / 4 : size; /* so that slowly growing sizes do not copy each time */
    unsigned char *data = sk_aligned_malloc(roomy);

    if (data == NULL)
        return STOKER_ERR_MEMORY;
    sk_aligned_free(buffer->data);
    buffer->data = data;
    buffer->capacity = roomy;
    return STOKER_OK;
}

void sk_buffer_free(sk_buffer *buffer)
{
    sk_aligned_free(buffer->data);
    buffer->data = NULL;
    buffer->capacity = 0;
}
