/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_smooth.h: what a progressive JPEG file that lacks scans looks like.
 *
 * libjpeg guesses the low coefficients it has not been told from the averages of the blocks around. Its releases guess differently
 * near the first and last rows of an image, so the guess that Pillow's release makes is made here, on the coefficients, and libjpeg's
 * own is switched off. Reading coefficients and pixels is jpeg.c's.
 */
#ifndef SK_IMAGE_JPEG_SMOOTH_H
#define SK_IMAGE_JPEG_SMOOTH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "base/memory.h"
#include "base/status.h"

#define SK_JPEG_LOW 10 /* coefficients that are guessed: the average and the first nine after it, in zigzag order */

/* How far each coefficient is known: -1 not at all, n but for its n lowest bits, 0 exactly. Followed scan by scan, since below the
 * row in which the last scan's data ran out, what was known before that scan counts. */
typedef struct sk_jpeg_progress {
    int now[4][SK_JPEG_LOW], before[4][SK_JPEG_LOW];
    bool starved;         /* this scan's data have run out */
    uint32_t restarts;    /* markers met in this scan */
    uint32_t row;         /* being read, in rows of MCUs */
    uint32_t last_good;   /* the last such row that had data */
    uint32_t good_before; /* what last_good was before the last restart */
    const uint8_t *restarted_at;
} sk_jpeg_progress;

/* To be called when a scan's header is read, before and after a row of MCUs, on libjpeg's word that data ran out, and when a restart
 * has found its marker. */
void sk_jpeg_progress_scan(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg);
void sk_jpeg_progress_row(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg);
void sk_jpeg_progress_starve(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg);
void sk_jpeg_progress_restart(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg);

/* Whether there is anything to guess, and what guessing needs is known. */
bool sk_jpeg_is_smoothed(const struct jpeg_decompress_struct *jpeg);

/* Puts the guesses into the coefficients. `averages` is scratch. Errors of libjpeg escape as from any of its functions. */
stoker_status sk_jpeg_smooth(struct jpeg_decompress_struct *jpeg, jvirt_barray_ptr *arrays,
                             const sk_jpeg_progress *progress, sk_buffer *averages);

#endif
