/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c: which format lies at a path.
 */
#include "dataset/dataset.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset/kind.h"

#define LOOKED_FOR "a folder of class folders, CIFAR batches, MNIST's idx files, a pack"

/* In the order of trying: formats with names of their own first, the folder of folders, which takes any folder, last. */
static const sk_reader_open formats[] = {sk_pack_open, sk_cifar_open, sk_cifar_pickle_open, sk_idx_open,
                                         sk_folder_open};

/* Settings that the dataset has no meaning for would be a silent mistake. */
static stoker_status check_settings(const char *path, const stoker_dataset_settings *settings, const sk_reader *reader)
{
    bool train = settings->split == STOKER_SPLIT_TRAIN, test = settings->split == STOKER_SPLIT_TEST;

    if ((train && reader->train_size == 0) || (test && reader->test_size == 0))
        return sk_fail(STOKER_ERR_ARGUMENT,
                       "%s: no %s part is told apart in this dataset (%s); open the part's own path without a split",
                       path, train ? "training" : "test", reader->format);
    if (settings->coarse_labels != 0 && strcmp(reader->format, "cifar100") != 0)
        return sk_fail(STOKER_ERR_ARGUMENT, "%s: coarse labels are CIFAR-100's; this dataset is %s", path,
                       reader->format);
    return STOKER_OK;
}

static stoker_status fail_unknown(const char *path, const struct stat *about)
{
    uint8_t head[SK_KIND_HEAD];
    const char *kind = sk_kind_of_mode(about->st_mode);

    if (kind == NULL)
        kind = sk_kind_of_bytes(head, sk_kind_head(path, head));
    return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: %s, not a dataset (looked for: %s)", path, kind, LOOKED_FOR);
}

stoker_status sk_dataset_open_path(const char *path, const stoker_dataset_settings *settings, sk_reader **out)
{
    struct stat about;

    *out = NULL;
    if (settings->split < STOKER_SPLIT_DEFAULT || settings->split > STOKER_SPLIT_ALL)
        return sk_fail(STOKER_ERR_ARGUMENT, "split %d; 0 to 3 are possible", settings->split);
    if (settings->index < STOKER_INDEX_AUTO || settings->index > STOKER_INDEX_REBUILD)
        return sk_fail(STOKER_ERR_ARGUMENT, "index %d; 0 to 3 are possible", settings->index);
    if (stat(path, &about) != 0)
        return sk_fail_errno(errno, "cannot open %s", path);
    if (access(path, S_ISDIR(about.st_mode) ? R_OK | X_OK : R_OK) != 0)
        return sk_fail_errno(errno, "cannot read %s", path);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        bool matched = false;
        stoker_status status = formats[i](path, settings, &matched, out);

        if (status != STOKER_OK)
            return status;
        if (!matched)
            continue;
        status = check_settings(path, settings, *out);
        if (status != STOKER_OK) {
            (*out)->ops->destroy(*out);
            *out = NULL;
        }
        return status;
    }
    return fail_unknown(path, &about);
}
