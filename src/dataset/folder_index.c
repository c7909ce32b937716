/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_index.c: the index's file: header, real path, then the tree's arrays. Numbers are little-endian; on a big-endian machine there is no
 * index. A file is written under a temporary name and renamed: it is whole or not there. Nothing is synced to disk: what a crash of the
 * system leaves is told by the checksum.
 */
#include "dataset/folder_index.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "dataset/folder_cache.h"
#include "dataset/folder_walk.h"

#define MAGIC          "STKRLIST"
#define VERSION        1
#define CHECKS_AT_ONCE 64 /* folders or links */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const bool usable = true;
#else
static const bool usable = false;
#endif

typedef struct header {
    char magic[8];
    uint32_t version, zero;
    uint64_t checksum;                       /* of all bytes, this one taken as 0 */
    uint64_t size;                           /* of the file, bytes */
    uint64_t real_path_size;                 /* with its NULs, to a multiple of 8 */
    uint64_t folders, files, links, classes; /* numbers of records */
    uint64_t paths_size, names_size;         /* bytes */
} header;

_Static_assert(sizeof(header) == 88 && sizeof(sk_tree_folder) == 24 && sizeof(sk_tree_stamp) == 32 &&
                   sizeof(sk_tree_file) == 8,
               "the file's layout");

enum { SECTIONS = 8 }; /* real path, folders, stamps, files, links, classes, paths, names */

typedef struct section {
    const void *data;
    size_t size; /* bytes */
} section;

/* ---------------------------------------------------------------------------------------------- checksum -------- */

static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Four lanes of multiply and rotate, so that it runs about as fast as memory. Each step can be undone, whence a change within one word always
 * changes the sum. */
static uint64_t checksum(const void *data, size_t size, uint64_t seed)
{
    static const uint64_t odd[4] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu, 0xd6e8feb86659fd93u, 0xa0761d6478bd642fu};
    const unsigned char *at = data;
    unsigned char last[32] = {0};
    uint64_t lane[4] = {seed ^ odd[3], seed ^ odd[2], seed ^ odd[1], seed ^ odd[0]}, sum = seed ^ size;

    for (size_t left = size; left > 0;) {
        size_t step = left < 32 ? left : 32;

        if (step < 32)
            at = memcpy(last, at, step);
        for (int i = 0; i < 4; i++) {
            uint64_t mixed = (lane[i] ^ word_at(at + 8 * i)) * odd[i];

            lane[i] = mixed << 29 | mixed >> 35;
        }
        at += step;
        left -= step;
    }
    for (int i = 0; i < 4; i++) {
        sum = (sum ^ lane[i]) * odd[i];
        sum ^= sum >> 32;
    }
    return sum;
}

static uint64_t checksum_all(const header *head, const section sections[SECTIONS])
{
    header zeroed = *head;

    zeroed.checksum = 0;
    uint64_t sum = checksum(&zeroed, sizeof zeroed, 0);

    for (int i = 0; i < SECTIONS; i++)
        sum = checksum(sections[i].data, sections[i].size, sum);
    return sum;
}

/* ----------------------------------------------------------------------------------------------- parsing -------- */

/* The sections' places; false unless they fill the file exactly. */
static bool find_sections(const header *head, const unsigned char *bytes, size_t size, section sections[SECTIONS])
{
    const uint64_t counts[SECTIONS] = {head->real_path_size, head->folders, head->folders,    head->files,
                                       head->links,          head->classes, head->paths_size, head->names_size};
    const size_t sizes[SECTIONS] = {1,
                                    sizeof(sk_tree_folder),
                                    sizeof(sk_tree_stamp),
                                    sizeof(sk_tree_file),
                                    sizeof(sk_tree_file),
                                    sizeof(uint32_t),
                                    1,
                                    1};
    size_t at = sizeof *head;

    if (head->real_path_size % 8 != 0)
        return false;
    for (int i = 0; i < SECTIONS; i++) {
        if (counts[i] > (size - at) / sizes[i])
            return false;
        sections[i] = (section){bytes + at, (size_t)counts[i] * sizes[i]};
        at += sections[i].size;
    }
    return at == size;
}

/* A path that stays below the root. */
static bool is_path_below(const char *path)
{
    for (;;) {
        size_t length = strcspn(path, "/");

        if (length == 0 || (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.'))))
            return false;
        if (path[length] == '\0')
            return true;
        path += length + 1;
    }
}

/* The root first, then every class's folders, the class folder itself before the others. */
static bool check_folders(const sk_tree *tree)
{
    int32_t label = -1;

    for (size_t i = 0; i < tree->folder_count; i++) {
        const sk_tree_folder *folder = &tree->folders[i];

        if (folder->path >= tree->paths_used || folder->names > tree->names_used)
            return false;
        const char *path = tree->paths + folder->path;

        if (i == 0 ? folder->label != -1 || path[0] != '\0' : !is_path_below(path))
            return false;
        if (i == 0 || folder->label == label)
            continue;
        if (folder->label != label + 1 || (size_t)folder->label >= tree->class_count ||
            tree->classes[folder->label] != i || strchr(path, '/') != NULL)
            return false;
        label = folder->label;
    }
    return (size_t)label + 1 == tree->class_count;
}

static bool check_files(const sk_tree *tree, const sk_tree_file *files, size_t count, uint32_t least)
{
    for (size_t i = 0; i < count; i++) {
        const sk_tree_file *file = &files[i];

        if (file->folder < least || file->folder >= tree->folder_count ||
            file->name >= tree->names_used - tree->folders[file->folder].names)
            return false;
    }
    return true;
}

static bool ends_with_nul(const section *text)
{
    return text->size > 0 && ((const char *)text->data)[text->size - 1] == '\0';
}

bool sk_index_parse(void *bytes, size_t size, const char *real_path, sk_tree *tree)
{
    const header *head = bytes;
    section sections[SECTIONS];
    sk_tree parsed = *tree;

    if (!usable || size < sizeof *head || memcmp(head->magic, MAGIC, sizeof head->magic) != 0 ||
        head->version != VERSION || head->size != size || !find_sections(head, bytes, size, sections))
        return false;
    if (!ends_with_nul(&sections[0]) || !ends_with_nul(&sections[6]) || !ends_with_nul(&sections[7]))
        return false;
    if (real_path != NULL && strcmp(sections[0].data, real_path) != 0)
        return false;
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION /* where made-up bytes must get further than this */
    if (checksum_all(head, sections) != head->checksum)
        return false;
#endif
    /* The memory is the caller's, who may write to it; the tree does not. */
    parsed.folders = (sk_tree_folder *)(uintptr_t)sections[1].data;
    parsed.stamps = (sk_tree_stamp *)(uintptr_t)sections[2].data;
    parsed.files = (sk_tree_file *)(uintptr_t)sections[3].data;
    parsed.links = (sk_tree_file *)(uintptr_t)sections[4].data;
    parsed.classes = (uint32_t *)(uintptr_t)sections[5].data;
    parsed.paths = (char *)(uintptr_t)sections[6].data;
    parsed.names = (char *)(uintptr_t)sections[7].data;
    parsed.folder_count = (size_t)head->folders;
    parsed.file_count = (size_t)head->files;
    parsed.link_count = (size_t)head->links;
    parsed.class_count = (size_t)head->classes;
    parsed.paths_used = sections[6].size;
    parsed.names_used = sections[7].size;
    if (parsed.class_count == 0 || parsed.class_count > INT32_MAX || parsed.folder_count > UINT32_MAX ||
        parsed.file_count == 0)
        return false;
    if (!check_folders(&parsed) || !check_files(&parsed, parsed.files, parsed.file_count, 1) ||
        !check_files(&parsed, parsed.links, parsed.link_count, 0) ||
        memchr(parsed.names, '/', parsed.names_used) != NULL)
        return false;
    *tree = parsed;
    return true;
}

/* ------------------------------------------------------------------------------------------------- fresh -------- */

/* Opened, not only looked at: so that one who may not list it is told, and that NFS asks its server. */
static bool is_same_folder(const sk_tree *tree, size_t number)
{
    const char *path = tree->paths + tree->folders[number].path;
    struct stat about;
    int fd = openat(tree->root_fd, path[0] != '\0' ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool known = fstat(fd, &about) == 0;

    close(fd);
    if (!known)
        return false;
    sk_tree_stamp now = sk_stamp(&about);

    return memcmp(&now, &tree->stamps[number], sizeof now) == 0;
}

static bool still_leads_to_no_folder(const sk_tree *tree, const sk_tree_file *link)
{
    char path[PATH_MAX];
    bool in_root = link->folder == 0;
    int length = snprintf(path, sizeof path, "%s%s%s", sk_tree_path(tree, link->folder), in_root ? "" : "/",
                          sk_tree_name(tree, link));

    return length > 0 && length < (int)sizeof path && sk_link_to_folder(tree->root_fd, path, in_root) == 0;
}

typedef struct freshness {
    const sk_tree *tree;
    atomic_bool stale;
} freshness;

static bool check_some(void *context, size_t index)
{
    freshness *self = context;
    const sk_tree *tree = self->tree;
    size_t all = tree->folder_count + tree->link_count, end = (index + 1) * CHECKS_AT_ONCE;

    for (size_t i = index * CHECKS_AT_ONCE; i < end && i < all; i++) {
        if (i < tree->folder_count ? !is_same_folder(tree, i)
                                   : !still_leads_to_no_folder(tree, &tree->links[i - tree->folder_count])) {
            atomic_store(&self->stale, true);
            return false;
        }
    }
    return true;
}

static bool is_fresh(const sk_tree *tree)
{
    freshness self = {.tree = tree};
    size_t all = tree->folder_count + tree->link_count;

    sk_parallel((all + CHECKS_AT_ONCE - 1) / CHECKS_AT_ONCE, check_some, &self);
    return !atomic_load(&self.stale);
}

/* ----------------------------------------------------------------------------------------------- reading -------- */

/* A mapped page that cannot be read kills the process. On these file systems that takes a broken disk; elsewhere it is enough that another
 * machine writes a new index. */
static bool may_be_mapped(int fd)
{
    static const uint32_t local[] = {0xef53 /* ext4 */,
                                     0x58465342 /* XFS */,
                                     0x9123683e /* Btrfs */,
                                     0x01021994 /* tmpfs */,
                                     0xf2f52010 /* F2FS */,
                                     0x2fc12fc1 /* ZFS */,
                                     0x794c7630 /* overlay */};
    struct statfs about;

    if (fstatfs(fd, &about) != 0)
        return false;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        if ((uint32_t)about.f_type == local[i])
            return true;
    }
    return false;
}

static bool read_all(int fd, char *to, size_t size)
{
    for (size_t used = 0; used < size;) {
        ssize_t n = read(fd, to + used, size - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        used += (size_t)n;
    }
    return true;
}

/* Brings the whole file into the tree's block. */
static bool take_file(int fd, size_t size, sk_tree *tree)
{
    tree->block_size = size;
    tree->mapped = may_be_mapped(fd);
    if (tree->mapped) {
        tree->block = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        tree->mapped = tree->block != MAP_FAILED;
    }
    if (!tree->mapped) {
        tree->block = sk_malloc(size);
        if (tree->block != NULL && !read_all(fd, tree->block, size)) {
            sk_free(tree->block);
            tree->block = NULL;
        }
    }
    return tree->block != NULL;
}

static void drop_block(sk_tree *tree)
{
    if (tree->mapped)
        munmap(tree->block, tree->block_size);
    else
        sk_free(tree->block);
}

bool sk_index_load(const char *real_path, sk_tree *tree)
{
    sk_tree loaded = *tree;
    struct stat about;
    bool believed = false;
    int fd = usable ? sk_cache_open(real_path) : -1;

    if (fd < 0)
        return false;
    if (fstat(fd, &about) == 0 && about.st_size >= (off_t)sizeof(header) &&
        take_file(fd, (size_t)about.st_size, &loaded)) {
        believed = sk_index_parse(loaded.block, loaded.block_size, real_path, &loaded) && is_fresh(&loaded);
        if (believed)
            *tree = loaded;
        else
            drop_block(&loaded);
    }
    close(fd);
    return believed;
}

/* ----------------------------------------------------------------------------------------------- writing -------- */

/* Whether any later change of the folders listed will show in their times. */
static bool is_calm(const sk_tree *tree)
{
    for (size_t i = 0; i < tree->folder_count; i++) {
        int64_t modified = tree->stamps[i].modified, changed = tree->stamps[i].changed;
        int64_t last = modified > changed ? modified : changed;

        if (last > tree->begun - SK_INDEX_MARGIN_NS)
            return false;
    }
    return true;
}

static bool write_all(int fd, const void *data, size_t size)
{
    const char *from = data;

    while (size > 0) {
        ssize_t n = write(fd, from, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        size -= (size_t)n;
    }
    return true;
}

/* A file that may grow no more (ulimit -f) is a signal, which kills. */
static bool may_grow_to(uint64_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur);
}

/* Whether the folder that an index was made of is not there any more; not so where it cannot be told. */
static bool is_gone(int fd)
{
    char path[PATH_MAX];
    struct stat about;
    header head;

    if (!read_all(fd, (char *)&head, sizeof head) || memcmp(head.magic, MAGIC, sizeof head.magic) != 0 ||
        head.version != VERSION || head.real_path_size == 0 || head.real_path_size > sizeof path ||
        !read_all(fd, path, (size_t)head.real_path_size) || path[head.real_path_size - 1] != '\0' || path[0] != '/')
        return false;
    return lstat(path, &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

void sk_index_write(const char *real_path, const sk_tree *tree)
{
    char root[PATH_MAX] = "";
    size_t length = strlen(real_path);
    sk_cache_file file;

    if (!usable || length >= sizeof root || !is_calm(tree))
        return;
    memcpy(root, real_path, length);
    const section sections[SECTIONS] = {{root, (length + 8) / 8 * 8},
                                        {tree->folders, tree->folder_count * sizeof *tree->folders},
                                        {tree->stamps, tree->folder_count * sizeof *tree->stamps},
                                        {tree->files, tree->file_count * sizeof *tree->files},
                                        {tree->links, tree->link_count * sizeof *tree->links},
                                        {tree->classes, tree->class_count * sizeof *tree->classes},
                                        {tree->paths, tree->paths_used},
                                        {tree->names, tree->names_used}};
    header head = {.magic = MAGIC,
                   .version = VERSION,
                   .size = sizeof head,
                   .real_path_size = sections[0].size,
                   .folders = tree->folder_count,
                   .files = tree->file_count,
                   .links = tree->link_count,
                   .classes = tree->class_count,
                   .paths_size = tree->paths_used,
                   .names_size = tree->names_used};

    for (int i = 0; i < SECTIONS; i++)
        head.size += sections[i].size;
    if (!may_grow_to(head.size) || !sk_cache_create(real_path, &file))
        return;
    head.checksum = checksum_all(&head, sections);
    bool written = write_all(file.fd, &head, sizeof head);

    for (int i = 0; written && i < SECTIONS; i++)
        written = write_all(file.fd, sections[i].data, sections[i].size);
    sk_cache_finish(&file, written, is_gone);
}
