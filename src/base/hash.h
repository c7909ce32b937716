/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h: checksums and fingerprints: XXH3 (libxxhash), the same on every machine. They find damage and changes, not malice.
 */
#ifndef SK_BASE_HASH_H
#define SK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3-64. `data` may be NULL where size is 0. */
uint64_t sk_hash64(const void *data, size_t size, uint64_t seed);

/* XXH3-128, low half first, each half little-endian. */
void sk_hash128(const void *data, size_t size, uint8_t out[16]);

#endif
