/* SPDX-License-Identifier: Apache-2.0 */
#include "made_up.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- a made-up dataset --- */

static int32_t fake_width(const fake *self, int64_t index)
{
    return self->side > 0 ? self->side : 1 + (int32_t)(index % 3);
}

static int32_t fake_height(const fake *self)
{
    return self->side > 0 ? self->side : 2;
}

size_t fake_bytes(const fake *self, int64_t index)
{
    return (size_t)fake_width(self, index) * (size_t)fake_height(self) * CHANNELS;
}

static size_t fake_stride(const fake *self)
{
    return self->side > 0 ? fake_bytes(self, 0) : 3 * 2 * CHANNELS;
}

static uint8_t pixel(int64_t sample, size_t i)
{
    return (uint8_t)((uint64_t)sample * 31 + i * 7 + ((uint64_t)sample >> 8));
}

static stoker_status fake_fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    fake *self = (fake *)reader;

    (void)scratch;
    if (atomic_load(&self->asleep) == index) {
        pthread_mutex_lock(&self->lock);
        while (!self->awake)
            pthread_cond_wait(&self->change, &self->lock);
        pthread_mutex_unlock(&self->lock);
    }
    if (self->broken[index])
        return sk_fail(STOKER_ERR_DATA, "image file is truncated");
    memset(out, 0, sizeof *out);
    out->kind = SK_SAMPLE_INTERLEAVED;
    out->data = self->pixels + (size_t)index * fake_stride(self);
    out->size = fake_bytes(self, index);
    out->width = fake_width(self, index);
    out->height = fake_height(self);
    out->channels = CHANNELS;
    out->label = index * 2;
    return STOKER_OK;
}

static int64_t fake_label(const sk_reader *reader, int64_t index)
{
    (void)reader;
    return index * 2;
}

static size_t fake_where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    (void)reader;
    return (size_t)snprintf(buffer, size, "fake/%lld.img", (long long)index);
}

static const char *fake_class_name(const sk_reader *reader, int32_t label)
{
    (void)reader;
    (void)label;
    return NULL;
}

static void fake_destroy(sk_reader *reader)
{
    (void)reader;
}

static const sk_reader_ops fake_ops = {.destroy = fake_destroy,
                                       .fetch = fake_fetch,
                                       .label = fake_label,
                                       .where = fake_where,
                                       .class_name = fake_class_name};

stoker_dataset *fake_open(int64_t count, int32_t side)
{
    fake *self = calloc(1, sizeof *self);
    stoker_dataset *dataset = calloc(1, sizeof *dataset);

    assert_non_null(self);
    assert_non_null(dataset);
    self->reader = (sk_reader){
        .ops = &fake_ops, .format = "fake", .size = count, .channels = CHANNELS, .width = side, .height = side};
    self->side = side;
    self->broken = calloc((size_t)count + 1, 1);
    atomic_store(&self->asleep, -1);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->change, NULL);
    self->pixels = malloc((size_t)count * fake_stride(self) + 1);
    assert_non_null(self->pixels);
    for (int64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < fake_stride(self); k++)
            self->pixels[(size_t)i * fake_stride(self) + k] = pixel(i, k);
    }
    dataset->reader = &self->reader;
    stoker_image_default_settings(&dataset->image);
    return dataset;
}

fake *fake_of(stoker_dataset *dataset)
{
    return (fake *)dataset->reader;
}

void fake_wake(stoker_dataset *dataset)
{
    fake *self = fake_of(dataset);

    pthread_mutex_lock(&self->lock);
    self->awake = true;
    pthread_cond_broadcast(&self->change);
    pthread_mutex_unlock(&self->lock);
}

void fake_close(stoker_dataset *dataset)
{
    fake *self = fake_of(dataset);

    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->change);
    free(self->broken);
    free(self->pixels);
    free(self);
    free(dataset);
}

/* ------------------------------------------------------------------------------------------------ transcripts ---- */

void note(transcript *log, int64_t value)
{
    if (log->count == log->capacity) {
        log->capacity = log->capacity > 0 ? 2 * log->capacity : 256;
        log->value = realloc(log->value, log->capacity * sizeof *log->value);
        assert_non_null(log->value);
    }
    log->value[log->count++] = value;
}

void assert_same(const transcript *a, const transcript *b)
{
    assert_int_equal(a->count, b->count);
    if (a->count > 0)
        assert_memory_equal(a->value, b->value, a->count * sizeof *a->value);
}

void check_content(stoker_dataset *dataset, const stoker_batch *batch)
{
    const fake *self = fake_of(dataset);
    const uint8_t *at = batch->images;

    assert_int_equal((uintptr_t)batch->images % 64, 0);
    assert_int_equal(batch->dtype, STOKER_U8);
    for (int64_t i = 0; i < batch->count; i++) {
        int64_t sample = batch->samples[i];
        size_t bytes = fake_bytes(self, sample);

        assert_int_equal(batch->labels[i], sample * 2);
        assert_int_equal((size_t)batch->width * (size_t)batch->height * CHANNELS, bytes);
        for (size_t k = 0; k < bytes; k++) {
            if (at[k] != pixel(sample, k))
                fail_msg("sample %lld, byte %zu: %d", (long long)sample, k, at[k]);
        }
        at += bytes;
    }
}

static void note_batch(transcript *log, const stoker_batch *batch)
{
    note(log, NOTE_BATCH);
    note(log, (int64_t)batch->epoch);
    note(log, batch->valid);
    for (int64_t i = 0; i < batch->count; i++)
        note(log, batch->samples[i]);
}

/* One call of next, noted. */
stoker_status step(stoker_dataset *dataset, stoker_loader *loader, transcript *log)
{
    stoker_batch *batch;
    stoker_status status = stoker_loader_next(loader, &batch);

    if (status == STOKER_OK) {
        check_content(dataset, batch);
        note_batch(log, batch);
        stoker_batch_release(batch);
    } else {
        assert_null(batch);
        note(log, status == STOKER_END ? NOTE_END : NOTE_ERROR);
        if (status < 0)
            assert_true(strlen(stoker_last_error()) > 0);
    }
    return status;
}

static void note_skipped(transcript *log, const stoker_loader *loader)
{
    char reason[256];
    int64_t sample;
    uint64_t epoch;

    for (int64_t i = 0; stoker_loader_skipped(loader, i, &sample, &epoch, reason, sizeof reason) == STOKER_OK; i++) {
        assert_non_null(strstr(reason, "image file is truncated"));
        note(log, NOTE_SKIPPED);
        note(log, (int64_t)epoch);
        note(log, sample);
    }
}

stoker_loader_settings usual(int64_t batch, int32_t threads)
{
    stoker_loader_settings settings;

    stoker_loader_default_settings(&settings);
    settings.batch = batch;
    settings.threads = threads;
    settings.seed = 7;
    return settings;
}

stoker_loader *open_loader(stoker_dataset *dataset, const stoker_loader_settings *settings)
{
    stoker_loader *loader;
    stoker_status status = stoker_loader_open(dataset, settings, &loader);

    if (status != STOKER_OK)
        fail_msg("open: %s", stoker_last_error());
    return loader;
}

/* `epochs` whole epochs of a new loader, and what it skipped. */
transcript run(stoker_dataset *dataset, const stoker_loader_settings *settings, int64_t epochs)
{
    transcript log = {0};
    stoker_loader *loader = open_loader(dataset, settings);

    while (epochs > 0)
        epochs -= step(dataset, loader, &log) == STOKER_END;
    note_skipped(&log, loader);
    stoker_loader_close(loader);
    return log;
}

/* ------------------------------------------------------------------------------------------------ models --------- */

/* The batches of one epoch whose delivered samples are order[0 .. count). */
void model_batches(transcript *log, const stoker_loader_settings *settings, int64_t epoch, const int64_t *order,
                   int64_t count)
{
    for (int64_t first = 0; first < count; first += settings->batch) {
        int64_t valid = count - first < settings->batch ? count - first : settings->batch;

        if (settings->last_batch == STOKER_LAST_DROP && valid < settings->batch)
            break;
        note(log, NOTE_BATCH);
        note(log, epoch);
        note(log, valid);
        for (int64_t i = 0; i < valid; i++)
            note(log, order[first + i]);
        if (settings->last_batch == STOKER_LAST_PAD) {
            for (int64_t i = valid; i < settings->batch; i++)
                note(log, order[(first + i - count) % count]);
        }
    }
    note(log, NOTE_END);
}

static void note_model_skip(transcript *skipped, int64_t epoch, int64_t sample)
{
    note(skipped, NOTE_SKIPPED);
    note(skipped, epoch);
    note(skipped, sample);
}

/* `order` is changed to what is delivered; returns its new length. */
static int64_t model_skip(const uint8_t *broken, int64_t *order, int64_t count, int64_t epoch, transcript *skipped)
{
    for (int64_t p = 0; p < count; p++) {
        if (!broken[order[p]])
            continue;
        note_model_skip(skipped, epoch, order[p]);
        for (;;) {
            if (count - 1 <= p) {
                count = p;
                break;
            }
            count--;
            if (!broken[order[count]]) {
                order[p] = order[count];
                break;
            }
            note_model_skip(skipped, epoch, order[count]);
        }
    }
    return count;
}

static int64_t model_substitute(const uint8_t *broken, int64_t size, int64_t sample)
{
    while (broken[sample])
        sample = (sample + 1) % size;
    return sample;
}

static void append(transcript *log, transcript *more)
{
    for (size_t i = 0; i < more->count; i++)
        note(log, more->value[i]);
    free(more->value);
}

transcript model(stoker_dataset *dataset, const stoker_loader_settings *settings, int64_t epochs)
{
    const fake *self = fake_of(dataset);
    transcript log = {0}, skipped = {0};
    stoker_loader *loader = open_loader(dataset, settings);
    int64_t size = self->reader.size;
    int64_t *order = malloc((size_t)size * sizeof *order);

    for (int64_t epoch = 0; epoch < epochs; epoch++) {
        int64_t count = size;

        assert_int_equal(stoker_loader_order(loader, (uint64_t)epoch, 0, size, order), STOKER_OK);
        if (settings->on_error == STOKER_ON_ERROR_SKIP)
            count = model_skip(self->broken, order, count, epoch, &skipped);
        for (int64_t i = 0; settings->on_error == STOKER_ON_ERROR_SUBSTITUTE && i < count; i++) {
            bool made = settings->last_batch != STOKER_LAST_DROP || i < count / settings->batch * settings->batch;

            if (self->broken[order[i]] && made)
                note_model_skip(&skipped, epoch, order[i]);
            order[i] = model_substitute(self->broken, size, order[i]);
        }
        model_batches(&log, settings, epoch, order, count);
    }
    append(&log, &skipped);
    free(order);
    stoker_loader_close(loader);
    return log;
}

void break_samples(stoker_dataset *dataset, int percent, unsigned seed)
{
    fake *self = fake_of(dataset);

    for (int64_t i = 0; i < self->reader.size; i++)
        self->broken[i] = (int)(rand_r(&seed) % 100) < percent;
}
