/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls: the loop's side of a loader. Shared state: see loader.h.
 */
#include "loader/loader.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "observe/cpu.h"

#define DEFAULT_BATCH         64
#define DEFAULT_STALL_SECONDS 300
#define DEFAULT_RING_BYTES    ((int64_t)512 << 20)
#define MOST_THREADS          4096
#define MOST_DEPTH            65536
#define RUN_BYTES             65536 /* of output: a unit of work's overhead vanishes, and work still spreads evenly */
#define LEAST_DEPTH           3     /* by default: one being made while another waits to be taken, and one spare */
#define LOOK_AGAIN            1000000000 /* nanoseconds: a sleeping next() looks for progress so often */

void stoker_loader_default_settings(stoker_loader_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->batch = DEFAULT_BATCH;
    settings->shuffle = 1;
    settings->stall_seconds = DEFAULT_STALL_SECONDS;
}

/* ------------------------------------------------------------------------------------------------ open, close --- */

static stoker_status check_settings(const stoker_dataset *dataset, const stoker_loader_settings *settings)
{
    if (settings->batch < 1)
        return sk_fail(STOKER_ERR_ARGUMENT, "batch is %lld; it must be at least 1", (long long)settings->batch);
    if (settings->threads < 0 || settings->threads > MOST_THREADS)
        return sk_fail(STOKER_ERR_ARGUMENT, "threads is %d; it must be in 0..%d", settings->threads, MOST_THREADS);
    if (settings->epochs < 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "epochs is %lld; it must not be negative", (long long)settings->epochs);
    if (settings->last_batch < STOKER_LAST_PARTIAL || settings->last_batch > STOKER_LAST_PAD)
        return sk_fail(STOKER_ERR_ARGUMENT, "unknown last_batch %d", settings->last_batch);
    if (settings->on_error < STOKER_ON_ERROR_RAISE || settings->on_error > STOKER_ON_ERROR_SUBSTITUTE)
        return sk_fail(STOKER_ERR_ARGUMENT, "unknown on_error %d", settings->on_error);
    if (settings->depth < 0 || settings->depth > MOST_DEPTH)
        return sk_fail(STOKER_ERR_ARGUMENT, "depth is %d; it must be in 0..%d", settings->depth, MOST_DEPTH);
    if (settings->stall_seconds < 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "stall_seconds is %d; it must not be negative", settings->stall_seconds);
    if (settings->ring_bytes < 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "ring_bytes is %lld; it must not be negative",
                       (long long)settings->ring_bytes);
    if (settings->order_count < 0 || (settings->order == NULL && settings->order_count > 0))
        return sk_fail(STOKER_ERR_ARGUMENT, "an order of %lld samples without the samples",
                       (long long)settings->order_count);
    if (settings->order != NULL && settings->shuffle)
        return sk_fail(STOKER_ERR_ARGUMENT, "an explicit order cannot be shuffled: set shuffle to 0");
    if (dataset->reader->size < 1)
        return sk_fail(STOKER_ERR_ARGUMENT, "the dataset holds no samples");
    if (settings->order != NULL && settings->order_count == 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "the order holds no samples");
    if (settings->batch > INT64_MAX - dataset->reader->size || settings->batch > INT64_MAX - settings->order_count)
        return sk_fail(STOKER_ERR_ARGUMENT, "batch is %lld; that is too large", (long long)settings->batch);
    return STOKER_OK;
}

static stoker_status copy_order(stoker_loader *loader, const stoker_loader_settings *settings)
{
    int64_t size = loader->dataset->reader->size;

    loader->positions = size;
    if (settings->order == NULL)
        return STOKER_OK;
    loader->positions = settings->order_count;
    for (int64_t i = 0; i < settings->order_count; i++) {
        if (settings->order[i] < 0 || settings->order[i] >= size)
            return sk_fail(STOKER_ERR_ARGUMENT, "order[%lld] is sample %lld, which is not in 0..%lld", (long long)i,
                           (long long)settings->order[i], (long long)size - 1);
    }
    loader->listed = sk_realloc_array(NULL, (size_t)settings->order_count, sizeof(int64_t));
    if (loader->listed == NULL)
        return STOKER_ERR_MEMORY;
    memcpy(loader->listed, settings->order, (size_t)settings->order_count * sizeof(int64_t));
    return STOKER_OK;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Samples a unit, units a batch, and how many batches are made ahead. */
static stoker_status plan_ring(stoker_loader *loader, const stoker_loader_settings *settings)
{
    const sk_reader *reader = loader->dataset->reader;
    int64_t batch = loader->batch, places = batch;
    size_t sample_bytes = 0, batch_bytes = 0;

    loader->batches =
        loader->last_batch == STOKER_LAST_DROP ? loader->positions / batch : divide_up(loader->positions, batch);
    if (loader->last_batch != STOKER_LAST_PAD && places > loader->positions)
        places = loader->positions;
    loader->places = places;
    loader->fixed = sk_spec_fixed_shape(loader->spec, reader->width, reader->height, reader->channels, &loader->shape);
    loader->run = 1;
    if (loader->fixed) {
        sample_bytes = sk_spec_bytes(loader->spec, loader->shape);
        if (!sk_multiply(sample_bytes, (size_t)places, &batch_bytes) || batch_bytes > loader->ring_bytes)
            return sk_fail(STOKER_ERR_LIMIT,
                           "a batch of %lld samples of %zu bytes does not fit into ring_bytes (%zu): raise ring_bytes "
                           "or make the batch smaller",
                           (long long)places, sample_bytes, loader->ring_bytes);
        if (!reader->encoded && sample_bytes > 0 && sample_bytes < RUN_BYTES)
            loader->run = RUN_BYTES / (int64_t)sample_bytes;
    }
    if (loader->run > SK_LONGEST_RUN)
        loader->run = SK_LONGEST_RUN;
    if (loader->run > places)
        loader->run = places;
    loader->units = divide_up(places, loader->run);
    loader->depth = settings->depth;
    if (loader->depth == 0) { /* four units a thread, so that none waits while a batch is taken */
        loader->depth = divide_up(4 * (int64_t)loader->threads, loader->units) + 1;
        if (loader->depth < LEAST_DEPTH)
            loader->depth = LEAST_DEPTH;
    }
    if (batch_bytes > 0 && loader->depth > (int64_t)(loader->ring_bytes / batch_bytes))
        loader->depth = (int64_t)(loader->ring_bytes / batch_bytes);
    /* What does not stay in a cache until the loop reads it need not push other things out of it, nor be read into it
     * before it is written. */
    loader->stream = (size_t)loader->depth * batch_bytes > sk_cache_bytes();
    loader->kept_bytes = loader->ring_bytes - (size_t)loader->depth * batch_bytes;
    if (loader->kept_bytes > (size_t)loader->depth * batch_bytes) /* so none where sizes differ */
        loader->kept_bytes = (size_t)loader->depth * batch_bytes;
    return STOKER_OK;
}

static stoker_status make_workers(stoker_loader *loader)
{
    size_t bytes = (size_t)loader->threads * sizeof(sk_worker);

    loader->workers = sk_aligned_malloc(bytes);
    if (loader->workers == NULL)
        return STOKER_ERR_MEMORY;
    memset(loader->workers, 0, bytes);
    for (int32_t i = 0; i < loader->threads; i++) {
        sk_worker *worker = &loader->workers[i];
        stoker_status status =
            sk_maker_init(&worker->maker, loader->dataset, loader->spec, loader->seed, loader->run == 1, loader->fixed);

        worker->loader = loader;
        if (status != STOKER_OK)
            return status;
    }
    for (int32_t i = 0; i < loader->threads; i++)
        sk_workspace_stream(loader->workers[i].maker.workspace, loader->stream);
    if (loader->on_error != STOKER_ON_ERROR_SKIP)
        return STOKER_OK;
    loader->maker = sk_aligned_malloc(sizeof *loader->maker);
    if (loader->maker == NULL)
        return STOKER_ERR_MEMORY;
    memset(loader->maker, 0, sizeof *loader->maker);
    return sk_maker_init(loader->maker, loader->dataset, loader->spec, loader->seed, false, loader->fixed);
}

static stoker_status make_entries(stoker_loader *loader)
{
    size_t bytes = (size_t)loader->depth * sizeof(sk_entry);

    loader->entries = sk_aligned_malloc(bytes);
    if (loader->entries == NULL)
        return STOKER_ERR_MEMORY;
    memset(loader->entries, 0, bytes);
    for (int64_t i = 0; i < loader->depth; i++) {
        loader->entries[i].opened = -1;
        atomic_store(&loader->entries[i].ready, -1);
    }
    return STOKER_OK;
}

/* What needs no decision: the zeroed loader with its locks. */
static stoker_loader *make_loader(const stoker_dataset *dataset, const stoker_loader_settings *settings)
{
    stoker_loader *loader = sk_aligned_malloc(sizeof *loader);

    if (loader == NULL)
        return NULL;
    memset(loader, 0, sizeof *loader);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_mutex_init(&loader->skipped_lock, NULL);
    pthread_cond_init(&loader->work, NULL);
    sem_init(&loader->wake, 0, 0);
    loader->dataset = dataset;
    loader->seed = settings->seed;
    loader->first_epoch = settings->first_epoch;
    loader->base_epoch = settings->first_epoch;
    loader->epoch = settings->first_epoch;
    loader->epochs = settings->epochs;
    loader->shuffle = settings->shuffle != 0;
    loader->last_batch = settings->last_batch;
    loader->on_error = settings->on_error;
    loader->stall_seconds = settings->stall_seconds;
    loader->batch = settings->batch;
    loader->ring_bytes = (size_t)(settings->ring_bytes > 0 ? settings->ring_bytes : DEFAULT_RING_BYTES);
    loader->threads = settings->threads > 0 ? settings->threads : stoker_usable_cores(NULL);
    loader->pid = getpid();
    loader->opened_at = sk_now();
    return loader;
}

stoker_status stoker_loader_open(const stoker_dataset *dataset, const stoker_loader_settings *settings,
                                 stoker_loader **out)
{
    *out = NULL;
    stoker_status status = sk_kernel_init();

    if (status == STOKER_OK)
        status = check_settings(dataset, settings);
    if (status != STOKER_OK)
        return status;
    stoker_loader *loader = make_loader(dataset, settings);

    if (loader == NULL)
        return STOKER_ERR_MEMORY;
    status = stoker_spec_parse(settings->ops != NULL ? settings->ops : "", &loader->spec);
    if (status == STOKER_OK)
        status = copy_order(loader, settings);
    if (status == STOKER_OK)
        status = plan_ring(loader, settings);
    if (status == STOKER_OK)
        status = make_entries(loader);
    if (status == STOKER_OK)
        status = make_workers(loader);
    if (status != STOKER_OK)
        goto fail;
    loader->effective_end = loader->positions;
    loader->pool = sk_pool_create(loader->places, settings->keep_draws != 0, loader->kept_bytes);
    status = loader->pool != NULL ? sk_workers_start(loader) : STOKER_ERR_MEMORY;
    if (status != STOKER_OK)
        goto fail;
    *out = loader;
    return STOKER_OK;
fail:
    stoker_loader_close(loader);
    return status;
}

void stoker_loader_close(stoker_loader *loader)
{
    if (loader == NULL)
        return;
    bool forked = loader->pid != getpid();

    if (!forked && loader->workers != NULL) {
        sk_set_control(loader, SK_EXIT);
        sk_workers_join(loader);
    }
    sk_ring_free(loader);
    sk_pool_close(loader->pool);
    /* In a child the workers' threads do not exist; what they were in the middle of cannot be taken apart safely. */
    for (int32_t i = 0; !forked && loader->workers != NULL && i < loader->threads; i++)
        sk_maker_clear(&loader->workers[i].maker);
    sk_aligned_free(loader->workers);
    if (loader->maker != NULL)
        sk_maker_clear(loader->maker);
    sk_aligned_free(loader->maker);
    sk_skipped_free(loader);
    sk_free(loader->moves);
    sk_free(loader->listed);
    stoker_spec_free(loader->spec);
    if (!forked) {
        sem_destroy(&loader->wake);
        pthread_cond_destroy(&loader->work);
        pthread_mutex_destroy(&loader->lock);
        pthread_mutex_destroy(&loader->skipped_lock);
    }
    sk_aligned_free(loader);
}

/* ------------------------------------------------------------------------------------------------ waiting ------- */

static bool batch_is_done(stoker_loader *loader)
{
    return atomic_load(&sk_ring_entry(loader, loader->cursor)->remaining) == 0;
}

static bool all_are_parked(stoker_loader *loader)
{
    return atomic_load(&loader->parked) == loader->threads;
}

static void sleep_at_most(stoker_loader *loader, int64_t nanoseconds)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME,
                  &until); /* the only clock of sem_timedwait; slices are short, so a jump does no harm */
    until.tv_sec += nanoseconds / 1000000000;
    until.tv_nsec += nanoseconds % 1000000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)sem_timedwait(&loader->wake, &until); /* whatever ended it, the caller looks again */
}

/* Waits until `ready` says so. The order of the two writes and reads (waiting, then the condition; the worker: the
 * condition, then waiting; all sequentially consistent) makes that no wake-up is lost. */
static stoker_status wait_until(stoker_loader *loader, bool (*ready)(stoker_loader *))
{
    if (ready(loader))
        return STOKER_OK;
    while (sem_trywait(&loader->wake) == 0) /* what is left of an earlier wait that needed no sleep */
        ;
    int64_t began = sk_now();
    int64_t limit = (int64_t)loader->stall_seconds * 1000000000;
    int64_t slice = limit > 0 && limit / 4 < LOOK_AGAIN ? limit / 4 : LOOK_AGAIN;
    stoker_status status = STOKER_OK;

    if (!loader->gave_up) { /* else this goes on with a wait that was cut in slices by the caller */
        loader->progress = sk_progress(loader);
        loader->progress_seen = began;
    }
    loader->gave_up = false;
    if (loader->patience > 0 && loader->patience < slice)
        slice = loader->patience;

    for (;;) {
        atomic_store(&loader->waiting, 1);
        if (ready(loader))
            break;
        if (atomic_exchange(&loader->interrupted, 0) != 0) {
            status = sk_fail(STOKER_ERR_INTERRUPTED, "interrupted");
            break;
        }
        sleep_at_most(loader, slice);
        if (ready(loader))
            break;
        int64_t now = sk_now(), latest = sk_progress(loader);

        if (latest != loader->progress) {
            loader->progress = latest;
            loader->progress_seen = now;
        }
        if (limit > 0 && now - loader->progress_seen >= limit) {
            status = sk_fail_stalled(loader);
            break;
        }
        if (loader->patience > 0 && now - began >= loader->patience) {
            loader->gave_up = true;
            status = sk_fail(STOKER_ERR_TIMEOUT, "no batch within %lld ms", (long long)(loader->patience / 1000000));
            break;
        }
    }
    atomic_store(&loader->waiting, 0);
    atomic_fetch_add_explicit(&loader->wait_nanoseconds, sk_now() - began, memory_order_relaxed);
    return status;
}

void stoker_loader_interrupt(stoker_loader *loader)
{
    atomic_store(&loader->interrupted, 1);
    sk_notify(loader);
}

/* ------------------------------------------------------------------------------------------------ next, seek ---- */

static stoker_status begin_call(stoker_loader *loader)
{
    if (loader->pid != getpid())
        return sk_fail(STOKER_ERR_STATE, "the loader was opened before fork(); open a loader in the child");
    if (atomic_exchange(&loader->busy, 1) != 0)
        return sk_fail(STOKER_ERR_STATE, "another call on this loader is under way");
    return STOKER_OK;
}

static void end_call(stoker_loader *loader)
{
    atomic_store(&loader->busy, 0);
}

/* Also the rest of a seek that was interrupted. */
static stoker_status finish_seek(stoker_loader *loader)
{
    stoker_status status = wait_until(loader, all_are_parked);

    if (status != STOKER_OK)
        return status;
    sk_ring_reset(loader, loader->seek_epoch);
    loader->seeking = false;
    sk_set_control(loader, SK_RUN);
    return STOKER_OK;
}

static stoker_status end_epoch(stoker_loader *loader)
{
    loader->epoch++;
    loader->index = 0;
    loader->effective_end = loader->positions;
    loader->move_count = 0;
    atomic_fetch_add_explicit(&loader->delivered_epochs, 1, memory_order_relaxed);
    return STOKER_END;
}

/* Takes the batch at the cursor out of the ring, and has the next one made. */
static sk_slot *advance(stoker_loader *loader)
{
    sk_slot *slot = sk_ring_take(loader);

    loader->index++;
    (void)sk_ring_fill(loader); /* what fails now is tried again when it is needed */
    return slot;
}

static void describe(const stoker_loader *loader, const sk_entry *entry, int64_t count, int64_t valid)
{
    stoker_batch *batch = &entry->slot->batch;

    batch->count = count;
    batch->valid = valid;
    batch->channels = entry->shape.channels;
    batch->height = entry->shape.height;
    batch->width = entry->shape.width;
    batch->dtype = stoker_spec_dtype(loader->spec);
    batch->layout = stoker_spec_layout(loader->spec);
    batch->epoch = entry->epoch;
    batch->index = entry->index;
}

static void count_delivered(stoker_loader *loader, const sk_entry *entry, int64_t count, int64_t valid)
{
    atomic_fetch_add_explicit(&loader->delivered_samples, valid, memory_order_relaxed);
    atomic_fetch_add_explicit(&loader->delivered_batches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&loader->delivered_bytes, count * (int64_t)entry->sample_bytes, memory_order_relaxed);
    if (atomic_load_explicit(&loader->first_batch_nanoseconds, memory_order_relaxed) == 0)
        atomic_store_explicit(&loader->first_batch_nanoseconds, sk_now() - loader->first_asked, memory_order_relaxed);
}

static stoker_status next(stoker_loader *loader, stoker_batch **out)
{
    stoker_status status = STOKER_OK;

    if (atomic_exchange(&loader->interrupted, 0) != 0)
        return sk_fail(STOKER_ERR_INTERRUPTED, "interrupted");
    if (loader->seeking)
        status = finish_seek(loader);
    if (status != STOKER_OK)
        return status;
    if (sk_epoch_past_end(loader, loader->epoch))
        return sk_fail(STOKER_ERR_STATE, "all %lld epochs are over", (long long)loader->epochs);
    if (loader->first_asked == 0)
        loader->first_asked = sk_now();
    for (;;) {
        int64_t count = 0, valid = 0;

        if (loader->index == loader->batches)
            return end_epoch(loader);
        status = sk_ring_fill(loader);
        if (status == STOKER_OK)
            status = wait_until(loader, batch_is_done);
        if (status != STOKER_OK)
            return status;
        sk_entry *entry = sk_ring_entry(loader, loader->cursor);

        status = sk_settle(loader, entry, &count, &valid);
        if (status == STOKER_OK && count > 0) {
            describe(loader, entry, count, valid);
            count_delivered(loader, entry, count, valid);
            *out = &advance(loader)->batch;
            return STOKER_OK;
        }
        /* Past the end of an epoch made shorter, or failed. The ring is filled by the next round or call, so that this
         * message stays.
         */
        sk_slot_release(sk_ring_take(loader));
        loader->index++;
        if (status != STOKER_OK)
            return status;
    }
}

stoker_status stoker_loader_next(stoker_loader *loader, stoker_batch **out)
{
    *out = NULL;
    stoker_status status = begin_call(loader);

    if (status != STOKER_OK)
        return status;
    loader->patience = 0;
    status = next(loader, out);
    end_call(loader);
    return status;
}

stoker_status stoker_loader_next_within(stoker_loader *loader, int32_t milliseconds, stoker_batch **out)
{
    *out = NULL;
    if (milliseconds < 1)
        return sk_fail(STOKER_ERR_ARGUMENT, "a wait of %d milliseconds", milliseconds);
    stoker_status status = begin_call(loader);

    if (status != STOKER_OK)
        return status;
    loader->patience = (int64_t)milliseconds * 1000000;
    status = next(loader, out);
    loader->patience = 0;
    end_call(loader);
    return status;
}

stoker_status stoker_loader_seek(stoker_loader *loader, uint64_t epoch)
{
    stoker_status status = begin_call(loader);

    if (status != STOKER_OK)
        return status;
    if (loader->seeking || loader->index != 0 || loader->epoch != epoch) {
        loader->seeking = true;
        loader->seek_epoch = epoch;
        sk_set_control(loader, SK_PAUSE);
        status = finish_seek(loader);
    }
    end_call(loader);
    return status;
}

/* ------------------------------------------------------------------------------------------------ figures ------- */

int64_t stoker_loader_batches(const stoker_loader *loader)
{
    return loader->batches;
}

int64_t stoker_loader_samples(const stoker_loader *loader)
{
    return loader->last_batch == STOKER_LAST_DROP ? loader->batches * loader->batch : loader->positions;
}

stoker_status stoker_loader_order(const stoker_loader *loader, uint64_t epoch, int64_t first, int64_t count,
                                  int64_t *samples)
{
    sk_order order;

    if (first < 0 || count < 0 || first > loader->positions - count)
        return sk_fail(STOKER_ERR_ARGUMENT, "positions %lld..%lld do not lie in 0..%lld", (long long)first,
                       (long long)first + (long long)count, (long long)loader->positions);
    sk_order_make(&order, loader->positions, loader->listed, loader->shuffle, loader->seed, epoch);
    for (int64_t i = 0; i < count; i++)
        samples[i] = sk_order_at(&order, first + i);
    return STOKER_OK;
}
