/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c: a training loop's input in C. Opens a folder of images, feeds one epoch of augmented float32 batches to a
 * loop that only looks at them, and says how fast they came.
 *
 *     cc feed.c $(pkg-config --cflags --libs stoker) -o feed && ./feed photos
 */
#include <inttypes.h>
#include <stdio.h>

#include <stoker.h>

int main(int count, char **arguments)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_loader_settings settings;
    stoker_status status;
    stoker_batch *batch;
    stoker_stats stats;
    double sum = 0;
    int failed = 1;

    if (count != 2) {
        fprintf(stderr, "usage: feed DATASET\n");
        return 2;
    }
    if (stoker_dataset_open(arguments[1], NULL, &dataset) != STOKER_OK)
        goto done;

    stoker_loader_default_settings(&settings);
    settings.ops = "random_resized_crop(224) random_horizontal_flip normalize(imagenet) to(f32,nchw)";
    settings.batch = 64;
    settings.epochs = 1;
    if (stoker_loader_open(dataset, &settings, &loader) != STOKER_OK)
        goto done;

    while ((status = stoker_loader_next(loader, &batch)) == STOKER_OK) {
        const float *first = batch->images; /* count × 3 × 224 × 224 */
        sum += first[0];                    /* a training step would stand here; batch->labels holds the labels */
        stoker_batch_release(batch);
    }
    if (status != STOKER_END)
        goto done;

    stoker_loader_stats(loader, &stats);
    printf("fed %" PRId64 " images in %" PRId64 " batches, %.0f images/s (first values sum to %g)\n", stats.samples,
           stats.batches, (double)stats.samples / stats.seconds, sum);
    failed = 0;
done:
    if (failed)
        fprintf(stderr, "feed: %s\n", stoker_last_error());
    stoker_loader_close(loader);
    stoker_dataset_close(dataset);
    return failed;
}
