/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h: what the fuzz targets share. A target feeds bytes to one part of the library; the sanitizers tell of wrong
 * memory and undefined behaviour, and each target states what must hold besides.
 */
#ifndef SK_FUZZ_H
#define SK_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A number that depends on all the bytes, for choices that must not take bytes of the input away. Begin with `seed` 0.
 */
uint64_t fuzz_hash(const uint8_t *data, size_t size, uint64_t seed);

/* Ends the process with a message where `holds` is 0; the input that led here is kept by the fuzzer. */
void fuzz_require(int holds, const char *what);

#endif
