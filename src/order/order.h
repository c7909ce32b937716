/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h: which sample comes when: (seed, epoch, position) → sample, computed, never stored.
 */
#ifndef SK_ORDER_ORDER_H
#define SK_ORDER_ORDER_H

#include <stdint.h>

#include "base/status.h"

/* A keyed permutation of 0 .. count-1 (a balanced Feistel network with cycle walking); docs/random.md specifies it. */
typedef struct sk_permutation {
    uint64_t count;
    uint32_t half_bits;
    uint32_t key[8];
} sk_permutation;

void sk_permutation_make(sk_permutation *permutation, uint64_t count, uint64_t seed, uint64_t epoch);
uint64_t sk_permutation_at(const sk_permutation *permutation, uint64_t position);

#endif
