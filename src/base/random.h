/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h: Philox4x32-10, the counter-based generator behind every random choice (Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", SC11). The same bits on every platform.
 */
#ifndef SK_BASE_RANDOM_H
#define SK_BASE_RANDOM_H

#include <stdint.h>

/* Ten rounds over `counter` under `key`. */
void sk_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* A stream for one transform of one sample of one epoch: key = seed; counter = (block number, sample and epoch folded in as
 * docs/random.md says). */
typedef struct sk_random {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t word[4];
    int used;
} sk_random;

void sk_random_make(sk_random *random, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t transform);
uint32_t sk_random_u32(sk_random *random);
double sk_random_unit(sk_random *random);                /* uniform in [0, 1): 53 bits */
uint32_t sk_random_below(sk_random *random, uint32_t n); /* uniform in 0 .. n-1, n >= 1, without bias */

#endif
