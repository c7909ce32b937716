/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.h: one loop over several threads, for work that may be short. The loader's threads, which stay, are loader/workers.c's.
 */
#ifndef SK_BASE_PARALLEL_H
#define SK_BASE_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>

/* Calls work(context, i) for i = 0 .. count - 1, begun in that order: on this thread, and on others too (as many as there are cores in the
 * affinity mask) once it has gone on for a moment. Where one returns false no further ones begin; those begun are finished, hence all
 * before it. A thread that cannot be had is done without. Returns when all is done and no thread is left. */
void sk_parallel(size_t count, bool (*work)(void *context, size_t index), void *context);

#endif
