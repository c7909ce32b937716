/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff.h: what a file's name says it is. (What its bytes say: sk_image_sniff in image.h.)
 */
#ifndef SK_IMAGE_SNIFF_H
#define SK_IMAGE_SNIFF_H

/* "jpeg", "png", "webp" … by the path's extension, the names that sk_decoder_format uses; NULL if it says nothing. Static. */
const char *sk_format_of_name(const char *path);

#endif
