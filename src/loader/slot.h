/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.h: the memory of batches. A slot is one batch's memory; the pool keeps a few that came back for the next
 * batches. The pool outlives its loader until the last loan is returned. What fills a slot, and when, is unknown here.
 */
#ifndef SK_LOADER_SLOT_H
#define SK_LOADER_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct sk_pool sk_pool;

/* `batch` is what the loop sees. The first member, so that a batch leads back to its slot. */
typedef struct sk_slot {
    stoker_batch batch;
    sk_pool *pool;
    struct sk_slot *next; /* in the pool's free list */
    size_t capacity;      /* bytes of images */
    void *meta;           /* labels, samples, draws and their counts */
    stoker_draw *draws;   /* places × STOKER_MAX_TRANSFORMS, or NULL */
    int32_t *draw_counts;
} sk_slot;

/* `places`: samples a slot has room for. Two slots that came back are kept for the next batches, and more as long as
 * they take no more than `kept_bytes`. NULL on lack of memory. */
sk_pool *sk_pool_create(int64_t places, bool keep_draws, size_t kept_bytes);

/* The loader is gone: frees what is kept; the rest goes as loans come back. Takes NULL. */
void sk_pool_close(sk_pool *pool);

/* A slot with labels and samples, without images. NULL on lack of memory. */
sk_slot *sk_pool_take(sk_pool *pool);

/* Makes room for `bytes` of images (contents are lost). */
stoker_status sk_slot_reserve(sk_slot *slot, size_t bytes);

/* Frees the images' memory. */
void sk_slot_drop_images(sk_slot *slot);

/* Gives a slot back; frees it where the pool is closed or has enough. Any thread. */
void sk_slot_release(sk_slot *slot);

/* Bytes of all slots: made ahead, kept, and on loan. Any thread. */
int64_t sk_pool_bytes(const sk_pool *pool);

#endif
