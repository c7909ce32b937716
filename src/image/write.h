/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.h: pixels → image files, for contact sheets and drawn datasets. A file is written to a temporary name beside its
 * place and renamed, so that no half-written file is ever left.
 */
#ifndef SK_IMAGE_WRITE_H
#define SK_IMAGE_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* `rgb`: height × width × 3 bytes, rows tightly packed. */
stoker_status sk_png_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height);
stoker_status sk_jpeg_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height, int32_t quality,
                            int32_t subsample);

/* Writes `data` to `path` whole or not at all. */
stoker_status sk_write_file_atomically(const char *path, const void *data, size_t size);

#endif
