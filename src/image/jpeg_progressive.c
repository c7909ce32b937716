/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_progressive.c: see the header. Annex G leaves open how long an encoder lets a run of finished blocks grow; here it is as long as
 * libjpeg lets it grow, since most progressive files come from there.
 */
#include "image/jpeg_progressive.h"
#include "kernel/kernel.h"

#define LONGEST_RUN 0x7FFF /* blocks: what 14 more bits can tell */

static uint32_t magnitude_at(const int16_t *block, int32_t place, int32_t low)
{
    int32_t value = block[sk_zigzag[place]];

    return (uint32_t)(value < 0 ? -value : value) >> low;
}

/* Of the places first..last, one a bit. */
static uint64_t band(const sk_jpeg_scan *scan)
{
    return (~(uint64_t)0 >> (63 - scan->last)) & ~(uint64_t)0 << scan->first;
}

static void put_corrections(sk_jpeg_coder *self, const uint8_t *correction, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sk_bits_put(&self->bits, correction[i], 1);
}

void sk_jpeg_end_run(sk_jpeg_coder *self)
{
    if (self->run == 0)
        return;
    uint32_t count = 31 - (uint32_t)__builtin_clz(self->run);

    sk_jpeg_put(self, &self->bits, self->scan->ac[0], count << 4, self->run - (1u << count), count);
    put_corrections(self, self->correction, self->corrections);
    self->run = 0;
    self->corrections = 0;
}

static void code_dc_first(sk_jpeg_coder *self, int32_t c, const int16_t *block)
{
    int32_t value = block[0] >> self->scan->low, change = value - self->before[c];
    uint32_t size = sk_jpeg_bits_of(change);

    self->before[c] = value;
    sk_jpeg_put(self, &self->bits, self->scan->dc[c], size, sk_jpeg_value_bits(change, size), size);
}

static void code_dc_more(sk_jpeg_coder *self, int32_t c, const int16_t *block)
{
    (void)c;
    sk_bits_put(&self->bits, (uint32_t)(block[0] >> self->scan->low) & 1, 1);
}

static void code_ac_first(sk_jpeg_coder *self, int32_t c, const int16_t *block)
{
    const sk_jpeg_scan *scan = self->scan;
    int32_t before = scan->first - 1;

    (void)c;
    for (uint64_t rest = sk_jpeg_places(self, block) & band(scan); rest != 0; rest &= rest - 1) {
        int32_t place = __builtin_ctzll(rest), value = (int32_t)magnitude_at(block, place, scan->low);
        uint32_t size = sk_jpeg_bits_of(value), zeros = (uint32_t)(place - before - 1);

        if (value == 0)
            continue;
        sk_jpeg_end_run(self);
        for (; zeros > 15; zeros -= 16)
            sk_jpeg_put(self, &self->bits, scan->ac[0], 0xF0, 0, 0);
        value = block[sk_zigzag[place]] < 0 ? -value : value;
        sk_jpeg_put(self, &self->bits, scan->ac[0], (zeros << 4) + size, sk_jpeg_value_bits(value, size), size);
        before = place;
    }
    if (before < scan->last && ++self->run == LONGEST_RUN)
        sk_jpeg_end_run(self);
}

/* Values that were 0 so far are written with the zeros before them; those that were not get one more bit each, which come after the
 * symbol that they lie before. */
static void code_ac_more(sk_jpeg_coder *self, int32_t c, const int16_t *block)
{
    const sk_jpeg_scan *scan = self->scan;
    uint8_t own[64];
    uint32_t count = 0, zeros = 0;
    int32_t before = scan->first - 1, last_new = -1;
    uint64_t seen = 0;

    (void)c;
    for (uint64_t rest = sk_jpeg_places(self, block) & band(scan); rest != 0; rest &= rest - 1) {
        int32_t place = __builtin_ctzll(rest);
        uint32_t magnitude = magnitude_at(block, place, scan->low);

        if (magnitude != 0)
            seen |= (uint64_t)1 << place;
        if (magnitude == 1)
            last_new = place;
    }
    for (; seen != 0; seen &= seen - 1) {
        int32_t place = __builtin_ctzll(seen);
        uint32_t magnitude = magnitude_at(block, place, scan->low);

        zeros += (uint32_t)(place - before - 1);
        before = place;
        for (; zeros > 15 && place <= last_new; zeros -= 16) {
            sk_jpeg_end_run(self);
            sk_jpeg_put(self, &self->bits, scan->ac[0], 0xF0, 0, 0);
            put_corrections(self, own, count);
            count = 0;
        }
        if (magnitude > 1) {
            own[count++] = magnitude & 1;
            continue;
        }
        sk_jpeg_end_run(self);
        sk_jpeg_put(self, &self->bits, scan->ac[0], (zeros << 4) + 1, block[sk_zigzag[place]] >= 0, 1);
        put_corrections(self, own, count);
        count = 0;
        zeros = 0;
    }
    zeros += (uint32_t)(scan->last - before);
    if (zeros == 0 && count == 0)
        return;
    self->run++;
    memcpy(self->correction + self->corrections, own, count);
    self->corrections += count;
    if (self->run == LONGEST_RUN || self->corrections > SK_JPEG_CORRECTIONS - 63) /* the next block might have 63 */
        sk_jpeg_end_run(self);
}

sk_jpeg_block_coder *sk_jpeg_progressive_coder(const sk_jpeg_scan *scan)
{
    if (scan->first == 0)
        return scan->high == 0 ? code_dc_first : code_dc_more;
    return scan->high == 0 ? code_ac_first : code_ac_more;
}
