/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_tree.c: a folder of class folders: folders directly in the root are classes, sorted by name. What lies in one is folder_walk.c's.
 *
 * Classes are listed on several threads. Shared state: `done`, `next` and what they lead to, `tree`, `status` and `message` of a `listing`,
 * all guarded by its lock.
 */
#include "dataset/folder_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "dataset/folder_walk.h"

/* One class, listed. */
typedef struct part {
    sk_tree tree;
    stoker_status status;
    char *message; /* of a failure; NULL where there was no memory for it */
} part;

typedef struct listing {
    sk_tree *tree;
    char *text; /* the class folders' names */
    size_t *names;
    pthread_mutex_t lock;
    part **done; /* by class: listed, and not yet added to the tree, which takes them in order */
    size_t next; /* the class that the tree takes next */
    stoker_status status;
    char *message;
} listing;

/* ------------------------------------------------------------------------------------------------ memory -------- */

stoker_status sk_tree_room(void *array, size_t count, size_t more, size_t *room, size_t size)
{
    void *memory;
    size_t wanted;

    if (more <= *room - count)
        return STOKER_OK;
    if (__builtin_add_overflow(count + *room / 2 + 64, more, &wanted))
        return sk_fail(STOKER_ERR_MEMORY, "out of memory: %zu elements", more);
    memcpy(&memory, array, sizeof memory); /* `array` points to a pointer of some type */
    memory = sk_realloc_array(memory, wanted, size);
    if (memory == NULL)
        return STOKER_ERR_MEMORY;
    memcpy(array, &memory, sizeof memory);
    *room = wanted;
    return STOKER_OK;
}

/* Gives back what growing took in advance. */
static void shrink(void *array, size_t count, size_t *room, size_t size)
{
    void *memory;

    memcpy(&memory, array, sizeof memory);
    if (memory == NULL || count == *room)
        return;
    memory = sk_realloc_array(memory, count, size);
    if (memory == NULL)
        return;
    memcpy(array, &memory, sizeof memory);
    *room = count;
}

void sk_tree_trim(sk_tree *tree)
{
    if (tree->block != NULL)
        return;
    sk_free(tree->stamps);
    sk_free(tree->links);
    tree->stamps = NULL;
    tree->links = NULL;
    tree->link_count = 0;
    shrink(&tree->folders, tree->folder_count, &tree->folder_room, sizeof *tree->folders);
    shrink(&tree->files, tree->file_count, &tree->file_room, sizeof *tree->files);
    shrink(&tree->paths, tree->paths_used, &tree->paths_room, 1);
    shrink(&tree->names, tree->names_used, &tree->names_room, 1);
}

static void free_arrays(sk_tree *tree)
{
    if (tree->mapped) {
        munmap(tree->block, tree->block_size);
        return;
    }
    sk_free(tree->block);
    if (tree->block != NULL)
        return;
    sk_free(tree->folders);
    sk_free(tree->stamps);
    sk_free(tree->files);
    sk_free(tree->links);
    sk_free(tree->classes);
    sk_free(tree->paths);
    sk_free(tree->names);
}

static void copy(void *array, size_t at, const void *from, size_t count, size_t size)
{
    char *to;

    memcpy(&to, array, sizeof to);
    if (count > 0)
        memcpy(to + at * size, from, count * size);
}

/* Adds a class's folders and files after those that are there. */
static stoker_status append(sk_tree *tree, const sk_tree *from)
{
    size_t folders = tree->folder_count, files = tree->file_count, links = tree->link_count;
    stoker_status status =
        sk_tree_room(&tree->folders, folders, from->folder_count, &tree->folder_room, sizeof *tree->folders);

    if (status == STOKER_OK)
        status = sk_tree_room(&tree->stamps, folders, from->folder_count, &tree->stamp_room, sizeof *tree->stamps);
    if (status == STOKER_OK)
        status = sk_tree_room(&tree->files, files, from->file_count, &tree->file_room, sizeof *tree->files);
    if (status == STOKER_OK)
        status = sk_tree_room(&tree->links, links, from->link_count, &tree->link_room, sizeof *tree->links);
    if (status == STOKER_OK)
        status = sk_tree_room(&tree->paths, tree->paths_used, from->paths_used, &tree->paths_room, 1);
    if (status == STOKER_OK)
        status = sk_tree_room(&tree->names, tree->names_used, from->names_used, &tree->names_room, 1);
    if (status != STOKER_OK)
        return status;
    if (from->folder_count > UINT32_MAX - folders)
        return sk_fail(STOKER_ERR_LIMIT, "%s: more than %u folders", tree->root, UINT32_MAX);
    copy(&tree->folders, folders, from->folders, from->folder_count, sizeof *tree->folders);
    copy(&tree->stamps, folders, from->stamps, from->folder_count, sizeof *tree->stamps);
    copy(&tree->files, files, from->files, from->file_count, sizeof *tree->files);
    copy(&tree->links, links, from->links, from->link_count, sizeof *tree->links);
    copy(&tree->paths, tree->paths_used, from->paths, from->paths_used, 1);
    copy(&tree->names, tree->names_used, from->names, from->names_used, 1);
    tree->folder_count += from->folder_count;
    tree->file_count += from->file_count;
    tree->link_count += from->link_count;
    for (size_t i = folders; i < tree->folder_count; i++) {
        tree->folders[i].path += tree->paths_used;
        tree->folders[i].names += tree->names_used;
    }
    for (size_t i = files; i < tree->file_count; i++)
        tree->files[i].folder += (uint32_t)folders;
    for (size_t i = links; i < tree->link_count; i++)
        tree->links[i].folder += (uint32_t)folders;
    tree->paths_used += from->paths_used;
    tree->names_used += from->names_used;
    tree->looked_at += from->looked_at;
    return STOKER_OK;
}

/* ----------------------------------------------------------------------------------------------- classes -------- */

static void free_part(part *self)
{
    if (self == NULL)
        return;
    free_arrays(&self->tree);
    sk_free(self->message);
    sk_free(self);
}

/* Takes into the tree, in order, the classes that are listed. The lock is held. */
static void take_parts(listing *self)
{
    while (self->status == STOKER_OK && self->next < self->tree->class_count && self->done[self->next] != NULL) {
        part *taken = self->done[self->next];

        self->done[self->next] = NULL;
        self->tree->classes[self->next++] = (uint32_t)self->tree->folder_count;
        self->status = taken->status;
        if (self->status == STOKER_OK)
            self->status = append(self->tree, &taken->tree);
        if (self->status != STOKER_OK) {
            if (taken->status == STOKER_OK)
                self->message = sk_strdup(sk_message());
            else
                self->message = taken->message;
            taken->message = NULL;
        }
        free_part(taken);
    }
}

static bool list_class(void *context, size_t label)
{
    listing *self = context;
    part *made = sk_calloc(1, sizeof *made);
    bool alright = false;

    if (made != NULL) {
        made->status = sk_walk_class(self->tree, self->text + self->names[label], (int32_t)label, &made->tree);
        alright = made->status == STOKER_OK;
        if (!alright)
            made->message = sk_strdup(sk_message());
    }
    pthread_mutex_lock(&self->lock);
    self->done[label] = made;
    if (made == NULL && self->status == STOKER_OK)
        self->status = STOKER_ERR_MEMORY;
    take_parts(self);
    alright = alright && self->status == STOKER_OK;
    pthread_mutex_unlock(&self->lock);
    return alright;
}

static stoker_status list_classes(listing *self)
{
    sk_tree *tree = self->tree;

    self->done = sk_calloc(tree->class_count, sizeof *self->done);
    tree->classes = sk_calloc(tree->class_count, sizeof *tree->classes);
    if (self->done == NULL || tree->classes == NULL) {
        sk_free(self->done);
        return STOKER_ERR_MEMORY;
    }
    pthread_mutex_init(&self->lock, NULL);
    sk_parallel(tree->class_count, list_class, self);
    pthread_mutex_destroy(&self->lock);
    for (size_t i = 0; i < tree->class_count; i++)
        free_part(self->done[i]);
    sk_free(self->done);
    if (self->status != STOKER_OK)
        sk_message_set(self->message != NULL ? self->message : "out of memory");
    sk_free(self->message);
    return self->status;
}

/* Names the classes without images, as torchvision does; as many as the message holds. */
static stoker_status fail_empty(const sk_tree *tree, const bool *filled)
{
    char names[SK_MESSAGE_SIZE / 2] = "";
    size_t used = 0, more = 0;

    for (size_t i = 0; i < tree->class_count; i++) {
        if (filled[i])
            continue;
        const char *name = sk_tree_path(tree, tree->classes[i]);
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

static stoker_status check_filled(const sk_tree *tree)
{
    bool *filled = sk_calloc(tree->class_count, sizeof *filled);
    size_t count = 0;

    if (filled == NULL)
        return STOKER_ERR_MEMORY;
    for (size_t i = 0; i < tree->file_count; i++) {
        bool *here = &filled[tree->folders[tree->files[i].folder].label];

        count += !*here;
        *here = true;
    }
    stoker_status status = count == tree->class_count ? STOKER_OK : fail_empty(tree, filled);

    sk_free(filled);
    return status;
}

/* --------------------------------------------------------------------------------------------- the whole -------- */

stoker_status sk_tree_open(const char *root, sk_tree *tree)
{
    *tree = (sk_tree){.root_fd = -1};
    tree->root = sk_strdup(root);
    if (tree->root == NULL)
        return STOKER_ERR_MEMORY;
    tree->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return tree->root_fd >= 0 ? STOKER_OK : sk_fail_errno(errno, "cannot open the folder %s", root);
}

stoker_status sk_tree_list(sk_tree *tree)
{
    listing self = {.tree = tree};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    tree->begun = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    stoker_status status = sk_walk_root(tree, tree, &self.text, &self.names, &tree->class_count);

    if (status == STOKER_OK && tree->looked_at == 0)
        status = sk_fail(STOKER_ERR_DATA, "%s: the folder is empty", tree->root);
    else if (status == STOKER_OK && tree->class_count == 0)
        status =
            sk_fail(STOKER_ERR_DATA, "%s: couldn't find any class folder in it, nor CIFAR batches or MNIST's idx files",
                    tree->root);
    else if (status == STOKER_OK && tree->class_count > INT32_MAX)
        status = sk_fail(STOKER_ERR_LIMIT, "%s: more than %d class folders", tree->root, INT32_MAX);
    if (status == STOKER_OK)
        status = list_classes(&self);
    if (status == STOKER_OK)
        status = check_filled(tree);
    sk_free(self.text);
    sk_free(self.names);
    return status;
}

void sk_tree_close(sk_tree *tree)
{
    if (tree->root_fd >= 0)
        close(tree->root_fd);
    sk_free(tree->root);
    free_arrays(tree);
}
