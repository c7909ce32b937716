/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar_binary.c: the binary layout of CIFAR-10 and CIFAR-100.
 *
 * A record is one label byte (CIFAR-10) or two, coarse then fine (CIFAR-100), and 3,072 bytes of pixels
 * (https://www.cs.toronto.edu/~kriz/cifar.html).
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dataset/cifar.h"
#include "dataset/kind.h"

#define NAMES_LIMIT (1 << 20) /* bytes of a file of class names */

static bool read_name(const char *name, sk_cifar_name *out)
{
    *out = (sk_cifar_name){.labels = 1};
    if (!sk_ends_with(name, ".bin"))
        return false;
    if (sk_starts_with(name, "data_batch_")) {
        out->number = strtol(name + strlen("data_batch_"), NULL, 10);
        return true;
    }
    out->test = sk_starts_with(name, "test");
    if (strcmp(name, "test_batch.bin") == 0)
        return true;
    if (strcmp(name, "train.bin") != 0 && strcmp(name, "test.bin") != 0)
        return false;
    out->labels = 2;
    return true;
}

/* A single file of another name is taken for its ending. */
static bool claims(const char *path, bool named)
{
    return (named || sk_ends_with(path, ".bin")) && sk_path_is_file(path);
}

/* One label byte or two? What all files' sizes say; where they say both or neither, the names. */
static int32_t count_labels(const sk_cifar *self)
{
    bool one = true, two = true;

    for (int32_t i = 0; i < self->count; i++) {
        one = one && self->files[i].bytes_used % (SK_CIFAR_PIXELS + 1) == 0;
        two = two && self->files[i].bytes_used % (SK_CIFAR_PIXELS + 2) == 0;
    }
    if (one != two)
        return one ? 1 : 2;
    return self->files[0].named.labels;
}

static stoker_status check_size(const sk_cifar_file *file, size_t record)
{
    size_t size = file->bytes_used;

    if (size % record == 0)
        return STOKER_OK;
    const char *kind = sk_kind_of_bytes(file->bytes.data, size < SK_KIND_HEAD ? size : SK_KIND_HEAD);

    /* A label byte may look like anything, but not for a whole head of text. */
    if (sk_starts_with(kind, "an HTML") || sk_starts_with(kind, "a Python") || sk_starts_with(kind, "a gzip"))
        return sk_fail(STOKER_ERR_DATA, "%s: not CIFAR's binary layout but %s", file->path, kind);
    return sk_fail(STOKER_ERR_DATA,
                   "%s: a partial record: %zu bytes are %zu records of %zu bytes and %zu bytes more, from byte %zu on",
                   file->path, size, size / record, record, size % record, size / record * record);
}

static stoker_status check_labels(const sk_cifar *self, const sk_cifar_file *file, size_t record)
{
    const int classes[2] = {self->labels == 2 ? 20 : 10, 100};

    for (int64_t r = 0; r < file->samples; r++) {
        const uint8_t *at = file->bytes.data + (size_t)r * record;

        for (int32_t i = 0; i < self->labels && i < 2; i++) {
            if (at[i] >= classes[i])
                return sk_fail(STOKER_ERR_DATA, "%s: record %lld (byte %zu): label %d is not in 0..%d", file->path,
                               (long long)r, (size_t)r * record + (size_t)i, at[i], classes[i] - 1);
        }
    }
    return STOKER_OK;
}

static stoker_status read_files(sk_cifar *self)
{
    stoker_status status = STOKER_OK;

    for (int32_t i = 0; i < self->count; i++) {
        sk_cifar_file *file = &self->files[i];

        status = sk_file_read(file->path, SK_FILE_ANY_SIZE, &file->bytes, &file->bytes_used);
        if (status != STOKER_OK)
            return status;
        if (file->bytes_used == 0)
            return sk_fail(STOKER_ERR_DATA, "%s: the file is empty", file->path);
    }
    self->labels = count_labels(self);
    size_t record = SK_CIFAR_PIXELS + (size_t)self->labels;

    for (int32_t i = 0; i < self->count && status == STOKER_OK; i++) {
        sk_cifar_file *file = &self->files[i];

        file->pixels = file->bytes.data + self->labels;
        file->labels = file->bytes.data + (self->labels == 2 && !self->coarse ? 1 : 0);
        file->pixel_stride = file->label_stride = record;
        file->samples = (int64_t)(file->bytes_used / record);
        status = check_size(file, record);
        if (status == STOKER_OK)
            status = check_labels(self, file, record);
    }
    return status;
}

/* One name a line; the official file ends in an empty line. */
static stoker_status read_lines(sk_class_names *names, const char *path)
{
    sk_buffer buffer = {0};
    size_t size = 0;
    stoker_status status = sk_file_read(path, NAMES_LIMIT, &buffer, &size);

    while (size > 0 && (buffer.data[size - 1] == '\n' || buffer.data[size - 1] == '\r'))
        size--;
    for (size_t at = 0; status == STOKER_OK && at < size;) {
        const char *line = (const char *)buffer.data + at;
        const char *end = memchr(line, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - line) : size - at;

        at += length + 1;
        while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' '))
            length--;
        status = sk_class_names_add(names, line, length);
    }
    sk_buffer_free(&buffer);
    return status;
}

static stoker_status read_names(sk_cifar *self, const char *folder)
{
    char *path = sk_path_join(folder, self->labels == 1 ? "batches.meta.txt"
                                      : self->coarse    ? "coarse_label_names.txt"
                                                        : "fine_label_names.txt");

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    stoker_status status = sk_path_is_file(path) ? read_lines(&self->names, path) : STOKER_OK;

    sk_free(path);
    return status;
}

static const sk_cifar_layout layout = {.unit = "record",
                                       .below = {"cifar-10-batches-bin", "cifar-100-binary", NULL},
                                       .read_name = read_name,
                                       .claims = claims,
                                       .read = read_files,
                                       .read_names = read_names};

stoker_status sk_cifar_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out)
{
    return sk_cifar_open_layout(&layout, path, settings, matched, out);
}
