/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h: checksums and fingerprints: XXH3 (libxxhash), the same on every machine. They find damage and changes, not malice.
 */
#ifndef SK_BASE_HASH_H
#define SK_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3-64. `data` may be NULL where size is 0. */
uint64_t sk_hash64(const void *data, size_t size, uint64_t seed);

/* Whether a checksum that was read is the one that was computed. Always so where the fuzzer builds, which could not get past one. */
static inline bool sk_hash_fits(uint64_t read, uint64_t computed)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)read, (void)computed;
    return true;
#else
    return read == computed;
#endif
}

/* XXH3-128, low half first, each half little-endian. */
void sk_hash128(const void *data, size_t size, uint8_t out[16]);

#endif
