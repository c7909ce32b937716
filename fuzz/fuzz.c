/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t fuzz_hash(const uint8_t *data, size_t size, uint64_t seed)
{
    uint64_t hash = 0xCBF29CE484222325u ^ seed; /* FNV-1a */

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 0x100000001B3u;
    return hash ^ hash >> 32;
}

void fuzz_require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}
