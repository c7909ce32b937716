/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c: which format lies at a path.
 */
#include "dataset/dataset.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the order of trying: formats with names of their own first, the folder of folders, which takes any folder, last. */
static const sk_reader_open formats[] = {sk_cifar_open, sk_cifar_pickle_open, sk_folder_open};

stoker_status sk_dataset_open_path(const char *path, const stoker_dataset_settings *settings, sk_reader **out)
{
    struct stat about;

    *out = NULL;
    if (stat(path, &about) != 0)
        return sk_fail_errno(errno, "cannot open %s", path);
    if (access(path, S_ISDIR(about.st_mode) ? R_OK | X_OK : R_OK) != 0)
        return sk_fail_errno(errno, "cannot read %s", path);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        bool matched = false;
        stoker_status status = formats[i](path, settings, &matched, out);

        if (status != STOKER_OK || matched)
            return status;
    }
    return sk_fail(STOKER_ERR_UNSUPPORTED,
                   "%s: not a dataset that Stoker reads (a folder of class folders, CIFAR batches, MNIST idx files)",
                   path);
}
