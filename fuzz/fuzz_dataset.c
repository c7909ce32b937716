/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dataset.c: dataset files: CIFAR's binary layout, its pickles, MNIST's idx files plain and gzipped. The first
 * byte says under which name the others lie in a folder of their own. What opens hands out every sample and label it
 * claims.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stoker.h"

#define MAX_SAMPLES 300 /* looked at */

static const char *const names[] = {
    "data_batch_1.bin",
    "train.bin",
    "test_batch.bin",
    "data_batch_1",
    "train",
    "test_batch",
    "train-images-idx3-ubyte",
    "train-images-idx3-ubyte.gz",
    "t10k-images-idx3-ubyte",
};

/* A labels file that fits eight images. */
static const uint8_t idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7};

static char folder[] = "/tmp/stoker-fuzz-XXXXXX";

static void remove_folder(void)
{
    rmdir(folder);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    fuzz_require(file >= 0 && write(file, data, size) == (ssize_t)size && close(file) == 0, "a file to fuzz with");
}

static void read_all(const stoker_dataset *dataset)
{
    int64_t size = stoker_dataset_size(dataset);
    char where[256];

    fuzz_require(size > 0, "an opened dataset has samples");
    for (int64_t i = 0; i < size && i < MAX_SAMPLES; i++) {
        stoker_image image;

        stoker_dataset_where(dataset, i, where, sizeof where);
        int64_t label = stoker_dataset_label(dataset, i);
        int32_t classes = stoker_dataset_classes(dataset);

        fuzz_require(classes == 0 || (label >= 0 && label < classes), "a label is a class's number");
        if (stoker_dataset_decode(dataset, i, &image) == STOKER_OK) {
            fuzz_require(image.width > 0 && image.height > 0, "a sample has pixels");
            stoker_image_free(&image);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int made;
    char path[128], labels[128] = "";
    stoker_dataset *dataset = NULL;

    if (size == 0)
        return 0;
    if (!made) {
        fuzz_require(mkdtemp(folder) != NULL, "a folder to fuzz in");
        atexit(remove_folder);
        made = 1;
    }
    const char *name = names[data[0] % (sizeof names / sizeof *names)];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, data + 1, size - 1);
    if (strstr(name, "idx3") != NULL) {
        snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte", folder,
                 name[0] == 't' && name[1] == '1' ? "t10k" : "train");
        write_file(labels, idx_labels, sizeof idx_labels);
    }
    if (stoker_dataset_open(folder, NULL, &dataset) == STOKER_OK)
        read_all(dataset);
    else
        fuzz_require(dataset == NULL && stoker_last_error()[0] != '\0', "a refusal has a message and no dataset");
    stoker_dataset_close(dataset);
    unlink(path);
    if (labels[0] != '\0')
        unlink(labels);
    return 0;
}
