/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar.c: the binary layout of CIFAR-10 and CIFAR-100.
 *
 * A record is one label byte (CIFAR-10) or two, coarse then fine (CIFAR-100), and 3,072 bytes: planes red, green, blue of 32 rows of
 * 32 pixels (https://www.cs.toronto.edu/~kriz/cifar.html). Files are read into memory when opened (184 MB for all of CIFAR-10): a
 * mapped file that someone cuts short would kill the training with SIGBUS.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dataset/cifar.h"

#define SIDE        32
#define PIXELS      (3 * SIDE * SIDE)
#define MAX_FILES   256
#define NAMES_LIMIT (1 << 20) /* bytes of a file of class names */

typedef struct cifar_file {
    char *path;
    sk_buffer bytes;
    int64_t records;
    int64_t first; /* number of its first sample in the dataset */
    bool test;
} cifar_file;

typedef struct cifar_reader {
    sk_reader reader;
    int32_t count;
    cifar_file *files; /* training files first */
    size_t record;     /* bytes */
    size_t label_at;   /* of the label within a record */
    size_t pixels_at;
    sk_class_names names;
} cifar_reader;

static const cifar_reader *from_reader(const sk_reader *reader)
{
    return (const cifar_reader *)reader;
}

static void destroy(sk_reader *reader)
{
    cifar_reader *self = (cifar_reader *)reader;

    for (int32_t i = 0; i < self->count; i++) {
        sk_free(self->files[i].path);
        sk_buffer_free(&self->files[i].bytes);
    }
    sk_free(self->files);
    sk_class_names_free(&self->names);
    sk_free(self);
}

static const cifar_file *find_file(const cifar_reader *self, int64_t index)
{
    int32_t i = self->count - 1;

    while (i > 0 && self->files[i].first > index)
        i--;
    return &self->files[i];
}

static const uint8_t *find_record(const cifar_reader *self, int64_t index)
{
    const cifar_file *file = find_file(self, index);

    return file->bytes.data + (size_t)(index - file->first) * self->record;
}

static int64_t label(const sk_reader *reader, int64_t index)
{
    const cifar_reader *self = from_reader(reader);

    return find_record(self, index)[self->label_at];
}

static stoker_status fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const cifar_reader *self = from_reader(reader);
    const uint8_t *record = find_record(self, index);

    (void)scratch;
    *out = (sk_sample){.kind = SK_SAMPLE_PLANAR,
                       .data = record + self->pixels_at,
                       .size = PIXELS,
                       .width = SIDE,
                       .height = SIDE,
                       .channels = 3,
                       .label = record[self->label_at]};
    return STOKER_OK;
}

static size_t where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const cifar_reader *self = from_reader(reader);
    const cifar_file *file = find_file(self, index);
    int n = snprintf(buffer, size, "%s, record %lld", file->path, (long long)(index - file->first));

    return n > 0 ? (size_t)n : 0;
}

static const char *class_name(const sk_reader *reader, int32_t number)
{
    return sk_class_names_get(&from_reader(reader)->names, number);
}

static const sk_reader_ops ops = {
    .destroy = destroy, .fetch = fetch, .label = label, .where = where, .class_name = class_name};

/* ---------------------------------------------------------------------------------------------- class names -------- */

stoker_status sk_class_names_read(sk_class_names *names, const char *path)
{
    sk_buffer buffer = {0};
    size_t size = 0;
    stoker_status status = sk_file_read(path, NAMES_LIMIT, &buffer, &size);

    for (size_t at = 0; status == STOKER_OK && at < size;) {
        const char *line = (const char *)buffer.data + at;
        const char *end = memchr(line, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - line) : size - at;

        at += length + 1;
        while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' '))
            length--;
        if (length > 0) /* the official file ends in an empty line */
            status = sk_class_names_add(names, line, length);
    }
    sk_buffer_free(&buffer);
    return status;
}

stoker_status sk_class_names_add(sk_class_names *names, const char *text, size_t length)
{
    char **grown = sk_realloc_array(names->name, (size_t)names->count + 1, sizeof *grown);

    if (grown == NULL)
        return STOKER_ERR_MEMORY;
    names->name = grown;
    char *copy = sk_malloc(length + 1);

    if (copy == NULL)
        return STOKER_ERR_MEMORY;
    memcpy(copy, text, length);
    copy[length] = '\0';
    names->name[names->count++] = copy;
    return STOKER_OK;
}

const char *sk_class_names_get(const sk_class_names *names, int32_t number)
{
    return number >= 0 && number < names->count ? names->name[number] : NULL;
}

void sk_class_names_free(sk_class_names *names)
{
    for (int32_t i = 0; i < names->count; i++)
        sk_free(names->name[i]);
    sk_free(names->name);
    memset(names, 0, sizeof *names);
}

/* ---------------------------------------------------------------------------------------------------- open -------- */

/* What a file's name says: -1 nothing. */
typedef struct name_meaning {
    int32_t labels; /* label bytes a record: 1 or 2 */
    bool test;
    long number; /* of a data_batch */
} name_meaning;

static bool read_name(const char *name, name_meaning *out)
{
    *out = (name_meaning){.labels = 1};
    if (!sk_ends_with(name, ".bin"))
        return false;
    if (sk_starts_with(name, "data_batch_")) {
        out->number = strtol(name + strlen("data_batch_"), NULL, 10);
        return true;
    }
    out->test = sk_starts_with(name, "test");
    if (strcmp(name, "test_batch.bin") == 0)
        return true;
    out->labels = 2;
    return strcmp(name, "train.bin") == 0 || strcmp(name, "test.bin") == 0;
}

static stoker_status add_file(cifar_reader *self, const char *folder, const char *name, bool test)
{
    cifar_file *grown = sk_realloc_array(self->files, (size_t)self->count + 1, sizeof *grown);

    if (grown == NULL)
        return STOKER_ERR_MEMORY;
    self->files = grown;
    char *path = folder != NULL ? sk_path_join(folder, name) : sk_strdup(name);

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    self->files[self->count++] = (cifar_file){.path = path, .test = test};
    return STOKER_OK;
}

/* Training files in the order of their numbers, then test files. */
static int compare_files(const void *a, const void *b)
{
    const cifar_file *x = a, *y = b;
    name_meaning mx, my;

    read_name(sk_path_name(x->path), &mx);
    read_name(sk_path_name(y->path), &my);
    if (x->test != y->test)
        return x->test ? 1 : -1;
    return mx.number != my.number ? (mx.number < my.number ? -1 : 1) : strcmp(x->path, y->path);
}

static bool wanted(bool test, int32_t split, bool has_train)
{
    switch (split) {
    case STOKER_SPLIT_TRAIN:
        return !test;
    case STOKER_SPLIT_TEST:
        return test;
    case STOKER_SPLIT_ALL:
        return true;
    default:
        return !has_train || !test;
    }
}

/* The files of a folder; *labels stays 0 where there are none. */
static stoker_status find_files(cifar_reader *self, const char *folder, int32_t split, int32_t *labels)
{
    stoker_status status = STOKER_OK;
    bool has_train = false, chosen = false;
    struct dirent *entry;
    DIR *listing = opendir(folder);

    *labels = 0;
    if (listing == NULL)
        return STOKER_OK; /* the folder's own reader tells why */
    while (status == STOKER_OK && (entry = readdir(listing)) != NULL) {
        name_meaning meaning;

        if (!read_name(entry->d_name, &meaning))
            continue;
        if (self->count == MAX_FILES)
            status = sk_fail(STOKER_ERR_LIMIT, "%s: more than %d batch files", folder, MAX_FILES);
        else
            status = add_file(self, folder, entry->d_name, meaning.test);
        /* Where both layouts lie in one folder, CIFAR-10's names, which are the less common words, decide. */
        *labels = *labels == 1 ? 1 : meaning.labels;
        has_train = has_train || !meaning.test;
    }
    closedir(listing);
    if (status != STOKER_OK || *labels == 0)
        return status;
    int32_t kept = 0;

    for (int32_t i = 0; i < self->count; i++) {
        name_meaning meaning;

        read_name(sk_path_name(self->files[i].path), &meaning);
        if (meaning.labels == *labels && wanted(self->files[i].test, split, has_train)) {
            self->files[kept++] = self->files[i];
            chosen = true;
        } else {
            sk_free(self->files[i].path);
        }
    }
    self->count = kept;
    if (!chosen)
        return sk_fail(STOKER_ERR_ARGUMENT, "%s: no %s batch file there", folder,
                       split == STOKER_SPLIT_TEST ? "test" : "training");
    qsort(self->files, (size_t)self->count, sizeof *self->files, compare_files);
    return STOKER_OK;
}

/* One label byte or two? By the size; where both divide it, or neither, by the name. */
static int32_t labels_of_size(size_t size, const char *path)
{
    bool one = size % (PIXELS + 1) == 0, two = size % (PIXELS + 2) == 0;
    name_meaning meaning;

    if (one != two)
        return one ? 1 : 2;
    read_name(sk_path_name(path), &meaning);
    return meaning.labels == 2 && read_name(sk_path_name(path), &meaning) ? 2 : 1;
}

static stoker_status check_labels(const cifar_reader *self, const cifar_file *file, const int32_t classes[2],
                                  int32_t labels)
{
    for (int64_t r = 0; r < file->records; r++) {
        const uint8_t *record = file->bytes.data + (size_t)r * self->record;

        for (int32_t i = 0; i < labels; i++) {
            if (record[i] >= classes[i])
                return sk_fail(STOKER_ERR_DATA, "%s: record %lld (byte %lld): label %d is not in 0..%d", file->path,
                               (long long)r, (long long)((size_t)r * self->record + (size_t)i), record[i],
                               classes[i] - 1);
        }
    }
    return STOKER_OK;
}

static stoker_status read_file(cifar_reader *self, cifar_file *file, int32_t *labels, bool coarse)
{
    size_t size = 0;
    stoker_status status = sk_file_read(file->path, SK_FILE_ANY_SIZE, &file->bytes, &size);

    if (status != STOKER_OK)
        return status;
    if (size == 0)
        return sk_fail(STOKER_ERR_DATA, "%s: the file is empty", file->path);
    if (*labels == 0)
        *labels = labels_of_size(size, file->path);
    self->record = (size_t)*labels + PIXELS;
    self->pixels_at = (size_t)*labels;
    self->label_at = *labels == 2 && !coarse ? 1 : 0;
    file->records = (int64_t)(size / self->record);
    if (size % self->record != 0) {
        if (file->bytes.data[0] == 0x80)
            return sk_fail(STOKER_ERR_DATA, "%s: a Python pickle under a .bin name, not CIFAR's binary layout",
                           file->path);
        return sk_fail(STOKER_ERR_DATA, "%s: %zu bytes are %lld records of %zu bytes and a partial record of %zu bytes",
                       file->path, size, (long long)file->records, self->record, size % self->record);
    }
    int32_t hundred[2] = {20, 100}, ten[2] = {10, 10};

    return check_labels(self, file, *labels == 2 ? hundred : ten, *labels);
}

static stoker_status read_names(cifar_reader *self, const char *folder, int32_t labels, bool coarse)
{
    const char *name = labels == 1 ? "batches.meta.txt" : coarse ? "coarse_label_names.txt" : "fine_label_names.txt";
    char *path = sk_path_join(folder, name);

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    stoker_status status = sk_path_is_file(path) ? sk_class_names_read(&self->names, path) : STOKER_OK;

    sk_free(path);
    return status;
}

static stoker_status open_files(cifar_reader *self, const char *folder, int32_t labels, bool coarse)
{
    for (int32_t i = 0; i < self->count; i++) {
        cifar_file *file = &self->files[i];
        stoker_status status = read_file(self, file, &labels, coarse);

        if (status != STOKER_OK)
            return status;
        file->first = self->reader.size;
        self->reader.size += file->records;
        if (file->test)
            self->reader.test_size += file->records;
        else
            self->reader.train_size += file->records;
    }
    self->reader.format = labels == 1 ? "cifar10" : "cifar100";
    self->reader.classes = labels == 1 ? 10 : coarse ? 20 : 100;
    return folder != NULL ? read_names(self, folder, labels, coarse) : STOKER_OK;
}

/* The folder of a path: "." for a bare name. */
static char *folder_of(const char *path)
{
    char *folder = sk_strdup(path);
    char *slash = folder != NULL ? strrchr(folder, '/') : NULL;

    if (folder == NULL)
        return NULL;
    if (slash == folder)
        folder[1] = '\0';
    else if (slash != NULL)
        *slash = '\0';
    else
        strcpy(folder, ".");
    return folder;
}

/* Looks in `path` and one level below, under the names that the archives unpack to. */
static stoker_status find_in_folder(cifar_reader *self, const char *path, int32_t split, int32_t *labels, char **folder)
{
    static const char *const below[] = {NULL, "cifar-10-batches-bin", "cifar-100-binary"};

    *labels = 0;
    for (size_t i = 0; i < sizeof below / sizeof below[0] && *labels == 0; i++) {
        sk_free(*folder);
        *folder = below[i] != NULL ? sk_path_join(path, below[i]) : sk_strdup(path);
        if (*folder == NULL)
            return STOKER_ERR_MEMORY;
        stoker_status status = find_files(self, *folder, split, labels);

        if (status != STOKER_OK)
            return status;
    }
    return STOKER_OK;
}

stoker_status sk_cifar_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out)
{
    stoker_status status = STOKER_ERR_MEMORY;
    char *folder = NULL;
    int32_t labels = 0;
    bool coarse = settings->coarse_labels != 0;
    cifar_reader *self = sk_calloc(1, sizeof *self);

    *out = NULL;
    *matched = false;
    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->reader = (sk_reader){.ops = &ops, .format = "cifar10", .channels = 3, .width = SIDE, .height = SIDE};
    if (sk_path_is_folder(path)) {
        status = find_in_folder(self, path, settings->split, &labels, &folder);
        *matched = labels != 0;
        if (status != STOKER_OK || !*matched)
            goto fail;
    } else {
        *matched = sk_ends_with(path, ".bin") && sk_path_is_file(path);
        if (!*matched) {
            status = STOKER_OK;
            goto fail;
        }
        name_meaning meaning;

        read_name(sk_path_name(path), &meaning);
        folder = folder_of(path);
        status = folder != NULL ? add_file(self, NULL, path, meaning.test) : STOKER_ERR_MEMORY;
        if (status != STOKER_OK)
            goto fail;
    }
    status = open_files(self, folder, labels, coarse);
    if (status != STOKER_OK)
        goto fail;
    sk_free(folder);
    *out = &self->reader;
    return STOKER_OK;
fail:
    sk_free(folder);
    destroy(&self->reader);
    return status;
}
