/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

/* Multipliers and Weyl increments of Philox4x32 (Salmon et al., SC11, table 2 and section 4.2). */
#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0       0x9E3779B9u
#define WEYL_1       0xBB67AE85u
#define ROUNDS       10

void sk_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t x = (uint64_t)MULTIPLIER_0 * a;
        uint64_t y = (uint64_t)MULTIPLIER_1 * c;

        a = (uint32_t)(y >> 32) ^ b ^ k0;
        b = (uint32_t)y;
        c = (uint32_t)(x >> 32) ^ d ^ k1;
        d = (uint32_t)x;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

void sk_random_make(sk_random *random, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t transform)
{
    random->key[0] = (uint32_t)seed;
    random->key[1] = (uint32_t)(seed >> 32);
    random->counter[0] = transform << 16; /* the low 16 bits count blocks */
    random->counter[1] = (uint32_t)epoch;
    random->counter[2] = (uint32_t)sample;
    random->counter[3] = (uint32_t)(sample >> 32) ^ (uint32_t)(epoch >> 32) << 16;
    random->used = 4;
}

uint32_t sk_random_u32(sk_random *random)
{
    if (random->used == 4) {
        sk_philox(random->counter, random->key, random->word);
        random->counter[0]++;
        random->used = 0;
    }
    return random->word[random->used++];
}

double sk_random_unit(sk_random *random)
{
    uint64_t high = sk_random_u32(random) >> 5; /* 27 bits */
    uint64_t low = sk_random_u32(random) >> 6;  /* 26 bits */

    return (double)(high << 26 | low) * (1.0 / 9007199254740992.0);
}

uint32_t sk_random_below(sk_random *random, uint32_t n)
{
    /* Lemire, "Fast random integer generation in an interval" (2019): a product's high half, with the few biased low halves
     * drawn again. */
    uint64_t product = (uint64_t)sk_random_u32(random) * n;

    if ((uint32_t)product < n) {
        uint32_t threshold = (0u - n) % n;

        while ((uint32_t)product < threshold)
            product = (uint64_t)sk_random_u32(random) * n;
    }
    return (uint32_t)(product >> 32);
}
