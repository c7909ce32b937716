/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures on request: each thread counts for itself, and the sums are made here. Shared state: see loader.h.
 */
#include <stdio.h>
#include <string.h>

#include "loader/loader.h"

static double seconds(int64_t nanoseconds)
{
    return (double)nanoseconds * 1e-9;
}

static int64_t get(const _Atomic(int64_t) *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

const char *stoker_stage_name(stoker_stage stage)
{
    static const char *const names[STOKER_STAGES] = {"read", "decode", "transform", "starved", "wait"};

    return (int)stage >= 0 && (int)stage < STOKER_STAGES ? names[stage] : "unknown";
}

/* Adds a thread's figures; the stage it is in counts up to now. */
static void add_activity(const sk_activity *activity, int64_t now, int64_t nanoseconds[], int64_t bytes[])
{
    for (int stage = 0; stage < STOKER_STAGES; stage++) {
        nanoseconds[stage] += get(&activity->nanoseconds[stage]);
        bytes[stage] += get(&activity->bytes[stage]);
    }
    int32_t stage = atomic_load_explicit(&activity->stage, memory_order_relaxed);
    int64_t running = now - get(&activity->since);

    if (stage < STOKER_STAGES && running > 0)
        nanoseconds[stage] += running;
}

void stoker_loader_stats(const stoker_loader *loader, stoker_stats *out)
{
    int64_t nanoseconds[STOKER_STAGES] = {0}, bytes[STOKER_STAGES] = {0};
    int64_t now = sk_now();

    memset(out, 0, sizeof *out);
    for (int32_t i = 0; i < loader->threads; i++)
        add_activity(&loader->workers[i].maker.activity, now, nanoseconds, bytes);
    nanoseconds[STOKER_STAGE_WAIT] = get(&loader->wait_nanoseconds);
    for (int stage = 0; stage < STOKER_STAGES; stage++) {
        out->stage_seconds[stage] = seconds(nanoseconds[stage]);
        out->stage_bytes[stage] = bytes[stage];
    }
    out->samples = get(&loader->delivered_samples);
    out->batches = get(&loader->delivered_batches);
    out->epochs = get(&loader->delivered_epochs);
    out->skipped = get(&loader->skipped_count);
    out->bytes = get(&loader->delivered_bytes);
    out->seconds = seconds(now - loader->opened_at);
    out->first_batch_seconds = seconds(get(&loader->first_batch_nanoseconds));
    out->ring_bytes = sk_pool_bytes(loader->pool);
    out->threads = loader->threads;
    out->depth = (int32_t)loader->depth;
}

void sk_add_skipped(stoker_loader *loader, int64_t sample, uint64_t epoch, const char *reason)
{
    atomic_fetch_add_explicit(&loader->skipped_count, 1, memory_order_relaxed);
    pthread_mutex_lock(&loader->skipped_lock);
    if (loader->skipped_listed == loader->skipped_capacity && loader->skipped_listed < SK_SKIPPED_LISTED) {
        int64_t capacity = loader->skipped_capacity > 0 ? 2 * loader->skipped_capacity : 64;
        sk_skipped *grown = sk_realloc_array(loader->skipped, (size_t)capacity, sizeof *grown);

        if (grown != NULL) {
            loader->skipped = grown;
            loader->skipped_capacity = capacity;
        }
    }
    if (loader->skipped_listed < loader->skipped_capacity && loader->skipped_listed < SK_SKIPPED_LISTED) {
        char *copy = sk_strdup(reason); /* without memory the entry stands with an empty reason */

        loader->skipped[loader->skipped_listed++] = (sk_skipped){sample, epoch, copy};
    }
    pthread_mutex_unlock(&loader->skipped_lock);
}

void sk_skipped_free(stoker_loader *loader)
{
    for (int64_t i = 0; i < loader->skipped_listed; i++)
        sk_free(loader->skipped[i].reason);
    sk_free(loader->skipped);
    loader->skipped = NULL;
    loader->skipped_listed = 0;
}

stoker_status stoker_loader_skipped(const stoker_loader *loader, int64_t index, int64_t *sample, uint64_t *epoch,
                                    char *reason, size_t size)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&loader->skipped_lock; /* locking does not change the loader */
    stoker_status status = STOKER_END;

    pthread_mutex_lock(lock);
    if (index >= 0 && index < loader->skipped_listed) {
        const sk_skipped *skipped = &loader->skipped[index];

        *sample = skipped->sample;
        *epoch = skipped->epoch;
        if (size > 0)
            snprintf(reason, size, "%s", skipped->reason != NULL ? skipped->reason : "");
        status = STOKER_OK;
    }
    pthread_mutex_unlock(lock);
    return status;
}

int64_t sk_progress(const stoker_loader *loader)
{
    int64_t sum = 0;

    for (int32_t i = 0; i < loader->threads; i++)
        sum += get(&loader->workers[i].maker.activity.entered);
    return sum;
}

stoker_status sk_fail_stalled(const stoker_loader *loader)
{
    const sk_activity *oldest = NULL;
    char where[SK_MESSAGE_SIZE / 2];
    int32_t in_stage = 0;

    for (int32_t i = 0; i < loader->threads; i++) {
        const sk_activity *activity = &loader->workers[i].maker.activity;

        if (atomic_load_explicit(&activity->stage, memory_order_relaxed) > STOKER_STAGE_TRANSFORM)
            continue;
        if (oldest == NULL || get(&activity->since) < get(&oldest->since))
            oldest = activity;
    }
    int64_t sample = oldest != NULL ? get(&oldest->sample) : -1;

    if (oldest == NULL || sample < 0)
        return sk_fail(STOKER_ERR_STALL, "nothing for %d s: none of %d threads is at work", loader->stall_seconds,
                       loader->threads);
    int32_t stage = atomic_load_explicit(&oldest->stage, memory_order_relaxed);

    for (int32_t i = 0; i < loader->threads; i++)
        in_stage += atomic_load_explicit(&loader->workers[i].maker.activity.stage, memory_order_relaxed) == stage;
    loader->dataset->reader->ops->where(loader->dataset->reader, sample, where, sizeof where);
    return sk_fail(STOKER_ERR_STALL, "nothing for %d s: %d of %d threads in %s, oldest sample %lld (%s)",
                   loader->stall_seconds, in_stage, loader->threads, stoker_stage_name((stoker_stage)stage),
                   (long long)sample, where);
}
