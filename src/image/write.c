/* SPDX-License-Identifier: Apache-2.0 */
#include "image/write.h"

#include <errno.h>
#include <fcntl.h>
#include <spng.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* Shared state: makes temporary names differ between the threads of a process. */
static atomic_uint serial;

/* ---------------------------------------------------------------------------------------------------- files ---- */

static stoker_status write_all(int file, const uint8_t *data, size_t size, const char *path)
{
    while (size > 0) {
        ssize_t written = write(file, data, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return sk_fail_errno(errno, "cannot write %s", path);
        data += written;
        size -= (size_t)written;
    }
    return STOKER_OK;
}

/* Creates a file that is not there yet, beside `path`; its name goes into `name`. */
static int create_beside(const char *path, char *name, size_t name_size)
{
    for (int tries = 0; tries < 100; tries++) {
        unsigned number = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed);

        snprintf(name, name_size, "%s.%ld-%u.tmp", path, (long)getpid(), number);
        int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

stoker_status sk_write_file_atomically(const char *path, const void *data, size_t size)
{
    struct stat there;
    size_t name_size = strlen(path) + 64;
    bool special = stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
    char *name = sk_malloc(name_size);

    if (name == NULL)
        return STOKER_ERR_MEMORY;
    /* A device or a pipe is written to, not replaced. */
    int file = special ? open(path, O_WRONLY | O_CLOEXEC) : create_beside(path, name, name_size);
    stoker_status status =
        file >= 0 ? write_all(file, data, size, path) : sk_fail_errno(errno, "cannot write %s", path);

    if (file >= 0 && close(file) != 0 && status == STOKER_OK)
        status = sk_fail_errno(errno, "cannot write %s", path);
    if (file >= 0 && !special) {
        if (status == STOKER_OK && rename(name, path) != 0)
            status = sk_fail_errno(errno, "cannot write %s", path);
        if (status != STOKER_OK)
            unlink(name);
    }
    sk_free(name);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ PNG ---- */

static void *spng_allocate(size_t size)
{
    return sk_malloc(size);
}

static void *spng_reallocate(void *memory, size_t size)
{
    return sk_realloc_array(memory, 1, size);
}

static void *spng_allocate_zeroed(size_t count, size_t size)
{
    return sk_calloc(count, size);
}

stoker_status sk_png_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height)
{
    struct spng_alloc allocator = {spng_allocate, spng_reallocate, spng_allocate_zeroed, sk_free};
    struct spng_ihdr header = {
        .width = (uint32_t)width, .height = (uint32_t)height, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    size_t size;

    if (width < 1 || height < 1 || !sk_multiply((size_t)width * 3, (size_t)height, &size))
        return sk_fail(STOKER_ERR_ARGUMENT, "cannot write %s: an image of %d x %d pixels", path, width, height);
    spng_ctx *context = spng_ctx_new2(&allocator, SPNG_CTX_ENCODER);

    if (context == NULL)
        return sk_fail(STOKER_ERR_MEMORY, "out of memory: the PNG encoder");
    int error = spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);

    if (error == 0)
        error = spng_set_ihdr(context, &header);
    if (error == 0)
        error = spng_encode_image(context, rgb, size, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    size_t encoded_size = 0;
    void *encoded = error == 0 ? spng_get_png_buffer(context, &encoded_size, &error) : NULL;
    stoker_status status;

    if (encoded != NULL)
        status = sk_write_file_atomically(path, encoded, encoded_size);
    else /* the arguments are sound, so it can only lack memory, under whatever name */
        status = sk_fail(STOKER_ERR_MEMORY, "cannot write %s: out of memory (%s)", path, spng_strerror(error));
    sk_free(encoded);
    spng_ctx_free(context);
    return status;
}
