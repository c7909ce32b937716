/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_loader.c: the loader over a dataset made up here, whose samples can be broken, slow or of different sizes at
 * will. What is right is told by small models written without the loader's code, and by the content of each sample,
 * which its number gives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "dataset/dataset.h"
#include "stoker.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ------------------------------------------------------------------------------------------- a made-up dataset --- */

#define CHANNELS 3

typedef struct fake {
    sk_reader reader;
    uint8_t *broken;        /* per sample: 1 fails to be fetched */
    int32_t side;           /* samples are side × side; 0: sample i is (1 + i % 3) × 2 */
    _Atomic int64_t asleep; /* the sample whose fetch waits for `awake`; -1: none */
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool awake;
    uint8_t *pixels; /* of all samples */
} fake;

static int32_t fake_width(const fake *self, int64_t index)
{
    return self->side > 0 ? self->side : 1 + (int32_t)(index % 3);
}

static int32_t fake_height(const fake *self)
{
    return self->side > 0 ? self->side : 2;
}

static size_t fake_bytes(const fake *self, int64_t index)
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

static const sk_reader_ops fake_ops = {fake_destroy, fake_fetch, fake_label, fake_where, fake_class_name, NULL};

static stoker_dataset *fake_open(int64_t count, int32_t side)
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

static fake *fake_of(stoker_dataset *dataset)
{
    return (fake *)dataset->reader;
}

static void fake_wake(stoker_dataset *dataset)
{
    fake *self = fake_of(dataset);

    pthread_mutex_lock(&self->lock);
    self->awake = true;
    pthread_cond_broadcast(&self->change);
    pthread_mutex_unlock(&self->lock);
}

static void fake_close(stoker_dataset *dataset)
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

/* What a loop saw, as numbers: compared between runs and with models. */
typedef struct transcript {
    int64_t *value;
    size_t count, capacity;
} transcript;

static void note(transcript *log, int64_t value)
{
    if (log->count == log->capacity) {
        log->capacity = log->capacity > 0 ? 2 * log->capacity : 256;
        log->value = realloc(log->value, log->capacity * sizeof *log->value);
        assert_non_null(log->value);
    }
    log->value[log->count++] = value;
}

static void assert_same(const transcript *a, const transcript *b)
{
    assert_int_equal(a->count, b->count);
    if (a->count > 0)
        assert_memory_equal(a->value, b->value, a->count * sizeof *a->value);
}

enum { NOTE_BATCH = -101, NOTE_END = -102, NOTE_ERROR = -103, NOTE_SKIPPED = -104 };

static void check_content(stoker_dataset *dataset, const stoker_batch *batch)
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
static stoker_status step(stoker_dataset *dataset, stoker_loader *loader, transcript *log)
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

static stoker_loader_settings usual(int64_t batch, int32_t threads)
{
    stoker_loader_settings settings;

    stoker_loader_default_settings(&settings);
    settings.batch = batch;
    settings.threads = threads;
    settings.seed = 7;
    return settings;
}

static stoker_loader *open_loader(stoker_dataset *dataset, const stoker_loader_settings *settings)
{
    stoker_loader *loader;
    stoker_status status = stoker_loader_open(dataset, settings, &loader);

    if (status != STOKER_OK)
        fail_msg("open: %s", stoker_last_error());
    return loader;
}

/* `epochs` whole epochs of a new loader, and what it skipped. */
static transcript run(stoker_dataset *dataset, const stoker_loader_settings *settings, int64_t epochs)
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
static void model_batches(transcript *log, const stoker_loader_settings *settings, int64_t epoch, const int64_t *order,
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

static transcript model(stoker_dataset *dataset, const stoker_loader_settings *settings, int64_t epochs)
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

static void break_samples(stoker_dataset *dataset, int percent, unsigned seed)
{
    fake *self = fake_of(dataset);

    for (int64_t i = 0; i < self->reader.size; i++)
        self->broken[i] = (int)(rand_r(&seed) % 100) < percent;
}

/* ------------------------------------------------------------------------------------------------ tests ---------- */

static void test_same_batches_whatever_the_threads(void **state)
{
    static const int32_t threads[] = {1, 2, 7};
    stoker_dataset *dataset = fake_open(1003, 5);

    (void)state;
    for (int64_t batch = 1; batch < 200; batch = batch * 5 + 1) {
        stoker_loader_settings settings = usual(batch, 1);
        transcript expected = model(dataset, &settings, 3);

        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
            settings.threads = threads[i];
            transcript log = run(dataset, &settings, 3);

            assert_same(&log, &expected);
            free(log.value);
        }
        free(expected.value);
    }
    fake_close(dataset);
}

static void test_orders_identity_and_explicit(void **state)
{
    static const int64_t listed[] = {3, 3, 0, 9};
    stoker_dataset *dataset = fake_open(10, 2);
    stoker_loader_settings settings = usual(4, 2);
    transcript log, expected = {0};
    int64_t order[10];

    (void)state;
    settings.shuffle = 0;
    for (int64_t i = 0; i < 10; i++)
        order[i] = i;
    model_batches(&expected, &settings, 0, order, 10);
    log = run(dataset, &settings, 1);
    assert_same(&log, &expected);
    free(log.value);
    settings.order = listed;
    settings.order_count = 4;
    settings.batch = 3;
    expected.count = 0;
    model_batches(&expected, &settings, 0, listed, 4);
    model_batches(&expected, &settings, 1, listed, 4);
    log = run(dataset, &settings, 2);
    assert_same(&log, &expected);
    free(log.value);
    free(expected.value);
    fake_close(dataset);
}

static void test_last_batch_policies_at_all_small_sizes(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 7; count++) {
        stoker_dataset *dataset = fake_open(count, 3);

        for (int64_t batch = 1; batch <= 9; batch++) {
            for (int32_t policy = 0; policy < 3; policy++) {
                stoker_loader_settings settings = usual(batch, 2);

                settings.last_batch = policy;
                transcript expected = model(dataset, &settings, 2);
                transcript log = run(dataset, &settings, 2);

                assert_same(&log, &expected);
                free(log.value);
                free(expected.value);
            }
        }
        fake_close(dataset);
    }
}

static void test_broken_samples_under_every_policy(void **state)
{
    static const int percents[] = {1, 10, 50, 95};
    static const int32_t threads[] = {1, 2, 7};

    (void)state;
    for (unsigned round = 0; round < 48; round++) {
        int64_t count = 1 + (int64_t)(round * 37 % 150);
        stoker_dataset *dataset = fake_open(count, 3);
        stoker_loader_settings settings = usual(1 + (int64_t)(round * 7 % 20), 1);

        settings.seed = round;
        settings.last_batch = round % 2 == 0 ? STOKER_LAST_PARTIAL : STOKER_LAST_PAD;
        settings.on_error = round / 2 % 2 == 0 ? STOKER_ON_ERROR_SKIP : STOKER_ON_ERROR_SUBSTITUTE;
        break_samples(dataset, percents[round / 4 % 4], round);
        fake_of(dataset)->broken[0] = 0;
        transcript expected = model(dataset, &settings, 3);

        for (size_t i = 0; i < 3; i++) {
            settings.threads = threads[i];
            transcript log = run(dataset, &settings, 3);

            assert_same(&log, &expected);
            free(log.value);
        }
        free(expected.value);
        fake_close(dataset);
    }
}

/* Under drop, what is skipped behind the last whole batch depends on the settling rule alone, so only batches are
 * compared. */
static void test_skip_keeps_batches_full_under_drop(void **state)
{
    stoker_dataset *dataset = fake_open(100, 3);
    stoker_loader_settings settings = usual(8, 7);
    stoker_batch *batch;
    int64_t batches = 0;

    (void)state;
    break_samples(dataset, 20, 3);
    settings.last_batch = STOKER_LAST_DROP;
    settings.on_error = STOKER_ON_ERROR_SKIP;
    int64_t sound = 0;

    for (int64_t i = 0; i < 100; i++)
        sound += !fake_of(dataset)->broken[i];
    stoker_loader *loader = open_loader(dataset, &settings);

    while (stoker_loader_next(loader, &batch) == STOKER_OK) {
        assert_int_equal(batch->count, 8);
        check_content(dataset, batch);
        stoker_batch_release(batch);
        batches++;
    }
    assert_int_equal(batches, sound / 8);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_everything_broken(void **state)
{
    stoker_dataset *dataset = fake_open(20, 3);
    stoker_batch *batch;
    stoker_stats stats;

    (void)state;
    memset(fake_of(dataset)->broken, 1, 20);
    stoker_loader_settings settings = usual(4, 3);

    settings.on_error = STOKER_ON_ERROR_SKIP;
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_END);
    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.skipped, 20);
    stoker_loader_close(loader);
    settings.on_error = STOKER_ON_ERROR_SUBSTITUTE;
    loader = open_loader(dataset, &settings);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_DATA);
    assert_non_null(strstr(stoker_last_error(), "no sample of the dataset can be read"));
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_raise_names_the_first_failure_and_goes_on(void **state)
{
    stoker_dataset *dataset = fake_open(30, 3);
    stoker_loader_settings settings = usual(10, 4);
    stoker_batch *batch;

    (void)state;
    settings.shuffle = 0;
    settings.first_epoch = 2;
    fake_of(dataset)->broken[17] = 1;
    fake_of(dataset)->broken[12] = 1;
    stoker_loader *loader = open_loader(dataset, &settings);

    for (uint64_t epoch = 2; epoch < 6; epoch++) {
        char expected[128];

        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
        assert_int_equal(batch->samples[0], 0);
        stoker_batch_release(batch);
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_DATA);
        snprintf(expected, sizeof expected, "fake/12.img (sample 12, epoch %llu): image file is truncated",
                 (unsigned long long)epoch);
        assert_string_equal(stoker_last_error(), expected);
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
        assert_int_equal(batch->samples[0], 20);
        assert_int_equal(batch->index, 2);
        assert_int_equal(batch->epoch, epoch);
        stoker_batch_release(batch);
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_END);
    }
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_break_and_seek(void **state)
{
    stoker_dataset *dataset = fake_open(500, 4);
    stoker_loader_settings settings = usual(16, 5);

    (void)state;
    transcript expected = run(dataset, &settings, 1);
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int round = 0; round < 200; round++) {
        transcript log = {0}, ignored = {0};

        assert_int_equal(stoker_loader_seek(loader, (uint64_t)(round * 7)), STOKER_OK);
        for (int i = 0; i < round % 5; i++)
            step(dataset, loader, &ignored);
        assert_int_equal(stoker_loader_seek(loader, 0), STOKER_OK);
        if (round % 20 == 0) {
            while (step(dataset, loader, &log) != STOKER_END)
                ;
            assert_same(&log, &expected);
        }
        free(log.value);
        free(ignored.value);
    }
    stoker_loader_close(loader);
    free(expected.value);
    fake_close(dataset);
}

static void *release_all(void *argument)
{
    stoker_batch **held = argument;

    for (; *held != NULL; held++)
        stoker_batch_release(*held);
    return NULL;
}

static void test_all_batches_held_and_released_after_close(void **state)
{
    stoker_dataset *dataset = fake_open(400, 4);
    stoker_loader_settings settings = usual(8, 3);
    stoker_batch *held[64] = {0};
    pthread_t thread;
    int count = 0;

    (void)state;
    settings.depth = 2;
    stoker_loader *loader = open_loader(dataset, &settings);

    while (stoker_loader_next(loader, &held[count]) == STOKER_OK)
        count++;
    assert_int_equal(count, 50);
    for (int i = 0; i < 10; i++) /* a few more of the next epoch */
        assert_int_equal(stoker_loader_next(loader, &held[count++]), STOKER_OK);
    stoker_loader_close(loader);
    for (int i = 0; i < count; i++)
        check_content(dataset, held[i]);
    assert_int_equal(pthread_create(&thread, NULL, release_all, held), 0);
    pthread_join(thread, NULL);
    stoker_batch_release(NULL);
    fake_close(dataset);
}

static void test_released_while_it_runs_by_another_thread(void **state)
{
    stoker_dataset *dataset = fake_open(400, 4);
    stoker_loader_settings settings = usual(8, 3);

    (void)state;
    for (int round = 0; round < 20; round++) {
        stoker_loader *loader = open_loader(dataset, &settings);
        stoker_batch *held[17] = {0};
        pthread_t thread;

        for (int i = 0; i < 16; i++)
            assert_int_equal(stoker_loader_next(loader, &held[i]), STOKER_OK);
        assert_int_equal(pthread_create(&thread, NULL, release_all, held), 0);
        for (int i = 0; i < round; i++) {
            stoker_batch *batch;

            assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
            stoker_batch_release(batch);
        }
        stoker_loader_close(loader);
        pthread_join(thread, NULL);
    }
    fake_close(dataset);
}

static void test_epochs_end(void **state)
{
    stoker_dataset *dataset = fake_open(10, 4);
    stoker_loader_settings settings = usual(4, 3);
    transcript log = {0};

    (void)state;
    settings.epochs = 2;
    settings.first_epoch = 5;
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_batches(loader), 3);
    assert_int_equal(stoker_loader_samples(loader), 10);
    for (int i = 0; i < 2;)
        i += step(dataset, loader, &log) == STOKER_END;
    assert_int_equal(step(dataset, loader, &log), STOKER_ERR_STATE);
    assert_int_equal(step(dataset, loader, &log), STOKER_ERR_STATE);
    assert_int_equal(stoker_loader_seek(loader, 6), STOKER_OK);
    assert_int_equal(step(dataset, loader, &log), STOKER_OK);
    stoker_loader_close(loader);
    free(log.value);
    fake_close(dataset);
}

static void test_odd_counts(void **state)
{
    stoker_dataset *none = fake_open(0, 4);
    stoker_dataset *three = fake_open(3, 4);
    stoker_loader_settings settings = usual(4, 64);
    stoker_loader *loader = (stoker_loader *)1;
    transcript log, expected;

    (void)state;
    assert_int_equal(stoker_loader_open(none, &settings, &loader), STOKER_ERR_ARGUMENT);
    assert_string_equal(stoker_last_error(), "the dataset holds no samples");
    assert_null(loader);
    log = run(three, &settings, 4);
    expected = model(three, &settings, 4);
    assert_same(&log, &expected);
    free(log.value);
    free(expected.value);
    settings.last_batch = STOKER_LAST_DROP; /* no whole batch: an empty epoch, as in torch */
    log = run(three, &settings, 3);
    assert_int_equal(log.count, 3);
    free(log.value);
    fake_close(none);
    fake_close(three);
}

static void test_wrong_settings(void **state)
{
    stoker_dataset *dataset = fake_open(10, 4);
    static const int64_t wrong_order[] = {0, 10};
    stoker_loader_settings settings;
    stoker_loader *loader;

    (void)state;
#define REFUSED(change, words)                                                                                         \
    do {                                                                                                               \
        settings = usual(4, 2);                                                                                        \
        change;                                                                                                        \
        assert_int_equal(stoker_loader_open(dataset, &settings, &loader), STOKER_ERR_ARGUMENT);                        \
        assert_null(loader);                                                                                           \
        if (strstr(stoker_last_error(), words) == NULL)                                                                \
            fail_msg("%s", stoker_last_error());                                                                       \
    } while (0)
    REFUSED(settings.batch = 0, "batch is 0");
    REFUSED(settings.batch = INT64_MAX, "too large");
    REFUSED(settings.threads = -1, "threads");
    REFUSED(settings.threads = 100000, "threads");
    REFUSED(settings.epochs = -1, "epochs");
    REFUSED(settings.last_batch = 9, "last_batch");
    REFUSED(settings.on_error = 9, "on_error");
    REFUSED(settings.depth = -1, "depth");
    REFUSED(settings.stall_seconds = -1, "stall_seconds");
    REFUSED(settings.ring_bytes = -1, "ring_bytes");
    REFUSED((settings.order = wrong_order, settings.order_count = 2), "shuffle");
    REFUSED((settings.order = wrong_order, settings.order_count = 2, settings.shuffle = 0),
            "order[1] is sample 10, which is not in 0..9");
    REFUSED((settings.order = wrong_order, settings.shuffle = 0), "the order holds no samples");
#undef REFUSED
    settings = usual(1000, 2);
    settings.ring_bytes = 1000;
    assert_int_equal(stoker_loader_open(dataset, &settings, &loader), STOKER_ERR_LIMIT);
    assert_non_null(strstr(stoker_last_error(), "ring_bytes"));
    fake_close(dataset);
}

static void test_samples_of_different_sizes(void **state)
{
    stoker_dataset *dataset = fake_open(20, 0);
    stoker_loader_settings settings = usual(1, 3);
    transcript log, expected;
    stoker_batch *batch;

    (void)state;
    log = run(dataset, &settings, 3);
    expected = model(dataset, &settings, 3);
    assert_same(&log, &expected);
    free(log.value);
    free(expected.value);
    settings.batch = 2;
    settings.shuffle = 0;
    settings.on_error = STOKER_ON_ERROR_SKIP; /* no broken sample: never skipped in silence */
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_ARGUMENT);
    assert_string_equal(
        stoker_last_error(),
        "samples of different sizes in one batch: fake/0.img (sample 0) is 1 x 2, fake/1.img (sample 1) is "
        "2 x 2; add resize(...) and a crop, so that all are of one size");
    stoker_loader_close(loader);
    fake_close(dataset);
}

/* Broken samples where each batch's first sample gives its shape. */
static void test_samples_of_different_sizes_broken(void **state)
{
    stoker_dataset *dataset = fake_open(30, 0);

    (void)state;
    break_samples(dataset, 40, 11);
    for (int32_t policy = STOKER_ON_ERROR_SKIP; policy <= STOKER_ON_ERROR_SUBSTITUTE; policy++) {
        stoker_loader_settings settings = usual(1, 3);

        settings.on_error = policy;
        transcript expected = model(dataset, &settings, 3);
        transcript log = run(dataset, &settings, 3);

        assert_same(&log, &expected);
        free(log.value);
        free(expected.value);
    }
    fake_close(dataset);
}

static void test_ring_stays_within_its_memory(void **state)
{
    stoker_dataset *fixed = fake_open(200, 16), *different = fake_open(200, 0);
    stoker_loader_settings settings = usual(4, 4);
    transcript log = {0};
    stoker_stats stats;

    (void)state;
    settings.depth = 20;
    settings.ring_bytes = 3 * 4 * 16 * 16 * CHANNELS;
    stoker_loader *loader = open_loader(fixed, &settings);

    for (int i = 0; i < 100; i++) {
        step(fixed, loader, &log);
        stoker_loader_stats(loader, &stats);
        assert_true(stats.ring_bytes <= settings.ring_bytes + 2 * 4 * 16 * 16 * CHANNELS); /* and two kept for loans */
    }
    assert_int_equal(stats.depth, 3);
    stoker_loader_close(loader);
    settings.batch = 1;
    settings.ring_bytes = 40; /* two samples of 18 bytes */
    loader = open_loader(different, &settings);
    for (int i = 0; i < 300; i++)
        assert_true(step(different, loader, &log) >= 0);
    stoker_loader_close(loader);
    settings.ring_bytes = 17;
    loader = open_loader(different, &settings);
    int limits = 0;

    for (stoker_status status = STOKER_OK; status != STOKER_END;) {
        status = step(different, loader, &log);
        limits += status == STOKER_ERR_LIMIT;
    }
    assert_int_equal(limits, 66); /* those of 3 x 2 pixels */
    stoker_loader_close(loader);
    free(log.value);
    fake_close(fixed);
    fake_close(different);
}

static void test_fork(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(4, 2);
    stoker_batch *batch, *other;
    int result;

    (void)state;
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
    pid_t child = fork();

    if (child == 0) {
        int right = stoker_loader_next(loader, &other) == STOKER_ERR_STATE &&
                    strstr(stoker_last_error(), "opened before fork()") != NULL &&
                    stoker_loader_seek(loader, 3) == STOKER_ERR_STATE;

        stoker_loader_close(loader);
        stoker_batch_release(batch);
#if !SANITIZED
        if (stoker_loader_open(dataset, &settings, &loader) != STOKER_OK ||
            stoker_loader_next(loader, &other) != STOKER_OK)
            right = 0;
        stoker_batch_release(other);
        stoker_loader_close(loader);
#endif
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    check_content(dataset, batch);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static stoker_loader *signal_target;

static void on_signal(int number)
{
    (void)number;
    stoker_loader_interrupt(signal_target);
}

static void *signal_soon(void *argument)
{
    struct timespec wait = {0, 50000000};

    nanosleep(&wait, NULL);
    pthread_kill(*(pthread_t *)argument, SIGUSR1);
    return NULL;
}

static void *interrupt_soon(void *argument)
{
    struct timespec wait = {0, 50000000};

    nanosleep(&wait, NULL);
    stoker_loader_interrupt(argument);
    return NULL;
}

static void test_interrupt_is_never_lost(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(4, 2);
    struct sigaction action = {.sa_handler = on_signal}, before;
    pthread_t thread, self = pthread_self();
    stoker_batch *batch;

    (void)state;
    settings.shuffle = 0;
    atomic_store(&fake_of(dataset)->asleep, 0);
    stoker_loader *loader = open_loader(dataset, &settings);

    stoker_loader_interrupt(loader); /* before the call */
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_INTERRUPTED);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, loader), 0); /* during, by another thread */
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_INTERRUPTED);
    pthread_join(thread, NULL);
    signal_target = loader;
    sigaction(SIGUSR1, &action, &before);
    assert_int_equal(pthread_create(&thread, NULL, signal_soon, &self), 0); /* during, by a signal handler */
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_INTERRUPTED);
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, loader), 0); /* a seek that waits for a worker */
    assert_int_equal(stoker_loader_seek(loader, 4), STOKER_ERR_INTERRUPTED);
    pthread_join(thread, NULL);
    fake_wake(dataset);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK); /* which ends the seek first */
    assert_int_equal(batch->samples[0], 0);
    assert_int_equal(batch->epoch, 4);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_stall_names_stage_and_sample(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(1, 2);
    stoker_batch *batch;

    (void)state;
    settings.shuffle = 0;
    settings.stall_seconds = 1;
    atomic_store(&fake_of(dataset)->asleep, 3);
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
        stoker_batch_release(batch);
    }
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_STALL);
    assert_string_equal(stoker_last_error(), "nothing for 1 s: 1 of 2 threads in read, oldest sample 3 (fake/3.img)");
    assert_int_equal(stoker_loader_seek(loader, 9), STOKER_ERR_STALL);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_STALL);
    fake_wake(dataset);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
    assert_int_equal(batch->epoch, 9);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static int entries_of(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static void open_use_close(stoker_dataset *dataset, int round)
{
    stoker_loader_settings settings = usual(8, 3);
    transcript log = {0};
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int i = 0; i < round % 7; i++)
        step(dataset, loader, &log);
    stoker_loader_close(loader);
    free(log.value);
}

static void test_hundred_open_and_close_leave_nothing(void **state)
{
    stoker_dataset *dataset = fake_open(100, 8);

    (void)state;
    for (int i = 0; i < 20; i++)
        open_use_close(dataset, i);
    int threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd");
#if !SANITIZED
    size_t bytes = mallinfo2().uordblks;
#endif

    for (int i = 0; i < 100; i++)
        open_use_close(dataset, i);
    assert_int_equal(entries_of("/proc/self/task"), threads);
    assert_int_equal(entries_of("/proc/self/fd"), files);
#if !SANITIZED
    size_t after = mallinfo2().uordblks;

    if (after > bytes + 4096) /* what stdio and the C library keep for themselves */
        fail_msg("%zu bytes in use, %zu before", after, bytes);
#endif
    fake_close(dataset);
}

static void test_each_allocation_failing_at_open(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(8, 3);
    static const int64_t listed[] = {1, 2, 3};

    (void)state;
    settings.on_error = STOKER_ON_ERROR_SKIP;
    settings.shuffle = 0;
    settings.order = listed;
    settings.order_count = 3;
    settings.ops = "random_crop(2)";
    for (long n = 1;; n++) {
        stoker_loader *loader = (stoker_loader *)1;

        sk_memory_fail_after(n);
        stoker_status status = stoker_loader_open(dataset, &settings, &loader);

        sk_memory_fail_after(0);
        if (status == STOKER_OK) {
            stoker_loader_close(loader);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(status, STOKER_ERR_MEMORY);
        assert_null(loader);
        assert_non_null(strstr(stoker_last_error(), "out of memory"));
    }
    fake_close(dataset);
}

static void test_each_allocation_failing_while_it_runs(void **state)
{
    (void)state;
    for (int32_t policy = 0; policy < 3; policy++) {
        for (int32_t side = 0; side <= 4; side += 4) {
            stoker_dataset *dataset = fake_open(24, side);
            stoker_loader_settings settings = usual(side > 0 ? 4 : 1, 3);

            break_samples(dataset, 20, 5);
            settings.on_error = policy;
            for (long n = 1; n < 60; n++) {
                stoker_loader *loader = open_loader(dataset, &settings);
                transcript log = {0};

                sk_memory_fail_after(n);
                for (int i = 0; i < 60; i++) {
                    stoker_status status = step(dataset, loader, &log);

                    if (status == STOKER_ERR_MEMORY)
                        assert_non_null(strstr(stoker_last_error(), "out of memory"));
                    else
                        assert_true(status >= 0 || status == STOKER_ERR_DATA);
                }
                sk_memory_fail_after(0);
                stoker_loader_close(loader);
                free(log.value);
            }
            fake_close(dataset);
        }
    }
}

static void test_no_thread_to_be_had(void **state)
{
    (void)state;
#if SANITIZED
    skip(); /* sanitizers reserve address space without limit */
#else
    stoker_dataset *dataset = fake_open(100, 4);
    int result;
    pid_t child = fork();

    if (child == 0) {
        struct rlimit limit = {(rlim_t)256 << 20, (rlim_t)256 << 20};
        stoker_loader_settings settings = usual(4, 512);
        stoker_loader *loader;

        setrlimit(RLIMIT_AS, &limit);
        stoker_status status = stoker_loader_open(dataset, &settings, &loader);
        int threads = entries_of("/proc/self/task");

        if (status >= 0 || strstr(stoker_last_error(), "cannot start thread") == NULL || threads != 3) {
            fprintf(stderr, "%d, %s, %d entries\n", status, stoker_last_error(), threads);
            _exit(1);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    fake_close(dataset);
#endif
}

static void test_figures(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(8, 2);
    transcript log = {0};
    stoker_stats stats;

    (void)state;
    stoker_loader *loader = open_loader(dataset, &settings);

    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.samples, 0);
    assert_true(stats.first_batch_seconds == 0);
    while (step(dataset, loader, &log) != STOKER_END)
        ;
    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.samples, 100);
    assert_int_equal(stats.batches, 13);
    assert_int_equal(stats.epochs, 1);
    assert_int_equal(stats.bytes, 100 * 4 * 4 * CHANNELS);
    assert_true(stats.stage_bytes[STOKER_STAGE_TRANSFORM] >= stats.bytes);
    assert_true(stats.stage_bytes[STOKER_STAGE_READ] >= stats.bytes);
    assert_true(stats.first_batch_seconds > 0 && stats.first_batch_seconds <= stats.seconds);
    assert_int_equal(stats.threads, 2);
    for (int stage = 0; stage < STOKER_STAGES; stage++)
        assert_true(stats.stage_seconds[stage] >= 0 && stats.stage_seconds[stage] <= 2 * stats.seconds);
    stoker_loader_close(loader);
    free(log.value);
    fake_close(dataset);
}

static void test_skipped_list_is_bounded_and_count_is_not(void **state)
{
    stoker_dataset *dataset = fake_open(4000, 2);
    stoker_loader_settings settings = usual(50, 2);
    transcript log = {0};
    stoker_stats stats;
    char reason[8];
    int64_t sample;
    uint64_t epoch;

    (void)state;
    memset(fake_of(dataset)->broken, 1, 3999);
    settings.on_error = STOKER_ON_ERROR_SKIP;
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int ends = 0; ends < 3;)
        ends += step(dataset, loader, &log) == STOKER_END;
    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.skipped, 3 * 3999);
    assert_int_equal(stoker_loader_skipped(loader, 9999, &sample, &epoch, reason, sizeof reason), STOKER_OK);
    assert_int_equal(epoch, 2);
    assert_int_equal(strlen(reason), 7); /* cut to the buffer */
    assert_int_equal(stoker_loader_skipped(loader, 10000, &sample, &epoch, reason, sizeof reason), STOKER_END);
    assert_int_equal(stoker_loader_skipped(loader, -1, &sample, &epoch, reason, sizeof reason), STOKER_END);
    stoker_loader_close(loader);
    free(log.value);
    fake_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_batches_whatever_the_threads),
        cmocka_unit_test(test_orders_identity_and_explicit),
        cmocka_unit_test(test_last_batch_policies_at_all_small_sizes),
        cmocka_unit_test(test_broken_samples_under_every_policy),
        cmocka_unit_test(test_skip_keeps_batches_full_under_drop),
        cmocka_unit_test(test_everything_broken),
        cmocka_unit_test(test_raise_names_the_first_failure_and_goes_on),
        cmocka_unit_test(test_break_and_seek),
        cmocka_unit_test(test_all_batches_held_and_released_after_close),
        cmocka_unit_test(test_released_while_it_runs_by_another_thread),
        cmocka_unit_test(test_epochs_end),
        cmocka_unit_test(test_odd_counts),
        cmocka_unit_test(test_wrong_settings),
        cmocka_unit_test(test_samples_of_different_sizes),
        cmocka_unit_test(test_samples_of_different_sizes_broken),
        cmocka_unit_test(test_ring_stays_within_its_memory),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_interrupt_is_never_lost),
        cmocka_unit_test(test_stall_names_stage_and_sample),
        cmocka_unit_test(test_hundred_open_and_close_leave_nothing),
        cmocka_unit_test(test_each_allocation_failing_at_open),
        cmocka_unit_test(test_each_allocation_failing_while_it_runs),
        cmocka_unit_test(test_no_thread_to_be_had),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_skipped_list_is_bounded_and_count_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
