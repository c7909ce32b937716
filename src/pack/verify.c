/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c: every checksum of a pack.
 *
 * Shared state, guarded by `lock`: `damaged`, `done`, `stopped`, and the turn of calling the settings' functions.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "dataset/pack.h"
#include "image/dct.h"
#include "pack/pack.h"

typedef struct verifying {
    const sk_pack_file *file;
    const stoker_pack_settings *settings;
    pthread_mutex_t lock;
    int64_t damaged, done;
    bool stopped;
    uint64_t *ends; /* where each record begins and ends, two a sample; 0, 0 of damaged ones */
} verifying;

/* What a checksum does not cover is zero, up to the record's end. */
static bool is_padded(const sk_pack_file *file, const sk_pack_record *record, const sk_pack_details *details)
{
    uint64_t at = record->offset + record->size + details->path_size + details->recipe_size,
             end = sk_pack_record_end(record, details);

    if (end > file->index)
        return false;
    for (; at < end; at++) {
        if (file->data[at] != 0)
            return false;
    }
    return true;
}

static stoker_status check(verifying *self, int64_t number)
{
    sk_pack_record record;
    sk_pack_details details;
    stoker_status status = sk_pack_file_record(self->file, number, &record);

    if (status == STOKER_OK)
        status = sk_pack_file_details(self->file, number, &record, &details);
    if (status == STOKER_OK)
        status = sk_pack_file_check(self->file, number, &record);
    if (status != STOKER_OK)
        return status;
    if (!is_padded(self->file, &record, &details))
        return sk_fail(STOKER_ERR_DATA, "%s: bytes behind sample %lld are not zero", self->file->path,
                       (long long)number);
    self->ends[2 * number] = record.offset - SK_RECORD_HEAD;
    self->ends[2 * number + 1] = sk_pack_record_end(&record, &details);
    return STOKER_OK;
}

static bool verify_one(void *context, size_t index)
{
    verifying *self = context;
    stoker_status status = check(self, (int64_t)index);

    pthread_mutex_lock(&self->lock);
    if (status != STOKER_OK) {
        char where[64];

        self->damaged++;
        snprintf(where, sizeof where, "sample %lld", (long long)index);
        if (self->settings->problem != NULL)
            self->settings->problem(self->settings->context, where, sk_message());
    }
    self->done++;
    if (self->settings->progress != NULL &&
        self->settings->progress(self->settings->context, self->done, self->file->samples) != 0)
        self->stopped = true;
    bool go_on = !self->stopped;

    pthread_mutex_unlock(&self->lock);
    return go_on;
}

static int by_begin(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Records follow one another from the header to the index, and nothing lies between; names end the file. */
static stoker_status check_whole(verifying *self)
{
    const sk_pack_file *file = self->file;
    const uint8_t *header = file->data;
    uint8_t fingerprint[16];
    uint64_t at = SK_PACK_HEADER, index_end = file->index + (uint64_t)file->samples * SK_INDEX_RECORD;

    sk_hash128(file->data + file->index, (size_t)(index_end - file->index), fingerprint);
    if (memcmp(fingerprint, header + SK_HEADER_FINGERPRINT, 16) != 0)
        return sk_fail(STOKER_ERR_DATA, "%s: the index is not the one that the header tells of", file->path);
    if (sk_get_64(header + SK_HEADER_NAMES_CHECK) != sk_hash64(file->data + file->names, file->names_size, 0) ||
        file->names != index_end || file->names + file->names_size != file->size)
        return sk_fail(STOKER_ERR_DATA, "%s: damaged class names", file->path);
    qsort(self->ends, (size_t)file->samples, 2 * sizeof *self->ends, by_begin);
    for (int64_t i = 0; i < file->samples; i++) {
        if (self->ends[2 * i] != at)
            return sk_fail(STOKER_ERR_DATA, "%s: bytes at %llu that belong to no sample", file->path,
                           (unsigned long long)at);
        at = self->ends[2 * i + 1];
    }
    if (at != file->index)
        return sk_fail(STOKER_ERR_DATA, "%s: bytes at %llu that belong to no sample", file->path,
                       (unsigned long long)at);
    return STOKER_OK;
}

static stoker_status run(verifying *self, int64_t *damaged)
{
    const sk_pack_file *file = self->file;

    self->ends = sk_calloc((size_t)file->samples + 1, 2 * sizeof *self->ends);
    if (self->ends == NULL)
        return STOKER_ERR_MEMORY;
    sk_parallel((size_t)file->samples, verify_one, self);
    *damaged = self->damaged;
    if (self->stopped)
        return sk_fail(STOKER_ERR_INTERRUPTED, "interrupted");
    if (self->damaged > 0)
        return sk_fail(STOKER_ERR_DATA, "%s: %lld of %lld samples are damaged", file->path, (long long)self->damaged,
                       (long long)file->samples);
    return check_whole(self);
}

stoker_status sk_pack_verify(const char *path, const stoker_pack_settings *settings, int64_t *damaged)
{
    sk_pack_file file = {0};
    stoker_status status = sk_pack_file_open(&file, path);

    if (status == STOKER_OK) {
        verifying self = {.file = &file, .settings = settings};

        pthread_mutex_init(&self.lock, NULL);
        status = run(&self, damaged);
        pthread_mutex_destroy(&self.lock);
        sk_free(self.ends);
    }
    sk_pack_file_close(&file);
    return status;
}
