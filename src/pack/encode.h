/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.h: one sample → what a pack holds of it. Each image is decoded both ways, and keeps its own bytes where the pixels would
 * differ. Files are write.c's.
 */
#ifndef SK_PACK_ENCODE_H
#define SK_PACK_ENCODE_H

#include "base/memory.h"
#include "dataset/dataset.h"
#include "dataset/pack_format.h"
#include "image/coefficients.h"
#include "image/image.h"

/* What a thread needs to encode one sample after another. Begins as {0}. */
typedef struct sk_encoder {
    int32_t mode; /* stoker_pack_mode; not STOKER_PACK_AUTO */
    sk_decoder *as_stored, *upright, *packed;
    sk_coefficients coefficients;
    sk_buffer fetched, coded;
} sk_encoder;

stoker_status sk_encoder_init(sk_encoder *self, int32_t mode, const stoker_image_settings *settings);
void sk_encoder_clear(sk_encoder *self);

/* A sample in its form. `data` belongs to the encoder or to the reader until the next call. */
typedef struct sk_encoded {
    sk_pack_encoding encoding;
    const uint8_t *data;
    size_t size;
    int32_t width, height, channels; /* of raw ones */
    bool odd;                        /* it cannot be decoded: this thread's message says why */
} sk_encoded;

/* Fails on lack of memory only. */
stoker_status sk_encoder_encode(sk_encoder *self, const sk_sample *sample, sk_encoded *out);

#endif
