/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c: a dataset → a pack.
 *
 * Samples are encoded by all threads and written in order, each record whole in itself, into OUT.partial, which nobody takes for a pack.
 * An interrupted run leaves it; the next one reads it up to the first record that is not sound or not of the source as it is now, and
 * goes on from there. Index, names and header come last, then the file gets its name.
 *
 * Shared state, all guarded by `lock`: `next` (the sample whose turn it is to be written), `end`, `failed`, `report`, `free_encoders`,
 * and the index entries of samples below `next`. `turn` is signalled when `next` or `failed` changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "pack/encode.h"
#include "pack/pack.h"

#define MOST_THREADS 64
#define MOST_PATH    65536 /* bytes of a sample's place that are kept */
#define RECORD_EXTRA 512   /* bytes a sample beside its payload, for the estimate of what is needed */

typedef struct packing {
    const stoker_dataset *dataset;
    const sk_reader *reader;
    const char *root, *path;
    const stoker_pack_settings *settings;
    stoker_pack_report *report;
    int32_t mode;
    char *partial; /* the file's name */
    int file;
    uint64_t job;
    uint8_t *index; /* SK_INDEX_RECORD a sample */
    sk_encoder encoders[MOST_THREADS];
    sk_encoder *free_encoders[MOST_THREADS];
    int32_t free_count;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    int64_t begin, next; /* samples */
    uint64_t end;        /* of what is written */
    stoker_status failed;
    char message[SK_MESSAGE_SIZE];
} packing;

/* --------------------------------------------------------------------------------------------------- files -------- */

static stoker_status write_at(const packing *self, const void *data, size_t size, uint64_t at)
{
    const uint8_t *from = data;

    while (size > 0) {
        ssize_t n = pwrite(self->file, from, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sk_fail_errno(errno, "cannot write %s", self->partial);
        from += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return STOKER_OK;
}

static bool read_at(const packing *self, void *data, size_t size, uint64_t at)
{
    uint8_t *to = data;

    while (size > 0) {
        ssize_t n = pread(self->file, to, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

/* Opens OUT.partial and locks it. Whoever held it before may have renamed it meanwhile: then it is another file. */
static stoker_status open_partial(packing *self)
{
    for (;;) {
        struct stat here, there;

        self->file = open(self->partial, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (self->file < 0)
            return sk_fail_errno(errno, "cannot write %s", self->partial);
        if (flock(self->file, LOCK_EX | LOCK_NB) != 0)
            return errno == EWOULDBLOCK ? sk_fail(STOKER_ERR_STATE, "%s: another packer is writing it", self->path)
                                        : sk_fail_errno(errno, "cannot lock %s", self->partial);
        if (fstat(self->file, &here) != 0)
            return sk_fail_errno(errno, "cannot look at %s", self->partial);
        if (stat(self->partial, &there) == 0 && there.st_ino == here.st_ino && there.st_dev == here.st_dev)
            return STOKER_OK;
        close(self->file);
        self->file = -1;
    }
}

static stoker_status check_target(const packing *self)
{
    struct stat there;

    if (stat(self->path, &there) != 0)
        return STOKER_OK;
    if (!S_ISREG(there.st_mode))
        return sk_fail(STOKER_ERR_ARGUMENT, "%s: not a regular file, so no pack can take its place", self->path);
    if (!self->settings->overwrite)
        return sk_fail(STOKER_ERR_ARGUMENT, "%s: is there already, and overwriting was not asked for", self->path);
    return STOKER_OK;
}

/* Refuses before the work begins what cannot fit. */
static stoker_status check_space(const packing *self)
{
    const sk_reader *reader = self->reader;
    uint64_t needed = 0;
    struct statvfs about;

    for (int64_t i = self->begin; i < reader->size; i++) {
        int64_t bytes = reader->ops->bytes != NULL ? reader->ops->bytes(reader, i) : 0;

        if (!reader->encoded)
            bytes = (int64_t)reader->width * reader->height * reader->channels;
        needed += (uint64_t)bytes + RECORD_EXTRA;
    }
    if (self->mode == STOKER_PACK_DCT)
        needed += needed / 10;
    if (fstatvfs(self->file, &about) != 0)
        return sk_fail_errno(errno, "cannot look at the disk of %s", self->partial);
    uint64_t there = (uint64_t)about.f_bavail * about.f_frsize;

    if (needed > there)
        return sk_fail(STOKER_ERR_IO, "%s: about %llu MB are needed, and the disk has %llu MB left", self->path,
                       (unsigned long long)(needed / 1000000 + 1), (unsigned long long)(there / 1000000));
    return STOKER_OK;
}

/* ------------------------------------------------------------------------------------------------- records -------- */

/* The sample's place without the dataset's own path; returns its size. */
static size_t source_path(const packing *self, int64_t number, char path[MOST_PATH])
{
    size_t root = self->root != NULL ? strlen(self->root) : 0;
    size_t size = self->reader->ops->where(self->reader, number, path, MOST_PATH);

    size = size < MOST_PATH ? size : MOST_PATH - 1;
    if (root > 0 && size > root && memcmp(path, self->root, root) == 0) {
        while (root < size && path[root] == '/')
            root++;
        memmove(path, path + root, size - root);
        size -= root;
    }
    return size;
}

/* Writes a record at the end of the file. Called by the thread whose turn it is. */
static stoker_status append(packing *self, int64_t number, const sk_sample *sample, const sk_encoded *coded,
                            char path[MOST_PATH])
{
    static const uint8_t zeros[SK_PACK_ALIGNMENT];
    uint8_t head[SK_RECORD_HEAD] = {0};
    size_t path_size = source_path(self, number, path);
    uint64_t payload = self->end + SK_RECORD_HEAD, tail = payload + coded->size + path_size;
    uint64_t end = (tail + SK_PACK_ALIGNMENT - 1) / SK_PACK_ALIGNMENT * SK_PACK_ALIGNMENT;
    sk_pack_record record = {.offset = payload,
                             .size = coded->size,
                             .check = sk_hash64(coded->data, coded->size, 0),
                             .label = sample->label_byte != NULL ? *sample->label_byte : sample->label,
                             .width = (uint32_t)coded->width,
                             .height = (uint32_t)coded->height,
                             .encoding = (uint8_t)coded->encoding,
                             .channels = (uint8_t)coded->channels};

    sk_put_32(head, SK_RECORD_MAGIC);
    sk_put_64(head + SK_RECORD_NUMBER, (uint64_t)number);
    sk_put_32(head + SK_RECORD_PATH_SIZE, (uint32_t)path_size);
    sk_put_64(head + SK_RECORD_TAIL_CHECK, sk_hash64(path, path_size, 0));
    sk_put_64(head + SK_RECORD_SOURCE_SIZE, sample->size);
    sk_hash128(sample->data, sample->size, head + SK_RECORD_SOURCE_HASH);
    sk_pack_record_write(&record, (uint64_t)number, head + SK_RECORD_INDEX);
    sk_put_64(head + SK_RECORD_CHECK, sk_hash64(head, SK_RECORD_CHECK, 0));
    stoker_status status = write_at(self, head, sizeof head, self->end);

    if (status == STOKER_OK)
        status = write_at(self, coded->data, coded->size, payload);
    if (status == STOKER_OK)
        status = write_at(self, path, path_size, payload + coded->size);
    if (status == STOKER_OK)
        status = write_at(self, zeros, (size_t)(end - tail), tail);
    if (status != STOKER_OK)
        return status;
    memcpy(self->index + (size_t)number * SK_INDEX_RECORD, head + SK_RECORD_INDEX, SK_INDEX_RECORD);
    self->end = end;
    return STOKER_OK;
}

static void count(packing *self, uint8_t encoding, size_t source_size)
{
    stoker_pack_report *report = self->report;

    report->samples++;
    report->bytes_in += (int64_t)source_size;
    report->dct += encoding == SK_PACK_DCT;
    report->jpeg += encoding == SK_PACK_JPEG;
    report->raw += encoding == SK_PACK_PLANAR || encoding == SK_PACK_INTERLEAVED;
    report->original += encoding == SK_PACK_ORIGINAL;
}

/* ------------------------------------------------------------------------------------------------- resuming ------- */

/* What must be the same for an interrupted run's records to be used. */
static uint64_t job_of(const packing *self, char path[MOST_PATH])
{
    const sk_reader *reader = self->reader;
    uint64_t hash = sk_hash64(reader->format, strlen(reader->format), (uint64_t)self->mode);

    hash = sk_hash64(&reader->size, sizeof reader->size, hash);
    for (int32_t i = 0; i < reader->classes; i++) {
        const char *name = reader->ops->class_name(reader, i);

        hash = sk_hash64(name, name != NULL ? strlen(name) + 1 : 0, hash);
    }
    for (int64_t i = 0; i < reader->size; i++)
        hash = sk_hash64(path, source_path(self, i, path), hash);
    return hash;
}

/* Whether a sound record of sample `number`, made from the source as it is, lies at the end; takes it up if so. */
static bool take_up(packing *self, int64_t number, sk_encoder *encoder, char path[MOST_PATH])
{
    uint8_t head[SK_RECORD_HEAD], hash[16];
    const uint8_t *index = head + SK_RECORD_INDEX;
    sk_pack_record record;
    sk_sample sample;
    size_t path_size;

    if (!read_at(self, head, sizeof head, self->end) || sk_get_32(head) != SK_RECORD_MAGIC ||
        sk_get_64(head + SK_RECORD_CHECK) != sk_hash64(head, SK_RECORD_CHECK, 0) ||
        sk_get_64(head + SK_RECORD_NUMBER) != (uint64_t)number ||
        !sk_pack_record_read(index, (uint64_t)number, SK_PACK_HEADER, INT64_MAX, &record) ||
        record.offset != self->end + SK_RECORD_HEAD)
        return false;
    if (self->reader->ops->fetch(self->reader, number, &encoder->fetched, &sample) != STOKER_OK)
        sample = (sk_sample){.size = 0};
    sk_hash128(sample.data, sample.size, hash);
    path_size = source_path(self, number, path);
    if (sample.size != sk_get_64(head + SK_RECORD_SOURCE_SIZE) || memcmp(hash, head + SK_RECORD_SOURCE_HASH, 16) != 0 ||
        path_size != sk_get_32(head + SK_RECORD_PATH_SIZE) ||
        (sample.data != NULL && record.label != (sample.label_byte != NULL ? *sample.label_byte : sample.label)))
        return false;
    uint64_t tail = record.offset + record.size + path_size;
    uint64_t end = (tail + SK_PACK_ALIGNMENT - 1) / SK_PACK_ALIGNMENT * SK_PACK_ALIGNMENT;
    struct stat about;

    if (fstat(self->file, &about) != 0 || end > (uint64_t)about.st_size ||
        sk_buffer_reserve(&encoder->coded, record.size) != STOKER_OK ||
        !read_at(self, encoder->coded.data, record.size, record.offset) ||
        sk_hash64(encoder->coded.data, record.size, 0) != record.check)
        return false;
    if (sk_buffer_reserve(&encoder->fetched, path_size) != STOKER_OK) /* the source is not needed any more */
        return false;
    uint8_t *there = encoder->fetched.data;

    if (!read_at(self, there, path_size, record.offset + record.size) || memcmp(there, path, path_size) != 0)
        return false;
    memcpy(self->index + (size_t)number * SK_INDEX_RECORD, index, SK_INDEX_RECORD);
    count(self, record.encoding, sample.size);
    self->end = end;
    return true;
}

/* Takes up what an interrupted run left, and cuts off the rest. */
static stoker_status resume(packing *self)
{
    uint8_t header[SK_PACK_HEADER];
    char *path = sk_malloc(MOST_PATH);
    stoker_status status = STOKER_OK;

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    self->job = job_of(self, path);
    self->end = SK_PACK_HEADER;
    if (read_at(self, header, sizeof header, 0) && memcmp(header, SK_PACK_UNFINISHED, 8) == 0 &&
        sk_get_32(header + SK_HEADER_VERSION) == SK_PACK_VERSION && sk_get_64(header + SK_HEADER_JOB) == self->job &&
        sk_get_64(header + SK_HEADER_CHECK) == sk_hash64(header, SK_HEADER_CHECK, 0)) {
        while (self->begin < self->reader->size && take_up(self, self->begin, &self->encoders[0], path))
            self->begin++;
    }
    sk_free(path);
    self->report->resumed = self->begin;
    self->next = self->begin;
    memset(header, 0, sizeof header);
    memcpy(header, SK_PACK_UNFINISHED, 8);
    sk_put_32(header + SK_HEADER_VERSION, SK_PACK_VERSION);
    sk_put_64(header + SK_HEADER_JOB, self->job);
    sk_put_64(header + SK_HEADER_CHECK, sk_hash64(header, SK_HEADER_CHECK, 0));
    if (ftruncate(self->file, self->begin > 0 ? (off_t)self->end : 0) != 0)
        status = sk_fail_errno(errno, "cannot write %s", self->partial);
    return status == STOKER_OK ? write_at(self, header, sizeof header, 0) : status;
}

/* ------------------------------------------------------------------------------------------------ the work -------- */

static void give_up(packing *self, stoker_status status)
{
    if (self->failed != STOKER_OK)
        return;
    self->failed = status;
    snprintf(self->message, sizeof self->message, "%s", sk_message());
}

/* Fetches and encodes. A file that is there and cannot be fetched as a sample (it is empty) is kept as it is. */
static stoker_status prepare(packing *self, int64_t number, sk_encoder *encoder, sk_sample *sample, sk_encoded *coded)
{
    stoker_status status = self->reader->ops->fetch(self->reader, number, &encoder->fetched, sample);

    if (status == STOKER_ERR_DATA) {
        *sample = (sk_sample){.label = self->reader->ops->label(self->reader, number)};
        *coded = (sk_encoded){.encoding = SK_PACK_ORIGINAL, .odd = true};
        return STOKER_OK;
    }
    if (status == STOKER_OK && sample->packed)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "a pack of a pack; pack the dataset that it was made from");
    return status == STOKER_OK ? sk_encoder_encode(encoder, sample, coded) : status;
}

static bool write_in_turn(packing *self, int64_t number, stoker_status status, const sk_sample *sample,
                          const sk_encoded *coded, char path[MOST_PATH])
{
    pthread_mutex_lock(&self->lock);
    while (self->next != number && self->failed == STOKER_OK)
        pthread_cond_wait(&self->turn, &self->lock);
    if (self->failed == STOKER_OK && status == STOKER_OK && coded->odd) {
        char reason[SK_MESSAGE_SIZE];

        snprintf(reason, sizeof reason, "%s", sk_message());
        self->report->odd++;
        self->reader->ops->where(self->reader, number, path, MOST_PATH);
        if (self->settings->problem != NULL)
            self->settings->problem(self->settings->context, path, reason);
    }
    if (self->failed == STOKER_OK) {
        if (status == STOKER_OK)
            status = append(self, number, sample, coded, path);
        if (status != STOKER_OK) {
            give_up(self, status);
        } else {
            count(self, (uint8_t)coded->encoding, sample->size);
            self->next++;
            if (self->settings->progress != NULL &&
                self->settings->progress(self->settings->context, self->next, self->reader->size) != 0)
                give_up(self, sk_fail(STOKER_ERR_INTERRUPTED, "interrupted; the same call again goes on"));
        }
    }
    bool good = self->failed == STOKER_OK;

    pthread_cond_broadcast(&self->turn);
    pthread_mutex_unlock(&self->lock);
    return good;
}

static bool pack_one(void *context, size_t index)
{
    packing *self = context;
    int64_t number = self->begin + (int64_t)index;
    sk_sample sample = {0};
    sk_encoded coded = {0};
    char *path = sk_malloc(MOST_PATH);

    pthread_mutex_lock(&self->lock);
    sk_encoder *encoder = self->free_encoders[--self->free_count]; /* as many as there may be threads */

    pthread_mutex_unlock(&self->lock);
    stoker_status status = STOKER_ERR_MEMORY;

    if (path != NULL && encoder->upright == NULL)
        status = sk_encoder_init(encoder, self->mode, &self->dataset->image);
    else if (path != NULL)
        status = STOKER_OK;
    if (status == STOKER_OK)
        status = prepare(self, number, encoder, &sample, &coded);
    bool good = write_in_turn(self, number, status, &sample, &coded, path);

    pthread_mutex_lock(&self->lock);
    self->free_encoders[self->free_count++] = encoder;
    pthread_mutex_unlock(&self->lock);
    sk_free(path);
    return good;
}

/* ----------------------------------------------------------------------------------------------- finishing -------- */

static stoker_status write_names(packing *self, uint8_t header[SK_PACK_HEADER])
{
    const sk_reader *reader = self->reader;
    size_t size = 0;

    for (int32_t i = 0; i < reader->classes; i++) {
        const char *name = reader->ops->class_name(reader, i);

        size += (name != NULL ? strlen(name) : 0) + 1;
    }
    char *names = sk_malloc(size), *at = names;

    if (names == NULL)
        return STOKER_ERR_MEMORY;
    for (int32_t i = 0; i < reader->classes; i++) {
        const char *name = reader->ops->class_name(reader, i);
        size_t length = name != NULL ? strlen(name) : 0;

        if (length > 0)
            memcpy(at, name, length);
        at[length] = '\0';
        at += length + 1;
    }
    stoker_status status = write_at(self, names, size, self->end);

    sk_put_64(header + SK_HEADER_NAMES, self->end);
    sk_put_64(header + SK_HEADER_NAMES_SIZE, size);
    sk_put_64(header + SK_HEADER_NAMES_CHECK, sk_hash64(names, size, 0));
    self->end += size;
    sk_free(names);
    return status;
}

/* So that the name survives a crash of the machine, too. */
static stoker_status sync_folder(const packing *self)
{
    char *folder = sk_strdup(self->path);

    if (folder == NULL)
        return STOKER_ERR_MEMORY;
    char *slash = strrchr(folder, '/');

    if (slash != NULL)
        slash[slash == folder ? 1 : 0] = '\0';
    int fd = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd); /* some file systems cannot */
        close(fd);
    }
    sk_free(folder);
    return STOKER_OK;
}

static stoker_status finish(packing *self)
{
    const sk_reader *reader = self->reader;
    uint8_t header[SK_PACK_HEADER] = {0};
    size_t index_size = (size_t)reader->size * SK_INDEX_RECORD;

    memcpy(header, SK_PACK_MAGIC, 8);
    sk_put_32(header + SK_HEADER_VERSION, SK_PACK_VERSION);
    sk_put_64(header + SK_HEADER_SAMPLES, (uint64_t)reader->size);
    sk_put_64(header + SK_HEADER_TRAIN, (uint64_t)reader->train_size);
    sk_put_64(header + SK_HEADER_TEST, (uint64_t)reader->test_size);
    sk_put_32(header + SK_HEADER_CLASSES, (uint32_t)reader->classes);
    sk_put_32(header + SK_HEADER_CHANNELS, (uint32_t)reader->channels);
    sk_put_32(header + SK_HEADER_WIDTH, (uint32_t)reader->width);
    sk_put_32(header + SK_HEADER_HEIGHT, (uint32_t)reader->height);
    sk_put_64(header + SK_HEADER_INDEX, self->end);
    sk_put_32(header + SK_HEADER_MODE, (uint32_t)self->mode);
    sk_put_32(header + SK_HEADER_ENCODED, (uint32_t)reader->encoded);
    sk_put_64(header + SK_HEADER_JOB, self->job);
    snprintf((char *)header + SK_HEADER_ORIGIN, 32, "%s", reader->format);
    sk_hash128(self->index, index_size, header + SK_HEADER_FINGERPRINT);
    stoker_status status = write_at(self, self->index, index_size, self->end);

    self->end += index_size;
    if (status == STOKER_OK)
        status = write_names(self, header);
    sk_put_64(header + SK_HEADER_FILE_SIZE, self->end);
    sk_put_64(header + SK_HEADER_CHECK, sk_hash64(header, SK_HEADER_CHECK, 0));
    if (status == STOKER_OK && ftruncate(self->file, (off_t)self->end) != 0)
        status = sk_fail_errno(errno, "cannot write %s", self->partial);
    if (status == STOKER_OK && fsync(self->file) != 0) /* the data before the header that vouches for it */
        status = sk_fail_errno(errno, "cannot write %s", self->partial);
    if (status == STOKER_OK)
        status = write_at(self, header, sizeof header, 0);
    if (status == STOKER_OK && fsync(self->file) != 0)
        status = sk_fail_errno(errno, "cannot write %s", self->partial);
    if (status == STOKER_OK && rename(self->partial, self->path) != 0)
        status = sk_fail_errno(errno, "cannot rename %s to %s", self->partial, self->path);
    self->report->bytes_out = (int64_t)self->end;
    return status == STOKER_OK ? sync_folder(self) : status;
}

static stoker_status run(packing *self)
{
    stoker_status status = check_target(self);

    if (status == STOKER_OK)
        status = open_partial(self);
    if (status == STOKER_OK)
        status = check_target(self); /* whoever held the lock may have finished */
    if (status == STOKER_OK)
        status = resume(self);
    if (status == STOKER_OK)
        status = check_space(self);
    if (status != STOKER_OK)
        return status;
    sk_parallel((size_t)(self->reader->size - self->begin), pack_one, self);
    if (self->failed != STOKER_OK) {
        sk_message_set(self->message);
        return self->failed;
    }
    return finish(self);
}

stoker_status sk_pack_write(const stoker_dataset *dataset, const char *root, const char *path,
                            const stoker_pack_settings *settings, stoker_pack_report *report)
{
    packing *self = sk_calloc(1, sizeof *self);
    size_t length = strlen(path);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    *self = (packing){.dataset = dataset,
                      .reader = dataset->reader,
                      .root = root,
                      .path = path,
                      .settings = settings,
                      .report = report,
                      .mode = settings->mode,
                      .file = -1,
                      .free_count = MOST_THREADS};
    if (self->mode == STOKER_PACK_AUTO)
        self->mode = dataset->reader->encoded ? STOKER_PACK_DCT : STOKER_PACK_RAW;
    for (int32_t i = 0; i < MOST_THREADS; i++)
        self->free_encoders[i] = &self->encoders[i];
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->turn, NULL);
    self->partial = sk_malloc(length + sizeof ".partial");
    self->index = sk_calloc((size_t)self->reader->size, SK_INDEX_RECORD);
    stoker_status status = STOKER_ERR_MEMORY;

    if (self->partial != NULL && self->index != NULL) {
        memcpy(self->partial, path, length);
        memcpy(self->partial + length, ".partial", sizeof ".partial");
        status = run(self);
    }
    if (self->file >= 0)
        close(self->file);
    for (int32_t i = 0; i < MOST_THREADS; i++)
        sk_encoder_clear(&self->encoders[i]);
    pthread_cond_destroy(&self->turn);
    pthread_mutex_destroy(&self->lock);
    sk_free(self->partial);
    sk_free(self->index);
    sk_free(self);
    return status;
}
