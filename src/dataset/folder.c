/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c: ImageFolder: image files listed by folder_tree.c or known from folder_index.c's file, read when they are asked for.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/folder_index.h"
#include "dataset/folder_tree.h"

#define LEAST_FOR_INDEX 5000 /* entries: listing them takes some milliseconds */

typedef struct folder_reader {
    sk_reader reader;
    sk_tree tree;
} folder_reader;

static const sk_tree *tree_of(const sk_reader *reader)
{
    return &((const folder_reader *)reader)->tree;
}

static const char *folder_path(const sk_tree *tree, int64_t index)
{
    return sk_tree_path(tree, tree->files[index].folder);
}

static int32_t label_of(const sk_tree *tree, int64_t index)
{
    return tree->folders[tree->files[index].folder].label;
}

static const char *file_name(const sk_tree *tree, int64_t index)
{
    return sk_tree_name(tree, &tree->files[index]);
}

static void destroy(sk_reader *reader)
{
    folder_reader *self = (folder_reader *)reader;

    sk_tree_close(&self->tree);
    sk_free(self);
}

static size_t where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const sk_tree *tree = tree_of(reader);
    const char *slash = sk_ends_with(tree->root, "/") ? "" : "/";
    int n = snprintf(buffer, size, "%s%s%s/%s", tree->root, slash, folder_path(tree, index), file_name(tree, index));

    return n > 0 ? (size_t)n : 0;
}

/* The path relative to the root; false if the system cannot open so long a one. */
static bool relative_path(const sk_tree *tree, int64_t index, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder_path(tree, index), file_name(tree, index));

    return length > 0 && length < PATH_MAX;
}

static stoker_status fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const sk_tree *tree = tree_of(reader);
    char path[PATH_MAX], shown[SK_MESSAGE_SIZE];

    where(reader, index, shown, sizeof shown);
    if (!relative_path(tree, index, path))
        return sk_fail(STOKER_ERR_IO, "cannot open %s: the path is too long", shown);
    memset(out, 0, sizeof *out);
    stoker_status status = sk_file_read_at(tree->root_fd, path, shown, SK_FILE_ANY_SIZE, scratch, &out->size);

    if (status != STOKER_OK)
        return status;
    if (out->size == 0)
        return sk_fail(STOKER_ERR_DATA, "%s: the file is empty", shown);
    out->kind = SK_SAMPLE_ENCODED;
    out->data = scratch->data;
    out->label = label_of(tree, index);
    return STOKER_OK;
}

static int64_t label(const sk_reader *reader, int64_t index)
{
    return label_of(tree_of(reader), index);
}

static const char *class_name(const sk_reader *reader, int32_t number)
{
    const sk_tree *tree = tree_of(reader);

    return number >= 0 && (size_t)number < tree->class_count ? sk_tree_path(tree, tree->classes[number]) : NULL;
}

static void will_need(const sk_reader *reader, int64_t index)
{
    const sk_tree *tree = tree_of(reader);
    char path[PATH_MAX];

    if (!relative_path(tree, index, path))
        return;
    int fd = openat(tree->root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}

static int64_t bytes(const sk_reader *reader, int64_t index)
{
    const sk_tree *tree = tree_of(reader);
    char path[PATH_MAX];
    struct stat about;

    return relative_path(tree, index, path) && fstatat(tree->root_fd, path, &about, 0) == 0 ? (int64_t)about.st_size
                                                                                            : 0;
}

static const sk_reader_ops ops = {
    .destroy = destroy,
    .fetch = fetch,
    .label = label,
    .where = where,
    .class_name = class_name,
    .will_need = will_need,
    .bytes = bytes,
};

/* The index to use: the setting, or where that is the default the environment's word. */
static stoker_status choose_index(int32_t setting, int32_t *out)
{
    static const char *const words[] = {"auto", "off", "keep", "rebuild"};
    const char *word = getenv("STOKER_INDEX");

    *out = setting;
    if (setting != STOKER_INDEX_AUTO || word == NULL || word[0] == '\0')
        return STOKER_OK;
    for (int32_t i = 0; i < 4; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = i;
            return STOKER_OK;
        }
    }
    return sk_fail(STOKER_ERR_ARGUMENT, "STOKER_INDEX is '%s': auto, off, keep and rebuild are possible", word);
}

static stoker_status fill_tree(const char *path, int32_t index, sk_tree *tree)
{
    char real_path[PATH_MAX];
    stoker_status status = sk_tree_open(path, tree);

    if (status != STOKER_OK)
        return status;
    if (index != STOKER_INDEX_OFF && realpath(path, real_path) == NULL)
        index = STOKER_INDEX_OFF;
    if ((index == STOKER_INDEX_AUTO || index == STOKER_INDEX_KEEP) && sk_index_load(real_path, tree))
        return STOKER_OK;
    status = sk_tree_list(tree);
    if (status != STOKER_OK)
        return status;
    if (index == STOKER_INDEX_KEEP || index == STOKER_INDEX_REBUILD ||
        (index == STOKER_INDEX_AUTO && tree->looked_at >= LEAST_FOR_INDEX))
        sk_index_write(real_path, tree);
    sk_tree_trim(tree);
    return STOKER_OK;
}

stoker_status sk_folder_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out)
{
    int32_t index;
    stoker_status status = choose_index(settings->index, &index);

    *out = NULL;
    *matched = sk_path_is_folder(path);
    if (!*matched || status != STOKER_OK)
        return *matched ? status : STOKER_OK;
    folder_reader *self = sk_calloc(1, sizeof *self);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    status = fill_tree(path, index, &self->tree);
    self->reader = (sk_reader){.ops = &ops,
                               .format = "imagefolder",
                               .size = (int64_t)self->tree.file_count,
                               .classes = (int32_t)self->tree.class_count,
                               .channels = 3,
                               .encoded = 1};
    if (status != STOKER_OK) {
        destroy(&self->reader);
        return status;
    }
    *out = &self->reader;
    return STOKER_OK;
}
