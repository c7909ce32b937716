/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h: which sample comes when: (seed, epoch, position) → sample, computed per position. docs/order.md specifies
 * it. Datasets, batches and threads are unknown here.
 */
#ifndef SK_ORDER_ORDER_H
#define SK_ORDER_ORDER_H

#include <stdint.h>

#include "base/status.h"

#define SK_ORDER_TABLE  256 /* up to so many samples the permutation is a table, which is exactly uniform */
#define SK_ORDER_ROUNDS 6

/* A keyed permutation of 0 .. count-1: a Fisher-Yates table for few samples, else a Feistel network with cycle walking,
 * whose memory does not grow with `count`. Plain data: may be copied, and read by any number of threads. */
typedef struct sk_permutation {
    uint64_t count;
    uint32_t low_bits, high_bits; /* of a number in the network; both 0 where the table is used */
    uint64_t add[SK_ORDER_ROUNDS], multiply[SK_ORDER_ROUNDS];
    uint8_t table[SK_ORDER_TABLE];
} sk_permutation;

/* count >= 1 */
void sk_permutation_make(sk_permutation *permutation, uint64_t count, uint64_t seed, uint64_t epoch);

/* position < count */
uint64_t sk_permutation_at(const sk_permutation *permutation, uint64_t position);

/* The order of an epoch: the permutation, a list, or the dataset's own order. */
typedef struct sk_order {
    int64_t count;         /* positions */
    const int64_t *listed; /* `count` sample numbers, somebody else's; or NULL */
    int32_t shuffle;
    sk_permutation permutation; /* made only where shuffle is set */
} sk_order;

void sk_order_make(sk_order *order, int64_t count, const int64_t *explicit_order, int32_t shuffle, uint64_t seed,
                   uint64_t epoch);

/* 0 <= position < count */
static inline int64_t sk_order_at(const sk_order *order, int64_t position)
{
    if (order->listed != NULL)
        return order->listed[position];
    return order->shuffle ? (int64_t)sk_permutation_at(&order->permutation, (uint64_t)position) : position;
}

#endif
