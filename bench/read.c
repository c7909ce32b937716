/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c: how small files are best read in a given order, from a disk and from the page cache: one read after another; the
 * same with POSIX_FADV_WILLNEED for the file some places ahead, which is what the loader does; or through io_uring, with as many
 * files under way. docs/performance.md has what came of it.
 *
 *   make bench-read DIR=FOLDER
 *
 * FOLDER is an ImageFolder. Prints a table: medians over the rounds, methods interleaved.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD = 32, MOST = 4 << 20, ROUNDS = 5, METHODS = 3, MOST_THREADS = 2 };

static const char *const method_names[METHODS] = {"pread", "pread + fadvise", "io_uring"};

static char **files;
static size_t count, capacity;
static atomic_size_t next_file, total_bytes;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int add_file(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)walk;
    if (kind != FTW_F || about->st_size == 0 || about->st_size > MOST)
        return 0;
    if (count == capacity) {
        capacity = capacity > 0 ? 2 * capacity : 1024;
        files = realloc(files, capacity * sizeof *files);
        if (files == NULL)
            die("realloc");
    }
    files[count++] = strdup(path);
    return 0;
}

static int open_file(size_t i)
{
    int fd = open(files[i], O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        die(files[i]);
    return fd;
}

static void shuffle(void)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)random() % i;
        char *other = files[j];

        files[j] = files[i - 1];
        files[i - 1] = other;
    }
}

/* Takes the files out of the page cache. */
static void forget(void)
{
    sync();
    for (size_t i = 0; i < count; i++) {
        int fd = open_file(i);

        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

static void read_plainly(uint8_t *buffer, bool advise)
{
    for (;;) {
        size_t i = atomic_fetch_add(&next_file, 1);

        if (i >= count)
            return;
        if (advise && i + AHEAD < count) {
            int fd = open_file(i + AHEAD);

            posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
            close(fd);
        }
        struct stat about;
        int fd = open_file(i);
        ssize_t got = fstat(fd, &about) == 0 ? pread(fd, buffer, (size_t)about.st_size, 0) : -1;

        if (got < 0)
            die(files[i]);
        close(fd);
        atomic_fetch_add(&total_bytes, (size_t)got);
    }
}

/* A file on its way: opened, then read, then closed. */
typedef struct flight {
    uint8_t *buffer;
    int fd; /* -1: being opened */
} flight;

static bool begin(struct io_uring *ring, flight *f)
{
    size_t i = atomic_fetch_add(&next_file, 1);

    if (i >= count)
        return false;
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);

    f->fd = -1;
    io_uring_prep_openat(entry, AT_FDCWD, files[i], O_RDONLY | O_CLOEXEC, 0);
    io_uring_sqe_set_data(entry, f);
    return true;
}

static void read_by_ring(uint8_t *buffers)
{
    struct io_uring ring;
    flight flights[AHEAD];
    size_t under_way = 0;

    if (io_uring_queue_init(2 * AHEAD, &ring, 0) != 0)
        die("io_uring");
    for (size_t i = 0; i < AHEAD; i++) {
        flights[i].buffer = buffers + i * MOST;
        under_way += begin(&ring, &flights[i]);
    }
    while (under_way > 0) {
        struct io_uring_cqe *done;

        io_uring_submit_and_wait(&ring, 1);
        while (io_uring_peek_cqe(&ring, &done) == 0) {
            flight *f = io_uring_cqe_get_data(done);
            int result = done->res;

            io_uring_cqe_seen(&ring, done);
            if (result < 0)
                die("io_uring");
            if (f->fd < 0) { /* opened */
                struct io_uring_sqe *entry = io_uring_get_sqe(&ring);

                f->fd = result;
                io_uring_prep_read(entry, f->fd, f->buffer, MOST, 0);
                io_uring_sqe_set_data(entry, f);
                continue;
            }
            atomic_fetch_add(&total_bytes, (size_t)result);
            close(f->fd);
            under_way -= !begin(&ring, f);
        }
    }
    io_uring_queue_exit(&ring);
}

static void *work(void *argument)
{
    int method = *(int *)argument;
    uint8_t *buffer = malloc((size_t)AHEAD * MOST);

    if (buffer == NULL)
        die("malloc");
    if (method == 2)
        read_by_ring(buffer);
    else
        read_plainly(buffer, method == 1);
    free(buffer);
    return NULL;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double run(int method, int threads)
{
    pthread_t team[MOST_THREADS];
    double start = now();

    atomic_store(&next_file, 0);
    atomic_store(&total_bytes, 0);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&team[i], NULL, work, &method) != 0)
            die("pthread_create");
    for (int i = 0; i < threads; i++)
        pthread_join(team[i], NULL);
    return now() - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double seconds[2][MOST_THREADS][METHODS][ROUNDS];

    if (argc != 2 || nftw(argv[1], add_file, 64, FTW_PHYS) != 0 || count == 0)
        return fprintf(stderr, "usage: bench-read FOLDER\n"), 2;
    for (int round = 0; round < ROUNDS; round++) {
        for (int warm = 0; warm < 2; warm++) {
            for (int threads = 1; threads <= MOST_THREADS; threads++) {
                for (int method = 0; method < METHODS; method++) {
                    shuffle();
                    if (!warm)
                        forget();
                    seconds[warm][threads - 1][method][round] = run(method, threads);
                }
            }
        }
    }
    printf("%zu files, %.1f MB, %d under way\n\n| from | threads | method | files/s | MB/s |\n", count,
           1e-6 * (double)total_bytes, AHEAD);
    printf("| --- | ---: | --- | ---: | ---: |\n");
    for (int warm = 0; warm < 2; warm++) {
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            for (int method = 0; method < METHODS; method++) {
                double *all = seconds[warm][threads - 1][method];

                qsort(all, ROUNDS, sizeof *all, compare);
                printf("| %s | %d | %s | %.0f | %.0f |\n", warm ? "page cache" : "disk", threads, method_names[method],
                       (double)count / all[ROUNDS / 2], 1e-6 * (double)total_bytes / all[ROUNDS / 2]);
            }
        }
    }
    return 0;
}
