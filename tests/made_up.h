/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_up.h: a dataset made up for tests of the loader, whose samples can be broken, slow or of different sizes at
 * will; what a loop saw, as numbers; and models of what it should see, written without the loader's code. Fails through
 * cmocka.
 */
#ifndef TESTS_MADE_UP_H
#define TESTS_MADE_UP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "dataset/dataset.h"
#include "stoker.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

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

stoker_dataset *fake_open(int64_t count, int32_t side); /* side 0: sizes differ */
void fake_close(stoker_dataset *dataset);
fake *fake_of(stoker_dataset *dataset);
void fake_wake(stoker_dataset *dataset);
size_t fake_bytes(const fake *self, int64_t index); /* of a sample */
void break_samples(stoker_dataset *dataset, int percent, unsigned seed);

/* What a loop saw, as numbers: compared between runs and with models. */
typedef struct transcript {
    int64_t *value;
    size_t count, capacity;
} transcript;

enum { NOTE_BATCH = -101, NOTE_END = -102, NOTE_ERROR = -103, NOTE_SKIPPED = -104 };

void note(transcript *log, int64_t value);
void assert_same(const transcript *a, const transcript *b);

/* Each byte, label and number of the batch against the made-up dataset. */
void check_content(stoker_dataset *dataset, const stoker_batch *batch);

/* One call of next: checked, noted, released. */
stoker_status step(stoker_dataset *dataset, stoker_loader *loader, transcript *log);

/* Defaults with a seed. */
stoker_loader_settings usual(int64_t batch, int32_t threads);
stoker_loader *open_loader(stoker_dataset *dataset, const stoker_loader_settings *settings);

/* `epochs` whole epochs of a new loader, and what it skipped. */
transcript run(stoker_dataset *dataset, const stoker_loader_settings *settings, int64_t epochs);

/* What run() should have seen. */
transcript model(stoker_dataset *dataset, const stoker_loader_settings *settings, int64_t epochs);

/* The batches of one epoch whose delivered samples are order[0 .. count). */
void model_batches(transcript *log, const stoker_loader_settings *settings, int64_t epoch, const int64_t *order,
                   int64_t count);

#endif
