/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <string.h>

#include <xxhash.h>

uint64_t sk_hash64(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

void sk_hash128(const void *data, size_t size, uint8_t out[16])
{
    XXH128_hash_t hash = XXH3_128bits(data, size);

    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)(hash.low64 >> (8 * i));
        out[8 + i] = (uint8_t)(hash.high64 >> (8 * i));
    }
}
