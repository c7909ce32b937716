/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dct.h: the pack's own code for JPEG coefficients: no bit-serial step, and any region can be read alone (docs/pack-format.md). The
 * decoder is dct.c's, a codec like the others; what writes it is dct_write.c. Files and records are src/pack's.
 */
#ifndef SK_IMAGE_DCT_H
#define SK_IMAGE_DCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/codec.h"
#include "image/coefficients.h"

#define SK_DCT_MAGIC   0x54434453u /* "SDCT" */
#define SK_DCT_VERSION 1
#define SK_DCT_HEAD    32 /* bytes before the quantisation tables */

extern const sk_codec sk_dct_codec; /* dct.c */

/* Writes an image into `out`; *size bytes. `orientation`: EXIF's, 1..8. *taken is false where the form cannot hold it (a coefficient
 * beyond baseline JPEG's range, or so large that the vector code of libjpeg-turbo for Arm would overflow). Fails on lack of memory only. */
stoker_status sk_dct_encode(const sk_coefficients *image, int orientation, sk_buffer *out, size_t *size, bool *taken);

/* The coefficients back, whole. Component ids become 1, 2, 3. STOKER_ERR_DATA where the bytes are damaged. */
stoker_status sk_dct_read(const uint8_t *data, size_t size, sk_coefficients *out);

#endif
