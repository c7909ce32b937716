/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h: one sample, from its number to its tensor: fetch, decode, draw, transform, and the time each took. Batches,
 * order and policies are unknown here.
 */
#ifndef SK_LOADER_SAMPLE_H
#define SK_LOADER_SAMPLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "dataset/dataset.h"
#include "image/image.h"
#include "transform/plan.h"

#define SK_FETCH_AHEAD 2 /* small raw samples: enough for the memory's latency to pass while another is made */

#define SK_STAGE_IDLE STOKER_STAGES /* nothing asked for; not counted in public */

/* What a thread is at, and what it has done. Written by that thread alone, read by any. */
typedef struct sk_activity {
    _Alignas(SK_ALIGNMENT) _Atomic(int64_t) nanoseconds[STOKER_STAGES + 1];
    _Atomic(int64_t) bytes[STOKER_STAGES + 1];
    _Atomic(int64_t) entered; /* stages entered: stands still when the thread does */
    _Atomic(int64_t) since;   /* nanoseconds, monotonic: when it entered its stage */
    _Atomic(int64_t) sample;  /* last sample taken up, or -1 */
    _Atomic(int32_t) stage;
} sk_activity;

/* Everything a thread needs to make samples. */
typedef struct sk_maker {
    const stoker_dataset *dataset; /* not owned, nor the spec */
    const stoker_spec *spec;
    uint64_t seed;
    bool timed; /* clock read at each stage of each sample; false where samples are so small that a run is timed */
    bool fixed; /* every sample's tensor has the same shape */
    sk_decoder *decoder;
    sk_workspace *workspace;
    sk_buffer scratch[SK_FETCH_AHEAD + 1];
    sk_sample fetched[SK_FETCH_AHEAD + 1]; /* by sk_fetch_ahead, where fetched_number tells of which sample */
    int64_t fetched_number[SK_FETCH_AHEAD + 1];
    uint32_t fetch_turn; /* which of them is next */
    sk_activity activity;
    sk_draws draws; /* of the last sample */
} sk_maker;

/* `maker` is zeroed memory. On failure it needs sk_maker_clear all the same. */
stoker_status sk_maker_init(sk_maker *maker, const stoker_dataset *dataset, const stoker_spec *spec, uint64_t seed,
                            bool timed, bool fixed);
void sk_maker_clear(sk_maker *maker);

int64_t sk_now(void); /* nanoseconds, monotonic */

/* The thread enters `stage`; the time since the last call counts for the stage before. */
void sk_enter(sk_activity *activity, int32_t stage);

/* The shape of the sample's tensor and, where not NULL, the size of its image, from its header alone. */
stoker_status sk_measure_sample(sk_maker *maker, uint64_t epoch, int64_t sample, sk_shape *shape);

/* For raw samples: has sample `number` fetched, and its bytes on their way into the cache, before its turn. At most
 * SK_FETCH_AHEAD samples that were not made yet. A failure is told when it is made. */
void sk_fetch_ahead(sk_maker *maker, int64_t number);

/* Writes the tensor of a sample to `out`, which has room for `shape`. Where the sample gives another shape: *other is
 * set to it, and the status is STOKER_ERR_ARGUMENT with no message; else other->channels is 0. `bytes` is the tensor's
 * size. */
stoker_status sk_make_sample(sk_maker *maker, uint64_t epoch, int64_t sample, const sk_shape *shape, size_t bytes,
                             void *out, int64_t *label, sk_shape *other);

/* Puts where the sample lies, its number and the epoch before the message. */
stoker_status sk_fail_sample(const stoker_dataset *dataset, int64_t sample, uint64_t epoch, stoker_status status);

#endif
