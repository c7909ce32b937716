/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exif.h: which way up an image is, as PIL.ImageOps.exif_transpose sees it. Reads one tag out of an EXIF block (a small
 * TIFF file) or out of XMP text; where they lie in an image file is the codecs' matter.
 */
#ifndef SK_IMAGE_EXIF_H
#define SK_IMAGE_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Sets *orientation to 1..8 and *found to whether the block holds the tag at all (a value that is none of 1..8, or of a
 * type that is no number, counts as 1). Up to `prefixes` times "Exif\0\0" may stand before the block; an empty block
 * holds no tag. Damage within the list of tags ends it; a block that does not begin as EXIF does is STOKER_ERR_DATA, as
 * Pillow raises. */
stoker_status sk_exif_orientation(const uint8_t *exif, size_t size, int prefixes, int *orientation, bool *found);

/* The orientation that XMP text tells, 1 if none. Pillow asks it where there is no EXIF tag. */
int sk_xmp_orientation(const uint8_t *xmp, size_t size);

#endif
