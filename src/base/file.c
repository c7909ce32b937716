/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAST_READ 65536 /* bytes to offer a file whose size says nothing (/proc) */

/* Doubles the buffer, keeping what is in it. */
static stoker_status grow(sk_buffer *buffer, size_t used)
{
    sk_buffer larger = {0};
    stoker_status status =
        sk_buffer_reserve(&larger, buffer->capacity < LEAST_READ ? LEAST_READ : buffer->capacity * 2);

    if (status != STOKER_OK)
        return status;
    if (used > 0)
        memcpy(larger.data, buffer->data, used);
    sk_buffer_free(buffer);
    *buffer = larger;
    return STOKER_OK;
}

stoker_status sk_file_read_at(int folder_fd, const char *path, const char *shown, size_t most, sk_buffer *buffer,
                              size_t *size)
{
    struct stat about;
    size_t used = 0;
    stoker_status status;
    int fd;

    do {
        fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe would wait for a writer */
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return sk_fail_errno(errno, "cannot open %s", shown);
    if (fstat(fd, &about) != 0) {
        status = sk_fail_errno(errno, "cannot look at %s", shown);
        goto done;
    }
    if (S_ISDIR(about.st_mode)) {
        status = sk_fail_errno(EISDIR, "cannot read %s", shown);
        goto done;
    }
    if (!S_ISREG(about.st_mode)) {
        status = sk_fail(STOKER_ERR_IO, "cannot read %s: a %s, not a file", shown,
                         S_ISFIFO(about.st_mode) ? "named pipe" : "device");
        goto done;
    }
    if (about.st_size > 0 && (uint64_t)about.st_size > most) {
        status = sk_fail(STOKER_ERR_LIMIT, "%s: %lld bytes are more than expected (%zu)", shown,
                         (long long)about.st_size, most);
        goto done;
    }
    /* One byte more than the size, so that the last read sees the end. */
    status = sk_buffer_reserve(buffer, (size_t)about.st_size + 1);
    while (status == STOKER_OK) {
        if (used == buffer->capacity) {
            status = grow(buffer, used);
            continue;
        }
        ssize_t n = read(fd, buffer->data + used, buffer->capacity - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = sk_fail_errno(errno, "cannot read %s", shown);
        if (n <= 0)
            break;
        used += (size_t)n;
        if (used > most)
            status = sk_fail(STOKER_ERR_LIMIT, "%s: more bytes than expected (%zu)", shown, most);
    }
    *size = used;
done:
    close(fd);
    return status;
}

stoker_status sk_file_read(const char *path, size_t most, sk_buffer *buffer, size_t *size)
{
    return sk_file_read_at(AT_FDCWD, path, path, most, buffer, size);
}

bool sk_path_is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool sk_path_is_file(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && !S_ISDIR(about.st_mode);
}

char *sk_path_join(const char *folder, const char *name)
{
    size_t length = strlen(folder), name_length = strlen(name);
    bool slash = length > 0 && folder[length - 1] != '/';
    char *path = sk_malloc(length + name_length + 2);

    if (path == NULL)
        return NULL;
    memcpy(path, folder, length);
    if (slash)
        path[length++] = '/';
    memcpy(path + length, name, name_length + 1);
    return path;
}

const char *sk_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

bool sk_starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool sk_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}
