/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads. Each takes the next unit of work (a run of places in a batch) from one counter and writes the samples'
 * tensors where they belong. Locks are met only where a batch begins or ends. Shared state: see loader.h.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"
#include "loader/loader.h"

#define READ_AHEAD 32 /* samples: enough requests under way to keep a disk's or a network's queue full */

void sk_notify(stoker_loader *loader)
{
    if (atomic_exchange(&loader->waiting, 0) != 0)
        sem_post(&loader->wake);
}

void sk_set_control(stoker_loader *loader, int32_t control)
{
    pthread_mutex_lock(&loader->lock);
    atomic_store(&loader->control, control);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
}

void sk_record_failure(stoker_loader *loader, sk_entry *entry, int64_t place, int64_t sample, stoker_status status,
                       bool fatal, bool replaced)
{
    const char *message = sk_message();
    size_t size = strlen(message) + 1;
    sk_failure *failure = sk_malloc(sizeof *failure + size);

    pthread_mutex_lock(&loader->lock);
    if (failure != NULL) {
        failure->place = place;
        failure->sample = sample;
        failure->fatal = fatal;
        failure->replaced = replaced;
        failure->status = status;
        memcpy(failure->message, message, size);
        failure->next = entry->failures;
        entry->failures = failure;
    } else {
        entry->failure_lost = true;
    }
    pthread_mutex_unlock(&loader->lock);
}

static stoker_status fail_other_shape(stoker_loader *loader, const sk_entry *entry, int64_t sample, sk_shape other)
{
    char first[SK_MESSAGE_SIZE / 4], second[SK_MESSAGE_SIZE / 4];
    const sk_reader *reader = loader->dataset->reader;
    int64_t known = entry->shape_sample;

    reader->ops->where(reader, sample, second, sizeof second);
    if (known < 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "%s (sample %lld) gives %d x %d, not %d x %d", second, (long long)sample,
                       other.width, other.height, entry->shape.width, entry->shape.height);
    reader->ops->where(reader, known, first, sizeof first);
    return sk_fail(STOKER_ERR_ARGUMENT,
                   "samples of different sizes in one batch: %s (sample %lld) is %d x %d, %s (sample %lld) is %d x %d; "
                   "add resize(...) and a crop, so that all are of one size",
                   first, (long long)known, entry->shape.width, entry->shape.height, second, (long long)sample,
                   other.width, other.height);
}

stoker_status sk_fill_place(stoker_loader *loader, sk_maker *maker, sk_entry *entry, int64_t place, int64_t sample,
                            bool *fatal)
{
    sk_slot *slot = entry->slot;
    sk_shape other = {0, 0, 0};
    stoker_status status;

    *fatal = false;
    if (entry->shape.channels == 0) { /* nothing of the batch could be measured before */
        status = sk_measure_sample(maker, entry->epoch, sample, &other);
        if (status == STOKER_OK)
            status = sk_fail(STOKER_ERR_DATA, "changed while it was being read");
        other.channels = 0;
    } else {
        uint8_t *out = (uint8_t *)slot->batch.images + (size_t)place * entry->sample_bytes;

        status = sk_make_sample(maker, entry->epoch, sample, &entry->shape, entry->sample_bytes, out,
                                &slot->batch.labels[place], &other);
    }
    if (status == STOKER_OK) {
        slot->batch.samples[place] = sample;
        if (slot->draws != NULL) {
            slot->draw_counts[place] = maker->draws.count;
            memcpy(slot->draws + place * STOKER_MAX_TRANSFORMS, maker->draws.draw,
                   (size_t)maker->draws.count * sizeof(stoker_draw));
        }
        return STOKER_OK;
    }
    if (other.channels != 0) {
        *fatal = true;
        return fail_other_shape(loader, entry, sample, other);
    }
    *fatal = status == STOKER_ERR_MEMORY;
    return sk_fail_sample(loader->dataset, sample, entry->epoch, status);
}

/* Substitute: the next samples of the dataset, one after another, until one can be read. */
static void substitute(sk_worker *worker, sk_entry *entry, int64_t place, int64_t sample, stoker_status status)
{
    stoker_loader *loader = worker->loader;
    int64_t size = loader->dataset->reader->size;
    char reason[SK_MESSAGE_SIZE];
    bool fatal = false;

    snprintf(reason, sizeof reason, "%s", sk_message());
    for (int64_t step = 1; step < size; step++) {
        if (atomic_load_explicit(&loader->control, memory_order_relaxed) != SK_RUN)
            return; /* the batch will be thrown away */
        int64_t other = (sample + step) % size;
        stoker_status made = sk_fill_place(loader, &worker->maker, entry, place, other, &fatal);

        if (made == STOKER_OK) {
            sk_message_set(reason);
            sk_record_failure(loader, entry, place, sample, status, false, true);
            return;
        }
        if (fatal) {
            sk_record_failure(loader, entry, place, other, made, true, false);
            return;
        }
    }
    sk_message_set(reason);
    sk_fail_context(status, "no sample of the dataset can be read");
    sk_record_failure(loader, entry, place, sample, status, true, false);
}

static void fill_unit(sk_worker *worker, sk_entry *entry, int64_t begin, int64_t end)
{
    stoker_loader *loader = worker->loader;
    int64_t samples[SK_LONGEST_RUN];
    int64_t ahead = loader->run > 1 ? SK_FETCH_AHEAD : 0;
    bool fatal;

    for (int64_t place = begin; place < end;
         place++) /* apart, so that the shuffles of a run overlap in the processor */
        samples[place - begin] = sk_order_at(&entry->order, sk_entry_position(entry, place));
    for (int64_t place = begin; place < end && place < begin + ahead; place++)
        sk_fetch_ahead(&worker->maker, samples[place - begin]);
    for (int64_t place = begin; place < end; place++) {
        int64_t sample = samples[place - begin];

        if (ahead > 0 && place + ahead < end)
            sk_fetch_ahead(&worker->maker, samples[place + ahead - begin]);
        stoker_status status = sk_fill_place(loader, &worker->maker, entry, place, sample, &fatal);

        if (status == STOKER_OK)
            continue;
        if (loader->on_error == STOKER_ON_ERROR_SUBSTITUTE && !fatal)
            substitute(worker, entry, place, sample, status);
        else
            sk_record_failure(loader, entry, place, sample, status, fatal, false);
    }
}

/* Tells the system of samples that will be read a little later. Only as far as the ring is open: an entry that is ready
 * cannot go away before the batch that this thread works on. */
static void read_ahead(stoker_loader *loader, int64_t unit)
{
    const sk_reader *reader = loader->dataset->reader;

    if (reader->ops->will_need == NULL || !reader->encoded)
        return;
    int64_t later = unit + READ_AHEAD;
    int64_t number = later / loader->units;
    sk_entry *entry = sk_ring_entry(loader, number);
    int64_t place = later % loader->units * loader->run;

    if (atomic_load_explicit(&entry->ready, memory_order_acquire) != number || place >= entry->count)
        return;
    reader->ops->will_need(reader, sk_order_at(&entry->order, sk_entry_position(entry, place)));
}

/* False: the loader closes. */
static bool park(stoker_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    atomic_fetch_add(&loader->parked, 1);
    sk_notify(loader);
    while (atomic_load(&loader->control) == SK_PAUSE)
        pthread_cond_wait(&loader->work, &loader->lock);
    bool exit = atomic_load(&loader->control) == SK_EXIT;

    atomic_fetch_sub(&loader->parked, 1);
    pthread_mutex_unlock(&loader->lock);
    return !exit;
}

static void *work(void *argument)
{
    sk_worker *worker = argument;
    stoker_loader *loader = worker->loader;
    sk_activity *activity = &worker->maker.activity;

    for (;;) {
        if (atomic_load_explicit(&loader->control, memory_order_relaxed) != SK_RUN) {
            sk_enter(activity, SK_STAGE_IDLE);
            if (!park(loader))
                return NULL;
            continue;
        }
        int64_t unit = atomic_fetch_add_explicit(&loader->next_unit, 1, memory_order_relaxed);
        int64_t number = unit / loader->units;
        sk_entry *entry = sk_ring_entry(loader, number);

        if (atomic_load_explicit(&entry->ready, memory_order_acquire) != number && !sk_ring_wait(worker, number))
            continue; /* paused or closing: the counter begins anew */
        int64_t begin = (unit - number * loader->units) * loader->run;
        int64_t end = begin + loader->run < entry->count ? begin + loader->run : entry->count;

        if (begin < end && entry->error == STOKER_OK) {
            read_ahead(loader, unit);
            if (!worker->maker.timed)
                sk_enter(activity, STOKER_STAGE_TRANSFORM);
            fill_unit(worker, entry, begin, end);
            if (loader->stream)
                sk_kernels_get()->drain();
        }
        if (atomic_fetch_sub(&entry->remaining, 1) == 1)
            sk_notify(loader);
    }
}

stoker_status sk_workers_start(stoker_loader *loader)
{
    sigset_t all, before;
    int code = 0;

    /* A thread inherits its creator's mask: signals are for the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int32_t i = 0; i < loader->threads && code == 0; i++) {
        sk_worker *worker = &loader->workers[i];
        char name[24];

        code = pthread_create(&worker->thread, NULL, work, worker);
        worker->running = code == 0;
        if (code != 0) {
            sk_fail_errno(code, "cannot start thread %d of %d", i + 1, loader->threads);
            break;
        }
        snprintf(name, sizeof name, "stoker-%d", i);
        (void)pthread_setname_np(worker->thread, name); /* at most 15 characters: MOST_THREADS keeps to that */
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0 ? STOKER_OK : STOKER_ERR_IO;
}

void sk_workers_join(stoker_loader *loader)
{
    for (int32_t i = 0; i < loader->threads; i++) {
        if (loader->workers[i].running)
            pthread_join(loader->workers[i].thread, NULL);
        loader->workers[i].running = false;
    }
}
