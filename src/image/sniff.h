/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.h: what a file's name says it is, and the error for bytes that are no image that Stoker reads. (What bytes are:
 * sk_image_sniff in image.h.)
 */
#ifndef SK_IMAGE_SNIFF_H
#define SK_IMAGE_SNIFF_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The format that a file's name stands for: "jpeg" (.jpg .jpeg .jpe .jfif), "png" or "webp", in any case; NULL for all
 * other names. These are the names that sk_decoder_format uses, so a sample is misnamed when this is neither NULL nor
 * its format. Static. */
const char *sk_format_of_name(const char *path);

/* The error for bytes that sk_image_sniff calls neither JPEG nor PNG nor WebP: STOKER_ERR_UNSUPPORTED "unsupported: GIF
 * image" or "unsupported: gzip-compressed file, not an image" for a format known by name, STOKER_ERR_DATA "not an
 * image: …" for the rest. */
stoker_status sk_sniff_refuse(const uint8_t *data, size_t size);

#endif
