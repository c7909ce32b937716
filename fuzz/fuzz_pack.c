/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack.c: pack files. Their checksums are not looked at in a fuzzing build.
 */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dataset/dataset.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "pack/pack.h"

#define MOST_SAMPLES 64

static uint64_t sum; /* keeps the reads from being left out */

static void read_sample(const sk_reader *reader, sk_decoder *decoder, int64_t index)
{
    sk_buffer scratch = {0};
    sk_sample sample;
    sk_pixels pixels;
    int32_t width, height;
    char where[256];

    sum += (uint64_t)reader->ops->label(reader, index) + reader->ops->where(reader, index, where, sizeof where);
    reader->ops->will_need(reader, index);
    if (reader->ops->fetch(reader, index, &scratch, &sample) == STOKER_OK) {
        sum += fuzz_hash(sample.data, sample.size, 0);
        if (sample.kind != SK_SAMPLE_ENCODED)
            fuzz_require(sample.size == (size_t)sample.width * (size_t)sample.height * (size_t)sample.channels,
                         "a raw sample is as large as it says");
        else if (sample.packed &&
                 sk_decoder_open_packed(decoder, sample.data, sample.size, &width, &height) == STOKER_OK)
            (void)sk_decoder_pixels(decoder, NULL, &pixels);
    }
    sk_buffer_free(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sk_decoder *decoder;
    stoker_dataset_settings settings;
    stoker_pack_settings pack_settings;
    sk_reader *reader;
    char path[64];
    bool matched;
    int64_t damaged;
    int file = memfd_create("pack", MFD_CLOEXEC);

    if (decoder == NULL) {
        stoker_image_settings small;

        fuzz_require(sk_kernel_init() == STOKER_OK, "kernels");
        stoker_image_default_settings(&small);
        small.max_pixels = 65536;
        decoder = sk_decoder_create(&small);
    }
    stoker_dataset_default_settings(&settings);
    settings.split = size % 4;
    fuzz_require(file >= 0 && write(file, data, size) == (ssize_t)size, "a file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (sk_pack_open(path, &settings, &matched, &reader) == STOKER_OK && matched) {
        for (int32_t i = 0; i < reader->classes; i++)
            sum += strlen(reader->ops->class_name(reader, i));
        for (int64_t i = 0; i < reader->size && i < MOST_SAMPLES; i++)
            read_sample(reader, decoder, i);
        reader->ops->destroy(reader);
        stoker_pack_default_settings(&pack_settings);
        (void)sk_pack_verify(path, &pack_settings, &damaged);
    }
    close(file);
    return 0;
}
