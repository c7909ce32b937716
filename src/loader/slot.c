/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared state of a pool: free, kept_count, free_bytes, references, closed under `lock`; bytes is atomic. A slot
 * belongs to whoever took it until it is released.
 */
#include "loader/slot.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct sk_pool {
    pthread_mutex_t lock;
    sk_slot *free; /* last in, first out: its memory is the most likely to be in a cache still */
    int32_t kept_count;
    size_t kept_bytes, free_bytes;
    int64_t references; /* slots out of the pool, and the loader itself */
    bool closed;
    _Atomic(int64_t) bytes;
    int64_t places;
    bool keep_draws;
    pid_t pid; /* after fork() the lock may be held by a thread that does not exist in the child */
};

sk_pool *sk_pool_create(int64_t places, bool keep_draws, size_t kept_bytes)
{
    sk_pool *pool = sk_calloc(1, sizeof *pool);

    if (pool == NULL)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pool->places = places;
    pool->keep_draws = keep_draws;
    pool->kept_bytes = kept_bytes;
    pool->references = 1;
    pool->pid = getpid();
    return pool;
}

static void destroy_slot(sk_slot *slot)
{
    if (slot == NULL)
        return;
    sk_slot_drop_images(slot);
    sk_aligned_free(slot->meta);
    sk_free(slot);
}

/* Drops a reference; the last one takes the pool with it. */
static void leave_pool(sk_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool last = --pool->references == 0;

    pthread_mutex_unlock(&pool->lock);
    if (last) {
        pthread_mutex_destroy(&pool->lock);
        sk_free(pool);
    }
}

void sk_pool_close(sk_pool *pool)
{
    if (pool == NULL)
        return;
    bool forked = pool->pid != getpid();

    if (!forked)
        pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    sk_slot *slot = pool->free;

    pool->free = NULL;
    if (!forked)
        pthread_mutex_unlock(&pool->lock);
    while (slot != NULL) {
        sk_slot *next = slot->next;

        destroy_slot(slot);
        slot = next;
    }
    if (!forked)
        leave_pool(pool);
}

/* Labels, samples and draws in one allocation. */
static stoker_status make_meta(sk_slot *slot, int64_t places, bool keep_draws)
{
    size_t each = 2 * sizeof(int64_t);
    size_t total;

    if (keep_draws)
        each += STOKER_MAX_TRANSFORMS * sizeof(stoker_draw) + sizeof(int32_t);
    if (!sk_multiply((size_t)places, each, &total))
        return sk_fail(STOKER_ERR_MEMORY, "a batch of %lld samples is too large", (long long)places);
    slot->meta = sk_aligned_malloc(total);
    if (slot->meta == NULL)
        return STOKER_ERR_MEMORY;
    slot->batch.labels = slot->meta;
    slot->batch.samples = slot->batch.labels + places;
    if (keep_draws) {
        slot->draws = (stoker_draw *)(void *)(slot->batch.samples + places);
        slot->draw_counts = (int32_t *)(void *)(slot->draws + places * STOKER_MAX_TRANSFORMS);
    }
    return STOKER_OK;
}

sk_slot *sk_pool_take(sk_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    sk_slot *slot = pool->free;

    if (slot != NULL) {
        pool->free = slot->next;
        pool->kept_count--;
        pool->free_bytes -= slot->capacity;
    }
    pool->references++;
    pthread_mutex_unlock(&pool->lock);
    if (slot == NULL) {
        slot = sk_calloc(1, sizeof *slot);
        if (slot == NULL)
            goto fail;
        slot->pool = pool;
        if (make_meta(slot, pool->places, pool->keep_draws) != STOKER_OK)
            goto fail;
    }
    slot->next = NULL;
    slot->batch.draws = slot->draws;
    slot->batch.draw_counts = slot->draw_counts;
    slot->batch.draws_stride = pool->keep_draws ? STOKER_MAX_TRANSFORMS : 0;
    return slot;
fail:
    destroy_slot(slot);
    leave_pool(pool);
    return NULL;
}

void sk_slot_drop_images(sk_slot *slot)
{
    sk_aligned_free(slot->batch.images);
    slot->batch.images = NULL;
    atomic_fetch_sub_explicit(&slot->pool->bytes, (int64_t)slot->capacity, memory_order_relaxed);
    slot->capacity = 0;
}

stoker_status sk_slot_reserve(sk_slot *slot, size_t bytes)
{
    if (slot->batch.images != NULL && bytes <= slot->capacity)
        return STOKER_OK;
    sk_slot_drop_images(slot);
    slot->batch.images = sk_aligned_malloc(bytes);
    if (slot->batch.images == NULL)
        return sk_fail(STOKER_ERR_MEMORY, "out of memory: %zu bytes for a batch of %lld samples", bytes,
                       (long long)slot->pool->places);
    slot->capacity = bytes;
    atomic_fetch_add_explicit(&slot->pool->bytes, (int64_t)bytes, memory_order_relaxed);
    return STOKER_OK;
}

void sk_slot_release(sk_slot *slot)
{
    sk_pool *pool = slot->pool;

    if (pool->pid != getpid()) { /* in a child: its copy of the memory can go, the pool's lock cannot be trusted */
        destroy_slot(slot);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    bool keep = !pool->closed && (pool->kept_count < 2 || pool->free_bytes + slot->capacity <= pool->kept_bytes);

    if (keep) {
        slot->next = pool->free;
        pool->free = slot;
        pool->kept_count++;
        pool->free_bytes += slot->capacity;
        pool->references--; /* not the last: the loader holds one while the pool is open */
    }
    pthread_mutex_unlock(&pool->lock);
    if (!keep) {
        destroy_slot(slot);
        leave_pool(pool);
    }
}

int64_t sk_pool_bytes(const sk_pool *pool)
{
    return atomic_load_explicit(&pool->bytes, memory_order_relaxed);
}

void stoker_batch_release(stoker_batch *batch)
{
    if (batch != NULL)
        sk_slot_release((sk_slot *)(void *)batch);
}
