/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cifar_pickle.c: the layout of CIFAR that torchvision downloads: each batch a pickled dict of pixels and labels
 * (https://www.cs.toronto.edu/~kriz/cifar.html, "python version"). Pixels and labels are copied out and the pickle is let go.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dataset/cifar.h"
#include "dataset/kind.h"
#include "dataset/pickle.h"

#define META_LIMIT (16 << 20) /* bytes of a file of class names */

static bool read_name(const char *name, sk_cifar_name *out)
{
    *out = (sk_cifar_name){.labels = 1};
    if (sk_starts_with(name, "data_batch_")) {
        char *end;

        out->number = strtol(name + strlen("data_batch_"), &end, 10);
        return *end == '\0' && end > name + strlen("data_batch_");
    }
    out->test = sk_starts_with(name, "test");
    if (strcmp(name, "test_batch") == 0)
        return true;
    out->labels = 2;
    return strcmp(name, "train") == 0 || strcmp(name, "test") == 0;
}

/* By content; "train" and "test" are common words. A file that can only be meant as a batch is claimed even if it is something else,
 * for the sake of a message. */
static bool claims(const char *path, bool named)
{
    uint8_t head[SK_KIND_HEAD];
    const char *name = sk_path_name(path);

    if (!sk_path_is_file(path))
        return false;
    if (named && (sk_starts_with(name, "data_batch_") || sk_starts_with(name, "test_batch")))
        return true;
    return sk_pickle_begins(head, sk_kind_head(path, head));
}

static stoker_status read_pickle(const char *path, size_t most, sk_buffer *bytes, sk_pickle **out)
{
    size_t size = 0;
    stoker_status status = sk_file_read(path, most, bytes, &size);

    if (status != STOKER_OK)
        return status;
    if (!sk_pickle_begins(bytes->data, size))
        return sk_fail(STOKER_ERR_DATA, "%s: not a Python pickle but %s", path,
                       sk_kind_of_bytes(bytes->data, size < SK_KIND_HEAD ? size : SK_KIND_HEAD));
    return sk_pickle_read(path, bytes->data, size, out);
}

/* The dict's pixels: n × 3072 bytes or n × 3 × 32 × 32. */
static stoker_status find_pixels(const sk_cifar_file *file, const sk_pickle *pickle, const sk_pickle_value **out,
                                 int64_t *samples)
{
    const sk_pickle_value *data = sk_pickle_find(pickle, sk_pickle_root(pickle), "data");
    int64_t shape[SK_PICKLE_MAX_DIMENSIONS] = {0};

    *out = NULL;
    if (data == NULL)
        return sk_fail(STOKER_ERR_DATA, "%s: a pickle that is no CIFAR batch: it holds no dict with the key 'data'",
                       file->path);
    if (data->kind != SK_PICKLE_ARRAY || data->element != 'u' || data->width != 1)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: 'data' is not an array of 8-bit unsigned integers", file->path);
    int dimensions = sk_pickle_shape(pickle, data, shape);
    bool flat = dimensions == 2 && shape[1] == SK_CIFAR_PIXELS;
    bool planes = dimensions == 4 && shape[1] == 3 && shape[2] == SK_CIFAR_SIDE && shape[3] == SK_CIFAR_SIDE;

    if ((!flat && !planes) || (data->columns_first && shape[0] > 1))
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: 'data' is not an array of n x 3072 bytes, a row a sample",
                       file->path);
    if (shape[0] == 0)
        return sk_fail(STOKER_ERR_DATA, "%s: 'data' holds no samples", file->path);
    *samples = shape[0];
    *out = data;
    return STOKER_OK;
}

static bool get_label(const sk_pickle *pickle, const sk_pickle_value *labels, int64_t index, int64_t *out)
{
    if (labels->kind == SK_PICKLE_ARRAY)
        return sk_pickle_array_integer(labels, (size_t)index, out);
    const sk_pickle_value *label = sk_pickle_item(pickle, labels, (uint32_t)index);

    *out = label->number;
    return label->kind == SK_PICKLE_INT;
}

static stoker_status copy_labels(const sk_cifar *self, const sk_cifar_file *file, const sk_pickle *pickle, uint8_t *out)
{
    const char *key = self->labels == 1 ? "labels" : self->coarse ? "coarse_labels" : "fine_labels";
    const sk_pickle_value *labels = sk_pickle_find(pickle, sk_pickle_root(pickle), key);
    int classes = self->labels == 1 ? 10 : self->coarse ? 20 : 100;
    int64_t shape[SK_PICKLE_MAX_DIMENSIONS] = {0}, count = -1;

    if (labels != NULL && (labels->kind == SK_PICKLE_LIST || labels->kind == SK_PICKLE_TUPLE))
        count = labels->count;
    else if (labels != NULL && labels->kind == SK_PICKLE_ARRAY && sk_pickle_shape(pickle, labels, shape) == 1)
        count = shape[0];
    if (count < 0)
        return sk_fail(STOKER_ERR_DATA, "%s: there is no list of labels under the key '%s'", file->path, key);
    if (count != file->samples)
        return sk_fail(STOKER_ERR_DATA, "%s: %lld samples and %lld '%s'", file->path, (long long)file->samples,
                       (long long)count, key);
    for (int64_t i = 0; i < count; i++) {
        int64_t label;

        if (!get_label(pickle, labels, i, &label))
            return sk_fail(STOKER_ERR_DATA, "%s: row %lld: its label in '%s' is no integer", file->path, (long long)i,
                           key);
        if (label < 0 || label >= classes)
            return sk_fail(STOKER_ERR_DATA, "%s: row %lld: label %lld in '%s' is not in 0..%d", file->path,
                           (long long)i, (long long)label, key, classes - 1);
        out[i] = (uint8_t)label;
    }
    return STOKER_OK;
}

static stoker_status read_batch(sk_cifar *self, sk_cifar_file *file)
{
    sk_buffer bytes = {0};
    sk_pickle *pickle = NULL;
    const sk_pickle_value *data = NULL;
    stoker_status status = read_pickle(file->path, SK_FILE_ANY_SIZE, &bytes, &pickle);

    if (status == STOKER_OK)
        status = find_pixels(file, pickle, &data, &file->samples);
    if (status != STOKER_OK)
        goto done;
    int32_t labels = sk_pickle_find(pickle, sk_pickle_root(pickle), "labels") != NULL ? 1 : 2;

    if (self->labels != 0 && self->labels != labels) {
        status = sk_fail(STOKER_ERR_DATA, "%s: a batch of %s among batches of %s", file->path,
                         labels == 1 ? "CIFAR-10" : "CIFAR-100", labels == 1 ? "CIFAR-100" : "CIFAR-10");
        goto done;
    }
    self->labels = labels;
    /* The pixels lie in the pickle, so their size and a label for each fit into memory's range. */
    status = sk_buffer_reserve(&file->bytes, data->size + (size_t)file->samples);
    if (status != STOKER_OK)
        goto done;
    memcpy(file->bytes.data, data->data, data->size);
    file->pixels = file->bytes.data;
    file->pixel_stride = SK_CIFAR_PIXELS;
    file->labels = file->bytes.data + data->size;
    file->label_stride = 1;
    status = copy_labels(self, file, pickle, file->bytes.data + data->size);
done:
    sk_pickle_free(pickle);
    sk_buffer_free(&bytes);
    return status;
}

static stoker_status read_files(sk_cifar *self)
{
    stoker_status status = STOKER_OK;

    for (int32_t i = 0; i < self->count && status == STOKER_OK; i++)
        status = read_batch(self, &self->files[i]);
    return status;
}

static stoker_status copy_names(sk_cifar *self, const char *path, const sk_pickle *pickle)
{
    const char *key = self->labels == 1 ? "label_names" : self->coarse ? "coarse_label_names" : "fine_label_names";
    const sk_pickle_value *names = sk_pickle_find(pickle, sk_pickle_root(pickle), key);
    stoker_status status = STOKER_OK;

    if (names == NULL || names->kind != SK_PICKLE_LIST)
        return sk_fail(STOKER_ERR_DATA, "%s: there is no list of class names under the key '%s'", path, key);
    for (uint32_t i = 0; i < names->count && status == STOKER_OK; i++) {
        const sk_pickle_value *name = sk_pickle_item(pickle, names, i);

        if ((name->kind != SK_PICKLE_BYTES && name->kind != SK_PICKLE_TEXT) ||
            memchr(name->data, 0, name->size) != NULL)
            return sk_fail(STOKER_ERR_DATA, "%s: name %u in '%s' is no text", path, i, key);
        status = sk_class_names_add(&self->names, (const char *)name->data, name->size);
    }
    return status;
}

static stoker_status read_names(sk_cifar *self, const char *folder)
{
    sk_buffer bytes = {0};
    sk_pickle *pickle = NULL;
    stoker_status status = STOKER_OK;
    char *path = sk_path_join(folder, self->labels == 1 ? "batches.meta" : "meta");

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    if (sk_path_is_file(path)) {
        status = read_pickle(path, META_LIMIT, &bytes, &pickle);
        if (status == STOKER_OK)
            status = copy_names(self, path, pickle);
    }
    sk_pickle_free(pickle);
    sk_buffer_free(&bytes);
    sk_free(path);
    return status;
}

static const sk_cifar_layout layout = {.unit = "row",
                                       .below = {"cifar-10-batches-py", "cifar-100-python", NULL},
                                       .read_name = read_name,
                                       .claims = claims,
                                       .read = read_files,
                                       .read_names = read_names};

stoker_status sk_cifar_pickle_open(const char *path, const stoker_dataset_settings *settings, bool *matched,
                                   sk_reader **out)
{
    return sk_cifar_open_layout(&layout, path, settings, matched, out);
}
