/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared state: a maker belongs to one thread; of its activity other threads read the atomics, each for itself (a
 * figure may be one step ahead of another).
 */
#include "loader/sample.h"

#include <string.h>
#include <time.h>

stoker_status sk_maker_init(sk_maker *maker, const stoker_dataset *dataset, const stoker_spec *spec, uint64_t seed,
                            bool timed, bool fixed)
{
    maker->dataset = dataset;
    maker->spec = spec;
    maker->seed = seed;
    maker->timed = timed;
    maker->fixed = fixed;
    for (size_t i = 0; i < SK_FETCH_AHEAD + 1; i++)
        maker->fetched_number[i] = -1;
    atomic_store_explicit(&maker->activity.sample, -1, memory_order_relaxed);
    atomic_store_explicit(&maker->activity.stage, SK_STAGE_IDLE, memory_order_relaxed);
    atomic_store_explicit(&maker->activity.since, sk_now(), memory_order_relaxed);
    maker->workspace = sk_workspace_create();
    if (maker->workspace == NULL)
        return STOKER_ERR_MEMORY;
    if (dataset->reader->encoded) {
        maker->decoder = sk_decoder_create(&dataset->image);
        if (maker->decoder == NULL)
            return STOKER_ERR_MEMORY;
    }
    return STOKER_OK;
}

void sk_maker_clear(sk_maker *maker)
{
    sk_decoder_destroy(maker->decoder);
    sk_workspace_destroy(maker->workspace);
    for (size_t i = 0; i < SK_FETCH_AHEAD + 1; i++)
        sk_buffer_free(&maker->scratch[i]);
    maker->decoder = NULL;
    maker->workspace = NULL;
}

int64_t sk_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The thread is the only writer, so no locked instruction is needed. */
static inline void add(_Atomic(int64_t) *counter, int64_t amount)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

void sk_enter(sk_activity *activity, int32_t stage)
{
    int64_t now = sk_now();
    int32_t before = atomic_load_explicit(&activity->stage, memory_order_relaxed);

    add(&activity->nanoseconds[before], now - atomic_load_explicit(&activity->since, memory_order_relaxed));
    add(&activity->entered, 1);
    atomic_store_explicit(&activity->since, now, memory_order_relaxed);
    atomic_store_explicit(&activity->stage, stage, memory_order_relaxed);
}

/* Untimed, the stage is noted all the same: a stall is told by it. The run's time goes to the stage it ends in. */
static inline void enter(sk_maker *maker, int32_t stage)
{
    if (maker->timed)
        sk_enter(&maker->activity, stage);
    else
        atomic_store_explicit(&maker->activity.stage, stage, memory_order_relaxed);
}

static stoker_status fetch(sk_maker *maker, int64_t number, sk_sample *out)
{
    const sk_reader *reader = maker->dataset->reader;

    atomic_store_explicit(&maker->activity.sample, number, memory_order_relaxed);
    enter(maker, STOKER_STAGE_READ);
    for (size_t i = 0; i < SK_FETCH_AHEAD + 1; i++) {
        if (maker->fetched_number[i] == number) {
            maker->fetched_number[i] = -1;
            *out = maker->fetched[i];
            return STOKER_OK;
        }
    }
    uint32_t turn = maker->fetch_turn;

    maker->fetch_turn = turn == SK_FETCH_AHEAD ? 0 : turn + 1;
    maker->fetched_number[turn] = -1;
    stoker_status status = reader->ops->fetch(reader, number, &maker->scratch[turn], out);

    if (status == STOKER_OK)
        add(&maker->activity.bytes[STOKER_STAGE_READ], (int64_t)out->size);
    return status;
}

void sk_fetch_ahead(sk_maker *maker, int64_t number)
{
    const sk_reader *reader = maker->dataset->reader;
    uint32_t turn = maker->fetch_turn;
    sk_sample *out = &maker->fetched[turn];

    atomic_store_explicit(&maker->activity.sample, number, memory_order_relaxed);
    enter(maker, STOKER_STAGE_READ);
    maker->fetched_number[turn] = -1;
    if (reader->ops->fetch(reader, number, &maker->scratch[turn], out) != STOKER_OK)
        return;
    maker->fetched_number[turn] = number;
    maker->fetch_turn = turn == SK_FETCH_AHEAD ? 0 : turn + 1;
    add(&maker->activity.bytes[STOKER_STAGE_READ], (int64_t)out->size);
    /* Into the second level: the first takes so few lines at once that the thread would wait for them. */
    if (out->label_byte != NULL)
        __builtin_prefetch(out->label_byte, 0, 2);
    for (size_t at = 0; at < out->size; at += SK_ALIGNMENT)
        __builtin_prefetch(out->data + at, 0, 2);
}

/* A dataset of raw samples may have an encoded one among them (a concatenation), so the decoder may come late. */
static stoker_status open_image(sk_maker *maker, const sk_sample *sample, int32_t *width, int32_t *height)
{
    if (maker->decoder == NULL)
        maker->decoder = sk_decoder_create(&maker->dataset->image);
    if (maker->decoder == NULL)
        return STOKER_ERR_MEMORY;
    return (sample->packed ? sk_decoder_open_packed : sk_decoder_open)(maker->decoder, sample->data, sample->size,
                                                                       width, height);
}

stoker_status sk_measure_sample(sk_maker *maker, uint64_t epoch, int64_t sample, sk_shape *shape)
{
    sk_sample source;
    sk_rect region;
    stoker_status status = fetch(maker, sample, &source);

    if (status != STOKER_OK)
        return status;
    int32_t width = source.width, height = source.height, channels = source.channels;

    if (source.kind == SK_SAMPLE_ENCODED) {
        enter(maker, STOKER_STAGE_DECODE);
        status = open_image(maker, &source, &width, &height);
        channels = 3;
    }
    if (status == STOKER_OK)
        status = sk_spec_draw(maker->spec, maker->seed, epoch, (uint64_t)sample, width, height, &maker->draws);
    if (status == STOKER_OK)
        status = sk_spec_shape(maker->spec, &maker->draws, width, height, channels, shape, &region);
    return status;
}

static stoker_status check_shape(const sk_shape *expected, const sk_shape *got, sk_shape *other)
{
    if (got->channels == expected->channels && got->height == expected->height && got->width == expected->width)
        return STOKER_OK;
    *other = *got;
    return STOKER_ERR_ARGUMENT;
}

static stoker_status make_encoded(sk_maker *maker, uint64_t epoch, int64_t number, const sk_sample *sample,
                                  const sk_shape *expected, void *out, sk_shape *other)
{
    sk_pixels pixels;
    sk_shape shape;
    sk_rect region;
    int32_t width, height;

    enter(maker, STOKER_STAGE_DECODE);
    stoker_status status = open_image(maker, sample, &width, &height);

    if (status == STOKER_OK)
        status = sk_spec_draw(maker->spec, maker->seed, epoch, (uint64_t)number, width, height, &maker->draws);
    if (status == STOKER_OK)
        status = sk_spec_shape(maker->spec, &maker->draws, width, height, 3, &shape, &region);
    if (status == STOKER_OK)
        status = check_shape(expected, &shape, other);
    if (status == STOKER_OK)
        status = sk_decoder_pixels(maker->decoder, &region, &pixels);
    if (status != STOKER_OK)
        return status;
    add(&maker->activity.bytes[STOKER_STAGE_DECODE], (int64_t)pixels.area.width * pixels.area.height * pixels.channels);
    enter(maker, STOKER_STAGE_TRANSFORM);
    return sk_spec_run(maker->spec, maker->workspace, &pixels, &maker->draws, out);
}

static stoker_status make_raw(sk_maker *maker, uint64_t epoch, int64_t number, const sk_sample *sample,
                              const sk_shape *expected, void *out, sk_shape *other)
{
    sk_shape shape;
    sk_rect region;

    enter(maker, STOKER_STAGE_TRANSFORM);
    stoker_status status =
        sk_spec_draw(maker->spec, maker->seed, epoch, (uint64_t)number, sample->width, sample->height, &maker->draws);

    /* Where all samples are of one size, the batch's shape was made for that size: nothing to work out for each. */
    const sk_reader *reader = maker->dataset->reader;
    bool usual = maker->fixed && sample->width == reader->width && sample->height == reader->height &&
                 sample->channels == reader->channels;

    if (status == STOKER_OK && !usual) {
        status =
            sk_spec_shape(maker->spec, &maker->draws, sample->width, sample->height, sample->channels, &shape, &region);
        if (status == STOKER_OK)
            status = check_shape(expected, &shape, other);
    }
    if (status != STOKER_OK)
        return status;
    if (sample->kind == SK_SAMPLE_PLANAR || sample->channels == 1) /* one channel lies the same either way */
        return sk_spec_run_planar(maker->spec, maker->workspace, sample->data, sample->width, sample->height,
                                  sample->channels, &maker->draws, out);
    sk_pixels pixels = {.data = sample->data,
                        .stride = (size_t)sample->width * (size_t)sample->channels,
                        .channels = sample->channels,
                        .full_width = sample->width,
                        .full_height = sample->height,
                        .area = {0, 0, sample->width, sample->height}};

    return sk_spec_run(maker->spec, maker->workspace, &pixels, &maker->draws, out);
}

stoker_status sk_make_sample(sk_maker *maker, uint64_t epoch, int64_t sample, const sk_shape *shape, size_t bytes,
                             void *out, int64_t *label, sk_shape *other)
{
    sk_sample source;

    other->channels = 0;
    stoker_status status = fetch(maker, sample, &source);

    if (status != STOKER_OK)
        return status;
    status = source.kind == SK_SAMPLE_ENCODED ? make_encoded(maker, epoch, sample, &source, shape, out, other)
                                              : make_raw(maker, epoch, sample, &source, shape, out, other);
    if (status != STOKER_OK)
        return status;
    *label = source.label_byte != NULL ? *source.label_byte : source.label;
    add(&maker->activity.bytes[STOKER_STAGE_TRANSFORM], (int64_t)bytes);
    return STOKER_OK;
}

stoker_status sk_fail_sample(const stoker_dataset *dataset, int64_t sample, uint64_t epoch, stoker_status status)
{
    char where[SK_MESSAGE_SIZE / 2];

    dataset->reader->ops->where(dataset->reader, sample, where, sizeof where);
    if (strstr(sk_message(), where) != NULL) /* the reader named it already */
        return sk_fail_context(status, "sample %lld, epoch %llu", (long long)sample, (unsigned long long)epoch);
    return sk_fail_context(status, "%s (sample %lld, epoch %llu)", where, (long long)sample, (unsigned long long)epoch);
}
