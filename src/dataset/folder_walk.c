/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_walk.c: walks a class as torchvision.datasets.ImageFolder does: its samples are the files at any depth that have an image's
 * extension, folder by folder sorted by path, in each sorted by name. Links are followed. What differs: a folder that may not be read is an
 * error (there it is passed over in silence), and so is a link that leads back up (there its files come 40 times).
 *
 * Each folder is listed once, and the listing tells folders from files: nothing is asked about single files, except what links lead to.
 */
#include "dataset/folder_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "dataset/folder_names.h"

#define MAX_DEPTH 256 /* folders within folders */

/* A folder under way. */
typedef struct visit {
    size_t path;               /* in the walk's paths */
    size_t parent;             /* the visit that found it; its own number for the first */
    size_t names, names_end;   /* in the walk's names */
    size_t image, image_count; /* in the walk's images */
    size_t link, link_count;   /* in the walk's links */
    sk_tree_stamp stamp;
    int depth;
} visit;

typedef struct walk {
    const sk_tree *at;
    visit *visits;
    size_t visit_count, visit_room;
    sk_name *images;
    size_t image_count, image_room;
    size_t *links; /* names of links to no folder that are no images either */
    size_t link_count, link_room;
    char *paths;
    size_t paths_used, paths_room;
    char *names;
    size_t names_used, names_room;
    uint64_t looked_at;
    bool in_root;
} walk;

static void clear(walk *self)
{
    sk_free(self->visits);
    sk_free(self->images);
    sk_free(self->links);
    sk_free(self->paths);
    sk_free(self->names);
}

static int compare_visits(const void *a, const void *b, void *paths)
{
    return sk_name_compare((const char *)paths + ((const visit *)a)->path,
                           (const char *)paths + ((const visit *)b)->path);
}

/* For messages; `path` is relative to the root, "" the root itself. */
static stoker_status fail_folder(const walk *self, int code, const char *what, const char *path)
{
    const char *slash = path[0] != '\0' && !sk_ends_with(self->at->root, "/") ? "/" : "";

    return sk_fail_errno(code, "cannot %s %s%s%s", what, self->at->root, slash, path);
}

/* ----------------------------------------------------------------------------------------------- listing -------- */

sk_tree_stamp sk_stamp(const struct stat *about)
{
    const struct timespec *times[2] = {&about->st_mtim, &about->st_ctim};
    int64_t ns[2];

    for (int i = 0; i < 2; i++) {
        if (__builtin_mul_overflow((int64_t)times[i]->tv_sec, (int64_t)1000000000, &ns[i]) ||
            __builtin_add_overflow(ns[i], (int64_t)times[i]->tv_nsec, &ns[i]))
            ns[i] = INT64_MAX;
    }
    return (sk_tree_stamp){.device = about->st_dev, .inode = about->st_ino, .modified = ns[0], .changed = ns[1]};
}

int sk_link_to_folder(int folder_fd, const char *name, bool in_root)
{
    struct stat about;

    if (fstatat(folder_fd, name, &about, 0) == 0)
        return S_ISDIR(about.st_mode) ? 1 : 0;
    return errno == ENOENT || (!in_root && (errno == ELOOP || errno == ENOTDIR)) ? 0 : -1;
}

/* Adds "folder/name", or "name" where `folder` is empty. `folder` must not lie in the paths. */
static stoker_status add_visit(walk *self, size_t parent, const char *folder, const char *name)
{
    size_t before = folder[0] != '\0' ? strlen(folder) + 1 : 0, length = strlen(name) + 1;
    stoker_status status = sk_tree_room(&self->visits, self->visit_count, 1, &self->visit_room, sizeof *self->visits);

    if (status == STOKER_OK)
        status = sk_tree_room(&self->paths, self->paths_used, before + length, &self->paths_room, 1);
    if (status != STOKER_OK)
        return status;
    char *to = self->paths + self->paths_used;

    if (before > 0) {
        memcpy(to, folder, before - 1);
        to[before - 1] = '/';
    }
    memcpy(to + before, name, length);
    self->visits[self->visit_count] = (visit){.path = self->paths_used,
                                              .parent = parent,
                                              .depth = self->visit_count > 0 ? self->visits[parent].depth + 1 : 0};
    self->visit_count++;
    self->paths_used += before + length;
    return STOKER_OK;
}

/* A sample's name, or a link's, or both in one. */
static stoker_status add_name(walk *self, const char *name, size_t length, bool image, bool link)
{
    stoker_status status = sk_tree_room(&self->names, self->names_used, length + 1, &self->names_room, 1);

    if (status == STOKER_OK && image)
        status = sk_tree_room(&self->images, self->image_count, 1, &self->image_room, sizeof *self->images);
    else if (status == STOKER_OK)
        status = sk_tree_room(&self->links, self->link_count, 1, &self->link_room, sizeof *self->links);
    if (status != STOKER_OK)
        return status;
    if (image)
        self->images[self->image_count++] = (sk_name){.at = self->names_used, .link = link};
    else
        self->links[self->link_count++] = self->names_used;
    memcpy(self->names + self->names_used, name, length + 1);
    self->names_used += length + 1;
    return STOKER_OK;
}

/* Tells what an entry is. `*link`: a symbolic link. */
static stoker_status look_at(const walk *self, const char *path, DIR *folder, const struct dirent *entry,
                             bool *is_folder, bool *link)
{
    unsigned char type = entry->d_type;
    struct stat about;
    int leads = 0;

    if (type == DT_UNKNOWN) { /* a file system that does not tell */
        if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0)
            leads = errno == ENOENT ? 0 : -1;
        else
            type = S_ISLNK(about.st_mode) ? DT_LNK : S_ISDIR(about.st_mode) ? DT_DIR : DT_REG;
    }
    *link = type == DT_LNK;
    if (*link)
        leads = sk_link_to_folder(dirfd(folder), entry->d_name, self->in_root);
    *is_folder = type == DT_DIR || leads == 1;
    if (leads < 0)
        return sk_fail_errno(errno, "cannot follow the link %s/%s%s%s", self->at->root, path,
                             path[0] != '\0' ? "/" : "", entry->d_name);
    return STOKER_OK;
}

static stoker_status take_entry(walk *self, size_t number, const char *path, DIR *folder, const struct dirent *entry)
{
    bool is_folder, link;
    stoker_status status = look_at(self, path, folder, entry, &is_folder, &link);

    if (status != STOKER_OK)
        return status;
    self->looked_at++;
    if (is_folder)
        return add_visit(self, number, path, entry->d_name);
    size_t length = strlen(entry->d_name);
    bool image = !self->in_root && sk_name_is_image(entry->d_name, length);

    return image || link ? add_name(self, entry->d_name, length, image, link) : STOKER_OK;
}

/* Notes which folder this is and whether it lies within itself. */
static stoker_status identify(walk *self, size_t number, const char *path, DIR *folder)
{
    visit *here = &self->visits[number];
    struct stat about;

    if (fstat(dirfd(folder), &about) != 0)
        return fail_folder(self, errno, "look at", path);
    here->stamp = sk_stamp(&about);
    if (here->depth > MAX_DEPTH)
        return sk_fail(STOKER_ERR_LIMIT, "%s/%s: more than %d folders within each other", self->at->root, path,
                       MAX_DEPTH);
    for (size_t up = number; self->visits[up].parent != up;) {
        up = self->visits[up].parent;
        if (self->visits[up].stamp.device == here->stamp.device && self->visits[up].stamp.inode == here->stamp.inode)
            return sk_fail(STOKER_ERR_DATA, "%s/%s: a symbolic link that leads back to a folder above it",
                           self->at->root, path);
    }
    return STOKER_OK;
}

static stoker_status open_folder(const walk *self, const char *path, DIR **out)
{
    int fd = openat(self->at->root_fd, path[0] != '\0' ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return fail_folder(self, errno, "open the folder", path);
    *out = fdopendir(fd);
    if (*out == NULL) {
        stoker_status status = fail_folder(self, errno, "list the folder", path);

        close(fd);
        return status;
    }
    return STOKER_OK;
}

static stoker_status take_entries(walk *self, size_t number, const char *path, DIR *folder)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);

        if (entry == NULL)
            return errno != 0 ? fail_folder(self, errno, "list the folder", path) : STOKER_OK;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        stoker_status status = take_entry(self, number, path, folder, entry);

        if (status != STOKER_OK)
            return status;
    }
}

/* Lists one folder: its names, and the folders in it for later visits. */
static stoker_status list_folder(walk *self, size_t number)
{
    visit before = {.image = self->image_count, .link = self->link_count, .names = self->names_used};
    DIR *folder = NULL;
    char *path = sk_strdup(self->paths + self->visits[number].path); /* a copy, since the paths move */

    if (path == NULL)
        return STOKER_ERR_MEMORY;
    stoker_status status = open_folder(self, path, &folder);

    if (status != STOKER_OK || folder == NULL)
        goto closed;
    status = identify(self, number, path, folder);
    if (status == STOKER_OK)
        status = take_entries(self, number, path, folder);
    closedir(folder);
    visit *here = &self->visits[number];

    here->names = before.names;
    here->names_end = self->names_used;
    here->image = before.image;
    here->image_count = self->image_count - before.image;
    here->link = before.link;
    here->link_count = self->link_count - before.link;
closed:
    sk_free(path);
    return status;
}

/* ------------------------------------------------------------------------------------------ what was found -------- */

/* Begins a folder of the tree. */
static stoker_status put_folder(const walk *self, const visit *from, int32_t label, sk_tree *out)
{
    const char *path = self->paths + from->path;
    size_t size = strlen(path) + 1;
    stoker_status status = sk_tree_room(&out->folders, out->folder_count, 1, &out->folder_room, sizeof *out->folders);

    if (status == STOKER_OK)
        status = sk_tree_room(&out->stamps, out->folder_count, 1, &out->stamp_room, sizeof *out->stamps);
    if (status == STOKER_OK)
        status = sk_tree_room(&out->paths, out->paths_used, size, &out->paths_room, 1);
    if (status != STOKER_OK)
        return status;
    memcpy(out->paths + out->paths_used, path, size);
    out->folders[out->folder_count] =
        (sk_tree_folder){.path = out->paths_used, .names = out->names_used, .label = label};
    out->stamps[out->folder_count++] = from->stamp;
    out->paths_used += size;
    return STOKER_OK;
}

/* Puts a name into the folder begun last. */
static stoker_status put_name(const walk *self, const visit *from, int32_t label, size_t at, sk_tree *out,
                              sk_tree_file *file)
{
    const char *name = self->names + at;
    size_t size = strlen(name) + 1, place = out->names_used - out->folders[out->folder_count - 1].names;

    if (place > UINT32_MAX) { /* more than 4 GB of names: goes on as if in one more folder of the same path */
        stoker_status status = put_folder(self, from, label, out);

        if (status != STOKER_OK)
            return status;
        place = 0;
    }
    memcpy(out->names + out->names_used, name, size);
    out->names_used += size;
    *file = (sk_tree_file){.folder = (uint32_t)(out->folder_count - 1), .name = (uint32_t)place};
    return STOKER_OK;
}

static stoker_status put_link(sk_tree *out, const sk_tree_file *link)
{
    stoker_status status = sk_tree_room(&out->links, out->link_count, 1, &out->link_room, sizeof *out->links);

    if (status == STOKER_OK)
        out->links[out->link_count++] = *link;
    return status;
}

/* Adds a folder with its files in order. */
static stoker_status put_visit(const walk *self, const visit *from, int32_t label, sk_tree *out)
{
    sk_name *images = from->image_count > 0 ? self->images + from->image : NULL;
    sk_tree_file file;
    stoker_status status = put_folder(self, from, label, out);

    if (status == STOKER_OK)
        status = sk_tree_room(&out->names, out->names_used, from->names_end - from->names, &out->names_room, 1);
    if (status == STOKER_OK && from->image_count > 0)
        status = sk_tree_room(&out->files, out->file_count, from->image_count, &out->file_room, sizeof *out->files);
    if (status == STOKER_OK && from->image_count > 0)
        status = sk_names_sort(images, from->image_count, self->names, from->names, from->names_end);
    for (size_t i = 0; status == STOKER_OK && i < from->image_count; i++) {
        status = put_name(self, from, label, images[i].at, out, &file);
        if (status != STOKER_OK)
            break;
        out->files[out->file_count++] = file;
        if (images[i].link)
            status = put_link(out, &file);
    }
    for (size_t i = 0; status == STOKER_OK && i < from->link_count; i++) {
        status = put_name(self, from, label, self->links[from->link + i], out, &file);
        if (status == STOKER_OK)
            status = put_link(out, &file);
    }
    return status;
}

static void sort_visits(walk *self, size_t from)
{
    if (self->visit_count - from > 1)
        qsort_r(self->visits + from, self->visit_count - from, sizeof *self->visits, compare_visits, self->paths);
}

stoker_status sk_walk_class(const sk_tree *at, const char *name, int32_t label, sk_tree *out)
{
    walk self = {.at = at};
    stoker_status status = add_visit(&self, 0, "", name);

    for (size_t i = 0; status == STOKER_OK && i < self.visit_count; i++)
        status = list_folder(&self, i);
    if (status == STOKER_OK)
        sort_visits(&self, 0);
    for (size_t i = 0; status == STOKER_OK && i < self.visit_count; i++)
        status = put_visit(&self, &self.visits[i], label, out);
    out->looked_at = self.looked_at;
    clear(&self);
    return status;
}

stoker_status sk_walk_root(const sk_tree *at, sk_tree *out, char **text, size_t **below, size_t *below_count)
{
    walk self = {.at = at, .in_root = true};
    stoker_status status = add_visit(&self, 0, "", "");

    *text = NULL;
    *below = NULL;
    *below_count = 0;
    if (status == STOKER_OK)
        status = list_folder(&self, 0);
    if (status == STOKER_OK)
        status = put_visit(&self, &self.visits[0], -1, out);
    if (status == STOKER_OK) {
        *below = sk_realloc_array(NULL, self.visit_count, sizeof **below);
        status = *below != NULL ? STOKER_OK : STOKER_ERR_MEMORY;
    }
    if (status == STOKER_OK) {
        sort_visits(&self, 1);
        for (size_t i = 1; i < self.visit_count; i++)
            (*below)[(*below_count)++] = self.visits[i].path;
        *text = self.paths;
        self.paths = NULL;
    }
    out->looked_at = self.looked_at;
    clear(&self);
    return status;
}
