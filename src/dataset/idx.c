/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx.c: MNIST and its relatives (Fashion-MNIST, KMNIST, QMNIST, EMNIST): a file of gray images and a file of labels for each part.
 *
 * Files are read into memory when opened (47 MB for MNIST's training images), for the reason that cifar.c gives.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/idx_file.h"

#define MOST_CLASSES 65536 /* a label beyond is taken for a broken file */

typedef struct idx_part {
    char *path; /* of the images */
    bool test;
    sk_idx_file images;
    int32_t *labels;
    int64_t first; /* number of its first sample in the dataset */
} idx_part;

typedef struct idx_reader {
    sk_reader reader;
    int count;
    idx_part part[2]; /* training, then test */
} idx_reader;

/* Where the last "images" begins in a path's name; its end if it is not there. */
static size_t find_word(const char *path)
{
    const char *found = NULL;

    for (const char *at = strstr(sk_path_name(path), "images"); at != NULL; at = strstr(at + 1, "images"))
        found = at;
    return found != NULL ? (size_t)(found - path) : strlen(path);
}

/* ------------------------------------------------------------------------------------------------- reader -------- */

static void destroy(sk_reader *reader)
{
    idx_reader *self = (idx_reader *)reader;

    for (int i = 0; i < self->count; i++) {
        sk_free(self->part[i].path);
        sk_idx_file_free(&self->part[i].images);
        sk_free(self->part[i].labels);
    }
    sk_free(self);
}

/* The part that holds sample `*index`, which becomes its number there. */
static const idx_part *find_part(const sk_reader *reader, int64_t *index)
{
    const idx_reader *self = (const idx_reader *)reader;
    const idx_part *part = &self->part[self->count == 2 && *index >= self->part[1].first ? 1 : 0];

    *index -= part->first;
    return part;
}

static int64_t label(const sk_reader *reader, int64_t index)
{
    const idx_part *part = find_part(reader, &index);

    return part->labels[index];
}

static stoker_status fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const idx_part *part = find_part(reader, &index);
    size_t bytes = (size_t)part->images.extent[1] * (size_t)part->images.extent[2];

    (void)scratch;
    *out = (sk_sample){.kind = SK_SAMPLE_INTERLEAVED,
                       .data = part->images.data + (size_t)index * bytes,
                       .size = bytes,
                       .width = (int32_t)part->images.extent[2],
                       .height = (int32_t)part->images.extent[1],
                       .channels = 1,
                       .label = part->labels[index]};
    return STOKER_OK;
}

static size_t where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const idx_part *part = find_part(reader, &index);
    int n = snprintf(buffer, size, "%s, image %lld", part->path, (long long)index);

    return n > 0 ? (size_t)n : 0;
}

static const char *class_name(const sk_reader *reader, int32_t number)
{
    (void)reader, (void)number;
    return NULL;
}

static const sk_reader_ops ops = {
    .destroy = destroy, .fetch = fetch, .label = label, .where = where, .class_name = class_name};

/* ---------------------------------------------------------------------------------------------- one part -------- */

static stoker_status check_images(const idx_part *part)
{
    const sk_idx_file *images = &part->images;

    if (images->dimensions == 1)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: a file of labels; name the file of images, or the folder",
                       part->path);
    if (images->dimensions != 3)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: %d dimensions; images have three (number, rows, columns)",
                       part->path, images->dimensions);
    if (images->type != 8)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: elements are %s; images of 8-bit unsigned integers are read",
                       part->path, sk_idx_type_name(images->type));
    if (images->extent[0] == 0)
        return sk_fail(STOKER_ERR_DATA, "%s: no images in it", part->path);
    if (images->extent[1] < 1 || images->extent[2] < 1 || images->extent[1] > INT32_MAX ||
        images->extent[2] > INT32_MAX)
        return sk_fail(STOKER_ERR_DATA, "%s: images of %lld x %lld pixels", part->path, (long long)images->extent[2],
                       (long long)images->extent[1]);
    return STOKER_OK;
}

/* The first element of row `index`: QMNIST's rows hold the digit and seven facts more. */
static int64_t first_of_row(const sk_idx_file *file, int64_t index)
{
    size_t row = (size_t)file->extent[1] * file->width;
    const uint8_t *at = file->data + (size_t)index * row;
    uint32_t number = 0;

    for (int i = 0; i < file->width; i++)
        number = number << 8 | at[i];
    if (file->type == 9)
        return (int8_t)number;
    return file->type == 11 ? (int16_t)number : file->type == 12 ? (int32_t)number : (int64_t)number;
}

static stoker_status copy_labels(const char *path, const sk_idx_file *file, idx_part *part, int32_t *classes)
{
    int64_t images = part->images.extent[0];

    if (file->dimensions > 2 || file->type > 12 || file->extent[1] == 0)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: %d dimensions of %s; labels are one or two of integers", path,
                       file->dimensions, sk_idx_type_name(file->type));
    if (file->extent[0] != images)
        return sk_fail(STOKER_ERR_DATA, "%s: %lld labels for the %lld images of %s", path, (long long)file->extent[0],
                       (long long)images, part->path);
    part->labels = sk_malloc((size_t)images * sizeof *part->labels);
    if (part->labels == NULL)
        return STOKER_ERR_MEMORY;
    for (int64_t i = 0; i < images; i++) {
        int64_t number = first_of_row(file, i);

        if (number < 0 || number >= MOST_CLASSES)
            return sk_fail(STOKER_ERR_DATA, "%s: label %lld of image %lld (byte %zu) is not in 0..%d", path,
                           (long long)number, (long long)i,
                           (size_t)(file->data - file->bytes.data) + (size_t)i * (size_t)file->extent[1] * file->width,
                           MOST_CLASSES - 1);
        part->labels[i] = (int32_t)number;
        if (number >= *classes)
            *classes = (int32_t)number + 1;
    }
    return STOKER_OK;
}

/* The file of labels beside the file of images. */
static stoker_status find_labels(const char *images, char **out)
{
    static const char *const endings[] = {"-idx1-ubyte", "-idx1-ubyte.gz", ".idx1-ubyte", ".idx1-ubyte.gz",
                                          "-idx2-int",   "-idx2-int.gz",   ".idx2-int",   ".idx2-int.gz",
                                          "-idx1-int",   "-idx1-int.gz"};
    size_t before = find_word(images), room = before + 64;

    if (images[before] == '\0')
        return sk_fail(STOKER_ERR_DATA, "%s: its labels are found by the word 'images' in its name, which is not there",
                       images);
    char *path = sk_malloc(room);

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    memcpy(path, images, before);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(path + before, room - before, "labels%s", endings[i]);
        if (sk_path_is_file(path)) {
            *out = path;
            return STOKER_OK;
        }
    }
    snprintf(path + before, room - before, "labels%s", endings[0]);
    stoker_status status =
        sk_fail(STOKER_ERR_IO, "%s: there is no file of its labels beside it: %s, plain or .gz", images, path);

    sk_free(path);
    return status;
}

static stoker_status read_part(idx_part *part, int32_t *classes)
{
    sk_idx_file labels = {0};
    char *path = NULL;
    stoker_status status = sk_idx_file_read(part->path, &part->images);

    if (status == STOKER_OK)
        status = check_images(part);
    if (status != STOKER_OK)
        return status;
    status = find_labels(part->path, &path);
    if (status == STOKER_OK)
        status = sk_idx_file_read(path, &labels);
    if (status == STOKER_OK)
        status = copy_labels(path, &labels, part, classes);
    sk_idx_file_free(&labels);
    sk_free(path);
    return status;
}

/* ------------------------------------------------------------------------------------------------ search -------- */

/* How good a name of an images' file is: plain before gzipped, the usual spelling first; 0: no such name. */
static int rank_name(const char *name)
{
    static const char *const endings[] = {"images-idx3-ubyte", "images.idx3-ubyte", "images-idx3-ubyte.gz",
                                          "images.idx3-ubyte.gz"};
    int count = (int)(sizeof endings / sizeof endings[0]);

    for (int i = 0; i < count; i++) {
        if (name[0] != '.' && sk_ends_with(name, endings[i]))
            return count - i;
    }
    return 0;
}

/* MNIST calls its test part t10k. */
static bool is_test_name(const char *name)
{
    return strstr(name, "t10k") != NULL || strstr(name, "test") != NULL;
}

/* Takes an images' file for a part that has none yet, or has a worse spelling of the same one. */
static stoker_status offer(char *chosen[2], const char *folder, const char *name)
{
    char **slot = &chosen[is_test_name(name) ? 1 : 0];
    const char *had = *slot != NULL ? sk_path_name(*slot) : NULL;

    if (had != NULL && (find_word(had) != find_word(name) || strncmp(had, name, find_word(name)) != 0))
        return sk_fail(STOKER_ERR_ARGUMENT, "%s holds several datasets (%s, %s): name one file of images", folder, had,
                       name);
    if (had != NULL && rank_name(had) >= rank_name(name))
        return STOKER_OK;
    char *path = sk_path_join(folder, name);

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    if (!sk_path_is_file(path)) {
        sk_free(path);
        return STOKER_OK;
    }
    sk_free(*slot);
    *slot = path;
    return STOKER_OK;
}

/* The images' files of a folder, training and test; both stay NULL where it has none. */
static stoker_status find_images(const char *folder, char *chosen[2])
{
    stoker_status status = STOKER_OK;
    DIR *listing = opendir(folder);

    if (listing == NULL)
        return STOKER_OK; /* the folder's own reader tells why */
    while (status == STOKER_OK) {
        errno = 0;
        const struct dirent *entry = readdir(listing);

        if (entry == NULL) {
            if (errno != 0)
                status = sk_fail_errno(errno, "cannot list the folder %s", folder);
            break;
        }
        if (rank_name(entry->d_name) > 0)
            status = offer(chosen, folder, entry->d_name);
    }
    closedir(listing);
    return status;
}

/* Looks in `path` and in the folders that torchvision makes below it. */
static stoker_status find_in_folder(const char *path, char *chosen[2])
{
    static const char *const below[] = {"raw",        "MNIST/raw", "FashionMNIST/raw", "KMNIST/raw", "QMNIST/raw",
                                        "EMNIST/raw", "MNIST",     "FashionMNIST",     "KMNIST",     "QMNIST",
                                        "EMNIST"};
    stoker_status status = find_images(path, chosen);
    bool here = chosen[0] != NULL || chosen[1] != NULL;
    const char *found = NULL;

    for (size_t i = 0; i < sizeof below / sizeof below[0] && status == STOKER_OK && !here; i++) {
        char *folder = sk_path_join(path, below[i]);
        char *there[2] = {NULL, NULL};

        status = folder != NULL ? find_images(folder, there) : STOKER_ERR_MEMORY;
        sk_free(folder);
        bool any = there[0] != NULL || there[1] != NULL;

        if (status == STOKER_OK && any && found != NULL)
            status =
                sk_fail(STOKER_ERR_ARGUMENT, "%s holds several datasets (%s, %s): name one", path, found, below[i]);
        if (status != STOKER_OK || !any || found != NULL) {
            sk_free(there[0]);
            sk_free(there[1]);
            continue;
        }
        found = below[i];
        memcpy(chosen, there, sizeof there);
    }
    return status;
}

/* `path` is a file: the images, or something that only looks like it. */
static stoker_status take_one_file(const char *path, char *chosen[2])
{
    int dimensions = sk_idx_file_peek(path);

    if (dimensions == 0 && rank_name(sk_path_name(path)) == 0)
        return STOKER_OK;
    char **slot = &chosen[is_test_name(sk_path_name(path)) ? 1 : 0];

    *slot = sk_strdup(path);
    return *slot != NULL ? STOKER_OK : STOKER_ERR_MEMORY;
}

static bool is_wanted(bool test, int32_t split, bool has_train)
{
    return split == STOKER_SPLIT_ALL ||
           (split == STOKER_SPLIT_DEFAULT ? !test || !has_train : test == (split == STOKER_SPLIT_TEST));
}

static stoker_status read_parts(idx_reader *self, const char *path, char *chosen[2], int32_t split)
{
    bool has_train = chosen[0] != NULL;

    self->reader.classes = 10; /* MNIST's and its relatives'; EMNIST's splits have more */
    for (int i = 0; i < 2; i++) {
        if (chosen[i] == NULL || !is_wanted(i == 1, split, has_train))
            continue;
        idx_part *part = &self->part[self->count++];

        *part = (idx_part){.path = chosen[i], .test = i == 1, .first = self->reader.size};
        chosen[i] = NULL;
        stoker_status status = read_part(part, &self->reader.classes);

        if (status != STOKER_OK)
            return status;
        *(part->test ? &self->reader.test_size : &self->reader.train_size) = part->images.extent[0];
        self->reader.size += part->images.extent[0];
    }
    if (self->count == 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "%s: there is no file of %s images", path,
                       split == STOKER_SPLIT_TEST ? "test" : "training");
    const sk_idx_file *a = &self->part[0].images, *b = &self->part[self->count - 1].images;

    if (a->extent[1] == b->extent[1] && a->extent[2] == b->extent[2]) {
        self->reader.height = (int32_t)a->extent[1];
        self->reader.width = (int32_t)a->extent[2];
    }
    return STOKER_OK;
}

stoker_status sk_idx_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out)
{
    char *chosen[2] = {NULL, NULL};
    idx_reader *self = NULL;
    stoker_status status = sk_path_is_folder(path) ? find_in_folder(path, chosen) : take_one_file(path, chosen);

    *out = NULL;
    *matched = chosen[0] != NULL || chosen[1] != NULL;
    if (status != STOKER_OK || !*matched)
        goto fail;
    self = sk_calloc(1, sizeof *self);
    if (self == NULL) {
        status = STOKER_ERR_MEMORY;
        goto fail;
    }
    self->reader = (sk_reader){.ops = &ops, .format = "mnist", .channels = 1};
    status = read_parts(self, path, chosen, settings->split);
    if (status != STOKER_OK)
        goto fail;
    *out = &self->reader;
    self = NULL;
fail:
    sk_free(chosen[0]);
    sk_free(chosen[1]);
    if (self != NULL)
        destroy(&self->reader);
    return status;
}
