/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: pixels → tensor.
 *
 * spec.c turns text into a list of transforms; plan.c makes that list ready to run: what is random is drawn from (seed,
 * epoch, sample, transform) alone, then geometry is worked out backwards to the source region needed, and forwards to
 * pixels. Files, decoders' insides and threads are unknown here.
 */
#ifndef SK_TRANSFORM_PLAN_H
#define SK_TRANSFORM_PLAN_H

#include "base/memory.h"
#include "base/status.h"
#include "image/image.h"

/* Buffers and resampling weights of one thread, used again for each sample. */
typedef struct sk_workspace sk_workspace;
sk_workspace *sk_workspace_create(void);            /* NULL on lack of memory */
void sk_workspace_destroy(sk_workspace *workspace); /* takes NULL */

/* Whether tensors go past the caches where that is possible; whoever lets another thread read them calls the kernels'
 * `drain` before. */
void sk_workspace_stream(sk_workspace *workspace, bool stream);

typedef struct sk_draws {
    int32_t count;
    stoker_draw draw[STOKER_MAX_TRANSFORMS];
} sk_draws;

/* The draws of a sample whose image is width × height. Fails where torchvision raises (a crop larger than the image).
 */
stoker_status sk_spec_draw(const stoker_spec *spec, uint64_t seed, uint64_t epoch, uint64_t sample, int32_t width,
                           int32_t height, sk_draws *out);

/* The size of the result for an image of that size, channels included, and the region of the source that it needs.
 * Checks the draws against the image. `channels` in: 1 or 3 of the source. */
typedef struct sk_shape {
    int32_t channels, height, width;
} sk_shape;
stoker_status sk_spec_shape(const stoker_spec *spec, const sk_draws *draws, int32_t width, int32_t height,
                            int32_t channels, sk_shape *shape, sk_rect *region);

/* True, and the shape, where every image of any size gives the same shape (or every image of width × height where those
 * are not 0). */
bool sk_spec_fixed_shape(const stoker_spec *spec, int32_t width, int32_t height, int32_t channels, sk_shape *shape);

/* Bytes of a tensor of that shape in the spec's dtype. */
size_t sk_spec_bytes(const stoker_spec *spec, sk_shape shape);

/* Writes the sample's tensor (dtype and layout of the spec, C contiguous) to `out`, which has room for sk_spec_bytes.
 * `pixels` must cover the region that sk_spec_shape gave. */
stoker_status sk_spec_run(const stoker_spec *spec, sk_workspace *workspace, const sk_pixels *pixels,
                          const sk_draws *draws, void *out);

/* The same for a raw planar sample (CIFAR: channels × height × width bytes). */
stoker_status sk_spec_run_planar(const stoker_spec *spec, sk_workspace *workspace, const uint8_t *planes, int32_t width,
                                 int32_t height, int32_t channels, const sk_draws *draws, void *out);

#endif
