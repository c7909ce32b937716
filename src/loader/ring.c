/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared state: see loader.h.
 */
#include <string.h>

#include "loader/loader.h"

bool sk_epoch_past_end(const stoker_loader *loader, uint64_t epoch)
{
    return loader->epochs > 0 && epoch >= loader->first_epoch &&
           epoch - loader->first_epoch >= (uint64_t)loader->epochs;
}

stoker_status sk_entry_set_shape(stoker_loader *loader, sk_entry *entry, sk_shape shape)
{
    size_t bytes = sk_spec_bytes(loader->spec, shape);
    size_t total;

    if (!sk_multiply(bytes, (size_t)loader->places, &total) || total > loader->ring_bytes)
        return sk_fail(STOKER_ERR_LIMIT,
                       "a batch of %lld samples of %zu bytes does not fit into ring_bytes (%zu): raise ring_bytes or "
                       "make the batch smaller",
                       (long long)loader->places, bytes, loader->ring_bytes);
    stoker_status status = sk_slot_reserve(entry->slot, total);

    if (status != STOKER_OK)
        return status;
    entry->shape = shape;
    entry->sample_bytes = bytes;
    return STOKER_OK;
}

/* The order of an epoch is made once, not once a batch. */
static const sk_order *order_of(stoker_loader *loader, uint64_t epoch)
{
    if (!loader->epoch_order_made || loader->epoch_order_of != epoch) {
        sk_order_make(&loader->epoch_order, loader->positions, loader->listed, loader->shuffle, loader->seed, epoch);
        loader->epoch_order_of = epoch;
        loader->epoch_order_made = true;
    }
    return &loader->epoch_order;
}

static stoker_status open_entry(stoker_loader *loader, int64_t number)
{
    sk_entry *entry = sk_ring_entry(loader, number);

    entry->slot = sk_pool_take(loader->pool);
    if (entry->slot == NULL)
        return STOKER_ERR_MEMORY;
    if (!loader->fixed) /* its images would be memory that the budget does not know of */
        sk_slot_drop_images(entry->slot);
    entry->epoch = loader->base_epoch + (uint64_t)(number / loader->batches);
    entry->index = number % loader->batches;
    entry->first = entry->index * loader->batch;
    entry->count = loader->positions - entry->first;
    if (entry->count > loader->batch || loader->last_batch == STOKER_LAST_PAD)
        entry->count = loader->batch;
    entry->order = *order_of(loader, entry->epoch);
    entry->shape = (sk_shape){0, 0, 0};
    entry->shape_sample = -1;
    entry->error = STOKER_OK;
    entry->failures = NULL;
    entry->failure_lost = false;
    entry->counted_bytes = 0;
    if (loader->fixed) {
        stoker_status status = sk_entry_set_shape(loader, entry, loader->shape);

        if (status != STOKER_OK) {
            sk_slot_release(entry->slot);
            entry->slot = NULL;
            return status;
        }
    }
    atomic_store(&entry->remaining, loader->units);
    pthread_mutex_lock(&loader->lock);
    entry->opened = number;
    loader->next_open = number + 1;
    if (loader->fixed)
        atomic_store_explicit(&entry->ready, number, memory_order_release);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return STOKER_OK;
}

stoker_status sk_ring_fill(stoker_loader *loader)
{
    while (loader->next_open < loader->cursor + loader->depth) {
        if (sk_epoch_past_end(loader, loader->base_epoch + (uint64_t)(loader->next_open / loader->batches)))
            break;
        stoker_status status = open_entry(loader, loader->next_open);

        if (status != STOKER_OK)
            return loader->next_open > loader->cursor ? STOKER_OK : status;
    }
    return STOKER_OK;
}

sk_slot *sk_ring_take(stoker_loader *loader)
{
    sk_entry *entry = sk_ring_entry(loader, loader->cursor);
    sk_slot *slot = entry->slot;

    while (entry->failures != NULL) {
        sk_failure *failure = entry->failures;

        entry->failures = failure->next;
        sk_free(failure);
    }
    sk_free(entry->error_message);
    entry->error_message = NULL;
    entry->slot = NULL;
    pthread_mutex_lock(&loader->lock);
    entry->opened = -1;
    atomic_store_explicit(&entry->ready, -1, memory_order_relaxed);
    loader->ahead_bytes -= entry->counted_bytes;
    if (entry->counted_bytes > 0)
        pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    loader->cursor++;
    return slot;
}

/* The shape of the batch is that of its first sample, or of what will stand in its place: under skip the first sample
 * of the batch that can be measured, under substitute the next of the dataset. */
static stoker_status measure_batch(sk_worker *worker, sk_entry *entry, sk_shape *shape)
{
    stoker_loader *loader = worker->loader;
    bool substitute = loader->on_error == STOKER_ON_ERROR_SUBSTITUTE;
    int64_t size = loader->dataset->reader->size;
    int64_t tries = loader->on_error == STOKER_ON_ERROR_RAISE ? 1 : substitute ? size : entry->count;
    int64_t first = sk_order_at(&entry->order, sk_entry_position(entry, 0));

    for (int64_t i = 0; i < tries; i++) {
        int64_t sample = substitute ? (first + i) % size : sk_order_at(&entry->order, sk_entry_position(entry, i));
        stoker_status status = sk_measure_sample(&worker->maker, entry->epoch, sample, shape);

        entry->shape_sample = sample;
        if (status == STOKER_OK)
            return STOKER_OK;
        if (loader->on_error == STOKER_ON_ERROR_RAISE || status == STOKER_ERR_MEMORY)
            return sk_fail_sample(loader->dataset, sample, entry->epoch, status);
        if (atomic_load_explicit(&loader->control, memory_order_relaxed) != SK_RUN)
            break; /* the batch will be thrown away */
    }
    shape->channels = 0;
    entry->shape_sample = -1;
    if (substitute)
        return sk_fail(STOKER_ERR_DATA, "no sample of the dataset can be read; the last: %s", sk_message());
    return STOKER_OK; /* each sample's failure is told when it is its turn */
}

/* Called and left with the lock held. */
static void size_batch(sk_worker *worker, sk_entry *entry, int64_t number)
{
    stoker_loader *loader = worker->loader;
    sk_shape shape = {0, 0, 0};
    size_t total = 0;

    loader->sizing = true;
    pthread_mutex_unlock(&loader->lock);
    stoker_status status = measure_batch(worker, entry, &shape);

    sk_enter(&worker->maker.activity, SK_STAGE_IDLE);
    if (status == STOKER_OK && shape.channels > 0)
        (void)sk_multiply(sk_spec_bytes(loader->spec, shape), (size_t)loader->places, &total);
    pthread_mutex_lock(&loader->lock);
    /* In order: what is ahead of this batch in the ring leaves first, so room for it comes in the end. */
    if (total <= loader->ring_bytes && loader->ahead_bytes + total > loader->ring_bytes) {
        sk_enter(&worker->maker.activity, STOKER_STAGE_STARVED);
        while (loader->ahead_bytes + total > loader->ring_bytes && atomic_load(&loader->control) == SK_RUN)
            pthread_cond_wait(&loader->work, &loader->lock);
    }
    loader->sizing = false;
    if (atomic_load(&loader->control) != SK_RUN)
        return;
    if (status == STOKER_OK && shape.channels > 0)
        status = sk_entry_set_shape(loader, entry, shape);
    if (status == STOKER_OK && shape.channels > 0) {
        entry->counted_bytes = total;
        loader->ahead_bytes += total;
    }
    if (status != STOKER_OK) {
        entry->error = status;
        entry->error_message = sk_strdup(sk_message());
    }
    loader->next_size = number + 1;
    atomic_store_explicit(&entry->ready, number, memory_order_release);
    pthread_cond_broadcast(&loader->work);
}

bool sk_ring_wait(sk_worker *worker, int64_t number)
{
    stoker_loader *loader = worker->loader;
    sk_entry *entry = sk_ring_entry(loader, number);
    int32_t stage = SK_STAGE_IDLE;
    bool ready = false;

    sk_enter(&worker->maker.activity, SK_STAGE_IDLE);
    pthread_mutex_lock(&loader->lock);
    while (atomic_load(&loader->control) == SK_RUN) {
        ready = atomic_load_explicit(&entry->ready, memory_order_acquire) == number;
        if (ready)
            break;
        if (entry->opened == number && !loader->sizing && loader->next_size == number) {
            size_batch(worker, entry, number);
            stage = -1;
            continue;
        }
        /* Starved: the ring is full of batches that the loop has not taken. Idle: nothing was asked for yet. */
        bool full = loader->next_open > 0 && number >= loader->next_open &&
                    !sk_epoch_past_end(loader, loader->base_epoch + (uint64_t)(number / loader->batches));
        int32_t now = full ? STOKER_STAGE_STARVED : SK_STAGE_IDLE;

        if (now != stage)
            sk_enter(&worker->maker.activity, now);
        stage = now;
        pthread_cond_wait(&loader->work, &loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    sk_enter(&worker->maker.activity, SK_STAGE_IDLE);
    return ready;
}

void sk_ring_reset(stoker_loader *loader, uint64_t epoch)
{
    int64_t cursor = loader->cursor;

    for (; loader->cursor < cursor + loader->depth;) {
        sk_slot *slot = sk_ring_take(loader);

        if (slot != NULL)
            sk_slot_release(slot);
    }
    pthread_mutex_lock(&loader->lock);
    loader->ahead_bytes = 0;
    loader->next_open = 0;
    loader->next_size = 0;
    pthread_mutex_unlock(&loader->lock);
    atomic_store(&loader->next_unit, 0);
    loader->cursor = 0;
    loader->index = 0;
    loader->base_epoch = epoch;
    loader->epoch = epoch;
    loader->effective_end = loader->positions;
    loader->move_count = 0;
}

void sk_ring_free(stoker_loader *loader)
{
    if (loader->entries == NULL)
        return;
    for (int64_t i = 0; i < loader->depth; i++) {
        sk_entry *entry = &loader->entries[i];

        while (entry->failures != NULL) {
            sk_failure *failure = entry->failures;

            entry->failures = failure->next;
            sk_free(failure);
        }
        sk_free(entry->error_message);
        if (entry->slot != NULL)
            sk_slot_release(entry->slot);
    }
    sk_aligned_free(loader->entries);
    loader->entries = NULL;
}
