/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c: the loader as fast as it goes. The loop reads a byte of every page of each batch, as a training loop at least does.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char help[] =
    "usage: stoker bench DATASET [options]\n"
    "\n"
    "Runs the loader as fast as it goes: images/s, bytes/s written into batches, the time of each stage, and the\n"
    "limit it runs into.\n"
    "\n"
    "  --ops SPEC        transforms (none); docs/transforms.md\n"
    "  --batch N         samples a batch (64)\n"
    "  --threads N       (all cores that may be used)\n"
    "  --epochs N        (3)\n"
    "  --seed N          of order and draws (0)\n"
    "  --split SPLIT     default, train, test or all (default)\n"
    "  --no-shuffle      the dataset's order\n"
    "  --on-error WHAT   raise, skip or substitute (raise)\n"
    "  --depth N         batches made ahead (chosen)\n"
    "  --no-index        neither use nor keep a list of an ImageFolder's files\n"
    "  --json            images_per_s, bytes_per_s, threads, batches, seconds, open_s, first_batch_s,\n"
    "                    peak_rss_bytes, ring_bytes, stages, skipped, limit\n"
    "\n"
    "example: stoker bench photos --ops 'random_resized_crop(224) random_horizontal_flip normalize(imagenet)'\n";

static const char *const splits[] = {"default", "train", "test", "all", NULL};
static const char *const policies[] = {"raise", "skip", "substitute", NULL};

enum { PAGE = 4096 };

typedef struct result {
    stoker_stats stats;
    double seconds;
    double open_seconds;
    int64_t peak_rss;
    char limit[160];
} result;

static size_t batch_bytes(const stoker_batch *batch)
{
    static const size_t element[] = {[STOKER_U8] = 1, [STOKER_F16] = 2, [STOKER_BF16] = 2, [STOKER_F32] = 4};

    return (size_t)batch->count * (size_t)batch->channels * (size_t)batch->height * (size_t)batch->width *
           element[batch->dtype];
}

static unsigned touch(const stoker_batch *batch)
{
    const volatile unsigned char *bytes = batch->images;
    unsigned sum = 0;

    for (size_t i = 0; i < batch_bytes(batch); i += PAGE)
        sum += bytes[i];
    return sum;
}

/* What kept the loader from being faster, in a sentence. */
static void name_limit(result *r)
{
    const double *seconds = r->stats.stage_seconds;
    double busy = seconds[STOKER_STAGE_READ] + seconds[STOKER_STAGE_DECODE] + seconds[STOKER_STAGE_TRANSFORM];
    double all = busy + seconds[STOKER_STAGE_STARVED];
    stoker_stage most = STOKER_STAGE_READ;

    for (int i = STOKER_STAGE_DECODE; i <= STOKER_STAGE_TRANSFORM; i++) {
        if (seconds[i] > seconds[most])
            most = (stoker_stage)i;
    }
    if (all <= 0.0)
        snprintf(r->limit, sizeof r->limit, "nothing was measured");
    else if (seconds[STOKER_STAGE_STARVED] > 0.5 * all)
        snprintf(r->limit, sizeof r->limit,
                 "limited by the loop that takes the batches: the workers waited for a free slot %.0f %% of the time",
                 100.0 * seconds[STOKER_STAGE_STARVED] / all);
    else
        snprintf(r->limit, sizeof r->limit, "limited by the %s stage: %.0f %% of the workers' busy time",
                 stoker_stage_name(most), 100.0 * seconds[most] / busy);
}

/* The largest resident set in bytes. Not getrusage's, which begins with that of the process that started this one. */
static int64_t peak_resident(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    long long kib = 0;
    char line[256];

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %lld kB", &kib) == 1)
            break;
    fclose(file);
    return (int64_t)kib * 1024;
}

static int run(stoker_loader *loader, int64_t epochs, result *r)
{
    int64_t all = stoker_loader_batches(loader) * epochs, done = 0;
    double begin = now_seconds();
    unsigned sum = 0;

    for (int64_t epoch = 0; epoch < epochs;) {
        stoker_batch *batch;
        stoker_status status = stoker_loader_next_within(loader, 200, &batch);

        if (interrupted)
            return fail(128 + interrupted, "interrupted");
        if (status == STOKER_ERR_TIMEOUT)
            continue;
        if (status == STOKER_END) {
            epoch++;
            continue;
        }
        if (status != STOKER_OK)
            return fail_library(status);
        sum += touch(batch);
        stoker_batch_release(batch);
        progress_show("batches", ++done, all, now_seconds() - begin);
    }
    r->seconds = now_seconds() - begin;
    progress_clear();
    stoker_loader_stats(loader, &r->stats);
    r->peak_rss = peak_resident();
    name_limit(r);
    (void)sum;
    return -1;
}

static void print_json(const result *r)
{
    json_open(NULL, '{');
    json_number("images_per_s", (double)r->stats.samples / r->seconds);
    json_number("bytes_per_s", (double)r->stats.bytes / r->seconds);
    json_integer("threads", r->stats.threads);
    json_integer("samples", r->stats.samples);
    json_integer("batches", r->stats.batches);
    json_number("seconds", r->seconds);
    json_number("open_s", r->open_seconds);
    json_number("first_batch_s", r->stats.first_batch_seconds);
    json_integer("peak_rss_bytes", r->peak_rss);
    json_integer("ring_bytes", r->stats.ring_bytes);
    json_open("stages", '{');
    for (int i = 0; i < STOKER_STAGES; i++) {
        json_open(stoker_stage_name((stoker_stage)i), '{');
        json_number("seconds", r->stats.stage_seconds[i]);
        json_integer("bytes", r->stats.stage_bytes[i]);
        json_close('}');
    }
    json_close('}');
    json_integer("skipped", r->stats.skipped);
    json_text("cpu", stoker_cpu());
    json_text("limit", r->limit);
    json_close('}');
    json_end();
}

static void print_text(const result *r)
{
    static const char *const meaning[STOKER_STAGES] = {"getting the bytes", "bytes to pixels", "pixels to tensor",
                                                       "workers waiting for the loop", "the loop waiting for a batch"};

    printf("%s images/s, %s/s into batches (%s samples, %s batches, %.2f s)\n",
           with_commas((int64_t)((double)r->stats.samples / r->seconds)),
           with_unit((double)r->stats.bytes / r->seconds), with_commas(r->stats.samples), with_commas(r->stats.batches),
           r->seconds);
    printf("threads %d, instruction set %s, opened in %.3f s, first batch after %.3f s more\n", r->stats.threads,
           stoker_cpu(), r->open_seconds, r->stats.first_batch_seconds);
    printf("peak memory %s, of which the ring %s\n", with_unit((double)r->peak_rss),
           with_unit((double)r->stats.ring_bytes));
    for (int i = 0; i < STOKER_STAGES; i++)
        printf("  %-10s %8.3f s  %10s  %s\n", stoker_stage_name((stoker_stage)i), r->stats.stage_seconds[i],
               r->stats.stage_bytes[i] > 0 ? with_unit((double)r->stats.stage_bytes[i]) : "", meaning[i]);
    if (r->stats.skipped > 0)
        printf("skipped %s samples\n", with_commas(r->stats.skipped));
    printf("%s\n", r->limit);
}

int cli_bench(int argc, char **argv)
{
    stoker_loader_settings settings;
    stoker_dataset_settings dataset_settings;
    int32_t split = STOKER_SPLIT_DEFAULT, on_error = STOKER_ON_ERROR_RAISE;
    int64_t batch = 64, threads = 0, epochs = 3, seed = 0, depth = 0;
    bool json = false, no_shuffle = false, no_index = false;
    const char *ops = "", *path;
    const option options[] = {
        {"--ops", OPTION_TEXT, &ops, 0, 0, NULL},
        {"--batch", OPTION_NUMBER, &batch, 1, INT32_MAX, NULL},
        {"--threads", OPTION_NUMBER, &threads, 1, 1024, NULL},
        {"--epochs", OPTION_NUMBER, &epochs, 1, INT32_MAX, NULL},
        {"--seed", OPTION_NUMBER, &seed, 0, INT64_MAX, NULL},
        {"--split", OPTION_CHOICE, &split, 0, 0, splits},
        {"--no-shuffle", OPTION_FLAG, &no_shuffle, 0, 0, NULL},
        {"--on-error", OPTION_CHOICE, &on_error, 0, 0, policies},
        {"--depth", OPTION_NUMBER, &depth, 1, 100000, NULL},
        {"--no-index", OPTION_FLAG, &no_index, 0, 0, NULL},
        {"--json", OPTION_FLAG, &json, 0, 0, NULL},
    };
    const command self = {"bench", help, options, (int)(sizeof options / sizeof options[0]), "DATASET", NULL};
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    result r;
    int status = read_options(&self, argc, argv, &path);

    if (status >= 0)
        return status;
    memset(&r, 0, sizeof r);
    stoker_dataset_default_settings(&dataset_settings);
    dataset_settings.split = split;
    dataset_settings.index = no_index ? STOKER_INDEX_OFF : STOKER_INDEX_AUTO;
    double begin = now_seconds();
    stoker_status opened = stoker_dataset_open(path, &dataset_settings, &dataset);

    if (opened != STOKER_OK)
        return fail_library(opened);
    r.open_seconds = now_seconds() - begin;
    stoker_loader_default_settings(&settings);
    settings.ops = ops;
    settings.batch = batch;
    settings.threads = (int32_t)threads;
    settings.epochs = epochs;
    settings.seed = (uint64_t)seed;
    settings.shuffle = !no_shuffle;
    settings.on_error = on_error;
    settings.depth = (int32_t)depth;
    opened = stoker_loader_open(dataset, &settings, &loader);
    if (opened != STOKER_OK) {
        status = fail_library(opened);
        goto done;
    }
    catch_interrupt();
    status = run(loader, epochs, &r);
    if (status >= 0)
        goto done;
    if (json)
        print_json(&r);
    else
        print_text(&r);
    status = finish_output(EXIT_DONE);
done:
    stoker_loader_close(loader);
    stoker_dataset_close(dataset);
    return status;
}
