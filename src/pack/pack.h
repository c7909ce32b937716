/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h: writing packs, checking them, and giving the dataset back. Reading one as a dataset is dataset/pack.c's.
 */
#ifndef SK_PACK_PACK_H
#define SK_PACK_PACK_H

#include "dataset/dataset.h"

/* As stoker_pack, stoker_pack_verify and stoker_unpack say. `root`: the path that the dataset was opened by, which is cut off from its
 * samples' places; NULL where it is unknown. */
stoker_status sk_pack_write(const stoker_dataset *dataset, const char *root, const char *path,
                            const stoker_pack_settings *settings, stoker_pack_report *report);
stoker_status sk_pack_verify(const char *path, const stoker_pack_settings *settings, int64_t *damaged);
stoker_status sk_pack_unpack(const char *path, const char *folder, const stoker_pack_settings *settings,
                             stoker_unpack_report *report);

#endif
