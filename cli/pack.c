/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c: pack, unpack and verify.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char pack_help[] =
    "usage: stoker pack DATASET OUT.stk [options]\n"
    "\n"
    "Writes the whole dataset into one file from which it is read several times as fast. No pixel changes: each image\n"
    "is decoded both ways, and one that would differ, or of a kind that is not re-coded, keeps its own bytes. An\n"
    "interrupted run leaves OUT.stk.partial; the same command again goes on from it.\n"
    "\n"
    "  --mode MODE    auto   dct for image files, raw for raw samples such as CIFAR's (default)\n"
    "                 dct    JPEG coefficients in a form that vector units unpack, readable by region\n"
    "                 raw    decoded pixels\n"
    "                 keep   the files' own bytes\n"
    "                 jpeg   JPEG files with restart markers, between which a crop need not be read\n"
    "  --force        replace OUT.stk if it is there\n"
    "  --json         samples, bytes_in, bytes_out, encodings, odd, resumed, seconds\n"
    "\n"
    "example: stoker pack photos photos.stk && stoker bench photos.stk --ops 'random_resized_crop(224)'\n";

static const char unpack_help[] =
    "usage: stoker unpack PACK DIR [options]\n"
    "\n"
    "Gives the dataset back as files in DIR, which must be new or empty. Files that the pack keeps as they were come "
    "back\n"
    "byte for byte; re-coded JPEG files with the same coefficients, hence the same pixels; raw samples as PNG.\n"
    "\n"
    "  --json         samples, identical, pixels, bytes\n";

static const char verify_help[] =
    "usage: stoker verify PACK [options]\n"
    "\n"
    "Checks every checksum of a pack, with all cores. Exit status 1 if anything is damaged.\n"
    "\n"
    "  --json         samples, damaged (list of where, reason), seconds\n";

static const char *const modes[] = {"auto", "dct", "raw", "keep", "jpeg", NULL};

/* What went wrong with samples, to be told at the end. */
typedef struct problems {
    const char *doing;
    double begin;
    char **where, **reason;
    int64_t count, room;
    int64_t all;
} problems;

static int on_progress(void *context, int64_t done, int64_t all)
{
    problems *self = context;

    self->all = all;
    progress_show(self->doing, done, all, now_seconds() - self->begin);
    return interrupted != 0;
}

static void on_problem(void *context, const char *where, const char *reason)
{
    problems *self = context;

    if (self->count == self->room) {
        int64_t room = self->room > 0 ? 2 * self->room : 64;
        char **wheres = realloc(self->where, (size_t)room * sizeof *wheres);

        if (wheres == NULL)
            return;
        self->where = wheres;
        char **reasons = realloc(self->reason, (size_t)room * sizeof *reasons);

        if (reasons == NULL)
            return;
        self->reason = reasons;
        self->room = room;
    }
    self->where[self->count] = strdup(where);
    self->reason[self->count] = strdup(reason);
    if (self->where[self->count] != NULL && self->reason[self->count] != NULL)
        self->count++;
}

static void problems_free(problems *self)
{
    for (int64_t i = 0; i < self->count; i++) {
        free(self->where[i]);
        free(self->reason[i]);
    }
    free(self->where);
    free(self->reason);
}

static void json_problems(const problems *self, const char *key, const char *place)
{
    json_open(key, '[');
    for (int64_t i = 0; i < self->count; i++) {
        json_open(NULL, '{');
        json_text(place, self->where[i]);
        json_text("reason", self->reason[i]);
        json_close('}');
    }
    json_close(']');
}

static int fail_stopped(stoker_status status)
{
    progress_clear();
    return interrupted ? fail(128 + interrupted, "%s", stoker_last_error()) : fail_library(status);
}

/* ---------------------------------------------------------------------------------------------------- pack -------- */

static void print_pack(const stoker_pack_report *report, const problems *odd, bool json, double seconds)
{
    if (json) {
        json_open(NULL, '{');
        json_integer("samples", report->samples);
        json_integer("bytes_in", report->bytes_in);
        json_integer("bytes_out", report->bytes_out);
        json_open("encodings", '{');
        json_integer("dct", report->dct);
        json_integer("raw", report->raw);
        json_integer("original", report->original);
        json_integer("jpeg", report->jpeg);
        json_close('}');
        json_problems(odd, "odd", "path");
        json_integer("resumed", report->resumed);
        json_number("seconds", seconds);
        json_close('}');
        json_end();
        return;
    }
    printf("%s samples, %s in, %s out", with_commas(report->samples), with_unit((double)report->bytes_in),
           with_unit((double)report->bytes_out));
    if (report->bytes_in > 0)
        printf(" (%.3f times)", (double)report->bytes_out / (double)report->bytes_in);
    printf(", %.1f s\n", seconds);
    printf("%s as dct, %s as jpeg, %s as raw pixels, %s as they were\n", with_commas(report->dct),
           with_commas(report->jpeg), with_commas(report->raw), with_commas(report->original));
    if (report->resumed > 0)
        printf("%s were there from an interrupted run\n", with_commas(report->resumed));
    if (report->odd > 0)
        printf("%s cannot be decoded; they are kept, and refused when read as from their files:\n",
               with_commas(report->odd));
    for (int64_t i = 0; i < odd->count; i++)
        printf("  %s: %s\n", odd->where[i], odd->reason[i]);
}

int cli_pack(int argc, char **argv)
{
    stoker_dataset_settings dataset_settings;
    stoker_pack_settings settings;
    stoker_pack_report report;
    stoker_dataset *dataset = NULL;
    problems odd = {.doing = "packing"};
    const char *paths[2];
    int32_t mode = STOKER_PACK_AUTO;
    bool json = false, force = false;
    const option options[] = {
        {"--mode", OPTION_CHOICE, &mode, 0, 0, modes},
        {"--force", OPTION_FLAG, &force, 0, 0, NULL},
        {"--json", OPTION_FLAG, &json, 0, 0, NULL},
    };
    const command self = {"pack", pack_help, options, 3, "DATASET", "OUT.stk"};
    int status = read_two(&self, argc, argv, paths);

    if (status >= 0)
        return status;
    stoker_dataset_default_settings(&dataset_settings);
    dataset_settings.split = STOKER_SPLIT_ALL;
    stoker_status result = stoker_dataset_open(paths[0], &dataset_settings, &dataset);

    if (result != STOKER_OK)
        return fail_library(result);
    stoker_pack_default_settings(&settings);
    settings.mode = mode;
    settings.overwrite = force;
    settings.progress = on_progress;
    settings.problem = on_problem;
    settings.context = &odd;
    odd.begin = now_seconds();
    catch_interrupt();
    result = stoker_pack(dataset, paths[0], paths[1], &settings, &report);
    progress_clear();
    if (result == STOKER_OK) {
        print_pack(&report, &odd, json, now_seconds() - odd.begin);
        status = finish_output(EXIT_DONE);
    } else {
        status = fail_stopped(result);
    }
    problems_free(&odd);
    stoker_dataset_close(dataset);
    return status;
}

/* -------------------------------------------------------------------------------------------------- unpack -------- */

int cli_unpack(int argc, char **argv)
{
    stoker_pack_settings settings;
    stoker_unpack_report report;
    problems none = {.doing = "unpacking"};
    const char *paths[2];
    bool json = false;
    const option options[] = {{"--json", OPTION_FLAG, &json, 0, 0, NULL}};
    const command self = {"unpack", unpack_help, options, 1, "PACK", "DIR"};
    int status = read_two(&self, argc, argv, paths);

    if (status >= 0)
        return status;
    stoker_pack_default_settings(&settings);
    settings.progress = on_progress;
    settings.context = &none;
    none.begin = now_seconds();
    catch_interrupt();
    stoker_status result = stoker_unpack(paths[0], paths[1], &settings, &report);

    progress_clear();
    if (result != STOKER_OK)
        return fail_stopped(result);
    if (json) {
        json_open(NULL, '{');
        json_integer("samples", report.samples);
        json_integer("identical", report.identical);
        json_integer("pixels", report.pixels);
        json_integer("bytes", report.bytes);
        json_close('}');
        json_end();
    } else {
        printf("%s files, %s: %s byte for byte as they were, %s with the same pixels\n", with_commas(report.samples),
               with_unit((double)report.bytes), with_commas(report.identical), with_commas(report.pixels));
    }
    return finish_output(EXIT_DONE);
}

/* -------------------------------------------------------------------------------------------------- verify -------- */

int cli_verify(int argc, char **argv)
{
    stoker_pack_settings settings;
    problems damaged = {.doing = "verifying"};
    const char *path;
    int64_t count = 0;
    bool json = false;
    const option options[] = {{"--json", OPTION_FLAG, &json, 0, 0, NULL}};
    const command self = {"verify", verify_help, options, 1, "PACK", NULL};
    int status = read_options(&self, argc, argv, &path);

    if (status >= 0)
        return status;
    stoker_pack_default_settings(&settings);
    settings.progress = on_progress;
    settings.problem = on_problem;
    settings.context = &damaged;
    damaged.begin = now_seconds();
    catch_interrupt();
    stoker_status result = stoker_pack_verify(path, &settings, &count);

    progress_clear();
    double seconds = now_seconds() - damaged.begin;

    if (json && (result == STOKER_OK || count > 0)) {
        json_open(NULL, '{');
        json_integer("samples", damaged.all);
        json_problems(&damaged, "damaged", "where");
        json_number("seconds", seconds);
        json_close('}');
        json_end();
    } else if (result == STOKER_OK) {
        printf("%s samples, all sound, %.2f s\n", with_commas(damaged.all), seconds);
    } else {
        for (int64_t i = 0; i < damaged.count; i++)
            printf("%s: %s\n", damaged.where[i], damaged.reason[i]);
    }
    status = finish_output(EXIT_DONE);
    if (result != STOKER_OK)
        status = fail_stopped(result);
    problems_free(&damaged);
    return status;
}
