/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.c: a contact sheet of the first samples of an epoch, as the model will see them.
 *
 * The spec's normalisation is left out, so that the sheet shows pixels: the spec is run with its to_tensor, normalize and to replaced by
 * to(u8,nhwc). Order and draws are those that a loader with the same seed and epoch has: draws depend on a transform's place, so they
 * are made for the spec as it was asked for, and then told of the places that its transforms have in the shown one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "canvas.h"
#include "cli.h"

static const char help[] =
    "usage: stoker show DATASET -o FILE.png [options]\n"
    "\n"
    "A contact sheet of augmented samples: look at what the model will see.\n"
    "\n"
    "  -o FILE.png       where to write it\n"
    "  --ops SPEC        transforms (none); normalisation is left out of the picture\n"
    "  --count N         samples (24)\n"
    "  --columns N       (chosen)\n"
    "  --seed N          of order and draws (0)\n"
    "  --epoch N         (0)\n"
    "  --split SPLIT     default, train, test or all (default)\n"
    "  --no-shuffle      the dataset's order\n"
    "  --repeat          the first sample again and again, with the draws of epoch after epoch\n"
    "  --no-index        neither use nor keep a list of an ImageFolder's files\n"
    "  --json            path, samples, width, height\n"
    "\n"
    "example: stoker show photos --ops 'random_resized_crop(224) random_horizontal_flip' -o sheet.png\n";

static const char *const splits[] = {"default", "train", "test", "all", NULL};

enum { GAP = 12, LEAST_TILE = 96, MOST_TILE = 320, MOST_COUNT = 1000, LINE = 14, HEAD = 64 };

static const colour paper = {250, 249, 247}, ink = {40, 40, 46}, faint = {120, 118, 124}, frame = {214, 211, 206};

typedef struct tile {
    uint8_t *pixels; /* interleaved */
    int32_t width, height, channels;
    int32_t seen_width, seen_height; /* what the model sees; width and height shrink with the picture */
    int64_t sample, label;
    char note[96]; /* the draws in words */
} tile;

typedef struct request {
    const char *ops, *out;
    const stoker_spec *asked;
    int32_t place[STOKER_MAX_TRANSFORMS]; /* of each asked transform in the shown spec; -1: left out */
    int64_t count, columns, seed, epoch;
    bool no_shuffle, repeat, json;
} request;

/* The spec without the transforms that make floats, and with to(u8,nhwc) at its end; fills r->place. *text is freed by the caller. */
static bool displayed_spec(request *r, char **text)
{
    const char *canonical = stoker_spec_text(r->asked);
    char *out = malloc(strlen(canonical) + 32), *to = out;
    int32_t asked = 0, shown = 0;

    if (out == NULL)
        return false;
    for (const char *at = canonical; *at != '\0' && asked < STOKER_MAX_TRANSFORMS;) {
        const char *end = strchr(at, ' ');
        size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        bool left_out =
            strncmp(at, "to_tensor", 9) == 0 || strncmp(at, "normalize(", 10) == 0 || strncmp(at, "to(", 3) == 0;

        r->place[asked++] = left_out ? -1 : shown++;
        if (!left_out) {
            memcpy(to, at, length);
            to += length;
            *to++ = ' ';
        }
        at += length + (end != NULL ? 1 : 0);
    }
    strcpy(to, "to(dtype=u8,layout=nhwc)");
    *text = out;
    return true;
}

static void describe_draws(const stoker_draw *draws, int32_t count, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int32_t i = 0; i < count && used < size; i++) {
        const int32_t *v = draws[i].value;
        int n = 0;

        if (draws[i].kind == STOKER_DRAW_CROP)
            n = snprintf(out + used, size - used, "%s%dx%d at %d,%d", used > 0 ? " " : "", v[3], v[2], v[1], v[0]);
        else if (v[0])
            n = snprintf(out + used, size - used, "%sflip", used > 0 ? " " : "");
        used += n > 0 ? (size_t)n : 0;
    }
}

static stoker_status make_tile(const stoker_dataset *dataset, const stoker_spec *spec, const request *r, int64_t sample,
                               uint64_t epoch, tile *out)
{
    stoker_draw draws[STOKER_MAX_TRANSFORMS];
    stoker_tensor tensor;
    stoker_image image;
    int32_t count = 0;
    stoker_status status = stoker_dataset_decode(dataset, sample, &image);

    if (status != STOKER_OK)
        return status;
    status = stoker_spec_draw(r->asked, (uint64_t)r->seed, epoch, (uint64_t)sample, image.width, image.height, draws,
                              &count);
    for (int32_t i = 0; status == STOKER_OK && i < count; i++)
        draws[i].transform = r->place[draws[i].transform];
    if (status == STOKER_OK)
        status =
            stoker_spec_apply(spec, image.pixels, image.width, image.height, image.channels, draws, count, &tensor);
    stoker_image_free(&image);
    if (status != STOKER_OK)
        return status;
    *out = (tile){.pixels = tensor.data,
                  .width = tensor.width,
                  .height = tensor.height,
                  .channels = tensor.channels,
                  .seen_width = tensor.width,
                  .seen_height = tensor.height,
                  .sample = sample,
                  .label = stoker_dataset_label(dataset, sample)};
    describe_draws(draws, count, out->note, sizeof out->note);
    return STOKER_OK;
}

/* Sample numbers of the epoch, as a loader has them. */
static stoker_status find_samples(const stoker_dataset *dataset, const request *r, int64_t *samples, int64_t count)
{
    stoker_loader_settings settings;
    stoker_loader *loader;

    stoker_loader_default_settings(&settings);
    settings.batch = 1;
    settings.threads = 1;
    settings.seed = (uint64_t)r->seed;
    settings.shuffle = !r->no_shuffle;
    stoker_status status = stoker_loader_open(dataset, &settings, &loader);

    if (status != STOKER_OK)
        return status;
    status = stoker_loader_order(loader, (uint64_t)r->epoch, 0, count, samples);
    stoker_loader_close(loader);
    return status;
}

/* How many pixels of the sheet a tile's pixel takes (small images), or, negative, how many of its pixels become one. */
static int32_t scale_of(int32_t width, int32_t height)
{
    int32_t longer = width > height ? width : height;

    if (longer < 1)
        return 1;
    if (longer > MOST_TILE)
        return -((longer + MOST_TILE - 1) / MOST_TILE);
    return longer >= LEAST_TILE ? 1 : (LEAST_TILE + longer - 1) / longer;
}

/* Averages squares of `by` × `by` pixels, in place: only what is shown is made smaller. */
static void shrink(tile *t, int32_t by)
{
    int32_t width = t->width / by > 0 ? t->width / by : 1, height = t->height / by > 0 ? t->height / by : 1;
    int32_t across = t->width < by ? t->width : by, down = t->height < by ? t->height : by;

    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++) {
            for (int32_t c = 0; c < t->channels; c++) {
                int32_t sum = 0;

                for (int32_t v = 0; v < down; v++) {
                    for (int32_t u = 0; u < across; u++)
                        sum += t->pixels[((size_t)(y * by + v) * (size_t)t->width + (size_t)(x * by + u)) *
                                             (size_t)t->channels +
                                         (size_t)c];
                }
                /* Never ahead of what is still to be read. */
                t->pixels[((size_t)y * (size_t)width + (size_t)x) * (size_t)t->channels + (size_t)c] =
                    (uint8_t)(sum / (across * down));
            }
        }
    }
    t->width = width;
    t->height = height;
}

static void draw_tile(canvas *c, const stoker_dataset *dataset, const tile *t, int32_t left, int32_t top, int32_t cell,
                      int32_t scale)
{
    int32_t width = t->width * scale, height = t->height * scale;
    const char *name =
        t->label >= 0 && t->label <= INT32_MAX ? stoker_dataset_class_name(dataset, (int32_t)t->label) : NULL;
    char caption[128];

    canvas_rectangle(c, left - 1, top - 1, width + 2, height + 2, frame);
    canvas_image(c, left, top, t->pixels, t->width, t->height, t->channels, scale);
    if (name != NULL)
        snprintf(caption, sizeof caption, "%s", name);
    else
        snprintf(caption, sizeof caption, "class %lld", (long long)t->label);
    canvas_text(c, left, top + height + 5, caption, cell, 1, ink);
    snprintf(caption, sizeof caption, "#%lld %dx%d", (long long)t->sample, t->seen_width, t->seen_height);
    canvas_text(c, left, top + height + 5 + LINE, caption, cell, 1, faint);
    canvas_text(c, left, top + height + 5 + 2 * LINE, t->note, cell, 1, faint);
}

static int draw_sheet(const stoker_dataset *dataset, const request *r, const char *path, tile *tiles, int64_t count)
{
    int32_t cell = LEAST_TILE, row = 0;
    int32_t scale = 1;
    canvas c;
    char line[1024];

    /* One scale for all, so that sizes can be compared. */
    for (int64_t i = 0; i < count; i++) {
        int32_t one = scale_of(tiles[i].width, tiles[i].height);

        scale = i == 0 || one < scale ? one : scale;
    }
    for (int64_t i = 0; i < count; i++) {
        if (scale < 0)
            shrink(&tiles[i], -scale);
        int32_t factor = scale > 0 ? scale : 1;

        cell = tiles[i].width * factor > cell ? tiles[i].width * factor : cell;
        row = tiles[i].height * factor > row ? tiles[i].height * factor : row;
    }
    int64_t columns = r->columns > 0 ? r->columns : 1100 / (cell + GAP);

    if (columns < 4 && count >= 4 && r->columns == 0)
        columns = 4;
    columns = columns > count ? count : columns;
    columns = columns < 1 ? 1 : columns;
    int64_t rows = (count + columns - 1) / columns;
    int64_t width = GAP + columns * (cell + GAP), height = HEAD + rows * (row + 3 * LINE + GAP + 4) + GAP;

    if (width < 480)
        width = 480;
    if (width > 30000 || height > 60000)
        return fail(EXIT_FAILED, "the sheet would have %lld x %lld pixels; ask for fewer samples", (long long)width,
                    (long long)height);
    if (!canvas_make(&c, (int32_t)width, (int32_t)height, paper))
        return fail(EXIT_FAILED, "out of memory");
    snprintf(line, sizeof line, "%s", path);
    canvas_text(&c, GAP, GAP, line, (int32_t)width - 2 * GAP, 2, ink);
    snprintf(line, sizeof line, "%s", r->ops[0] != '\0' ? r->ops : "(no transforms)");
    canvas_text(&c, GAP, GAP + 24, line, (int32_t)width - 2 * GAP, 1, ink);
    snprintf(line, sizeof line, "%s samples, %s; seed %lld, epoch %lld%s", with_commas(stoker_dataset_size(dataset)),
             stoker_dataset_format(dataset), (long long)r->seed, (long long)r->epoch,
             r->repeat ? " and the following" : "");
    canvas_text(&c, GAP, GAP + 24 + LINE, line, (int32_t)width - 2 * GAP, 1, faint);
    for (int64_t i = 0; i < count; i++)
        draw_tile(&c, dataset, &tiles[i], (int32_t)(GAP + i % columns * (cell + GAP)),
                  (int32_t)(HEAD + i / columns * (row + 3 * LINE + GAP + 4)), cell, scale > 0 ? scale : 1);
    stoker_status status = stoker_png_write(r->out, c.rgb, c.width, c.height);

    canvas_free(&c);
    if (status != STOKER_OK)
        return fail_library(status);
    if (r->json) {
        json_open(NULL, '{');
        json_text("path", r->out);
        json_integer("samples", count);
        json_integer("width", width);
        json_integer("height", height);
        json_close('}');
        json_end();
    } else {
        printf("%s: %lld samples, %lld x %lld pixels\n", r->out, (long long)count, (long long)width, (long long)height);
    }
    return finish_output(EXIT_DONE);
}

static int show(const stoker_dataset *dataset, const stoker_spec *spec, const request *r, const char *path)
{
    int64_t size = stoker_dataset_size(dataset);
    int64_t wanted = r->repeat || r->count < size ? r->count : size, found = r->count < size ? r->count : size;
    int64_t *samples = calloc((size_t)(found > 0 ? found : 1), sizeof *samples);
    tile *tiles = calloc((size_t)(wanted > 0 ? wanted : 1), sizeof *tiles);
    int64_t made = 0;
    int result = -1;

    if (samples == NULL || tiles == NULL)
        result = fail(EXIT_FAILED, "out of memory");
    else if (wanted < 1)
        result = fail(EXIT_FAILED, "%s holds no samples", path);
    else if (find_samples(dataset, r, samples, found) != STOKER_OK)
        result = fail(EXIT_FAILED, "%s", stoker_last_error());
    for (; result < 0 && made < wanted; made++) {
        uint64_t epoch = (uint64_t)r->epoch + (uint64_t)(r->repeat ? made : 0);
        stoker_status status = make_tile(dataset, spec, r, samples[r->repeat ? 0 : made], epoch, &tiles[made]);

        if (status != STOKER_OK)
            result = fail_library(status);
        if (interrupted)
            result = fail(128 + interrupted, "interrupted");
    }
    if (result < 0)
        result = draw_sheet(dataset, r, path, tiles, made);
    for (int64_t i = 0; tiles != NULL && i < wanted; i++)
        stoker_free(tiles[i].pixels);
    free(tiles);
    free(samples);
    return result;
}

int cli_show(int argc, char **argv)
{
    request r = {.ops = "", .count = 24};
    int32_t split = STOKER_SPLIT_DEFAULT;
    bool no_index = false;
    const option options[] = {
        {"-o", OPTION_TEXT, &r.out, 0, 0, NULL},
        {"--output", OPTION_TEXT, &r.out, 0, 0, NULL},
        {"--ops", OPTION_TEXT, &r.ops, 0, 0, NULL},
        {"--count", OPTION_NUMBER, &r.count, 1, MOST_COUNT, NULL},
        {"--batch", OPTION_NUMBER, &r.count, 1, MOST_COUNT, NULL},
        {"--columns", OPTION_NUMBER, &r.columns, 1, 200, NULL},
        {"--seed", OPTION_NUMBER, &r.seed, 0, INT64_MAX, NULL},
        {"--epoch", OPTION_NUMBER, &r.epoch, 0, INT64_MAX, NULL},
        {"--split", OPTION_CHOICE, &split, 0, 0, splits},
        {"--no-shuffle", OPTION_FLAG, &r.no_shuffle, 0, 0, NULL},
        {"--repeat", OPTION_FLAG, &r.repeat, 0, 0, NULL},
        {"--no-index", OPTION_FLAG, &no_index, 0, 0, NULL},
        {"--json", OPTION_FLAG, &r.json, 0, 0, NULL},
    };
    const command self = {"show", help, options, (int)(sizeof options / sizeof options[0]), "DATASET", NULL};
    stoker_dataset_settings settings;
    stoker_dataset *dataset = NULL;
    stoker_spec *asked = NULL, *spec = NULL;
    char *text = NULL;
    const char *path;
    int result = read_options(&self, argc, argv, &path);

    if (result >= 0)
        return result;
    if (r.out == NULL)
        return fail(EXIT_USAGE, "show: no file to write given (-o sheet.png)");
    stoker_dataset_default_settings(&settings);
    settings.split = split;
    settings.index = no_index ? STOKER_INDEX_OFF : STOKER_INDEX_AUTO;
    stoker_status status = stoker_spec_parse(r.ops, &asked);

    r.asked = asked;
    if (status == STOKER_OK && !displayed_spec(&r, &text))
        result = fail(EXIT_FAILED, "out of memory");
    if (status == STOKER_OK && result < 0)
        status = stoker_spec_parse(text, &spec);
    if (status == STOKER_OK && result < 0)
        status = stoker_dataset_open(path, &settings, &dataset);
    if (status != STOKER_OK)
        result = fail_library(status);
    if (result < 0) {
        catch_interrupt();
        result = show(dataset, spec, &r, path);
    }
    free(text);
    stoker_spec_free(asked);
    stoker_spec_free(spec);
    stoker_dataset_close(dataset);
    return result;
}
