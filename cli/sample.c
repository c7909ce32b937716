/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c: draws a dataset: an ImageFolder of JPEG photos' sizes, or CIFAR-10's binary layout.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "draw.h"

static const char help[] =
    "usage: stoker sample DIR [options]\n"
    "\n"
    "Draws a dataset to try things on: pictures of simple shapes in many places, colours and lights, which a small\n"
    "network can learn. The same options give the same bytes.\n"
    "\n"
    "  --kind KIND       photos: class folders of JPEG files (default); cifar: CIFAR-10's binary layout\n"
    "  --count N         samples (photos: 500; cifar: 10000, and a fifth as many test samples)\n"
    "  --classes N       photos: classes (10, or as many as there are samples)\n"
    "  --size WxH        photos: one size for all (sizes around 500x375, as photos come)\n"
    "  --seed N          (0)\n"
    "  --threads N       (all cores that may be used)\n"
    "  --force           also into a folder that is not empty; files of the same names are replaced\n"
    "  --json            path, kind, samples, classes, bytes\n"
    "\n"
    "example: stoker sample photos --count 1000\n";

static const char *const kinds[] = {"photos", "cifar", NULL};

enum { SIDE = 32, RECORD = 1 + 3 * SIDE * SIDE, BATCHES = 5 };

/* Shared by the threads: `next` is handed out, the counts are added up; the first failure's text is kept under the lock. */
typedef struct job {
    const char *folder;
    int64_t count, classes, seed;
    int32_t size[2];  /* 0: as photos come */
    uint8_t *records; /* cifar: count records */
    _Atomic(int64_t) next, done, bytes;
    _Atomic(int) failed;
    pthread_mutex_t lock;
    char failure[2048];
} job;

static void keep_failure(job *j, const char *text)
{
    pthread_mutex_lock(&j->lock);
    if (j->failure[0] == '\0')
        snprintf(j->failure, sizeof j->failure, "%s", text);
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->failed, 1);
}

static uint64_t state_of(const job *j, int64_t index)
{
    uint64_t state = (uint64_t)j->seed * 0xD1342543DE82EF95u + (uint64_t)index;

    return draw_next(&state);
}

static void class_folder(const job *j, int64_t label, char *out, size_t size)
{
    /* Numbers first, so that the order of names is the order of labels. */
    if (j->classes <= SHAPES)
        snprintf(out, size, "%lld_%s", (long long)label, shape_name((int32_t)label));
    else
        snprintf(out, size, "%04lld_%s", (long long)label, shape_name((int32_t)(label % SHAPES)));
}

/* Sizes as photos have them: most 500 on the longer side, some a little less, a fifth upright. */
static void photo_size(const job *j, uint64_t *state, int32_t *width, int32_t *height)
{
    static const int32_t shorter[] = {375, 375, 375, 333, 334, 400, 281, 500};
    uint64_t bits = draw_next(state);
    int32_t longer = (bits & 7) == 0 ? 320 + (int32_t)(bits >> 8 & 255) : 500;
    int32_t other = longer * shorter[bits >> 3 & 7] / 500;

    *width = (bits >> 6) % 5 == 0 ? other : longer;
    *height = *width == longer ? other : longer;
    if (j->size[0] > 0) {
        *width = j->size[0];
        *height = j->size[1];
    }
}

static bool draw_photo(job *j, int64_t index)
{
    uint64_t state = state_of(j, index);
    int64_t label = index % j->classes;
    int32_t width, height;
    char folder[64], path[4096];
    struct stat about;

    photo_size(j, &state, &width, &height);
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3);

    if (rgb == NULL) {
        keep_failure(j, "out of memory");
        return false;
    }
    int32_t hues = (int32_t)((j->classes + SHAPES - 1) / SHAPES);

    draw_picture(rgb, width, height, (int32_t)(label % SHAPES), (int32_t)(label / SHAPES), hues, &state);
    class_folder(j, label, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%s/%06lld.jpg", j->folder, folder, (long long)index);
    uint64_t bits = draw_next(&state);
    stoker_status status = stoker_jpeg_write(path, rgb, width, height, 88 + (int32_t)(bits % 8), (bits >> 8) % 4 == 0);

    free(rgb);
    if (status != STOKER_OK) {
        keep_failure(j, stoker_last_error());
        return false;
    }
    if (stat(path, &about) == 0)
        atomic_fetch_add(&j->bytes, about.st_size);
    return true;
}

static bool draw_record(job *j, int64_t index)
{
    uint8_t pixels[3 * SIDE * SIDE];
    uint8_t *record = j->records + (size_t)index * RECORD;
    uint64_t state = state_of(j, index);
    uint8_t label = (uint8_t)(draw_next(&state) % SHAPES);

    draw_picture(pixels, SIDE, SIDE, label, 0, 1, &state);
    record[0] = label;
    for (int i = 0; i < SIDE * SIDE; i++) {
        for (int c = 0; c < 3; c++)
            record[1 + c * SIDE * SIDE + i] = pixels[3 * i + c];
    }
    return true;
}

static void *work(void *argument)
{
    job *j = argument;

    for (;;) {
        int64_t index = atomic_fetch_add(&j->next, 1);

        if (index >= j->count || interrupted || atomic_load(&j->failed))
            return NULL;
        if (!(j->records != NULL ? draw_record(j, index) : draw_photo(j, index)))
            return NULL;
        atomic_fetch_add(&j->done, 1);
    }
}

static int run(job *j, int64_t threads)
{
    pthread_t handles[256];
    int64_t started = 0;
    double begin = now_seconds();

    while (started < threads && started < 256 && pthread_create(&handles[started], NULL, work, j) == 0)
        started++;
    if (started == 0)
        work(j);
    while (started > 0 && atomic_load(&j->done) < j->count && !interrupted && !atomic_load(&j->failed)) {
        struct timespec pause = {0, 20000000};

        nanosleep(&pause, NULL);
        progress_show("drawing", atomic_load(&j->done), j->count, now_seconds() - begin);
    }
    for (int64_t i = 0; i < started; i++)
        pthread_join(handles[i], NULL);
    progress_clear();
    if (interrupted)
        return fail(128 + interrupted, "interrupted");
    return atomic_load(&j->failed) ? fail(EXIT_FAILED, "%s", j->failure) : -1;
}

static int make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return fail(EXIT_FAILED, "cannot make the folder %s: %s", path, strerror(errno));
    return -1;
}

static int check_empty(const char *path, bool force)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool empty = true;

    if (folder == NULL)
        return fail(EXIT_FAILED, "cannot open the folder %s: %s", path, strerror(errno));
    while ((entry = readdir(folder)) != NULL)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    closedir(folder);
    if (empty || force)
        return -1;
    return fail(EXIT_FAILED, "%s is not empty; choose another folder, or --force to write into it", path);
}

/* Writes whole or not at all. */
static int write_whole(const char *folder, const char *name, const void *data, size_t size)
{
    char path[4096], temporary[4112];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(temporary, sizeof temporary, "%s.part", path);
    FILE *file = fopen(temporary, "wb");

    if (file == NULL)
        return fail(EXIT_FAILED, "cannot write %s: %s", temporary, strerror(errno));
    bool good = fwrite(data, 1, size, file) == size;

    good = fflush(file) == 0 && good;
    int code = errno;

    if (fclose(file) != 0 && good) {
        code = errno;
        good = false;
    }
    if (good && rename(temporary, path) == 0)
        return -1;
    code = good ? errno : code;
    remove(temporary);
    return fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(code));
}

static int write_cifar(job *j, int64_t train)
{
    char names[256];
    size_t used = 0;
    int status = -1;

    for (int i = 0; i < SHAPES; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s\n", shape_name(i));
    for (int64_t b = 0; b < BATCHES && status < 0; b++) {
        int64_t from = train * b / BATCHES, to = train * (b + 1) / BATCHES;
        char name[32];

        snprintf(name, sizeof name, "data_batch_%lld.bin", (long long)b + 1);
        if (to > from)
            status = write_whole(j->folder, name, j->records + from * RECORD, (size_t)(to - from) * RECORD);
    }
    if (status < 0 && j->count > train)
        status =
            write_whole(j->folder, "test_batch.bin", j->records + train * RECORD, (size_t)(j->count - train) * RECORD);
    if (status < 0)
        status = write_whole(j->folder, "batches.meta.txt", names, used);
    atomic_store(&j->bytes, j->count * RECORD + (int64_t)used);
    return status;
}

static int draw_cifar(job *j, int64_t threads)
{
    int64_t train = j->count;

    j->count = train + (train + 4) / 5;
    j->records = malloc((size_t)j->count * RECORD);
    if (j->records == NULL)
        return fail(EXIT_FAILED, "out of memory");
    int status = run(j, threads);

    if (status < 0)
        status = write_cifar(j, train);
    free(j->records);
    return status;
}

static int draw_photos(job *j, int64_t threads)
{
    for (int64_t label = 0; label < j->classes; label++) {
        char folder[64], path[4096];

        class_folder(j, label, folder, sizeof folder);
        snprintf(path, sizeof path, "%s/%s", j->folder, folder);
        int status = make_folder(path);

        if (status >= 0)
            return status;
    }
    return run(j, threads);
}

int cli_sample(int argc, char **argv)
{
    job j = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int32_t kind = 0;
    int64_t threads = 0;
    bool json = false, force = false;
    const option options[] = {
        {"--kind", OPTION_CHOICE, &kind, 0, 0, kinds},
        {"--count", OPTION_NUMBER, &j.count, 1, 100000000, NULL},
        {"--classes", OPTION_NUMBER, &j.classes, 1, 10000, NULL},
        {"--size", OPTION_SIZE, j.size, 0, 0, NULL},
        {"--seed", OPTION_NUMBER, &j.seed, 0, INT64_MAX, NULL},
        {"--threads", OPTION_NUMBER, &threads, 1, 256, NULL},
        {"--force", OPTION_FLAG, &force, 0, 0, NULL},
        {"--json", OPTION_FLAG, &json, 0, 0, NULL},
    };
    const command self = {"sample", help, options, (int)(sizeof options / sizeof options[0]), "DIR", NULL};
    int status = read_options(&self, argc, argv, &j.folder);

    if (status >= 0)
        return status;
    bool cifar = kind == 1;

    if (cifar && j.size[0] > 0)
        return fail(EXIT_USAGE, "sample: --size is for photos; cifar has 32 x 32 pixels");
    if (cifar && j.classes != 0)
        return fail(EXIT_USAGE, "sample: --classes is for photos; cifar has %d classes", SHAPES);
    if (j.count == 0)
        j.count = cifar ? 10000 : 500;
    if (j.classes == 0)
        j.classes = j.count < SHAPES ? j.count : SHAPES;
    if (!cifar && j.count < j.classes)
        return fail(EXIT_USAGE, "sample: %lld samples cannot fill %lld classes", (long long)j.count,
                    (long long)j.classes);
    if (strlen(j.folder) > 3900)
        return fail(EXIT_USAGE, "sample: the path is too long");
    catch_interrupt();
    status = make_folder(j.folder);
    if (status < 0)
        status = check_empty(j.folder, force);
    if (status >= 0)
        return status;
    threads = threads > 0 ? threads : stoker_usable_cores(NULL);
    status = cifar ? draw_cifar(&j, threads) : draw_photos(&j, threads);
    if (status >= 0)
        return status;
    if (json) {
        json_open(NULL, '{');
        json_text("path", j.folder);
        json_text("kind", kinds[kind]);
        json_integer("samples", j.count);
        json_integer("classes", cifar ? SHAPES : j.classes);
        json_integer("bytes", atomic_load(&j.bytes));
        json_close('}');
        json_end();
    } else {
        printf("%s: %s samples of %s classes, %s\n", j.folder, with_commas(j.count),
               with_commas(cifar ? SHAPES : j.classes), with_unit((double)atomic_load(&j.bytes)));
    }
    return finish_output(EXIT_DONE);
}
