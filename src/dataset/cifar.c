/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar.c: CIFAR-10 and CIFAR-100 over batch files, whatever their layout.
 *
 * Files are read into memory when opened (184 MB for all of CIFAR-10), not mapped: a mapped file that someone cuts short, or a network
 * file system that goes away, would kill the training with SIGBUS. docs/datasets.md has what that costs.
 */
#include "dataset/cifar.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define MAX_FILES 256

/* ------------------------------------------------------------------------------------------------- reader -------- */

static const sk_cifar *from_reader(const sk_reader *reader)
{
    return (const sk_cifar *)reader;
}

static void destroy(sk_reader *reader)
{
    sk_cifar *self = (sk_cifar *)reader;

    for (int32_t i = 0; i < self->count; i++) {
        sk_free(self->files[i].path);
        sk_buffer_free(&self->files[i].bytes);
    }
    sk_free(self->files);
    sk_class_names_free(&self->names);
    sk_free(self);
}

/* The file that holds sample `*index`, which becomes its number there. */
static const sk_cifar_file *find_file(const sk_reader *reader, int64_t *index)
{
    const sk_cifar *self = from_reader(reader);
    int32_t i = self->count - 1;

    while (i > 0 && self->files[i].first > *index)
        i--;
    *index -= self->files[i].first;
    return &self->files[i];
}

static int64_t label(const sk_reader *reader, int64_t index)
{
    const sk_cifar_file *file = find_file(reader, &index);

    return file->labels[(size_t)index * file->label_stride];
}

static stoker_status fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const sk_cifar_file *file = find_file(reader, &index);

    (void)scratch;
    *out = (sk_sample){.kind = SK_SAMPLE_PLANAR,
                       .data = file->pixels + (size_t)index * file->pixel_stride,
                       .size = SK_CIFAR_PIXELS,
                       .width = SK_CIFAR_SIDE,
                       .height = SK_CIFAR_SIDE,
                       .channels = 3,
                       .label_byte = file->labels + (size_t)index * file->label_stride};
    return STOKER_OK;
}

static size_t where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const sk_cifar_file *file = find_file(reader, &index);
    int n = snprintf(buffer, size, "%s, %s %lld", file->path, from_reader(reader)->layout->unit, (long long)index);

    return n > 0 ? (size_t)n : 0;
}

static const char *class_name(const sk_reader *reader, int32_t number)
{
    return number < reader->classes ? sk_class_names_get(&from_reader(reader)->names, number) : NULL;
}

static const sk_reader_ops ops = {
    .destroy = destroy, .fetch = fetch, .label = label, .where = where, .class_name = class_name};

/* -------------------------------------------------------------------------------------------- class names -------- */

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

/* -------------------------------------------------------------------------------------------------- files -------- */

/* Takes over `path`. */
static stoker_status add_file(sk_cifar *self, char *path, const sk_cifar_name *named)
{
    sk_cifar_file *grown = NULL;
    stoker_status status = STOKER_ERR_MEMORY;

    if (self->count == MAX_FILES)
        status = sk_fail(STOKER_ERR_LIMIT, "%s: more than %d batch files", path, MAX_FILES);
    else if (path != NULL)
        grown = sk_realloc_array(self->files, (size_t)self->count + 1, sizeof *grown);
    if (grown == NULL) {
        sk_free(path);
        return status;
    }
    self->files = grown;
    self->files[self->count++] = (sk_cifar_file){.path = path, .named = *named};
    return STOKER_OK;
}

/* Training files in the order of their numbers, then test files. */
static int compare_files(const void *a, const void *b)
{
    const sk_cifar_file *x = a, *y = b;

    if (x->named.test != y->named.test)
        return x->named.test ? 1 : -1;
    if (x->named.number != y->named.number)
        return x->named.number < y->named.number ? -1 : 1;
    return strcmp(x->path, y->path);
}

static bool is_wanted(bool test, int32_t split, bool has_train)
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

/* All batch files of a folder, in any order. */
static stoker_status list_files(sk_cifar *self, const char *folder)
{
    stoker_status status = STOKER_OK;
    DIR *listing = opendir(folder);

    if (listing == NULL)
        return STOKER_OK; /* the folder's own reader tells why */
    while (status == STOKER_OK) {
        sk_cifar_name named;

        errno = 0;
        const struct dirent *entry = readdir(listing);

        if (entry == NULL) {
            if (errno != 0)
                status = sk_fail_errno(errno, "cannot list the folder %s", folder);
            break;
        }
        if (!self->layout->read_name(entry->d_name, &named))
            continue;
        char *path = sk_path_join(folder, entry->d_name);

        if (path != NULL && !self->layout->claims(path, true))
            sk_free(path);
        else
            status = add_file(self, path, &named);
    }
    closedir(listing);
    return status;
}

/* The wanted files of a folder, in order; none where there are no batch files at all. */
static stoker_status find_files(sk_cifar *self, const char *folder, int32_t split)
{
    stoker_status status = list_files(self, folder);
    int32_t kept = 0, labels = 2;
    bool has_train = false;

    if (status != STOKER_OK || self->count == 0)
        return status;
    /* Where both datasets lie in one folder, CIFAR-10's names, which are the less common words, decide. */
    for (int32_t i = 0; i < self->count; i++)
        labels = self->files[i].named.labels < labels ? self->files[i].named.labels : labels;
    for (int32_t i = 0; i < self->count; i++)
        has_train = has_train || (self->files[i].named.labels == labels && !self->files[i].named.test);
    for (int32_t i = 0; i < self->count; i++) {
        const sk_cifar_name *named = &self->files[i].named;

        if (named->labels == labels && is_wanted(named->test, split, has_train))
            self->files[kept++] = self->files[i];
        else
            sk_free(self->files[i].path);
    }
    self->count = kept;
    if (kept == 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "%s: there is no %s batch file", folder,
                       split == STOKER_SPLIT_TEST ? "test" : "training");
    qsort(self->files, (size_t)kept, sizeof *self->files, compare_files);
    return STOKER_OK;
}

/* Looks in `path` and one level below. *folder is where files were found. */
static stoker_status find_in_folder(sk_cifar *self, const char *path, int32_t split, char **folder)
{
    const char *const *below = self->layout->below;
    char *tried = sk_strdup(path);

    for (;;) {
        if (tried == NULL)
            return STOKER_ERR_MEMORY;
        stoker_status status = find_files(self, tried, split);

        if (status != STOKER_OK || self->count > 0) {
            *folder = tried;
            return status;
        }
        sk_free(tried);
        if (*below == NULL)
            return STOKER_OK;
        tried = sk_path_join(path, *below++);
    }
}

/* The folder of a file: "." for a bare name. */
static char *folder_of(const char *path)
{
    char *folder = sk_strdup(strchr(path, '/') != NULL ? path : "./");
    char *slash = folder != NULL ? strrchr(folder, '/') : NULL;

    if (slash != NULL)
        slash[slash == folder ? 1 : 0] = '\0';
    return folder;
}

/* `path` is a file. *told: its name says which part it is. */
static stoker_status take_one_file(sk_cifar *self, const char *path, char **folder, bool *told)
{
    sk_cifar_name named = {.labels = 1};

    *told = self->layout->read_name(sk_path_name(path), &named);
    if (!self->layout->claims(path, *told))
        return STOKER_OK;
    *folder = folder_of(path);
    if (*folder == NULL)
        return STOKER_ERR_MEMORY;
    return add_file(self, sk_strdup(path), &named);
}

stoker_status sk_cifar_open_layout(const sk_cifar_layout *layout, const char *path,
                                   const stoker_dataset_settings *settings, bool *matched, sk_reader **out)
{
    stoker_status status;
    char *folder = NULL;
    bool told = true;
    sk_cifar *self = sk_calloc(1, sizeof *self);

    *out = NULL;
    *matched = false;
    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->reader = (sk_reader){.ops = &ops, .channels = 3, .width = SK_CIFAR_SIDE, .height = SK_CIFAR_SIDE};
    self->layout = layout;
    self->coarse = settings->coarse_labels != 0;
    status = sk_path_is_folder(path) ? find_in_folder(self, path, settings->split, &folder)
                                     : take_one_file(self, path, &folder, &told);
    *matched = folder != NULL;
    if (status != STOKER_OK || !*matched)
        goto fail;
    status = layout->read(self);
    if (status == STOKER_OK)
        status = layout->read_names(self, folder);
    if (status != STOKER_OK)
        goto fail;
    for (int32_t i = 0; i < self->count; i++) {
        sk_cifar_file *file = &self->files[i];

        file->first = self->reader.size;
        self->reader.size += file->samples;
        if (told)
            *(file->named.test ? &self->reader.test_size : &self->reader.train_size) += file->samples;
    }
    self->reader.format = self->labels == 1 ? "cifar10" : "cifar100";
    self->reader.classes = self->labels == 1 ? 10 : self->coarse ? 20 : 100;
    sk_free(folder);
    *out = &self->reader;
    return STOKER_OK;
fail:
    sk_free(folder);
    destroy(&self->reader);
    return status;
}
