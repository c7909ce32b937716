/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_tree.c: walks a folder as torchvision.datasets.ImageFolder does: folders directly in the root are classes, sorted by name; a
 * class's samples are the files at any depth below it that have an image's extension, folder by folder sorted by path, in each sorted by
 * name. Links are followed. What differs: a folder that may not be read is an error (there it is passed over in silence), and so is a
 * link that leads back up (there its files come 40 times).
 *
 * Each folder is listed once, and the listing tells folders from files: nothing is asked about single files, except what links lead to.
 */
#include "dataset/folder_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define MAX_DEPTH 256 /* folders within folders */

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};

/* A folder of the class under way. */
typedef struct visit {
    size_t path;       /* in the text */
    size_t parent;     /* the visit that found it; its own number for the class folder */
    size_t first_name; /* in `names` */
    size_t name_count;
    dev_t device;
    ino_t inode;
    int depth;
} visit;

typedef struct class_walk {
    visit *visits;
    size_t visit_count, visit_room;
    size_t *names; /* of image files, in the text */
    size_t name_count, name_room;
} class_walk;

/* ------------------------------------------------------------------------------------------------- names -------- */

/* The code point at *at, which moves on. */
static uint32_t next_code_point(const uint8_t **at)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *p = *at;
    int length = p[0] < 0x80                   ? 1
                 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                 : (p[0] & 0xf0) == 0xe0       ? 3
                 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                               : 0;
    uint32_t c = length < 2 ? p[0] : p[0] & (0x7fu >> length);

    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) { /* also at the NUL */
            length = 0;
            break;
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    if (length == 0 || c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        *at += 1;
        return 0xdc00u + p[0];
    }
    *at += length;
    return c;
}

int sk_name_compare(const char *a, const char *b)
{
    const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;

    while (*x == *y && *x < 0x80) {
        if (*x == 0)
            return 0;
        x++, y++;
    }
    while (*x != 0 && *y != 0) {
        uint32_t c = next_code_point(&x), d = next_code_point(&y);

        if (c != d)
            return c < d ? -1 : 1;
    }
    return (*x != 0) - (*y != 0);
}

static int compare_names(const void *a, const void *b, void *text)
{
    return sk_name_compare((const char *)text + *(const size_t *)a, (const char *)text + *(const size_t *)b);
}

static int compare_visits(const void *a, const void *b, void *text)
{
    return sk_name_compare((const char *)text + ((const visit *)a)->path,
                           (const char *)text + ((const visit *)b)->path);
}

/* Not strcasecmp, which follows the locale: Turkish lower case has no i for I. */
static bool ends_in(const char *name, size_t length, const char *extension)
{
    size_t n = strlen(extension);

    if (length < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = name[length - n + i];

        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != extension[i])
            return false;
    }
    return true;
}

static bool has_image_extension(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        if (ends_in(name, length, extensions[i]))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------ memory -------- */

/* Makes room for one more element. */
static stoker_status grow(void *array, size_t count, size_t *room, size_t size)
{
    void *memory;

    if (count < *room)
        return STOKER_OK;
    size_t more = *room + *room / 2 + 64;

    memcpy(&memory, array, sizeof memory); /* `array` points to a pointer of some type */
    memory = sk_realloc_array(memory, more, size);
    if (memory == NULL)
        return STOKER_ERR_MEMORY;
    memcpy(array, &memory, sizeof memory);
    *room = more;
    return STOKER_OK;
}

/* Adds "folder/name", or "name" where `folder` is SIZE_MAX. */
static stoker_status add_text(sk_tree *tree, size_t folder, const char *name, size_t *offset)
{
    size_t before = folder != SIZE_MAX ? strlen(tree->text + folder) + 1 : 0, length = strlen(name) + 1;

    if (tree->text_room - tree->text_used < before + length) {
        size_t room = tree->text_room + tree->text_room / 2 + before + length + 4096;
        char *grown = sk_realloc_array(tree->text, room, 1);

        if (grown == NULL)
            return STOKER_ERR_MEMORY;
        tree->text = grown;
        tree->text_room = room;
    }
    char *to = tree->text + tree->text_used;

    if (before > 0) {
        memcpy(to, tree->text + folder, before - 1);
        to[before - 1] = '/';
    }
    memcpy(to + before, name, length);
    *offset = tree->text_used;
    tree->text_used += before + length;
    return STOKER_OK;
}

/* Gives back what growing took in advance. */
static void shrink(void *array, size_t count, size_t size)
{
    void *memory;

    memcpy(&memory, array, sizeof memory);
    if (memory == NULL)
        return;
    memory = sk_realloc_array(memory, count, size);
    if (memory != NULL)
        memcpy(array, &memory, sizeof memory);
}

/* ----------------------------------------------------------------------------------------------- listing -------- */

/* For messages; `path` is relative to the root, "" the root itself. */
static stoker_status fail_folder(const sk_tree *tree, int code, const char *what, const char *path)
{
    const char *slash = path[0] != '\0' && !sk_ends_with(tree->root, "/") ? "/" : "";

    return sk_fail_errno(code, "cannot %s %s%s%s", what, tree->root, slash, path);
}

static stoker_status open_folder(const sk_tree *tree, const char *path, DIR **out)
{
    int fd = openat(tree->root_fd, path[0] != '\0' ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return fail_folder(tree, errno, "open the folder", path);
    *out = fdopendir(fd);
    if (*out == NULL) {
        stoker_status status = fail_folder(tree, errno, "list the folder", path);

        close(fd);
        return status;
    }
    return STOKER_OK;
}

/* The next entry but "." and ".."; NULL at the end. */
static stoker_status next_entry(const sk_tree *tree, const char *path, DIR *folder, const struct dirent **out)
{
    do {
        errno = 0;
        *out = readdir(folder);
        if (*out == NULL)
            return errno != 0 ? fail_folder(tree, errno, "list the folder", path) : STOKER_OK;
    } while (strcmp((*out)->d_name, ".") == 0 || strcmp((*out)->d_name, "..") == 0);
    return STOKER_OK;
}

/* Whether an entry is a folder or a link to one. A link to nothing is none; one that cannot be followed might be a class. */
static stoker_status is_folder(const sk_tree *tree, const char *path, DIR *folder, const struct dirent *entry,
                               bool *out)
{
    struct stat about;

    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) {
        *out = entry->d_type == DT_DIR;
        return STOKER_OK;
    }
    *out = false;
    if (fstatat(dirfd(folder), entry->d_name, &about, 0) == 0)
        *out = S_ISDIR(about.st_mode);
    else if (errno != ENOENT && (path[0] == '\0' || (errno != ELOOP && errno != ENOTDIR)))
        return sk_fail_errno(errno, "cannot follow the link %s/%s%s%s", tree->root, path, path[0] != '\0' ? "/" : "",
                             entry->d_name);
    return STOKER_OK;
}

static stoker_status find_classes(sk_tree *tree, bool *any_entry)
{
    const struct dirent *entry;
    DIR *folder;
    bool is_class = false;
    stoker_status status = open_folder(tree, "", &folder);

    *any_entry = false;
    if (status != STOKER_OK)
        return status;
    for (;;) {
        status = next_entry(tree, "", folder, &entry);
        if (status != STOKER_OK || entry == NULL)
            break;
        *any_entry = true;
        status = is_folder(tree, "", folder, entry, &is_class);
        if (status == STOKER_OK && !is_class)
            continue;
        if (status == STOKER_OK)
            status = grow(&tree->classes, tree->class_count, &tree->class_room, sizeof *tree->classes);
        if (status == STOKER_OK)
            status = add_text(tree, SIZE_MAX, entry->d_name, &tree->classes[tree->class_count]);
        if (status != STOKER_OK)
            break;
        tree->class_count++;
    }
    closedir(folder);
    if (status == STOKER_OK && tree->class_count > INT32_MAX)
        status = sk_fail(STOKER_ERR_LIMIT, "%s: more than %d class folders", tree->root, INT32_MAX);
    if (status == STOKER_OK && tree->class_count > 1)
        qsort_r(tree->classes, tree->class_count, sizeof *tree->classes, compare_names, tree->text);
    return status;
}

/* ---------------------------------------------------------------------------------------------- one class -------- */

/* Notes which folder this is and whether it lies within itself. */
static stoker_status identify(const sk_tree *tree, class_walk *walk, size_t number, DIR *folder)
{
    visit *here = &walk->visits[number];
    const char *path = tree->text + here->path;
    struct stat about;

    if (fstat(dirfd(folder), &about) != 0)
        return fail_folder(tree, errno, "look at", path);
    here->device = about.st_dev;
    here->inode = about.st_ino;
    if (here->depth > MAX_DEPTH)
        return sk_fail(STOKER_ERR_LIMIT, "%s/%s: more than %d folders within each other", tree->root, path, MAX_DEPTH);
    for (size_t up = number; walk->visits[up].parent != up;) {
        up = walk->visits[up].parent;
        if (walk->visits[up].device == here->device && walk->visits[up].inode == here->inode)
            return sk_fail(STOKER_ERR_DATA, "%s/%s: a symbolic link that leads back to a folder above it", tree->root,
                           path);
    }
    return STOKER_OK;
}

static stoker_status add_visit(sk_tree *tree, class_walk *walk, size_t parent, const char *name)
{
    bool top = walk->visit_count == 0;
    stoker_status status = grow(&walk->visits, walk->visit_count, &walk->visit_room, sizeof *walk->visits);

    if (status != STOKER_OK)
        return status;
    visit *new = &walk->visits[walk->visit_count];

    *new = (visit){.parent = parent, .depth = top ? 0 : walk->visits[parent].depth + 1};
    status = add_text(tree, top ? SIZE_MAX : walk->visits[parent].path, name, &new->path);
    if (status == STOKER_OK)
        walk->visit_count++;
    return status;
}

static stoker_status add_name(sk_tree *tree, class_walk *walk, size_t number, const char *name)
{
    stoker_status status = grow(&walk->names, walk->name_count, &walk->name_room, sizeof *walk->names);

    if (status == STOKER_OK)
        status = add_text(tree, SIZE_MAX, name, &walk->names[walk->name_count]);
    if (status == STOKER_OK) {
        walk->name_count++;
        walk->visits[number].name_count++;
    }
    return status;
}

/* Lists one folder: its image files' names, and the folders in it for later visits. */
static stoker_status list_folder(sk_tree *tree, class_walk *walk, size_t number)
{
    const struct dirent *entry = NULL;
    bool below = false;
    DIR *folder = NULL;
    char *path = sk_strdup(tree->text + walk->visits[number].path); /* a copy, since the text moves */

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    stoker_status status = open_folder(tree, path, &folder);

    if (status != STOKER_OK || folder == NULL)
        goto closed;
    status = identify(tree, walk, number, folder);
    walk->visits[number].first_name = walk->name_count;
    while (status == STOKER_OK) {
        status = next_entry(tree, path, folder, &entry);
        if (status != STOKER_OK || entry == NULL)
            break;
        status = is_folder(tree, path, folder, entry, &below);
        if (status == STOKER_OK && below)
            status = add_visit(tree, walk, number, entry->d_name);
        else if (status == STOKER_OK && has_image_extension(entry->d_name))
            status = add_name(tree, walk, number, entry->d_name);
    }
    closedir(folder);
closed:
    sk_free(path);
    return status;
}

/* Adds a folder's files to the samples. */
static stoker_status add_samples(sk_tree *tree, class_walk *walk, const visit *from, int32_t label)
{
    size_t *names = walk->names + from->first_name;
    stoker_status status = grow(&tree->folders, tree->folder_count, &tree->folder_room, sizeof *tree->folders);

    if (status == STOKER_OK && tree->folder_count == UINT32_MAX)
        status = sk_fail(STOKER_ERR_LIMIT, "%s: more than %u folders", tree->root, UINT32_MAX);
    if (status != STOKER_OK)
        return status;
    tree->folders[tree->folder_count] = (sk_tree_folder){.path = from->path, .label = label};
    size_t count = names != NULL ? from->name_count : 0; /* no list at all: no class has an image yet */

    if (count > 0)
        qsort_r(names, count, sizeof *names, compare_names, tree->text);
    for (size_t i = 0; i < count; i++) {
        status = grow(&tree->files, tree->file_count, &tree->file_room, sizeof *tree->files);
        if (status != STOKER_OK)
            return status;
        tree->files[tree->file_count++] = (sk_tree_file){.folder = (uint32_t)tree->folder_count,
                                                         .name_high = (uint32_t)((uint64_t)names[i] >> 32),
                                                         .name_low = (uint32_t)names[i]};
    }
    tree->folder_count++;
    return STOKER_OK;
}

static stoker_status walk_class(sk_tree *tree, int32_t label)
{
    class_walk walk = {0};
    char *name = sk_strdup(tree->text + tree->classes[label]);
    stoker_status status = name != NULL ? add_visit(tree, &walk, 0, name) : STOKER_ERR_MEMORY;

    for (size_t i = 0; status == STOKER_OK && i < walk.visit_count; i++)
        status = list_folder(tree, &walk, i);
    if (status == STOKER_OK)
        qsort_r(walk.visits, walk.visit_count, sizeof *walk.visits, compare_visits, tree->text);
    for (size_t i = 0; status == STOKER_OK && i < walk.visit_count; i++) {
        if (walk.visits[i].name_count > 0)
            status = add_samples(tree, &walk, &walk.visits[i], label);
    }
    sk_free(walk.visits);
    sk_free(walk.names);
    sk_free(name);
    return status;
}

/* Names the classes without images, as torchvision does; as many as the message holds. */
static stoker_status fail_empty(const sk_tree *tree, const bool *filled)
{
    char names[SK_MESSAGE_SIZE / 2] = "";
    size_t used = 0, more = 0;

    for (size_t i = 0; i < tree->class_count; i++) {
        if (filled[i])
            continue;
        const char *name = tree->text + tree->classes[i];
        size_t length = strlen(name);

        if (more > 0 || used + length + 3 > sizeof names) {
            more++;
            continue;
        }
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", name);
    }
    if (more > 0)
        return sk_fail(STOKER_ERR_DATA, "%s: found no valid file for the classes %s and %zu more", tree->root, names,
                       more);
    return sk_fail(
        STOKER_ERR_DATA,
        "%s: found no valid file for the classes %s (supported extensions: .jpg, .jpeg, .png, .ppm, .bmp, .pgm, "
        ".tif, .tiff, .webp)",
        tree->root, names);
}

static stoker_status walk_classes(sk_tree *tree)
{
    bool *filled = sk_calloc(tree->class_count, sizeof *filled), all = true;
    stoker_status status = filled != NULL ? STOKER_OK : STOKER_ERR_MEMORY;

    for (size_t i = 0; status == STOKER_OK && i < tree->class_count; i++) {
        size_t before = tree->file_count;

        status = walk_class(tree, (int32_t)i);
        if (status == STOKER_OK) {
            filled[i] = tree->file_count > before;
            all = all && filled[i];
        }
    }
    if (status == STOKER_OK && !all)
        status = fail_empty(tree, filled);
    sk_free(filled);
    return status;
}

stoker_status sk_tree_open(const char *root, sk_tree *out)
{
    bool any_entry = false;

    *out = (sk_tree){.root_fd = -1};
    out->root = sk_strdup(root);
    if (out->root == NULL)
        return STOKER_ERR_MEMORY;
    out->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->root_fd < 0)
        return fail_folder(out, errno, "open the folder", "");
    stoker_status status = find_classes(out, &any_entry);

    if (status == STOKER_OK && !any_entry)
        return sk_fail(STOKER_ERR_DATA, "%s: the folder is empty", root);
    if (status == STOKER_OK && out->class_count == 0)
        return sk_fail(STOKER_ERR_DATA,
                       "%s: couldn't find any class folder in it, nor CIFAR batches or MNIST's idx files", root);
    if (status == STOKER_OK)
        status = walk_classes(out);
    if (status == STOKER_OK) {
        shrink(&out->text, out->text_used, 1);
        shrink(&out->files, out->file_count, sizeof *out->files);
    }
    return status;
}

void sk_tree_close(sk_tree *tree)
{
    if (tree->root_fd >= 0)
        close(tree->root_fd);
    sk_free(tree->root);
    sk_free(tree->text);
    sk_free(tree->folders);
    sk_free(tree->files);
    sk_free(tree->classes);
}
