/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ls.c: what a dataset holds. Every sample is decoded whole, on all cores, since a header says nothing of the rest.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char help[] =
    "usage: stoker ls DATASET [options]\n"
    "\n"
    "Tells a dataset's format, samples, classes and sizes, and lists every odd file (cannot be fed) and every\n"
    "suspect one (fed, but damaged, misnamed or of a rare kind). Decodes each sample whole.\n"
    "\n"
    "  --split SPLIT     train, test, default or all (all)\n"
    "  --coarse          CIFAR-100: the 20 coarse labels\n"
    "  --classes         every class name, with its number of samples\n"
    "  --limit N         look at the first N samples only\n"
    "  --threads N       (all cores that may be used)\n"
    "  --no-index        neither use nor keep a list of an ImageFolder's files\n"
    "  --json            format, samples, splits, classes, sizes, bytes, encodings, checked, odd, suspect\n"
    "\n"
    "example: stoker ls photos\n";

static const char *const splits[] = {"default", "train", "test", "all", NULL};

/* One sample's result; the reason is kept only where there is one. */
typedef struct finding {
    int32_t width, height;
    const char *format;
    char *reason;
    uint8_t verdict;
} finding;

/* Shared by the threads: `next` is the next sample to take, `done` counts; each finding is written by one thread alone. */
typedef struct survey {
    const stoker_dataset *dataset;
    finding *findings;
    int64_t count;
    _Atomic(int64_t) next, done, bytes;
    _Atomic(int) failed;
} survey;

static void *look(void *argument)
{
    survey *s = argument;

    for (;;) {
        int64_t index = atomic_fetch_add(&s->next, 1);
        stoker_check check;

        if (index >= s->count || interrupted || atomic_load(&s->failed))
            return NULL;
        if (stoker_dataset_check(s->dataset, index, &check) != STOKER_OK) {
            atomic_store(&s->failed, 1);
            return NULL;
        }
        finding *f = &s->findings[index];

        *f = (finding){
            .width = check.width, .height = check.height, .format = check.format, .verdict = (uint8_t)check.verdict};
        if (check.reason[0] != '\0') {
            f->reason = strdup(check.reason);
            if (f->reason == NULL)
                atomic_store(&s->failed, 1);
        }
        atomic_fetch_add(&s->bytes, check.bytes);
        atomic_fetch_add(&s->done, 1);
    }
}

static int run_survey(survey *s, int64_t threads)
{
    pthread_t handles[256];
    int64_t started = 0;
    double begin = now_seconds();

    while (started < threads && started < 256 && pthread_create(&handles[started], NULL, look, s) == 0)
        started++;
    if (started == 0)
        look(s);
    while (atomic_load(&s->done) < s->count && !interrupted && !atomic_load(&s->failed) && started > 0) {
        struct timespec pause = {0, 20000000};

        nanosleep(&pause, NULL);
        progress_show("looking", atomic_load(&s->done), s->count, now_seconds() - begin);
    }
    for (int64_t i = 0; i < started; i++)
        pthread_join(handles[i], NULL);
    progress_clear();
    if (interrupted)
        return fail(128 + interrupted, "interrupted");
    return atomic_load(&s->failed) ? fail(EXIT_FAILED, "out of memory") : -1;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int compare_areas(const void *a, const void *b)
{
    const finding *x = *(finding *const *)a, *y = *(finding *const *)b;
    int64_t p = (int64_t)x->width * x->height, q = (int64_t)y->width * y->height;

    return p < q ? -1 : p > q;
}

typedef struct encoding {
    const char *name;
    int64_t count;
} encoding;

/* What the findings come to. */
typedef struct summary {
    int64_t odd, suspect, readable;
    encoding encodings[8];
    int encoding_count;
    finding *smallest, *median, *largest; /* by area; NULL if nothing could be read */
    int64_t width[3], height[3];          /* least, median, most */
} summary;

static void count_encoding(summary *sum, const char *name)
{
    int i = 0;

    while (i < sum->encoding_count && strcmp(sum->encodings[i].name, name) != 0)
        i++;
    if (i == 8)
        return;
    if (i == sum->encoding_count)
        sum->encodings[sum->encoding_count++] = (encoding){name, 0};
    sum->encodings[i].count++;
}

static bool summarise(const survey *s, summary *sum)
{
    finding **readable = calloc((size_t)s->count + 1, sizeof(finding *));
    int64_t *sides = calloc((size_t)s->count + 1, sizeof(int64_t));
    int64_t n = 0;

    memset(sum, 0, sizeof *sum);
    if (readable == NULL || sides == NULL) {
        free(readable);
        free(sides);
        return false;
    }
    for (int64_t i = 0; i < s->count; i++) {
        finding *f = &s->findings[i];

        sum->odd += f->verdict == STOKER_ODD;
        sum->suspect += f->verdict == STOKER_SUSPECT;
        if (f->verdict == STOKER_ODD)
            continue;
        count_encoding(sum, f->format);
        readable[n++] = f;
    }
    sum->readable = n;
    if (n > 0) {
        qsort(readable, (size_t)n, sizeof(finding *), compare_areas);
        sum->smallest = readable[0];
        sum->median = readable[n / 2];
        sum->largest = readable[n - 1];
        for (int side = 0; side < 2; side++) {
            int64_t *out = side == 0 ? sum->width : sum->height;

            for (int64_t i = 0; i < n; i++)
                sides[i] = side == 0 ? readable[i]->width : readable[i]->height;
            qsort(sides, (size_t)n, sizeof(int64_t), compare_numbers);
            out[0] = sides[0];
            out[1] = sides[n / 2];
            out[2] = sides[n - 1];
        }
    }
    free(readable);
    free(sides);
    return true;
}

static void where(const stoker_dataset *dataset, int64_t index, char *out, size_t size)
{
    stoker_dataset_where(dataset, index, out, size);
}

/* A reason often begins with the path that stands before it already. */
static const char *without_path(const char *reason, const char *path)
{
    size_t length = strlen(path);

    return strncmp(reason, path, length) == 0 && strncmp(reason + length, ": ", 2) == 0 ? reason + length + 2 : reason;
}

/* Names of files and classes may hold anything: no control character reaches the terminal. One text at a time. */
static const char *visible(const char *text)
{
    static char out[8192];
    size_t length = 0;

    for (; text[length] != '\0' && length + 1 < sizeof out; length++) {
        unsigned char byte = (unsigned char)text[length];

        out[length] = byte < 0x20 || byte == 0x7f ? '?' : text[length];
    }
    out[length] = '\0';
    return out;
}

static void print_list(const survey *s, stoker_verdict verdict, const char *heading, int64_t count)
{
    char path[8192];

    if (count == 0)
        return;
    printf("\n%s:\n", heading);
    for (int64_t i = 0; i < s->count; i++) {
        if (s->findings[i].verdict != verdict)
            continue;
        where(s->dataset, i, path, sizeof path);
        const char *shown = visible(path); /* as the library's messages have it, too */

        printf("  %s: %s\n", shown, without_path(s->findings[i].reason != NULL ? s->findings[i].reason : "", shown));
    }
}

static void json_list(const survey *s, stoker_verdict verdict, const char *key)
{
    char path[8192];

    json_open(key, '[');
    for (int64_t i = 0; i < s->count; i++) {
        if (s->findings[i].verdict != verdict)
            continue;
        where(s->dataset, i, path, sizeof path);
        json_open(NULL, '{');
        json_text("path", path);
        json_integer("sample", i);
        json_text("reason", without_path(s->findings[i].reason != NULL ? s->findings[i].reason : "", path));
        json_close('}');
    }
    json_close(']');
}

static const char *class_name(const stoker_dataset *dataset, int32_t label)
{
    static char number[16];
    const char *name = stoker_dataset_class_name(dataset, label);

    if (name != NULL)
        return name;
    snprintf(number, sizeof number, "%d", label);
    return number;
}

static void print_json(const survey *s, const summary *sum)
{
    const stoker_dataset *dataset = s->dataset;
    int64_t train = stoker_dataset_split_size(dataset, STOKER_SPLIT_TRAIN);
    int64_t test = stoker_dataset_split_size(dataset, STOKER_SPLIT_TEST);
    static const char *const which[] = {"min", "median", "max"};

    json_open(NULL, '{');
    json_text("format", stoker_dataset_format(dataset));
    json_integer("samples", stoker_dataset_size(dataset));
    json_open("splits", '{');
    if (train + test > 0) {
        json_integer("train", train);
        json_integer("test", test);
    }
    json_close('}');
    json_open("classes", '[');
    for (int32_t i = 0; i < stoker_dataset_classes(dataset); i++)
        json_text(NULL, class_name(dataset, i));
    json_close(']');
    json_integer("channels", stoker_dataset_channels(dataset));
    json_integer("checked", s->count);
    json_integer("bytes", atomic_load(&s->bytes));
    json_open("sizes", '{');
    for (int i = 0; i < 3 && sum->readable > 0; i++) {
        json_open(which[i], '{');
        json_integer("width", sum->width[i]);
        json_integer("height", sum->height[i]);
        json_close('}');
    }
    json_close('}');
    json_open("encodings", '{');
    for (int i = 0; i < sum->encoding_count; i++)
        json_integer(sum->encodings[i].name, sum->encodings[i].count);
    json_close('}');
    json_list(s, STOKER_ODD, "odd");
    json_list(s, STOKER_SUSPECT, "suspect");
    json_close('}');
    json_end();
}

static int print_all_classes(const stoker_dataset *dataset)
{
    int32_t classes = stoker_dataset_classes(dataset);
    int64_t *counts = calloc((size_t)classes + 1, sizeof *counts);

    if (counts == NULL)
        return fail(EXIT_FAILED, "out of memory");
    for (int64_t i = 0; i < stoker_dataset_size(dataset); i++) {
        int64_t label = stoker_dataset_label(dataset, i);

        if (label >= 0 && label < classes)
            counts[label]++;
    }
    for (int32_t i = 0; i < classes; i++)
        printf("  %4d  %-30s %s\n", i, visible(class_name(dataset, i)), with_commas(counts[i]));
    free(counts);
    return -1;
}

static int print_text(const survey *s, const summary *sum, const char *path, bool all_classes)
{
    const stoker_dataset *dataset = s->dataset;
    int64_t train = stoker_dataset_split_size(dataset, STOKER_SPLIT_TRAIN);
    int64_t test = stoker_dataset_split_size(dataset, STOKER_SPLIT_TEST);
    int32_t classes = stoker_dataset_classes(dataset);

    printf("%s\n", path);
    printf("format     %s\n", stoker_dataset_format(dataset));
    printf("samples    %s", with_commas(stoker_dataset_size(dataset)));
    if (train > 0 && test > 0)
        printf(" (%s train + %s test)", with_commas(train), with_commas(test));
    printf("\nclasses    %s", with_commas(classes));
    for (int32_t i = 0; i < classes && i < 10; i++)
        printf("%s%s", i == 0 ? " (" : ", ", visible(class_name(dataset, i)));
    if (classes > 0)
        printf("%s)", classes > 10 ? ", ..." : "");
    printf("\n");
    if (all_classes) {
        int status = print_all_classes(dataset);

        if (status >= 0)
            return status;
    }
    printf("bytes      %s\n", with_unit((double)atomic_load(&s->bytes)));
    if (sum->readable > 0)
        printf("sizes      %d x %d smallest, %d x %d median, %d x %d largest\n", sum->smallest->width,
               sum->smallest->height, sum->median->width, sum->median->height, sum->largest->width,
               sum->largest->height);
    printf("encodings ");
    for (int i = 0; i < sum->encoding_count; i++)
        printf("%s %s %s", i > 0 ? "," : "", with_commas(sum->encodings[i].count), sum->encodings[i].name);
    printf("\n");
    if (s->count < stoker_dataset_size(dataset))
        printf("checked    the first %s\n", with_commas(s->count));
    printf("odd        %s (cannot be fed)\n", with_commas(sum->odd));
    printf("suspect    %s (fed, but damaged, misnamed or of a rare kind)\n", with_commas(sum->suspect));
    print_list(s, STOKER_ODD, "odd", sum->odd);
    print_list(s, STOKER_SUSPECT, "suspect", sum->suspect);
    return EXIT_DONE;
}

int cli_ls(int argc, char **argv)
{
    int32_t split = STOKER_SPLIT_ALL;
    bool json = false, all_classes = false, coarse = false, no_index = false;
    int64_t limit = INT64_MAX, threads = 0;
    const option options[] = {
        {"--split", OPTION_CHOICE, &split, 0, 0, splits},     {"--coarse", OPTION_FLAG, &coarse, 0, 0, NULL},
        {"--classes", OPTION_FLAG, &all_classes, 0, 0, NULL}, {"--limit", OPTION_NUMBER, &limit, 1, INT64_MAX, NULL},
        {"--threads", OPTION_NUMBER, &threads, 1, 256, NULL}, {"--no-index", OPTION_FLAG, &no_index, 0, 0, NULL},
        {"--json", OPTION_FLAG, &json, 0, 0, NULL},
    };
    const command self = {"ls", help, options, (int)(sizeof options / sizeof options[0]), "DATASET", NULL};
    const char *path;
    stoker_dataset *dataset;
    stoker_dataset_settings settings;
    summary sum;
    int status = read_options(&self, argc, argv, &path);

    if (status >= 0)
        return status;
    stoker_dataset_default_settings(&settings);
    settings.split = split;
    settings.coarse_labels = coarse;
    settings.index = no_index ? STOKER_INDEX_OFF : STOKER_INDEX_AUTO;
    stoker_status opened = stoker_dataset_open(path, &settings, &dataset);

    if (opened != STOKER_OK)
        return fail_library(opened);
    survey s = {.dataset = dataset, .count = stoker_dataset_size(dataset)};

    s.count = s.count < limit ? s.count : limit;
    s.findings = calloc((size_t)s.count + 1, sizeof *s.findings);
    if (s.findings == NULL) {
        status = fail(EXIT_FAILED, "out of memory");
        goto done;
    }
    catch_interrupt();
    status = run_survey(&s, threads > 0 ? threads : stoker_usable_cores(NULL));
    if (status >= 0)
        goto done;
    if (!summarise(&s, &sum)) {
        status = fail(EXIT_FAILED, "out of memory");
        goto done;
    }
    status = EXIT_DONE;
    if (json)
        print_json(&s, &sum);
    else
        status = print_text(&s, &sum, path, all_classes);
    status = finish_output(status);
done:
    for (int64_t i = 0; s.findings != NULL && i < s.count; i++)
        free(s.findings[i].reason);
    free(s.findings);
    stoker_dataset_close(dataset);
    return status;
}
