/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.c: samples that are in the caller's memory already.
 */
#include <stdio.h>
#include <string.h>

#include "dataset/dataset.h"

typedef struct arrays_reader {
    sk_reader reader;
    const uint8_t *images; /* the caller's */
    const int64_t *labels; /* the caller's, or NULL */
    size_t sample_bytes;
} arrays_reader;

static const arrays_reader *from_reader(const sk_reader *reader)
{
    return (const arrays_reader *)reader;
}

static void destroy(sk_reader *reader)
{
    sk_free(reader);
}

static int64_t label(const sk_reader *reader, int64_t index)
{
    const arrays_reader *self = from_reader(reader);

    return self->labels != NULL ? self->labels[index] : 0;
}

static stoker_status fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const arrays_reader *self = from_reader(reader);

    (void)scratch;
    *out = (sk_sample){.kind = SK_SAMPLE_INTERLEAVED,
                       .data = self->images + (size_t)index * self->sample_bytes,
                       .size = self->sample_bytes,
                       .width = reader->width,
                       .height = reader->height,
                       .channels = reader->channels,
                       .label = label(reader, index)};
    return STOKER_OK;
}

static size_t where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    int n = snprintf(buffer, size, "array, row %lld", (long long)index);

    (void)reader;
    return n > 0 ? (size_t)n : 0;
}

static const char *class_name(const sk_reader *reader, int32_t number)
{
    (void)reader, (void)number;
    return NULL;
}

static const sk_reader_ops ops = {
    .destroy = destroy, .fetch = fetch, .label = label, .where = where, .class_name = class_name};

stoker_status sk_arrays_open(const uint8_t *images, int64_t count, int32_t height, int32_t width, int32_t channels,
                             const int64_t *labels, sk_reader **out)
{
    size_t bytes;

    *out = NULL;
    if (count < 0 || height < 1 || width < 1 || (channels != 1 && channels != 3) || (images == NULL && count > 0))
        return sk_fail(STOKER_ERR_ARGUMENT,
                       "arrays of %lld x %d x %d x %d: height and width must be at least 1, channels 1 or 3",
                       (long long)count, height, width, channels);
    if (!sk_multiply((size_t)height, (size_t)width, &bytes) || !sk_multiply(bytes, (size_t)channels, &bytes) ||
        !sk_multiply(bytes, (size_t)count, &(size_t){0}))
        return sk_fail(STOKER_ERR_ARGUMENT, "arrays of %lld x %d x %d x %d bytes cannot be in memory", (long long)count,
                       height, width, channels);
    arrays_reader *self = sk_calloc(1, sizeof *self);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->reader = (sk_reader){
        .ops = &ops, .format = "arrays", .size = count, .channels = channels, .width = width, .height = height};
    self->images = images;
    self->labels = labels;
    self->sample_bytes = bytes;
    *out = &self->reader;
    return STOKER_OK;
}
