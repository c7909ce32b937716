/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_encode.h: coefficients → the entropy-coded data of a JPEG scan (ITU-T T.81 annexes F and G), with any Huffman tables, and the tables
 * that are best for an image (annex K.2). Sequential and progressive scans, one component or several, with restart intervals or without.
 * Headers are written elsewhere.
 */
#ifndef SK_IMAGE_JPEG_ENCODE_H
#define SK_IMAGE_JPEG_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/coefficients.h"

#define SK_JPEG_SLACK 4096 /* bytes that an MCU may take: 6 blocks × 64 × 32 bits, each byte stuffed */

/* A Huffman table as a DHT segment gives it. */
typedef struct sk_huffman_list {
    uint8_t counts[16]; /* codes of 1..16 bits */
    uint8_t symbols[256];
    int32_t count; /* of symbols */
} sk_huffman_list;

/* The same made ready to write. An entry: whether there is a code (bit 31), the code (bits 8..23), its length (bits 0..7). */
typedef struct sk_huffman_code {
    uint32_t entry[257]; /* the last is none: what a run of 15 and a value of 16 bits come to */
} sk_huffman_code;

/* The best table for symbols of these frequencies, with codes of 16 bits at most and none of ones only. The same as libjpeg's. At least one
 * frequency is not 0. */
void sk_huffman_optimal(sk_huffman_list *self, const uint32_t frequency[256]);

/* False where the counts ask for more codes than there are. */
bool sk_huffman_code_make(sk_huffman_code *self, const sk_huffman_list *list);

typedef struct sk_jpeg_scan {
    int32_t components;  /* 1..3 */
    int32_t plane[3];    /* each of its own */
    int32_t first, last; /* coefficients, as zigzag places */
    int32_t high,
        low; /* of a progressive scan: the bits that were written before (0: none), and those left for later, 0..13 */
    bool progressive;
    const sk_huffman_code *dc[3], *ac[3]; /* those that the scan uses */
    int64_t restart;                      /* MCUs of an interval; 0: none */
    /* The rest is filled in by sk_jpeg_scan_lay_out. */
    int32_t across, down; /* MCUs */
    int32_t h[3], v[3];   /* blocks of an MCU */
    int64_t intervals;
} sk_jpeg_scan;

/* Of a scan whose components, planes and restart are set. */
void sk_jpeg_scan_lay_out(sk_jpeg_scan *scan, const sk_coefficients *image);

/* How often each symbol comes in a sequential scan, by the component's place in it, DC and AC. `dc` is as without restarts.
 * *widest: all AC values' magnitudes, or-ed. */
void sk_jpeg_count(const sk_coefficients *image, const sk_jpeg_scan *scan, uint32_t dc[3][256], uint32_t ac[3][256],
                   uint32_t *widest);

/* The symbol of a DC difference: its magnitude's bits, 0..17. */
static inline uint32_t sk_jpeg_bits_of(int32_t value)
{
    uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);

    return magnitude == 0 ? 0 : 32 - (uint32_t)__builtin_clz(magnitude);
}

/* Writes the scan to `out`, which has SK_JPEG_SLACK bytes more than `room`; *size: the bytes written. `pads`: for each interval what fills
 * up its last byte, in the low bits (NULL: ones). Where `like` is not NULL, it is the end of a file of `room` bytes and the pads are not
 * read, but learnt from there. False where a symbol has no code or `room` does not do. */
bool sk_jpeg_encode(const sk_coefficients *image, const sk_jpeg_scan *scan, uint8_t *pads, const uint8_t *like,
                    uint8_t *out, size_t room, size_t *size);

#endif
