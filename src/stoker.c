/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stoker.c: the public header over the inner parts. It checks arguments, owns the public handles and adds to each message what
 * only the outermost call knows (which sample, which file). The spec's own functions live in transform/spec.c, the loader's in
 * loader/.
 *
 * Shared state: none; a dataset is read-only after open.
 */
#include "stoker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "dataset/dataset.h"
#include "image/dct.h"
#include "image/image.h"
#include "image/sniff.h"
#include "image/write.h"
#include "kernel/kernel.h"
#include "pack/pack.h"
#include "transform/plan.h"

#define MAX_PIXELS 178956970 /* 2 × Pillow's MAX_IMAGE_PIXELS (89,478,485): where it raises DecompressionBombError */
#define MAX_SCANS  500       /* DALI's limit; honest progressive files have about ten */

/* ------------------------------------------------------------------------------------------------ status -------- */

const char *stoker_last_error(void)
{
    return sk_message();
}

const char *stoker_version(void)
{
    return "0.1.0";
}

const char *stoker_status_name(stoker_status status)
{
    switch (status) {
    case STOKER_OK:
        return "ok";
    case STOKER_END:
        return "end of epoch";
    case STOKER_ERR_ARGUMENT:
        return "wrong argument";
    case STOKER_ERR_IO:
        return "input or output error";
    case STOKER_ERR_DATA:
        return "broken data";
    case STOKER_ERR_UNSUPPORTED:
        return "unsupported";
    case STOKER_ERR_MEMORY:
        return "out of memory";
    case STOKER_ERR_LIMIT:
        return "limit exceeded";
    case STOKER_ERR_STATE:
        return "not possible in this state";
    case STOKER_ERR_STALL:
        return "stalled";
    case STOKER_ERR_INTERRUPTED:
        return "interrupted";
    case STOKER_ERR_TIMEOUT:
        return "timeout";
    }
    return "unknown status";
}

const char *stoker_cpu(void)
{
    return sk_cpu_name();
}

void stoker_free(void *memory)
{
    sk_free(memory);
}

/* ------------------------------------------------------------------------------------------------ images -------- */

void stoker_image_default_settings(stoker_image_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->max_pixels = MAX_PIXELS;
    settings->max_scans = MAX_SCANS;
}

/* Copies the decoder's pixels, cut to `region`, into an image of the caller's. */
static stoker_status copy_pixels(const sk_pixels *pixels, const sk_rect *region, stoker_image *out)
{
    size_t row = (size_t)region->width * (size_t)pixels->channels;
    size_t total;

    if (!sk_multiply(row, (size_t)region->height, &total))
        return sk_fail(STOKER_ERR_LIMIT, "image of %d x %d pixels is too large", region->width, region->height);
    uint8_t *copy = sk_malloc(total);

    if (copy == NULL)
        return STOKER_ERR_MEMORY;
    const uint8_t *source = pixels->data + (size_t)(region->top - pixels->area.top) * pixels->stride +
                            (size_t)(region->left - pixels->area.left) * (size_t)pixels->channels;

    for (int32_t y = 0; y < region->height; y++)
        memcpy(copy + (size_t)y * row, source + (size_t)y * pixels->stride, row);
    out->pixels = copy;
    out->width = region->width;
    out->height = region->height;
    out->channels = pixels->channels;
    return STOKER_OK;
}

/* `region` NULL: all of the image. */
static stoker_status decode(sk_decoder *decoder, const void *data, size_t size, bool packed, const sk_rect *region,
                            stoker_image *out)
{
    sk_rect area = {0, 0, 0, 0};
    sk_pixels pixels;
    stoker_status status =
        (packed ? sk_decoder_open_packed : sk_decoder_open)(decoder, data, size, &area.width, &area.height);

    if (status != STOKER_OK)
        return status;
    if (region != NULL) {
        if (region->left < 0 || region->top < 0 || region->width < 1 || region->height < 1 ||
            region->left > area.width - region->width || region->top > area.height - region->height)
            return sk_fail(STOKER_ERR_ARGUMENT, "region %d,%d %d x %d does not lie in the image of %d x %d pixels",
                           region->left, region->top, region->width, region->height, area.width, area.height);
        area = *region;
    }
    status = sk_decoder_pixels(decoder, region, &pixels);
    if (status != STOKER_OK)
        return status;
    status = copy_pixels(&pixels, &area, out);
    if (status != STOKER_OK)
        return status;
    out->format = sk_decoder_format(decoder);
    snprintf(out->warning, sizeof out->warning, "%s", sk_decoder_warning(decoder));
    return STOKER_OK;
}

static stoker_status decode_once(const void *data, size_t size, bool packed, const sk_rect *region,
                                 const stoker_image_settings *settings, stoker_image *out)
{
    memset(out, 0, sizeof *out);
    stoker_status status = sk_kernel_init();

    if (status != STOKER_OK)
        return status;
    sk_decoder *decoder = sk_decoder_create(settings);

    if (decoder == NULL)
        return STOKER_ERR_MEMORY;
    status = decode(decoder, data, size, packed, region, out);
    sk_decoder_destroy(decoder);
    return status;
}

stoker_status stoker_image_decode(const void *data, size_t size, const stoker_image_settings *settings,
                                  stoker_image *out)
{
    return decode_once(data, size, false, NULL, settings, out);
}

stoker_status stoker_image_decode_region(const void *data, size_t size, int32_t left, int32_t top, int32_t width,
                                         int32_t height, const stoker_image_settings *settings, stoker_image *out)
{
    sk_rect region = {left, top, width, height};

    return decode_once(data, size, false, &region, settings, out);
}

void stoker_image_free(stoker_image *image)
{
    if (image == NULL)
        return;
    sk_free(image->pixels);
    image->pixels = NULL;
}

static stoker_status check_picture(const uint8_t *rgb, int32_t width, int32_t height)
{
    if (rgb == NULL || width < 1 || height < 1)
        return sk_fail(STOKER_ERR_ARGUMENT, "cannot write an image of %d x %d pixels", width, height);
    return STOKER_OK;
}

stoker_status stoker_png_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height)
{
    stoker_status status = check_picture(rgb, width, height);

    return status == STOKER_OK ? sk_png_write(path, rgb, width, height) : status;
}

stoker_status stoker_jpeg_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height, int32_t quality,
                                int32_t subsample)
{
    stoker_status status = check_picture(rgb, width, height);

    if (status != STOKER_OK)
        return status;
    if (quality < 1 || quality > 100)
        return sk_fail(STOKER_ERR_ARGUMENT, "JPEG quality %d is not in 1..100", quality);
    return sk_jpeg_write(path, rgb, width, height, quality, subsample);
}

/* ----------------------------------------------------------------------------------------------- dataset -------- */

void stoker_dataset_default_settings(stoker_dataset_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    stoker_image_default_settings(&settings->image);
}

/* Takes the reader over, also on failure. */
static stoker_status wrap_reader(sk_reader *reader, const stoker_image_settings *image, stoker_dataset **out)
{
    stoker_dataset *dataset = sk_calloc(1, sizeof *dataset);

    if (dataset == NULL) {
        reader->ops->destroy(reader);
        return STOKER_ERR_MEMORY;
    }
    dataset->reader = reader;
    dataset->image = *image;
    *out = dataset;
    return STOKER_OK;
}

stoker_status stoker_dataset_open(const char *path, const stoker_dataset_settings *settings, stoker_dataset **out)
{
    stoker_dataset_settings defaults;
    sk_reader *reader = NULL;

    *out = NULL;
    if (path == NULL || path[0] == '\0')
        return sk_fail(STOKER_ERR_ARGUMENT, "no dataset path given");
    if (settings == NULL) {
        stoker_dataset_default_settings(&defaults);
        settings = &defaults;
    }
    if (settings->split < STOKER_SPLIT_DEFAULT || settings->split > STOKER_SPLIT_ALL)
        return sk_fail(STOKER_ERR_ARGUMENT, "unknown split %d", settings->split);
    stoker_status status = sk_kernel_init();

    if (status != STOKER_OK)
        return status;
    status = sk_dataset_open_path(path, settings, &reader);
    return status == STOKER_OK ? wrap_reader(reader, &settings->image, out) : status;
}

stoker_status stoker_dataset_from_arrays(const uint8_t *images, int64_t count, int32_t height, int32_t width,
                                         int32_t channels, const int64_t *labels, stoker_dataset **out)
{
    stoker_dataset_settings defaults;
    sk_reader *reader = NULL;

    *out = NULL;
    stoker_dataset_default_settings(&defaults);
    stoker_status status = sk_kernel_init();

    if (status != STOKER_OK)
        return status;
    status = sk_arrays_open(images, count, height, width, channels, labels, &reader);
    return status == STOKER_OK ? wrap_reader(reader, &defaults.image, out) : status;
}

stoker_status stoker_dataset_subset(const stoker_dataset *base, const int64_t *indices, int64_t count,
                                    stoker_dataset **out)
{
    sk_reader *reader = NULL;

    *out = NULL;
    stoker_status status = sk_subset_open(base->reader, indices, count, &reader);

    return status == STOKER_OK ? wrap_reader(reader, &base->image, out) : status;
}

stoker_status stoker_dataset_concat(stoker_dataset *const *parts, int32_t count, stoker_dataset **out)
{
    sk_reader *reader = NULL;

    *out = NULL;
    if (count < 1)
        return sk_fail(STOKER_ERR_ARGUMENT, "a concatenation needs at least one dataset");
    sk_reader **readers = sk_calloc((size_t)count, sizeof(sk_reader *));

    if (readers == NULL)
        return STOKER_ERR_MEMORY;
    for (int32_t i = 0; i < count; i++)
        readers[i] = parts[i]->reader;
    stoker_status status = sk_concat_open(readers, count, &reader);

    sk_free(readers);
    return status == STOKER_OK ? wrap_reader(reader, &parts[0]->image, out) : status;
}

void stoker_dataset_close(stoker_dataset *dataset)
{
    if (dataset == NULL)
        return;
    dataset->reader->ops->destroy(dataset->reader);
    sk_free(dataset);
}

const char *stoker_dataset_format(const stoker_dataset *dataset)
{
    return dataset->reader->format;
}

int64_t stoker_dataset_size(const stoker_dataset *dataset)
{
    return dataset->reader->size;
}

int64_t stoker_dataset_split_size(const stoker_dataset *dataset, stoker_split split)
{
    switch (split) {
    case STOKER_SPLIT_TRAIN:
        return dataset->reader->train_size;
    case STOKER_SPLIT_TEST:
        return dataset->reader->test_size;
    case STOKER_SPLIT_DEFAULT:
    case STOKER_SPLIT_ALL:
        break;
    }
    return dataset->reader->size;
}

int32_t stoker_dataset_classes(const stoker_dataset *dataset)
{
    return dataset->reader->classes;
}

const char *stoker_dataset_class_name(const stoker_dataset *dataset, int32_t label)
{
    if (label < 0 || label >= dataset->reader->classes)
        return NULL;
    return dataset->reader->ops->class_name(dataset->reader, label);
}

int32_t stoker_dataset_channels(const stoker_dataset *dataset)
{
    return dataset->reader->channels;
}

void stoker_dataset_sample_size(const stoker_dataset *dataset, int32_t *width, int32_t *height)
{
    *width = dataset->reader->width;
    *height = dataset->reader->height;
}

int64_t stoker_dataset_label(const stoker_dataset *dataset, int64_t index)
{
    if (index < 0 || index >= dataset->reader->size)
        return -1;
    return dataset->reader->ops->label(dataset->reader, index);
}

size_t stoker_dataset_where(const stoker_dataset *dataset, int64_t index, char *buffer, size_t size)
{
    if (index < 0 || index >= dataset->reader->size) {
        if (size > 0)
            buffer[0] = '\0';
        return 0;
    }
    return dataset->reader->ops->where(dataset->reader, index, buffer, size);
}

static stoker_status check_index(const stoker_dataset *dataset, int64_t index)
{
    if (index < 0 || index >= dataset->reader->size)
        return sk_fail(STOKER_ERR_ARGUMENT, "sample %lld is not in 0..%lld", (long long)index,
                       (long long)dataset->reader->size - 1);
    return STOKER_OK;
}

/* Puts "<where> (sample N)" before the message of a sample's failure; a message that begins with the place already is left
 * with the number alone. */
static stoker_status fail_sample(const stoker_dataset *dataset, int64_t index, stoker_status status)
{
    char where[SK_MESSAGE_SIZE / 2];

    stoker_dataset_where(dataset, index, where, sizeof where);
    if (strncmp(sk_message(), where, strlen(where)) == 0)
        return sk_fail_context(status, "sample %lld", (long long)index);
    return sk_fail_context(status, "%s (sample %lld)", where, (long long)index);
}

/* A raw sample as an interleaved image of the caller's. */
static stoker_status copy_raw(const sk_sample *sample, stoker_image *out)
{
    size_t plane = (size_t)sample->width * (size_t)sample->height;
    size_t channels = (size_t)sample->channels;
    uint8_t *copy = sk_malloc(plane * channels);

    if (copy == NULL)
        return STOKER_ERR_MEMORY;
    if (sample->kind == SK_SAMPLE_PLANAR && channels > 1) {
        for (size_t c = 0; c < channels; c++) {
            for (size_t i = 0; i < plane; i++)
                copy[i * channels + c] = sample->data[c * plane + i];
        }
    } else {
        memcpy(copy, sample->data, plane * channels);
    }
    out->pixels = copy;
    out->width = sample->width;
    out->height = sample->height;
    out->channels = sample->channels;
    out->format = "raw";
    return STOKER_OK;
}

/* Fetches and decodes; the message, if any, is the decoder's own. *bytes is the sample's size as soon as it is known. */
static stoker_status decode_sample(const stoker_dataset *dataset, int64_t index, stoker_image *out, int64_t *bytes)
{
    sk_buffer scratch = {0};
    sk_sample sample;
    stoker_status status = dataset->reader->ops->fetch(dataset->reader, index, &scratch, &sample);

    if (status == STOKER_OK) {
        *bytes = (int64_t)sample.size;
        status = sample.kind == SK_SAMPLE_ENCODED
                     ? decode_once(sample.data, sample.size, sample.packed, NULL, &dataset->image, out)
                     : copy_raw(&sample, out);
    }
    sk_buffer_free(&scratch);
    return status;
}

stoker_status stoker_dataset_decode(const stoker_dataset *dataset, int64_t index, stoker_image *out)
{
    int64_t bytes = 0;

    memset(out, 0, sizeof *out);
    stoker_status status = check_index(dataset, index);

    if (status != STOKER_OK)
        return status;
    status = decode_sample(dataset, index, out, &bytes);
    return status == STOKER_OK ? STOKER_OK : fail_sample(dataset, index, status);
}

/* A sample in a pack's own code as a JPEG file of the same coefficients. */
static stoker_status write_jpeg(const sk_sample *sample, void **data, size_t *size)
{
    sk_coefficients image = {0};
    uint8_t *file = NULL;
    stoker_status status = sk_dct_read(sample->data, sample->size, &image);

    if (status == STOKER_OK)
        status = sk_coefficients_write(&image, sample->data[16], &file, size);
    sk_coefficients_free(&image);
    *data = file; /* by malloc, as is what sk_free takes */
    return status;
}

stoker_status stoker_dataset_bytes(const stoker_dataset *dataset, int64_t index, void **data, size_t *size)
{
    sk_buffer scratch = {0};
    sk_sample sample;
    stoker_status status = check_index(dataset, index);

    if (status != STOKER_OK)
        return status;
    if (!dataset->reader->encoded)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "samples of a %s dataset are raw pixels, not image files",
                       dataset->reader->format);
    status = dataset->reader->ops->fetch(dataset->reader, index, &scratch, &sample);
    if (status != STOKER_OK)
        goto done;
    if (sample.kind != SK_SAMPLE_ENCODED) {
        status = sk_fail(STOKER_ERR_UNSUPPORTED, "raw pixels, not an image file");
        goto done;
    }
    if (sample.packed) {
        void *file = NULL;
        size_t file_size = 0;

        status = write_jpeg(&sample, &file, &file_size);
        if (status == STOKER_OK) {
            *data = file;
            *size = file_size;
        }
        goto done;
    }
    void *copy = sk_malloc(sample.size);

    if (copy == NULL) {
        status = STOKER_ERR_MEMORY;
        goto done;
    }
    if (sample.size > 0)
        memcpy(copy, sample.data, sample.size);
    *data = copy;
    *size = sample.size;
done:
    sk_buffer_free(&scratch);
    return status == STOKER_OK ? STOKER_OK : fail_sample(dataset, index, status);
}

/* Adds a reason to a check; reasons of a suspect sample are joined. */
static void add_reason(stoker_check *check, const char *reason)
{
    size_t used = strlen(check->reason);

    snprintf(check->reason + used, sizeof check->reason - used, "%s%s", used > 0 ? "; " : "", reason);
}

stoker_status stoker_dataset_check(const stoker_dataset *dataset, int64_t index, stoker_check *out)
{
    stoker_image image = {0};
    char where[4096];
    stoker_status status = check_index(dataset, index);

    if (status != STOKER_OK)
        return status;
    memset(out, 0, sizeof *out);
    out->format = "unknown";
    status = decode_sample(dataset, index, &image, &out->bytes);
    if (status == STOKER_ERR_MEMORY)
        return fail_sample(dataset, index, status);
    if (status != STOKER_OK) {
        out->verdict = STOKER_ODD;
        add_reason(out, sk_message());
        return STOKER_OK;
    }
    out->width = image.width;
    out->height = image.height;
    out->format = image.format;
    if (dataset->reader->encoded && strcmp(image.format, "raw") != 0) {
        stoker_dataset_where(dataset, index, where, sizeof where);
        const char *named = sk_format_of_name(where);

        if (named != NULL && strcmp(named, image.format) != 0) {
            char reason[64];

            snprintf(reason, sizeof reason, "named as %s, is %s", named, image.format);
            add_reason(out, reason);
        }
        if (image.warning[0] != '\0')
            add_reason(out, image.warning);
    }
    out->verdict = out->reason[0] != '\0' ? STOKER_SUSPECT : STOKER_SOUND;
    stoker_image_free(&image);
    return STOKER_OK;
}

/* -------------------------------------------------------------------------------------------- transforms -------- */

stoker_status stoker_spec_draw(const stoker_spec *spec, uint64_t seed, uint64_t epoch, uint64_t sample, int32_t width,
                               int32_t height, stoker_draw *draws, int32_t *count)
{
    sk_draws drawn;

    if (width < 1 || height < 1)
        return sk_fail(STOKER_ERR_ARGUMENT, "an image of %d x %d pixels", width, height);
    stoker_status status = sk_spec_draw(spec, seed, epoch, sample, width, height, &drawn);

    if (status != STOKER_OK)
        return status;
    memcpy(draws, drawn.draw, (size_t)drawn.count * sizeof *draws);
    *count = drawn.count;
    return STOKER_OK;
}

static stoker_status take_draws(const stoker_draw *draws, int32_t count, sk_draws *out)
{
    if (count < 0 || count > STOKER_MAX_TRANSFORMS)
        return sk_fail(STOKER_ERR_ARGUMENT, "%d draws; at most %d are possible", count, STOKER_MAX_TRANSFORMS);
    out->count = count;
    if (count > 0)
        memcpy(out->draw, draws, (size_t)count * sizeof *draws);
    return STOKER_OK;
}

/* Runs the spec over pixels and fills the caller's tensor. */
static stoker_status run_spec(const stoker_spec *spec, const sk_pixels *pixels, const sk_draws *draws, sk_shape shape,
                              stoker_tensor *out)
{
    sk_workspace *workspace = sk_workspace_create();
    void *data = workspace != NULL ? sk_malloc(sk_spec_bytes(spec, shape)) : NULL;
    stoker_status status = STOKER_ERR_MEMORY;

    if (data == NULL)
        goto done;
    status = sk_spec_run(spec, workspace, pixels, draws, data);
    if (status != STOKER_OK)
        goto done;
    out->data = data;
    out->channels = shape.channels;
    out->height = shape.height;
    out->width = shape.width;
    out->dtype = stoker_spec_dtype(spec);
    out->layout = stoker_spec_layout(spec);
    data = NULL;
done:
    sk_free(data);
    sk_workspace_destroy(workspace);
    return status;
}

stoker_status stoker_spec_apply(const stoker_spec *spec, const uint8_t *pixels, int32_t width, int32_t height,
                                int32_t channels, const stoker_draw *draws, int32_t count, stoker_tensor *out)
{
    sk_draws taken;
    sk_shape shape;
    sk_rect region;

    memset(out, 0, sizeof *out);
    if (width < 1 || height < 1 || (channels != 1 && channels != 3))
        return sk_fail(STOKER_ERR_ARGUMENT, "an image of %d x %d pixels with %d channels (1 or 3 are possible)", width,
                       height, channels);
    stoker_status status = sk_kernel_init();

    if (status == STOKER_OK)
        status = take_draws(draws, count, &taken);
    if (status == STOKER_OK)
        status = sk_spec_shape(spec, &taken, width, height, channels, &shape, &region);
    if (status != STOKER_OK)
        return status;
    sk_pixels source = {.data = pixels,
                        .stride = (size_t)width * (size_t)channels,
                        .channels = channels,
                        .full_width = width,
                        .full_height = height,
                        .area = {0, 0, width, height}};

    return run_spec(spec, &source, &taken, shape, out);
}

stoker_status stoker_spec_apply_encoded(const stoker_spec *spec, const void *data, size_t size,
                                        const stoker_image_settings *settings, const stoker_draw *draws, int32_t count,
                                        stoker_tensor *out)
{
    sk_decoder *decoder = NULL;
    sk_draws taken;
    sk_shape shape;
    sk_rect region;
    sk_pixels pixels;
    int32_t width, height;

    memset(out, 0, sizeof *out);
    stoker_status status = sk_kernel_init();

    if (status == STOKER_OK)
        status = take_draws(draws, count, &taken);
    if (status != STOKER_OK)
        return status;
    decoder = sk_decoder_create(settings);
    if (decoder == NULL)
        return STOKER_ERR_MEMORY;
    status = sk_decoder_open(decoder, data, size, &width, &height);
    if (status == STOKER_OK)
        status = sk_spec_shape(spec, &taken, width, height, 3, &shape, &region);
    if (status == STOKER_OK)
        status = sk_decoder_pixels(decoder, &region, &pixels);
    if (status == STOKER_OK)
        status = run_spec(spec, &pixels, &taken, shape, out);
    sk_decoder_destroy(decoder);
    return status;
}

/* ------------------------------------------------------------------------------------------------- packs -------- */

void stoker_pack_default_settings(stoker_pack_settings *settings)
{
    memset(settings, 0, sizeof *settings);
}

stoker_status stoker_pack(const stoker_dataset *dataset, const char *source, const char *path,
                          const stoker_pack_settings *settings, stoker_pack_report *report)
{
    stoker_pack_settings defaults;
    stoker_pack_report unwanted = {0};

    stoker_pack_default_settings(&defaults);
    settings = settings != NULL ? settings : &defaults;
    report = report != NULL ? report : &unwanted;
    memset(report, 0, sizeof *report);
    if (path == NULL || path[0] == '\0')
        return sk_fail(STOKER_ERR_ARGUMENT, "no path for the pack given");
    if (settings->mode < STOKER_PACK_AUTO || settings->mode > STOKER_PACK_JPEG)
        return sk_fail(STOKER_ERR_ARGUMENT, "pack mode %d; 0 to 4 are possible", settings->mode);
    return sk_pack_write(dataset, source, path, settings, report);
}

stoker_status stoker_pack_verify(const char *path, const stoker_pack_settings *settings, int64_t *damaged)
{
    stoker_pack_settings defaults;
    int64_t unwanted = 0;

    stoker_pack_default_settings(&defaults);
    damaged = damaged != NULL ? damaged : &unwanted;
    *damaged = 0;
    if (path == NULL || path[0] == '\0')
        return sk_fail(STOKER_ERR_ARGUMENT, "no pack given");
    return sk_pack_verify(path, settings != NULL ? settings : &defaults, damaged);
}

stoker_status stoker_unpack(const char *path, const char *folder, const stoker_pack_settings *settings,
                            stoker_unpack_report *report)
{
    stoker_pack_settings defaults;
    stoker_unpack_report unwanted = {0};

    stoker_pack_default_settings(&defaults);
    report = report != NULL ? report : &unwanted;
    memset(report, 0, sizeof *report);
    if (path == NULL || path[0] == '\0' || folder == NULL || folder[0] == '\0')
        return sk_fail(STOKER_ERR_ARGUMENT, "a pack and a folder are needed");
    stoker_status status = sk_kernel_init();

    return status == STOKER_OK ? sk_pack_unpack(path, folder, settings != NULL ? settings : &defaults, report) : status;
}
