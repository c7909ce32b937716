/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/folder_cache.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ENDING       ".index"
#define HASH_DIGITS  16
#define MOST_LOOKED  2048 /* files at a time */
#define KILLED_AFTER 3600 /* seconds without a write: nobody takes so long */
#define TRIES        8    /* for a temporary name */
#define FILE_MODE    0600
#define FOLDER_MODE  0700

/* The folder, opened; -1 if there is none. `make`: makes it where it is not there. */
static int open_folder(bool make)
{
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    char path[PATH_MAX];
    const char *const parts[] = {"", "/stoker", "/index"};

    if (base == NULL || base[0] != '/') { /* the XDG specification: a relative path counts as none */
        base = getenv("HOME");
        below = "/.cache";
    }
    if (base == NULL || base[0] != '/')
        return -1;
    int used = snprintf(path, sizeof path, "%s%s", base, below);

    for (int i = 0; i < 3; i++) {
        if (used < 0 || used + 16 > (int)sizeof path)
            return -1;
        used += snprintf(path + used, sizeof path - (size_t)used, "%s", parts[i]);
        if (make && mkdir(path, FOLDER_MODE) != 0 && errno != EEXIST)
            return -1;
    }
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void make_name(const char *key, char name[40])
{
    uint64_t hash =
        0xcbf29ce484222325u; /* FNV-1a. Two keys of one name displace each other; the file tells whose it is */

    for (const unsigned char *at = (const unsigned char *)key; *at != 0; at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    snprintf(name, 40, "%016llx" ENDING, (unsigned long long)hash);
}

/* One's own: another user's list is not to be believed. */
static int open_own(int folder_fd, const char *name, struct stat *about)
{
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0 && (fstat(fd, about) != 0 || !S_ISREG(about->st_mode) || about->st_uid != geteuid())) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int sk_cache_open(const char *key)
{
    struct stat about;
    char name[40];
    int folder_fd = open_folder(false);

    if (folder_fd < 0)
        return -1;
    make_name(key, name);
    int fd = open_own(folder_fd, name, &about);

    close(folder_fd);
    return fd;
}

bool sk_cache_create(const char *key, sk_cache_file *file)
{
    struct timespec now;

    *file = (sk_cache_file){.fd = -1, .folder_fd = open_folder(true)};
    if (file->folder_fd < 0)
        return false;
    make_name(key, file->name);
    for (int i = 0; i < TRIES && file->fd < 0; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint32_t number = (uint32_t)getpid() * 2654435761u ^ (uint32_t)now.tv_nsec;

        snprintf(file->temporary, sizeof file->temporary, "%.22s.%08x", file->name, number);
        file->fd =
            openat(file->folder_fd, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
        if (file->fd < 0 && errno != EEXIST)
            break;
    }
    if (file->fd < 0)
        close(file->folder_fd);
    return file->fd >= 0;
}

/* ------------------------------------------------------------------------------------------------ sweeping -------- */

static bool is_hex(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isxdigit((unsigned char)text[i])) /* also at the NUL */
            return false;
    }
    return true;
}

/* "0123456789abcdef.index"; `*temporary`: with ".01234567" after it. */
static bool is_our_name(const char *name, bool *temporary)
{
    const size_t finished = HASH_DIGITS + sizeof ENDING - 1;

    if (!is_hex(name, HASH_DIGITS) || strncmp(name + HASH_DIGITS, ENDING, sizeof ENDING - 1) != 0)
        return false;
    *temporary = name[finished] == '.';
    return name[finished] == '\0' || (*temporary && is_hex(name + finished + 1, 8) && name[finished + 9] == '\0');
}

static void sweep_one(int folder_fd, const char *name, bool (*is_gone)(int fd))
{
    struct stat about;
    bool temporary;

    if (!is_our_name(name, &temporary))
        return;
    int fd = open_own(folder_fd, name, &about);

    if (fd < 0)
        return;
    if (temporary ? about.st_mtime < time(NULL) - KILLED_AFTER : is_gone(fd))
        unlinkat(folder_fd, name, 0);
    close(fd);
}

/* Takes the folder's descriptor. */
static void sweep(int folder_fd, const char *but, bool (*is_gone)(int fd))
{
    DIR *folder = fdopendir(folder_fd);
    const struct dirent *entry;

    if (folder == NULL) {
        close(folder_fd);
        return;
    }
    for (int i = 0; i < MOST_LOOKED && (entry = readdir(folder)) != NULL; i++) {
        if (strcmp(entry->d_name, but) != 0)
            sweep_one(folder_fd, entry->d_name, is_gone);
    }
    closedir(folder);
}

void sk_cache_finish(sk_cache_file *file, bool whole, bool (*is_gone)(int fd))
{
    whole = close(file->fd) == 0 && whole; /* NFS tells of a full disk here */
    whole = whole && renameat(file->folder_fd, file->temporary, file->folder_fd, file->name) == 0;
    if (whole) {
        sweep(file->folder_fd, file->name, is_gone);
        return;
    }
    unlinkat(file->folder_fd, file->temporary, 0);
    close(file->folder_fd);
}
