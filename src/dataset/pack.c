/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c: a pack, mapped into memory. Opening looks at the header alone, whatever the size; a sample's index record and payload are
 * checked when it is fetched. Nothing in the file is trusted.
 *
 * Shared state: `verified`, a byte a raw sample that says that its payload was found sound: set by any thread, never taken back. Whole
 * raw samples are so small that to check each of them in each epoch would be felt.
 */
#include "dataset/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096 /* of madvise; larger pages only make it do less */

typedef struct pack_reader {
    sk_reader reader;
    sk_pack_file file;
    int64_t first;            /* the split's first sample */
    atomic_uchar *verified;   /* one a sample of the file */
    const char **class_names; /* into `names` */
    char *names;
} pack_reader;

/* ---------------------------------------------------------------------------------------------------- file -------- */

static stoker_status map_file(sk_pack_file *self)
{
    struct stat about;
    int fd = open(self->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return sk_fail_errno(errno, "cannot open %s", self->path);
    if (fstat(fd, &about) != 0 || about.st_size < SK_PACK_HEADER) {
        close(fd);
        return sk_fail(STOKER_ERR_DATA, "%s: a pack that was cut short: not even its header is whole", self->path);
    }
    self->size = (uint64_t)about.st_size;
    void *memory = mmap(NULL, self->size, PROT_READ, MAP_SHARED, fd, 0);
    int code = errno;

    close(fd);
    if (memory == MAP_FAILED)
        return sk_fail_errno(code, "cannot map %s", self->path);
    self->data = memory;
    return STOKER_OK;
}

static stoker_status fail_header(const sk_pack_file *self)
{
    return sk_fail(STOKER_ERR_DATA, "%s: a damaged pack: its header's checksum or an offset in it is wrong",
                   self->path);
}

static stoker_status read_header(sk_pack_file *self)
{
    const uint8_t *header = self->data;
    uint32_t version = sk_get_32(header + SK_HEADER_VERSION);
    uint64_t samples = sk_get_64(header + SK_HEADER_SAMPLES), train = sk_get_64(header + SK_HEADER_TRAIN),
             test = sk_get_64(header + SK_HEADER_TEST), size = sk_get_64(header + SK_HEADER_FILE_SIZE);

    if (memcmp(header, SK_PACK_UNFINISHED, 8) == 0)
        return sk_fail(STOKER_ERR_DATA, "%s: an unfinished pack; the same `stoker pack` again completes it",
                       self->path);
    if (memcmp(header, SK_PACK_MAGIC, 8) != 0)
        return sk_fail(STOKER_ERR_DATA, "%s: not a pack", self->path);
    if (version != SK_PACK_VERSION && version < 1000)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: a pack of version %u; this library reads version %d", self->path,
                       version, SK_PACK_VERSION);
    if (!sk_hash_fits(sk_get_64(header + SK_HEADER_CHECK), sk_hash64(header, SK_HEADER_CHECK, 0)) ||
        version != SK_PACK_VERSION)
        return fail_header(self);
    if (size != self->size)
        return sk_fail(STOKER_ERR_DATA, "%s: a pack of %llu bytes that has %llu: cut short, or not copied whole",
                       self->path, (unsigned long long)size, (unsigned long long)self->size);
    self->index = sk_get_64(header + SK_HEADER_INDEX);
    self->names = sk_get_64(header + SK_HEADER_NAMES);
    self->names_size = sk_get_64(header + SK_HEADER_NAMES_SIZE);
    if (self->index < SK_PACK_HEADER || self->index > size || samples > (size - self->index) / SK_INDEX_RECORD ||
        self->names < self->index + samples * SK_INDEX_RECORD || self->names > size ||
        self->names_size > size - self->names || train > samples || test > samples - train ||
        (train + test != samples && train + test != 0))
        return fail_header(self);
    self->samples = (int64_t)samples;
    self->train = (int64_t)train;
    self->test = (int64_t)test;
    return STOKER_OK;
}

stoker_status sk_pack_file_open(sk_pack_file *self, const char *path)
{
    self->path = sk_strdup(path);
    if (self->path == NULL)
        return STOKER_ERR_MEMORY;
    stoker_status status = map_file(self);

    return status == STOKER_OK ? read_header(self) : status;
}

void sk_pack_file_close(sk_pack_file *self)
{
    if (self->data != NULL)
        munmap((void *)(uintptr_t)self->data, self->size);
    sk_free(self->path);
    *self = (sk_pack_file){0};
}

stoker_status sk_pack_file_record(const sk_pack_file *self, int64_t number, sk_pack_record *out)
{
    const uint8_t *at = self->data + self->index + (uint64_t)number * SK_INDEX_RECORD;

    if (!sk_pack_record_read(at, (uint64_t)number, SK_PACK_HEADER, self->index, out))
        return sk_fail(STOKER_ERR_DATA, "%s: damaged index record of sample %lld", self->path, (long long)number);
    return STOKER_OK;
}

stoker_status sk_pack_file_details(const sk_pack_file *self, int64_t number, const sk_pack_record *record,
                                   sk_pack_details *out)
{
    const uint8_t *head = self->data + record->offset - SK_RECORD_HEAD,
                  *tail = self->data + record->offset + record->size;
    uint64_t path_size = sk_get_32(head + SK_RECORD_PATH_SIZE), recipe_size = sk_get_32(head + SK_RECORD_RECIPE_SIZE);

    if (sk_get_32(head) != SK_RECORD_MAGIC || sk_get_64(head + SK_RECORD_NUMBER) != (uint64_t)number ||
        !sk_hash_fits(sk_get_64(head + SK_RECORD_CHECK), sk_hash64(head, SK_RECORD_CHECK, 0)) ||
        memcmp(head + SK_RECORD_INDEX, self->data + self->index + (uint64_t)number * SK_INDEX_RECORD,
               SK_INDEX_RECORD) != 0 ||
        path_size + recipe_size > self->index - record->offset - record->size ||
        !sk_hash_fits(sk_get_64(head + SK_RECORD_TAIL_CHECK), sk_hash64(tail, path_size + recipe_size, 0)))
        return sk_fail(STOKER_ERR_DATA, "%s: damaged record of sample %lld", self->path, (long long)number);
    *out = (sk_pack_details){.path = (const char *)tail,
                             .path_size = path_size,
                             .recipe = tail + path_size,
                             .recipe_size = recipe_size,
                             .source_hash = head + SK_RECORD_SOURCE_HASH,
                             .source_size = sk_get_64(head + SK_RECORD_SOURCE_SIZE)};
    return STOKER_OK;
}

stoker_status sk_pack_file_check(const sk_pack_file *self, int64_t number, const sk_pack_record *record)
{
    if (!sk_hash_fits(record->check, sk_hash64(self->data + record->offset, record->size, 0)))
        return sk_fail(STOKER_ERR_DATA, "%s: sample %lld is damaged: its checksum is wrong", self->path,
                       (long long)number);
    return STOKER_OK;
}

/* -------------------------------------------------------------------------------------------------- reader -------- */

static const pack_reader *as_pack(const sk_reader *reader)
{
    return (const pack_reader *)reader;
}

static void destroy(sk_reader *reader)
{
    pack_reader *self = (pack_reader *)reader;

    sk_pack_file_close(&self->file);
    sk_free((void *)(uintptr_t)self->verified);
    sk_free(self->class_names);
    sk_free(self->names);
    sk_free(self);
}

static size_t where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const pack_reader *self = as_pack(reader);
    char message[SK_MESSAGE_SIZE];
    sk_pack_record record;
    sk_pack_details details;
    int64_t number = self->first + index;
    int n;

    snprintf(message, sizeof message, "%s", sk_message()); /* a place that cannot be told is no error of its own */
    if (sk_pack_file_record(&self->file, number, &record) == STOKER_OK &&
        sk_pack_file_details(&self->file, number, &record, &details) == STOKER_OK)
        n = snprintf(buffer, size, "%s: %.*s", self->file.path,
                     (int)(details.path_size < 65536 ? details.path_size : 65536), details.path);
    else
        n = snprintf(buffer, size, "%s: sample %lld", self->file.path, (long long)number);
    sk_message_set(message);
    return n > 0 ? (size_t)n : 0;
}

/* Of raw samples each is checked once. */
static stoker_status check_raw(const pack_reader *self, int64_t number, const sk_pack_record *record)
{
    if (atomic_load_explicit(&self->verified[number], memory_order_relaxed) != 0)
        return STOKER_OK;
    stoker_status status = sk_pack_file_check(&self->file, number, record);

    if (status == STOKER_OK)
        atomic_store_explicit(&self->verified[number], 1, memory_order_relaxed);
    return status;
}

static stoker_status fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const pack_reader *self = as_pack(reader);
    int64_t number = self->first + index;
    sk_pack_record record;
    stoker_status status = sk_pack_file_record(&self->file, number, &record);

    (void)scratch;
    if (status != STOKER_OK)
        return status;
    *out = (sk_sample){
        .kind = SK_SAMPLE_ENCODED, .data = self->file.data + record.offset, .size = record.size, .label = record.label};
    switch (record.encoding) {
    case SK_PACK_PLANAR:
    case SK_PACK_INTERLEAVED:
        out->kind = record.encoding == SK_PACK_PLANAR ? SK_SAMPLE_PLANAR : SK_SAMPLE_INTERLEAVED;
        out->width = (int32_t)record.width;
        out->height = (int32_t)record.height;
        out->channels = record.channels;
        return check_raw(self, number, &record);
    case SK_PACK_DCT:
        out->packed = true; /* its rows have checksums of their own */
        return STOKER_OK;
    default:
        status = sk_pack_file_check(&self->file, number, &record);
        if (status == STOKER_OK && record.size == 0) {
            char place[SK_MESSAGE_SIZE / 2];

            where(reader, index, place, sizeof place);
            return sk_fail(STOKER_ERR_DATA, "%s: the file is empty", place);
        }
        return status;
    }
}

static int64_t label(const sk_reader *reader, int64_t index)
{
    const pack_reader *self = as_pack(reader);

    return sk_pack_record_label(self->file.data + self->file.index + (uint64_t)(self->first + index) * SK_INDEX_RECORD);
}

static const char *class_name(const sk_reader *reader, int32_t number)
{
    return number >= 0 && number < reader->classes ? as_pack(reader)->class_names[number] : NULL;
}

static void will_need(const sk_reader *reader, int64_t index)
{
    const pack_reader *self = as_pack(reader);
    sk_pack_record record;

    if (!sk_pack_record_read(self->file.data + self->file.index + (uint64_t)(self->first + index) * SK_INDEX_RECORD,
                             (uint64_t)(self->first + index), SK_PACK_HEADER, self->file.index, &record))
        return;
    uintptr_t from = (uintptr_t)(self->file.data + record.offset) / PAGE * PAGE;

    madvise((void *)from, (uintptr_t)(self->file.data + record.offset + record.size) - from, MADV_WILLNEED);
}

static const sk_reader_ops ops = {
    .destroy = destroy,
    .fetch = fetch,
    .label = label,
    .where = where,
    .class_name = class_name,
    .will_need = will_need,
};

/* Names ended by zeros, one a class. */
static stoker_status read_names(pack_reader *self, uint32_t classes)
{
    const sk_pack_file *file = &self->file;
    const uint8_t *names = file->data + file->names;

    if (!sk_hash_fits(sk_get_64(file->data + SK_HEADER_NAMES_CHECK), sk_hash64(names, file->names_size, 0)) ||
        classes > file->names_size || (file->names_size > 0 && names[file->names_size - 1] != 0))
        return sk_fail(STOKER_ERR_DATA, "%s: damaged class names", file->path);
    self->names = sk_malloc(file->names_size);
    self->class_names = sk_calloc(classes, sizeof *self->class_names);
    if (self->names == NULL || self->class_names == NULL)
        return STOKER_ERR_MEMORY;
    if (file->names_size > 0)
        memcpy(self->names, names, file->names_size);
    const char *at = self->names, *end = self->names + file->names_size;

    for (uint32_t i = 0; i < classes; i++) {
        if (at == end)
            return sk_fail(STOKER_ERR_DATA, "%s: damaged class names", file->path);
        self->class_names[i] = at;
        at += strlen(at) + 1;
    }
    self->reader.classes = (int32_t)classes;
    return STOKER_OK;
}

static void choose_split(pack_reader *self, int32_t split)
{
    const sk_pack_file *file = &self->file;
    sk_reader *reader = &self->reader;

    reader->train_size = file->train;
    reader->test_size = file->test;
    if (split == STOKER_SPLIT_TEST && file->test > 0) {
        self->first = file->train;
        reader->train_size = 0;
    } else if ((split == STOKER_SPLIT_TRAIN || split == STOKER_SPLIT_DEFAULT) && file->train > 0) {
        reader->test_size = 0;
    }
    reader->size = reader->train_size + reader->test_size;
    if (file->train + file->test == 0)
        reader->size = file->samples;
}

static stoker_status set_up(pack_reader *self, const char *path, int32_t split)
{
    stoker_status status = sk_pack_file_open(&self->file, path);

    if (status != STOKER_OK)
        return status;
    const uint8_t *header = self->file.data;

    self->reader.channels = (int32_t)sk_get_32(header + SK_HEADER_CHANNELS);
    self->reader.width = (int32_t)sk_get_32(header + SK_HEADER_WIDTH);
    self->reader.height = (int32_t)sk_get_32(header + SK_HEADER_HEIGHT);
    self->reader.encoded = sk_get_32(header + SK_HEADER_ENCODED) != 0;
    if ((self->reader.channels != 1 && self->reader.channels != 3) || self->reader.width < 0 || self->reader.height < 0)
        return fail_header(&self->file);
    status = read_names(self, sk_get_32(header + SK_HEADER_CLASSES));
    if (status != STOKER_OK)
        return status;
    choose_split(self, split);
    self->verified = sk_calloc((size_t)self->file.samples, sizeof *self->verified);
    return self->verified != NULL ? STOKER_OK : STOKER_ERR_MEMORY;
}

static bool looks_like_pack(const char *path)
{
    uint8_t head[8];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return false;
    bool looks = read(fd, head, sizeof head) == (ssize_t)sizeof head &&
                 (memcmp(head, SK_PACK_MAGIC, 8) == 0 || memcmp(head, SK_PACK_UNFINISHED, 8) == 0);

    close(fd);
    return looks;
}

stoker_status sk_pack_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out)
{
    *out = NULL;
    *matched = looks_like_pack(path);
    if (!*matched)
        return STOKER_OK;
    pack_reader *self = sk_calloc(1, sizeof *self);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->reader.ops = &ops;
    self->reader.format = "pack";
    stoker_status status = set_up(self, path, settings->split);

    if (status != STOKER_OK) {
        destroy(&self->reader);
        return status;
    }
    *out = &self->reader;
    return STOKER_OK;
}
