/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subset.c: a part of a dataset, and several datasets one after another. Both pass every question on to the readers they are made of,
 * which stay their owners'.
 */
#include <string.h>

#include "dataset/dataset.h"

typedef struct subset_reader {
    sk_reader reader;
    const sk_reader *base;
    int64_t *indices;
} subset_reader;

static const subset_reader *as_subset(const sk_reader *reader)
{
    return (const subset_reader *)reader;
}

static void subset_destroy(sk_reader *reader)
{
    sk_free(((subset_reader *)reader)->indices);
    sk_free(reader);
}

static stoker_status subset_fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const subset_reader *self = as_subset(reader);

    return self->base->ops->fetch(self->base, self->indices[index], scratch, out);
}

static int64_t subset_label(const sk_reader *reader, int64_t index)
{
    const subset_reader *self = as_subset(reader);

    return self->base->ops->label(self->base, self->indices[index]);
}

static size_t subset_where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const subset_reader *self = as_subset(reader);

    return self->base->ops->where(self->base, self->indices[index], buffer, size);
}

static const char *subset_class_name(const sk_reader *reader, int32_t number)
{
    const subset_reader *self = as_subset(reader);

    return self->base->ops->class_name(self->base, number);
}

static void subset_will_need(const sk_reader *reader, int64_t index)
{
    const subset_reader *self = as_subset(reader);

    if (self->base->ops->will_need != NULL)
        self->base->ops->will_need(self->base, self->indices[index]);
}

static int64_t subset_bytes(const sk_reader *reader, int64_t index)
{
    const subset_reader *self = as_subset(reader);

    return self->base->ops->bytes != NULL ? self->base->ops->bytes(self->base, self->indices[index]) : 0;
}

static const sk_reader_ops subset_ops = {
    .destroy = subset_destroy,
    .fetch = subset_fetch,
    .label = subset_label,
    .where = subset_where,
    .class_name = subset_class_name,
    .will_need = subset_will_need,
    .bytes = subset_bytes,
};

stoker_status sk_subset_open(const sk_reader *base, const int64_t *indices, int64_t count, sk_reader **out)
{
    *out = NULL;
    if (count < 0 || (indices == NULL && count > 0))
        return sk_fail(STOKER_ERR_ARGUMENT, "a subset of %lld samples", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= base->size)
            return sk_fail(STOKER_ERR_ARGUMENT, "subset: index %lld at place %lld is not in 0..%lld",
                           (long long)indices[i], (long long)i, (long long)base->size - 1);
    }
    subset_reader *self = sk_calloc(1, sizeof *self);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->indices = sk_calloc((size_t)count, sizeof *self->indices);
    if (self->indices == NULL) {
        sk_free(self);
        return STOKER_ERR_MEMORY;
    }
    if (count > 0)
        memcpy(self->indices, indices, (size_t)count * sizeof *indices);
    self->base = base;
    self->reader = *base;
    self->reader.ops = &subset_ops;
    self->reader.size = count;
    self->reader.train_size = self->reader.test_size = 0;
    *out = &self->reader;
    return STOKER_OK;
}

/* -------------------------------------------------------------------------------------------------- concat -------- */

typedef struct concat_reader {
    sk_reader reader;
    int32_t count;
    const sk_reader **part;
    int64_t *first; /* count + 1: number of each part's first sample */
} concat_reader;

static const concat_reader *as_concat(const sk_reader *reader)
{
    return (const concat_reader *)reader;
}

static void concat_destroy(sk_reader *reader)
{
    concat_reader *self = (concat_reader *)reader;

    sk_free(self->part);
    sk_free(self->first);
    sk_free(self);
}

/* The part that holds sample `*index`, which becomes its number there. */
static const sk_reader *find_part(const sk_reader *reader, int64_t *index)
{
    const concat_reader *self = as_concat(reader);
    int32_t low = 0, high = self->count;

    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;

        if (self->first[middle] <= *index)
            low = middle;
        else
            high = middle;
    }
    *index -= self->first[low];
    return self->part[low];
}

static stoker_status concat_fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const sk_reader *part = find_part(reader, &index);

    return part->ops->fetch(part, index, scratch, out);
}

static int64_t concat_label(const sk_reader *reader, int64_t index)
{
    const sk_reader *part = find_part(reader, &index);

    return part->ops->label(part, index);
}

static size_t concat_where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const sk_reader *part = find_part(reader, &index);

    return part->ops->where(part, index, buffer, size);
}

static const char *concat_class_name(const sk_reader *reader, int32_t number)
{
    const sk_reader *part = as_concat(reader)->part[0];

    return number < part->classes ? part->ops->class_name(part, number) : NULL;
}

static void concat_will_need(const sk_reader *reader, int64_t index)
{
    const sk_reader *part = find_part(reader, &index);

    if (part->ops->will_need != NULL)
        part->ops->will_need(part, index);
}

static int64_t concat_bytes(const sk_reader *reader, int64_t index)
{
    const sk_reader *part = find_part(reader, &index);

    return part->ops->bytes != NULL ? part->ops->bytes(part, index) : 0;
}

static const sk_reader_ops concat_ops = {
    .destroy = concat_destroy,
    .fetch = concat_fetch,
    .label = concat_label,
    .where = concat_where,
    .class_name = concat_class_name,
    .will_need = concat_will_need,
    .bytes = concat_bytes,
};

stoker_status sk_concat_open(sk_reader *const *parts, int32_t count, sk_reader **out)
{
    *out = NULL;
    for (int32_t i = 1; i < count; i++) {
        if (parts[i]->channels != parts[0]->channels)
            return sk_fail(STOKER_ERR_ARGUMENT, "datasets of %d and %d channels cannot follow one another",
                           parts[0]->channels, parts[i]->channels);
    }
    concat_reader *self = sk_calloc(1, sizeof *self);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->reader = *parts[0];
    self->reader.ops = &concat_ops;
    self->reader.train_size = self->reader.test_size = 0;
    self->count = count;
    self->part = sk_calloc((size_t)count, sizeof *self->part);
    self->first = sk_calloc((size_t)count + 1, sizeof *self->first);
    if (self->part == NULL || self->first == NULL) {
        concat_destroy(&self->reader);
        return STOKER_ERR_MEMORY;
    }
    for (int32_t i = 0; i < count; i++) {
        self->part[i] = parts[i];
        self->first[i + 1] = self->first[i] + parts[i]->size;
        self->reader.encoded |= parts[i]->encoded;
        self->reader.classes = parts[i]->classes > self->reader.classes ? parts[i]->classes : self->reader.classes;
        if (parts[i]->width != parts[0]->width || parts[i]->height != parts[0]->height)
            self->reader.width = self->reader.height = 0;
    }
    self->reader.size = self->first[count];
    *out = &self->reader;
    return STOKER_OK;
}
