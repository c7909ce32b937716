/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c: ImageFolder, as torchvision.datasets.ImageFolder means it.
 *
 * Folders directly in the root are classes, in the order of their names; each class's samples are the files below it that have an
 * image's extension, folder by folder in the order of the folders' paths, in each the files in the order of their names. Order is by
 * bytes. Symbolic links are followed. Nothing is asked about single files: the listing tells folders from files.
 *
 * Memory: names lie in one arena, each once; a sample is its folder's number and its name's place.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "dataset/dataset.h"

#define MAX_DEPTH 64 /* folders within folders; also bounds recursion */

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};

/* Text that only grows; strings are known by their offset, since it moves. */
typedef struct arena {
    char *text;
    size_t used, room;
} arena;

typedef struct folder_entry {
    size_t path; /* in the arena, relative to the root */
    int32_t label;
} folder_entry;

typedef struct file_entry {
    uint32_t folder;
    uint32_t name_high, name_low; /* a 40-bit offset into the arena, in 8 bytes with alignment 4 */
} file_entry;

typedef struct folder_reader {
    sk_reader reader;
    char *root;
    int root_fd;
    arena names;
    folder_entry *folders;
    size_t folder_count, folder_room;
    file_entry *files;
    size_t file_count, file_room;
    size_t *classes; /* names in the arena */
    size_t class_count, class_room;
} folder_reader;

/* One folder on the way down, for finding links that lead back up. */
typedef struct ancestor {
    const struct ancestor *parent;
    dev_t device;
    ino_t inode;
    int depth;
} ancestor;

static stoker_status arena_add(arena *a, const char *text, size_t *offset)
{
    size_t length = strlen(text) + 1;

    if (a->room - a->used < length) {
        size_t room = a->room * 2 + length + 4096;
        char *grown = sk_realloc_array(a->text, room, 1);

        if (grown == NULL)
            return STOKER_ERR_MEMORY;
        a->text = grown;
        a->room = room;
    }
    memcpy(a->text + a->used, text, length);
    *offset = a->used;
    a->used += length;
    return STOKER_OK;
}

/* Makes room for one more element. */
static stoker_status grow(void *array, size_t count, size_t *room, size_t size)
{
    void **memory = array;

    if (count < *room)
        return STOKER_OK;
    size_t more = *room * 2 + 64;
    void *grown = sk_realloc_array(*memory, more, size);

    if (grown == NULL)
        return STOKER_ERR_MEMORY;
    *memory = grown;
    *room = more;
    return STOKER_OK;
}

static bool has_image_extension(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        size_t n = strlen(extensions[i]);

        if (length >= n && strcasecmp(name + length - n, extensions[i]) == 0)
            return true;
    }
    return false;
}

/* Whether an entry is a folder, following links; the listing mostly knows. */
static bool is_folder(int fd, const struct dirent *entry)
{
    struct stat about;

    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    return fstatat(fd, entry->d_name, &about, 0) == 0 && S_ISDIR(about.st_mode);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int compare_offsets(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + *(const size_t *)a, (const char *)text + *(const size_t *)b);
}

static int compare_folders(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + ((const folder_entry *)a)->path,
                  (const char *)text + ((const folder_entry *)b)->path);
}

/* Opens the folder `path` (relative to the root) for listing. */
static stoker_status open_folder(const folder_reader *self, const char *path, DIR **out)
{
    int fd = openat(self->root_fd, path[0] != '\0' ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return sk_fail_errno(errno, "cannot open the folder %s/%s", self->root, path);
    *out = fdopendir(fd);
    if (*out == NULL) {
        stoker_status status = sk_fail_errno(errno, "cannot list the folder %s/%s", self->root, path);

        close(fd);
        return status;
    }
    return STOKER_OK;
}

/* readdir, with an error told from the end. */
static stoker_status next_entry(const folder_reader *self, const char *path, DIR *folder, struct dirent **out)
{
    errno = 0;
    *out = readdir(folder);
    if (*out == NULL && errno != 0)
        return sk_fail_errno(errno, "cannot list the folder %s/%s", self->root, path);
    return STOKER_OK;
}

static stoker_status check_loop(const folder_reader *self, const char *path, const ancestor *here)
{
    if (here->depth > MAX_DEPTH)
        return sk_fail(STOKER_ERR_LIMIT, "%s/%s: more than %d folders within each other", self->root, path, MAX_DEPTH);
    for (const ancestor *up = here->parent; up != NULL; up = up->parent) {
        if (up->device == here->device && up->inode == here->inode)
            return sk_fail(STOKER_ERR_DATA, "%s/%s: a symbolic link leads back to a folder above it", self->root, path);
    }
    return STOKER_OK;
}

/* Notes `path` and all folders below it, in any order. */
static stoker_status find_folders(folder_reader *self, const char *path, int32_t label, const ancestor *parent)
{
    ancestor here = {.parent = parent, .depth = parent != NULL ? parent->depth + 1 : 0};
    struct dirent *entry;
    struct stat about;
    DIR *folder;
    stoker_status status = open_folder(self, path, &folder);

    if (status != STOKER_OK)
        return status;
    if (fstat(dirfd(folder), &about) != 0) {
        status = sk_fail_errno(errno, "cannot look at %s/%s", self->root, path);
        goto done;
    }
    here.device = about.st_dev;
    here.inode = about.st_ino;
    status = check_loop(self, path, &here);
    if (status == STOKER_OK)
        status = grow(&self->folders, self->folder_count, &self->folder_room, sizeof *self->folders);
    if (status == STOKER_OK && self->folder_count == UINT32_MAX)
        status = sk_fail(STOKER_ERR_LIMIT, "%s: more than %u folders", self->root, UINT32_MAX);
    if (status != STOKER_OK)
        goto done;
    folder_entry *mine = &self->folders[self->folder_count];

    mine->label = label;
    status = arena_add(&self->names, path, &mine->path);
    if (status != STOKER_OK)
        goto done;
    self->folder_count++;
    for (;;) {
        status = next_entry(self, path, folder, &entry);
        if (status != STOKER_OK || entry == NULL)
            break;
        if (is_dots(entry->d_name) || !is_folder(dirfd(folder), entry))
            continue;
        char *child = sk_path_join(path, entry->d_name);

        status = child != NULL ? find_folders(self, child, label, &here) : STOKER_ERR_MEMORY;
        sk_free(child);
        if (status != STOKER_OK)
            break;
    }
done:
    closedir(folder);
    return status;
}

/* Adds the image files of one folder, sorted. */
static stoker_status find_files(folder_reader *self, uint32_t folder_number)
{
    size_t first = self->file_count;
    size_t *order = NULL, count = 0, room = 0;
    struct dirent *entry;
    DIR *folder;
    /* A copy, since the arena moves. */
    char *path = sk_strdup(self->names.text + self->folders[folder_number].path);
    stoker_status status = path != NULL ? open_folder(self, path, &folder) : STOKER_ERR_MEMORY;

    if (status != STOKER_OK) {
        sk_free(path);
        return status;
    }
    for (;;) {
        status = next_entry(self, path, folder, &entry);
        if (status != STOKER_OK || entry == NULL)
            break;
        if (!has_image_extension(entry->d_name) || is_folder(dirfd(folder), entry))
            continue;
        status = grow(&order, count, &room, sizeof *order);
        if (status == STOKER_OK)
            status = arena_add(&self->names, entry->d_name, &order[count]);
        if (status != STOKER_OK)
            break;
        count++;
    }
    closedir(folder);
    sk_free(path);
    if (status != STOKER_OK)
        goto done;
    if (count > 1)
        qsort_r(order, count, sizeof *order, compare_offsets, self->names.text);
    for (size_t i = 0; i < count; i++) {
        status = grow(&self->files, self->file_count, &self->file_room, sizeof *self->files);
        if (status != STOKER_OK)
            break;
        self->files[first + i] = (file_entry){
            .folder = folder_number, .name_high = (uint32_t)((uint64_t)order[i] >> 32), .name_low = (uint32_t)order[i]};
        self->file_count++;
    }
done:
    sk_free(order);
    return status;
}

static stoker_status find_classes(folder_reader *self, bool *any_entry)
{
    struct dirent *entry;
    DIR *folder;
    stoker_status status = open_folder(self, "", &folder);

    *any_entry = false;
    if (status != STOKER_OK)
        return status;
    for (;;) {
        status = next_entry(self, "", folder, &entry);
        if (status != STOKER_OK || entry == NULL)
            break;
        if (is_dots(entry->d_name))
            continue;
        *any_entry = true;
        if (!is_folder(dirfd(folder), entry))
            continue;
        status = grow(&self->classes, self->class_count, &self->class_room, sizeof *self->classes);
        if (status == STOKER_OK)
            status = arena_add(&self->names, entry->d_name, &self->classes[self->class_count]);
        if (status != STOKER_OK)
            break;
        self->class_count++;
    }
    closedir(folder);
    if (status == STOKER_OK && self->class_count > INT32_MAX)
        status = sk_fail(STOKER_ERR_LIMIT, "%s: too many class folders", self->root);
    if (status == STOKER_OK && self->class_count > 1)
        qsort_r(self->classes, self->class_count, sizeof *self->classes, compare_offsets, self->names.text);
    return status;
}

/* Lists one class, and fails if it holds no image, as torchvision does. */
static stoker_status find_class(folder_reader *self, int32_t label)
{
    size_t first_folder = self->folder_count, first_file = self->file_count;
    char *name = sk_strdup(self->names.text + self->classes[label]);
    stoker_status status = name != NULL ? find_folders(self, name, label, NULL) : STOKER_ERR_MEMORY;

    sk_free(name);
    if (status != STOKER_OK)
        return status;
    qsort_r(self->folders + first_folder, self->folder_count - first_folder, sizeof *self->folders, compare_folders,
            self->names.text);
    for (size_t i = first_folder; i < self->folder_count && status == STOKER_OK; i++)
        status = find_files(self, (uint32_t)i);
    if (status == STOKER_OK && self->file_count == first_file)
        return sk_fail(STOKER_ERR_DATA,
                       "%s: found no valid file for the class %s (supported extensions: .jpg, .jpeg, .png, .ppm, .bmp, "
                       ".pgm, .tif, .tiff, .webp)",
                       self->root, self->names.text + self->classes[label]);
    return status;
}

/* ------------------------------------------------------------------------------------------------- reader -------- */

static const folder_reader *from_reader(const sk_reader *reader)
{
    return (const folder_reader *)reader;
}

static const char *file_name(const folder_reader *self, int64_t index)
{
    const file_entry *file = &self->files[index];

    return self->names.text + ((size_t)file->name_high << 32 | file->name_low);
}

static const char *folder_path(const folder_reader *self, int64_t index)
{
    return self->names.text + self->folders[self->files[index].folder].path;
}

static void destroy(sk_reader *reader)
{
    folder_reader *self = (folder_reader *)reader;

    if (self->root_fd >= 0)
        close(self->root_fd);
    sk_free(self->root);
    sk_free(self->names.text);
    sk_free(self->folders);
    sk_free(self->files);
    sk_free(self->classes);
    sk_free(self);
}

static size_t where(const sk_reader *reader, int64_t index, char *buffer, size_t size)
{
    const folder_reader *self = from_reader(reader);
    const char *slash = sk_ends_with(self->root, "/") ? "" : "/";
    int n = snprintf(buffer, size, "%s%s%s/%s", self->root, slash, folder_path(self, index), file_name(self, index));

    return n > 0 ? (size_t)n : 0;
}

static stoker_status fetch(const sk_reader *reader, int64_t index, sk_buffer *scratch, sk_sample *out)
{
    const folder_reader *self = from_reader(reader);
    char path[PATH_MAX], shown[SK_MESSAGE_SIZE];
    int length = snprintf(path, sizeof path, "%s/%s", folder_path(self, index), file_name(self, index));

    where(reader, index, shown, sizeof shown);
    if (length < 0 || (size_t)length >= sizeof path)
        return sk_fail(STOKER_ERR_IO, "cannot open %s: the path is too long", shown);
    memset(out, 0, sizeof *out);
    stoker_status status = sk_file_read_at(self->root_fd, path, shown, SK_FILE_ANY_SIZE, scratch, &out->size);

    if (status != STOKER_OK)
        return status;
    if (out->size == 0)
        return sk_fail(STOKER_ERR_DATA, "%s: the file is empty", shown);
    out->kind = SK_SAMPLE_ENCODED;
    out->data = scratch->data;
    out->label = self->folders[self->files[index].folder].label;
    return STOKER_OK;
}

static int64_t label(const sk_reader *reader, int64_t index)
{
    const folder_reader *self = from_reader(reader);

    return self->folders[self->files[index].folder].label;
}

static const char *class_name(const sk_reader *reader, int32_t number)
{
    const folder_reader *self = from_reader(reader);

    return self->names.text + self->classes[number];
}

static void will_need(const sk_reader *reader, int64_t index)
{
    const folder_reader *self = from_reader(reader);
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder_path(self, index), file_name(self, index));

    if (length < 0 || (size_t)length >= sizeof path)
        return;
    int fd = openat(self->root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}

static const sk_reader_ops ops = {
    .destroy = destroy,
    .fetch = fetch,
    .label = label,
    .where = where,
    .class_name = class_name,
    .will_need = will_need,
};

stoker_status sk_folder_open(const char *path, const stoker_dataset_settings *settings, bool *matched, sk_reader **out)
{
    stoker_status status = STOKER_ERR_MEMORY;
    bool any_entry = false;

    (void)settings;
    *out = NULL;
    *matched = sk_path_is_folder(path);
    if (!*matched)
        return STOKER_OK;
    folder_reader *self = sk_calloc(1, sizeof *self);

    if (self == NULL)
        return STOKER_ERR_MEMORY;
    self->reader.ops = &ops;
    self->reader.format = "imagefolder";
    self->reader.channels = 3;
    self->reader.encoded = 1;
    self->root_fd = -1;
    self->root = sk_strdup(path);
    if (self->root == NULL)
        goto fail;
    self->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->root_fd < 0) {
        status = sk_fail_errno(errno, "cannot open the folder %s", path);
        goto fail;
    }
    status = find_classes(self, &any_entry);
    if (status != STOKER_OK)
        goto fail;
    if (self->class_count == 0) {
        status = any_entry ? sk_fail(STOKER_ERR_DATA, "%s: couldn't find any class folder, and no other dataset", path)
                           : sk_fail(STOKER_ERR_DATA, "%s: the folder is empty", path);
        goto fail;
    }
    for (size_t i = 0; i < self->class_count; i++) {
        status = find_class(self, (int32_t)i);
        if (status != STOKER_OK)
            goto fail;
    }
    self->reader.size = (int64_t)self->file_count;
    self->reader.classes = (int32_t)self->class_count;
    *out = &self->reader;
    return STOKER_OK;
fail:
    destroy(&self->reader);
    return status;
}
