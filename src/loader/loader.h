/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h: the inside of a loader, shared by the files of this folder and by nobody else.
 *
 * Batches are numbered from 0 at the loader's start (or its last seek), across epochs. The ring's entry of batch g is
 * g % depth. The loop's thread opens entries (gives them memory), workers fill them unit by unit, the loop's thread
 * takes them in order:
 *
 *     loader.c    the public calls; the loop's side
 *     ring.c      opening entries, sizing batches, waiting
 *     workers.c   the threads
 *     settle.c    what happens to a batch with failures (last_batch and on_error)
 *     stats.c     figures, and what is said of a stall
 *     slot.c, sample.c   a batch's memory; one sample
 *
 * Shared state, and what guards it:
 *     lock          next_open, next_size, sizing, ahead_bytes, and of each entry opened, failures and failure_lost
 *     skipped_lock  the list of skipped samples
 *     atomics       next_unit (hands out work), control, parked, waiting, interrupted, busy, entry.ready, entry.remaining, the figures
 *     entry fields  written by the loop's thread before `opened` is set under the lock (and by the sizing worker before
 *                   `ready` is stored); read by workers once ready == g; the loop's again once remaining == 0
 *     slot memory   each sample's place by the worker that holds its unit
 *     the rest      set at open and constant, or used by the loop's thread alone
 */
#ifndef SK_LOADER_LOADER_H
#define SK_LOADER_LOADER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/sample.h"
#include "loader/slot.h"
#include "order/order.h"

#define SK_SKIPPED_LISTED 10000 /* samples that the list of skipped ones holds */
#define SK_LONGEST_RUN    64    /* samples of a unit of work */

/* A sample that could not be made as asked. */
typedef struct sk_failure {
    struct sk_failure *next;
    int64_t place;  /* in the batch */
    int64_t sample; /* that failed */
    bool fatal;     /* no policy applies: lack of memory, or another shape than the batch's */
    bool replaced;  /* substitute: its place is filled */
    stoker_status status;
    char message[];
} sk_failure;

typedef struct sk_entry {
    _Alignas(SK_ALIGNMENT) _Atomic(int64_t) ready;     /* the batch that workers may fill, or -1 */
    _Alignas(SK_ALIGNMENT) _Atomic(int64_t) remaining; /* units not yet done */
    int64_t opened;                                    /* the batch it was opened for, or -1 */
    uint64_t epoch;
    int64_t index; /* of the batch in its epoch */
    int64_t first; /* position of its first sample */
    int64_t count; /* places to fill, repeats of STOKER_LAST_PAD included */
    sk_order order;
    sk_slot *slot;
    sk_shape shape; /* channels 0: not known (no sample of the batch could be measured) */
    size_t sample_bytes;
    size_t counted_bytes; /* of ahead_bytes */
    int64_t shape_sample; /* the sample that gave the shape, or -1 where it is fixed */
    stoker_status error;  /* of the batch as a whole */
    char *error_message;
    sk_failure *failures;
    bool failure_lost; /* there was no memory to record one: the batch as a whole fails */
} sk_entry;

typedef struct sk_worker {
    sk_maker maker; /* first: aligned */
    struct stoker_loader *loader;
    pthread_t thread;
    bool running;
} sk_worker;

enum { SK_RUN = 0, SK_PAUSE = 1, SK_EXIT = 2 };

typedef struct sk_skipped {
    int64_t sample;
    uint64_t epoch;
    char *reason;
} sk_skipped;

/* Under skip: the sample of position `from` stands at position `to`. */
typedef struct sk_move {
    int64_t to, from;
} sk_move;

struct stoker_loader {
    _Alignas(SK_ALIGNMENT) _Atomic(int64_t) next_unit;
    _Alignas(SK_ALIGNMENT) _Atomic(int32_t) control;
    _Atomic(int32_t) waiting; /* the loop's thread sleeps on `wake`, or is about to */
    _Atomic(int32_t) interrupted;
    _Atomic(int32_t) busy; /* a call is under way */
    sem_t wake;            /* a semaphore since posting one is allowed in a signal handler */

    /* The loop's thread alone. */
    int64_t patience; /* nanoseconds that next may wait; 0: no limit */
    int64_t progress; /* of the workers, as the wait under way last saw it, and when it changed */
    int64_t progress_seen;
    bool gave_up; /* the last wait ran out of patience */

    /* Constant after open. */
    const stoker_dataset *dataset;
    stoker_spec *spec;
    uint64_t seed, first_epoch;
    int64_t epochs;
    int64_t *listed; /* explicit order, or NULL */
    int32_t shuffle, last_batch, on_error, stall_seconds;
    int64_t batch;
    int64_t places;    /* that a slot has room for: fewer than batch where the epoch is shorter */
    int64_t positions; /* of an epoch */
    int64_t batches;   /* of an epoch */
    int64_t run;       /* samples a unit */
    int64_t units;     /* a batch */
    int64_t depth;
    size_t ring_bytes;
    size_t kept_bytes; /* of slots that came back */
    bool stream;       /* tensors go past the caches where that is possible */
    bool fixed;        /* all batches have this shape: */
    sk_shape shape;
    pid_t pid;
    int64_t opened_at; /* nanoseconds */

    pthread_mutex_t lock;
    pthread_cond_t work; /* workers wait here for an entry, for memory, or for the end of a pause */
    sk_pool *pool;
    sk_entry *entries;  /* depth */
    sk_worker *workers; /* threads */
    int32_t threads;
    _Atomic(int32_t) parked;
    bool sizing;
    int64_t next_open;  /* batches below are open or done */
    int64_t next_size;  /* batches below have their memory; sized in order, so that the memory budget cannot deadlock */
    size_t ahead_bytes; /* of sized batches not yet taken */

    /* The loop's. */
    bool seeking;
    uint64_t seek_epoch;
    uint64_t base_epoch;   /* of batch 0 */
    uint64_t epoch;        /* of the next batch */
    int64_t index;         /* in the epoch, of the next batch */
    int64_t cursor;        /* the next batch's number */
    int64_t effective_end; /* skip: positions from here on are not delivered in this epoch */
    sk_move *moves;
    size_t move_count, move_capacity;
    sk_maker *maker;      /* skip: makes replacements */
    sk_order epoch_order; /* of the epoch opened last */
    uint64_t epoch_order_of;
    bool epoch_order_made;

    /* Figures. */
    _Atomic(int64_t) delivered_samples, delivered_batches, delivered_epochs, delivered_bytes, skipped_count;
    _Atomic(int64_t) wait_nanoseconds, first_batch_nanoseconds;
    int64_t first_asked; /* nanoseconds; 0: not yet */
    pthread_mutex_t skipped_lock;
    sk_skipped *skipped;
    int64_t skipped_listed, skipped_capacity;
};

/* ring.c */

/* Opens batches up to the ring's depth. Fails only where the next batch to deliver could not be opened. */
stoker_status sk_ring_fill(stoker_loader *loader);

/* Worker: waits until batch `number` may be filled, sizing it where nobody else does. False: paused or closed. */
bool sk_ring_wait(sk_worker *worker, int64_t number);

static inline sk_entry *sk_ring_entry(stoker_loader *loader, int64_t number)
{
    return &loader->entries[number % loader->depth];
}

/* The loop's: takes the finished batch `cursor` out of the ring. The slot becomes the caller's; may be NULL. */
sk_slot *sk_ring_take(stoker_loader *loader);

/* Throws everything away and begins at `epoch`; no worker may be at work. */
void sk_ring_reset(stoker_loader *loader, uint64_t epoch);
void sk_ring_free(stoker_loader *loader);

/* True where the batch lies past the last epoch asked for. */
bool sk_epoch_past_end(const stoker_loader *loader, uint64_t epoch);

/* Sets an entry's memory up once its shape is known. */
stoker_status sk_entry_set_shape(stoker_loader *loader, sk_entry *entry, sk_shape shape);

/* The position whose sample stands at a place of the batch, repeats resolved. */
static inline int64_t sk_entry_position(const sk_entry *entry, int64_t place)
{
    int64_t position = entry->first + place;

    return position < entry->order.count ? position : position % entry->order.count;
}

/* workers.c */
stoker_status sk_workers_start(stoker_loader *loader);
void sk_workers_join(stoker_loader *loader); /* after control is SK_EXIT */
void sk_set_control(stoker_loader *loader, int32_t control);
void sk_notify(stoker_loader *loader); /* the loop's thread should look again. Any thread; async-signal-safe */

/* Keeps this thread's message with the batch. */
void sk_record_failure(stoker_loader *loader, sk_entry *entry, int64_t place, int64_t sample, stoker_status status,
                       bool fatal, bool replaced);

/* Makes the sample into its place of the batch; message set and complete on failure. *fatal as above. */
stoker_status sk_fill_place(stoker_loader *loader, sk_maker *maker, sk_entry *entry, int64_t place, int64_t sample,
                            bool *fatal);

/* settle.c: decides what of a finished batch is delivered. *count 0: nothing; *valid as in stoker_batch. */
stoker_status sk_settle(stoker_loader *loader, sk_entry *entry, int64_t *count, int64_t *valid);

/* stats.c */
void sk_add_skipped(stoker_loader *loader, int64_t sample, uint64_t epoch, const char *reason);
void sk_skipped_free(stoker_loader *loader);
int64_t sk_progress(const stoker_loader *loader); /* grows while any worker gets on */
stoker_status sk_fail_stalled(const stoker_loader *loader);

#endif
