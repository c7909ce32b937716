/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_index.c: the kept index of an ImageFolder. Its checksum is not looked at in a fuzzing build. What is believed has every string and
 * number in bounds, and no path leads out of the root.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/folder_index.h"

static uint64_t sum; /* keeps the reads from being left out */

static void look_at(const sk_tree *tree, const sk_tree_file *file)
{
    const char *name = sk_tree_name(tree, file), *path = sk_tree_path(tree, file->folder);

    fuzz_require(strchr(name, '/') == NULL, "a name is none of a folder");
    fuzz_require(path[0] != '/' && strncmp(path, "../", 3) != 0 && strstr(path, "/../") == NULL,
                 "a folder lies below the root");
    sum += fuzz_hash((const uint8_t *)name, strlen(name), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    sk_tree tree = {.root_fd = -1};

    fuzz_require(copy != NULL, "memory");
    memcpy(copy, data, size);
    if (sk_index_parse(copy, size, NULL, &tree)) {
        fuzz_require(tree.class_count > 0 && tree.file_count > 0, "there are classes and samples");
        for (size_t i = 0; i < tree.class_count; i++) {
            fuzz_require(tree.folders[tree.classes[i]].label == (int32_t)i, "a class has its own folder");
            sum += strlen(sk_tree_path(&tree, tree.classes[i]));
        }
        for (size_t i = 0; i < tree.folder_count; i++) {
            fuzz_require(tree.folders[i].label >= (i > 0 ? 0 : -1) && tree.folders[i].label < (int32_t)tree.class_count,
                         "a label is a class's number");
            sum += strlen(sk_tree_path(&tree, (uint32_t)i)) + tree.stamps[i].inode;
        }
        for (size_t i = 0; i < tree.file_count; i++) {
            fuzz_require(tree.folders[tree.files[i].folder].label >= 0, "a sample lies in a class");
            look_at(&tree, &tree.files[i]);
        }
        for (size_t i = 0; i < tree.link_count; i++)
            look_at(&tree, &tree.links[i]);
    }
    free(copy);
    return 0;
}
