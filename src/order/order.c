/* SPDX-License-Identifier: Apache-2.0 */
#include "order/order.h"

#include "base/random.h"

/* The stream of an epoch's order: a transform number that no spec can hold keeps it apart from every sample's draws. */
#define ORDER_STREAM UINT16_MAX

#define MIX 0xD6E8FEB86659FD93ull /* an odd constant with well-spread bits; part of docs/order.md */

static uint64_t random_u64(sk_random *random)
{
    uint64_t low = sk_random_u32(random);

    return low | (uint64_t)sk_random_u32(random) << 32;
}

/* A Feistel network is a poor shuffle of a handful of things (it reaches even permutations only), so few samples get a
 * table.
 */
static void make_table(sk_permutation *permutation, sk_random *random)
{
    uint32_t count = (uint32_t)permutation->count;

    for (uint32_t i = 0; i < count; i++)
        permutation->table[i] = (uint8_t)i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = sk_random_below(random, i);
        uint8_t other = permutation->table[j];

        permutation->table[j] = permutation->table[i - 1];
        permutation->table[i - 1] = other;
    }
}

void sk_permutation_make(sk_permutation *permutation, uint64_t count, uint64_t seed, uint64_t epoch)
{
    sk_random random;

    sk_random_make(&random, seed, epoch, 0, ORDER_STREAM);
    permutation->count = count;
    permutation->low_bits = 0;
    permutation->high_bits = 0;
    if (count <= SK_ORDER_TABLE) {
        make_table(permutation, &random);
        return;
    }
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(count - 1);

    permutation->low_bits = bits / 2;
    permutation->high_bits = bits - bits / 2;
    for (int round = 0; round < SK_ORDER_ROUNDS; round++) {
        permutation->add[round] = random_u64(&random);
        permutation->multiply[round] = random_u64(&random) | 1;
    }
}

/* `bits` well-mixed bits of `value` under the round's keys. */
static inline uint64_t mix(const sk_permutation *permutation, int round, uint64_t value, uint32_t bits)
{
    uint64_t z = (value + permutation->add[round]) * permutation->multiply[round];

    z = (z ^ z >> 32) * MIX;
    return z >> (64 - bits);
}

uint64_t sk_permutation_at(const sk_permutation *permutation, uint64_t position)
{
    const uint32_t low_bits = permutation->low_bits;
    const uint32_t high_bits = permutation->high_bits;

    if (low_bits == 0)
        return permutation->table[position];
    uint64_t low = position & ((UINT64_C(1) << low_bits) - 1);
    uint64_t high = position >> low_bits;
    uint64_t value;

    /* Walks along the cycle until it is back inside: less than two steps on average, since 2^bits < 2 × count. */
    do {
        for (int round = 0; round < SK_ORDER_ROUNDS; round += 2) {
            high ^= mix(permutation, round, low, high_bits);
            low ^= mix(permutation, round + 1, high, low_bits);
        }
        value = high << low_bits | low;
    } while (value >= permutation->count);
    return value;
}

void sk_order_make(sk_order *order, int64_t count, const int64_t *explicit_order, int32_t shuffle, uint64_t seed,
                   uint64_t epoch)
{
    order->count = count;
    order->listed = explicit_order;
    order->shuffle = shuffle;
    if (shuffle)
        sk_permutation_make(&order->permutation, (uint64_t)count, seed, epoch);
}
