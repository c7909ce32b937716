/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c: a pack → files. A pack may come from anywhere: no path in it leads out of the folder.
 *
 * Shared state, guarded by `lock`: `report`, `failed`, `message`, and the turn of calling the settings' functions.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/parallel.h"
#include "dataset/pack.h"
#include "image/dct.h"
#include "image/write.h"
#include "pack/pack.h"

#define MOST_PATH 65536

typedef struct unpacking {
    const sk_pack_file *file;
    sk_reader *reader; /* of all samples, for class names */
    const char *folder;
    const stoker_pack_settings *settings;
    stoker_unpack_report *report;
    pthread_mutex_t lock;
    stoker_status failed;
    char message[SK_MESSAGE_SIZE];
} unpacking;

/* Whether each part of the path is a name: not empty, ".", "..", or holding a zero. */
static bool stays_inside(const char *path, size_t size)
{
    size_t at = 0;

    if (size == 0 || size >= MOST_PATH || memchr(path, 0, size) != NULL)
        return false;
    while (at <= size) {
        const char *slash = memchr(path + at, '/', size - at);
        size_t length = slash != NULL ? (size_t)(slash - path) - at : size - at;

        if (length == 0 || (length == 1 && path[at] == '.') || (length == 2 && path[at] == '.' && path[at + 1] == '.'))
            return false;
        at += length + 1;
    }
    return true;
}

static stoker_status make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return sk_fail_errno(errno, "cannot make the folder %s", path);
    return STOKER_OK;
}

/* Those above the file `path`, from the character `from` on. */
static stoker_status make_folders(char *path, size_t from)
{
    for (char *slash = strchr(path + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        stoker_status status = make_folder(path);

        *slash = '/';
        if (status != STOKER_OK)
            return status;
    }
    return STOKER_OK;
}

/* Where a raw sample goes. Class names are a file's, too. */
static void raw_path(const unpacking *self, int64_t number, int64_t label, char *path)
{
    const sk_pack_file *file = self->file;
    const char *part = file->train + file->test == 0 ? "" : number < file->train ? "train/" : "test/";
    const char *name = label >= 0 && label < self->reader->classes
                           ? self->reader->ops->class_name(self->reader, (int32_t)label)
                           : NULL;
    char class[256];

    snprintf(class, sizeof class, "%s", name != NULL ? name : "");
    if (name == NULL || strchr(name, '/') != NULL || !stays_inside(class, strlen(class)))
        snprintf(class, sizeof class, "%lld", (long long)label);
    snprintf(path, MOST_PATH / 2, "%s%s/%08lld.png", part, class, (long long)number);
}

static stoker_status write_raw(const unpacking *self, const sk_pack_record *record, const char *path, int64_t *bytes)
{
    size_t pixels = (size_t)record->width * record->height, channels = record->channels;
    const uint8_t *from = self->file->data + record->offset;
    bool planar = record->encoding == SK_PACK_PLANAR;
    uint8_t *rgb = sk_malloc(3 * pixels);

    if (rgb == NULL)
        return STOKER_ERR_MEMORY;
    for (size_t i = 0; i < pixels; i++) {
        for (size_t c = 0; c < 3; c++) {
            size_t channel = channels == 1 ? 0 : c;

            rgb[3 * i + c] = planar ? from[channel * pixels + i] : from[channels * i + channel];
        }
    }
    stoker_status status = sk_png_write(path, rgb, (int32_t)record->width, (int32_t)record->height);
    struct stat about;

    *bytes = status == STOKER_OK && stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
    sk_free(rgb);
    return status;
}

static stoker_status write_dct(const unpacking *self, const sk_pack_record *record, const char *path, int64_t *bytes)
{
    const uint8_t *payload = self->file->data + record->offset;
    sk_coefficients image = {0};
    uint8_t *data = NULL;
    size_t size = 0;
    stoker_status status = sk_dct_read(payload, record->size, &image);

    if (status == STOKER_OK)
        status = sk_coefficients_write(&image, payload[16], &data, &size);
    if (status == STOKER_OK)
        status = sk_write_file_atomically(path, data, size);
    *bytes = (int64_t)size;
    free(data);
    sk_coefficients_free(&image);
    return status;
}

/* *identical: the file is the source's. */
static stoker_status write_sample(unpacking *self, int64_t number, char path[MOST_PATH], bool *identical,
                                  int64_t *bytes)
{
    const sk_pack_file *file = self->file;
    size_t root = strlen(self->folder) + 1;
    char *relative = path + root;
    sk_pack_record record;
    sk_pack_details details;
    stoker_status status = sk_pack_file_record(file, number, &record);

    if (status == STOKER_OK)
        status = sk_pack_file_details(file, number, &record, &details);
    if (status == STOKER_OK)
        status = sk_pack_file_check(file, number, &record);
    if (status != STOKER_OK)
        return status;
    bool raw = record.encoding == SK_PACK_PLANAR || record.encoding == SK_PACK_INTERLEAVED;

    snprintf(path, MOST_PATH, "%s/", self->folder);
    if (raw) {
        raw_path(self, number, record.label, relative);
    } else {
        if (!stays_inside(details.path, details.path_size) || details.path_size >= MOST_PATH)
            return sk_fail(STOKER_ERR_DATA, "%s: the path of sample %lld would lead out of the folder", file->path,
                           (long long)number);
        memcpy(relative, details.path, details.path_size);
        relative[details.path_size] = '\0';
    }
    status = make_folders(path, root);
    if (status != STOKER_OK)
        return status;
    *identical = record.encoding == SK_PACK_ORIGINAL;
    if (raw)
        return write_raw(self, &record, path, bytes);
    if (record.encoding == SK_PACK_DCT)
        return write_dct(self, &record, path, bytes);
    *bytes = (int64_t)record.size;
    return sk_write_file_atomically(path, file->data + record.offset, record.size);
}

static bool unpack_one(void *context, size_t index)
{
    unpacking *self = context;
    int64_t bytes = 0;
    bool identical = false;
    char *path = sk_malloc(2 * (size_t)MOST_PATH);
    stoker_status status =
        path != NULL ? write_sample(self, (int64_t)index, path, &identical, &bytes) : STOKER_ERR_MEMORY;

    sk_free(path);
    pthread_mutex_lock(&self->lock);
    if (status == STOKER_OK) {
        self->report->samples++;
        self->report->identical += identical;
        self->report->pixels += !identical;
        self->report->bytes += bytes;
        if (self->settings->progress != NULL &&
            self->settings->progress(self->settings->context, self->report->samples, self->file->samples) != 0)
            status = sk_fail(STOKER_ERR_INTERRUPTED, "interrupted");
    }
    if (status != STOKER_OK && self->failed == STOKER_OK) {
        self->failed = status;
        snprintf(self->message, sizeof self->message, "%s", sk_message());
    }
    pthread_mutex_unlock(&self->lock);
    return status == STOKER_OK;
}

static stoker_status check_folder(const char *folder)
{
    stoker_status status = make_folder(folder);
    DIR *list = status == STOKER_OK ? opendir(folder) : NULL;
    const struct dirent *entry;
    bool empty = true;

    if (status != STOKER_OK)
        return status;
    if (list == NULL)
        return sk_fail_errno(errno, "cannot open the folder %s", folder);
    while ((entry = readdir(list)) != NULL)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    closedir(list);
    if (!empty)
        return sk_fail(STOKER_ERR_ARGUMENT, "%s: the folder is not empty", folder);
    return STOKER_OK;
}

stoker_status sk_pack_unpack(const char *path, const char *folder, const stoker_pack_settings *settings,
                             stoker_unpack_report *report)
{
    stoker_dataset_settings all = {.split = STOKER_SPLIT_ALL};
    sk_pack_file file = {0};
    sk_reader *reader = NULL;
    bool matched;
    stoker_status status = strlen(folder) < MOST_PATH / 2 ? STOKER_OK : sk_fail(STOKER_ERR_ARGUMENT, "too long a path");

    if (status == STOKER_OK)
        status = sk_pack_file_open(&file, path);
    if (status == STOKER_OK)
        status = sk_pack_open(path, &all, &matched, &reader);
    if (status == STOKER_OK && reader == NULL)
        status = sk_fail(STOKER_ERR_DATA, "%s: not a pack", path);
    if (status == STOKER_OK)
        status = check_folder(folder);
    if (status == STOKER_OK) {
        unpacking self = {.file = &file, .reader = reader, .folder = folder, .settings = settings, .report = report};

        pthread_mutex_init(&self.lock, NULL);
        sk_parallel((size_t)file.samples, unpack_one, &self);
        pthread_mutex_destroy(&self.lock);
        status = self.failed;
        if (status != STOKER_OK)
            sk_message_set(self.message);
    }
    if (reader != NULL)
        reader->ops->destroy(reader);
    sk_pack_file_close(&file);
    return status;
}
