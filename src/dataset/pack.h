/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h: a pack file, mapped: its parts for those who look deeper than a dataset's reader does (src/pack).
 */
#ifndef SK_DATASET_PACK_H
#define SK_DATASET_PACK_H

#include "dataset/dataset.h"
#include "dataset/pack_format.h"

typedef struct sk_pack_file {
    char *path;
    const uint8_t *data;
    uint64_t size;
    int64_t samples, train, test;
    uint64_t index, names, names_size;
} sk_pack_file;

/* Maps a pack and checks its header. Begins as {0}; needs sk_pack_file_close also on failure. */
stoker_status sk_pack_file_open(sk_pack_file *self, const char *path);
void sk_pack_file_close(sk_pack_file *self);

/* Record `number`; a damaged one is STOKER_ERR_DATA. */
stoker_status sk_pack_file_record(const sk_pack_file *self, int64_t number, sk_pack_record *out);

/* What lies around a payload. */
typedef struct sk_pack_details {
    const char *path; /* not ended by a zero */
    const uint8_t *recipe, *source_hash;
    size_t path_size, recipe_size;
    uint64_t source_size;
} sk_pack_details;

stoker_status sk_pack_file_details(const sk_pack_file *self, int64_t number, const sk_pack_record *record,
                                   sk_pack_details *out);

/* STOKER_ERR_DATA where the payload's checksum is not its own. */
stoker_status sk_pack_file_check(const sk_pack_file *self, int64_t number, const sk_pack_record *record);

/* Where the record of this payload ends, its padding included; `details` are its own. */
static inline uint64_t sk_pack_record_end(const sk_pack_record *record, const sk_pack_details *details)
{
    uint64_t end = record->offset + record->size + details->path_size + details->recipe_size;

    return (end + SK_PACK_ALIGNMENT - 1) / SK_PACK_ALIGNMENT * SK_PACK_ALIGNMENT;
}

#endif
