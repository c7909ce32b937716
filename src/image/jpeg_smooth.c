/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_smooth.c: the weights below were measured: each guessed coefficient of images of random averages, as Pillow shows them, was
 * fitted to the 25 averages around it; every weight came out whole in units of 1/256.
 */
#include "image/jpeg_smooth.h"

#include <string.h>

#define SIDE 5 /* blocks that a guess looks at, across and down */

typedef struct guess {
    uint8_t place; /* in the block, row by row */
    int16_t weights[SIDE * SIDE];
} guess;

/* Where nothing but the averages is known, they are smoothed as well. In zigzag order. */
static const guess averages_only[SK_JPEG_LOW] = {
    {0, {-2, -6, -8, -6, -2, -6, 6, 42, 6, -6, -8, 42, 152, 42, -8, -6, 6, 42, 6, -6, -2, -6, -8, -6, -2}},
    {1, {-1, -1, 0, 1, 1, -3, 13, 0, -13, 3, -3, 38, 0, -38, 3, -3, 13, 0, -13, 3, -1, -1, 0, 1, 1}},
    {8, {-1, -3, -3, -3, -1, -1, 13, 38, 13, -1, 0, 0, 0, 0, 0, 1, -13, -38, -13, 1, 1, 3, 3, 3, 1}},
    {16, {0, 0, 1, 0, 0, 0, 2, 7, 2, 0, 0, -5, -14, -5, 0, 0, 2, 7, 2, 0, 0, 0, 1, 0, 0}},
    {9, {-1, 0, 0, 0, 1, 0, 9, 0, -9, 0, 0, 0, 0, 0, 0, 0, -9, 0, 9, 0, 1, 0, 0, 0, -1}},
    {2, {0, 0, 0, 0, 0, 0, 2, -5, 2, 0, 1, 7, -14, 7, 1, 0, 2, -5, 2, 0, 0, 0, 0, 0, 0}},
    {3, {0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, 2, 0, -2, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0}},
    {10, {0, 0, 0, 0, 0, 0, 1, -3, 1, 0, 0, 0, 0, 0, 0, 0, -1, 3, -1, 0, 0, 0, 0, 0, 0}},
    {17, {0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, -3, 0, 3, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0}},
    {24, {0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, -1, -2, -1, 0, 0, 0, 0, 0, 0}},
};

/* Where something more is known; the rest, and what is not named, stays as it is. */
static const guess otherwise[] = {
    {0, {0}},
    {1, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -7, 50, 0, -50, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {8, {0, 0, -7, 0, 0, 0, 0, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, -50, 0, 0, 0, 0, 7, 0, 0}},
    {16, {0, 0, -1, 0, 0, 0, 0, 13, 0, 0, 0, 0, -24, 0, 0, 0, 0, 13, 0, 0, 0, 0, -1, 0, 0}},
    {9, {0, -1, 0, 1, 0, -1, 10, 0, -10, 1, 0, 0, 0, 0, 0, 1, -10, 0, 10, -1, 0, 1, 0, -1, 0}},
    {2, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 13, -24, 13, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};
#define OTHERWISE ((int)(sizeof otherwise / sizeof otherwise[0]))

/* ------------------------------------------------------------------------------------------- what is known -------- */

void sk_jpeg_progress_scan(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg)
{
    bool first = jpeg->input_scan_number <= 1;

    if (first)
        memset(self, 0, sizeof *self);
    for (int i = 0; i < jpeg->comps_in_scan; i++) {
        int c = jpeg->cur_comp_info[i]->component_index;

        for (int k = 1; k < SK_JPEG_LOW; k++)
            self->before[c][k] = first ? 0 : self->now[c][k];
    }
    for (int c = 0; c < jpeg->num_components; c++)
        for (int k = 0; k < SK_JPEG_LOW; k++)
            self->now[c][k] = jpeg->coef_bits[c][k];
    self->starved = false;
    self->restarts = 0;
    self->restarted_at = NULL;
    self->row = 0;
    self->last_good = 0;
}

void sk_jpeg_progress_row(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg)
{
    self->row = jpeg->input_iMCU_row;
    if (!self->starved)
        self->last_good = self->row;
}

/* libjpeg moves the source's pointer on at the end of an MCU, so where it has not moved, no MCU began after the restart. */
void sk_jpeg_progress_starve(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg)
{
    if (self->restarted_at == jpeg->src->next_input_byte)
        self->last_good = self->good_before;
    self->starved = true;
}

/* A row is good if one of its MCUs began with data, so the MCU in which the restart is taken does not count itself. */
void sk_jpeg_progress_restart(sk_jpeg_progress *self, const struct jpeg_decompress_struct *jpeg)
{
    uint64_t mcu = (uint64_t)++self->restarts * jpeg->restart_interval;
    int rows = jpeg->comps_in_scan == 1 ? jpeg->cur_comp_info[0]->v_samp_factor : 1;
    uint64_t in_row = (uint64_t)jpeg->MCUs_per_row * (uint64_t)rows;

    self->good_before = self->last_good;
    self->restarted_at = jpeg->src->next_input_byte;
    if (self->starved && in_row > 0 && (mcu + 1) % in_row != 0)
        self->last_good = self->row;
    self->starved = false;
}

bool sk_jpeg_is_smoothed(const struct jpeg_decompress_struct *jpeg)
{
    bool useful = false;

    if (!jpeg->progressive_mode || jpeg->coef_bits == NULL)
        return false;
    for (int c = 0; c < jpeg->num_components; c++) {
        const JQUANT_TBL *table = jpeg->comp_info[c].quant_table;

        if (table == NULL || jpeg->coef_bits[c][0] < 0)
            return false;
        for (int k = 0; k < SK_JPEG_LOW; k++) {
            if (table->quantval[averages_only[k].place] == 0)
                return false;
            if (k > 0 && jpeg->coef_bits[c][k] != 0)
                useful = true;
        }
    }
    return useful;
}

/* --------------------------------------------------------------------------------------------- the guesses -------- */

/* What a coefficient of step `step` is guessed to be; at most what its `unknown` lowest bits can hold. */
static JCOEF guessed(const guess *g, const int *near, int64_t average_step, int64_t step, int unknown)
{
    int64_t sum = 0;

    for (int i = 0; i < SIDE * SIDE; i++)
        sum += (int64_t)g->weights[i] * near[i];
    sum *= average_step;
    int64_t value = ((step << 7) + (sum < 0 ? -sum : sum)) / (step << 8);

    if (unknown > 0 && value >= (int64_t)1 << unknown)
        value = ((int64_t)1 << unknown) - 1;
    return (JCOEF)(sum < 0 ? -value : value);
}

static void smooth_block(JCOEF *block, const int *near, const JQUANT_TBL *table, const int *known)
{
    bool nothing = true;

    for (int k = 1; k < SK_JPEG_LOW; k++)
        nothing = nothing && known[k] == -1;
    const guess *guesses = nothing ? averages_only : otherwise;
    int64_t average_step = table->quantval[0];

    for (int k = 1; k < (nothing ? SK_JPEG_LOW : OTHERWISE); k++) {
        const guess *g = &guesses[k];

        if (known[k] != 0 && block[g->place] == 0)
            block[g->place] = guessed(g, near, average_step, table->quantval[g->place], known[k]);
    }
    if (nothing)
        block[0] = guessed(&averages_only[0], near, average_step, average_step, 0);
}

static uint32_t clamp(int64_t value, int64_t least, uint32_t count)
{
    return value < least ? (uint32_t)least : value >= count ? count - 1 : (uint32_t)value;
}

static JCOEF *block_row(struct jpeg_decompress_struct *jpeg, jvirt_barray_ptr array, uint32_t row)
{
    return jpeg->mem->access_virt_barray((j_common_ptr)jpeg, array, row, 1, TRUE)[0][0];
}

stoker_status sk_jpeg_smooth(struct jpeg_decompress_struct *jpeg, jvirt_barray_ptr *arrays,
                             const sk_jpeg_progress *progress, sk_buffer *averages)
{
    static const int nothing_known[SK_JPEG_LOW] = {0, -1, -1, -1, -1, -1, -1, -1, -1, -1};

    for (int c = 0; c < jpeg->num_components; c++) {
        const jpeg_component_info *info = &jpeg->comp_info[c];
        uint32_t across = info->width_in_blocks, down = info->height_in_blocks;
        uint32_t unit = (uint32_t)info->v_samp_factor, last_unit = (down - 1) / unit;
        uint32_t padded = (last_unit + 1) * unit; /* rows that a scan of all components has */
        size_t bytes;

        if (!sk_multiply((size_t)across * sizeof(JCOEF), padded, &bytes))
            return sk_fail(STOKER_ERR_LIMIT, "JPEG: %u x %u blocks do not fit in memory", across, padded);
        stoker_status status = sk_buffer_reserve(averages, bytes);

        if (status != STOKER_OK)
            return status;
        JCOEF *kept = (JCOEF *)(void *)averages->data; /* guesses look at what was read, not at one another */

        for (uint32_t y = 0; y < padded; y++) {
            const JCOEF *row = block_row(jpeg, arrays[c], y);

            for (uint32_t x = 0; x < across; x++)
                kept[(size_t)y * across + x] = row[(size_t)x * DCTSIZE2];
        }
        for (uint32_t y = 0; y < down; y++) {
            bool good = y / unit <= progress->last_good;
            const int *before = jpeg->input_scan_number > 1 ? progress->before[c] : nothing_known;
            /* Pillow's release takes the row above for the one above that, just below the first unit. */
            int32_t highest = y == unit && down == unit + 1 ? (int32_t)y - 1 : 0;
            uint32_t seen = y / unit < last_unit ? padded : down; /* rows below the image count until the last unit */
            JCOEF *row = block_row(jpeg, arrays[c], y);

            for (uint32_t x = 0; x < across; x++) {
                int near[SIDE * SIDE];

                for (int i = 0; i < SIDE * SIDE; i++)
                    near[i] = kept[(size_t)clamp((int64_t)y + i / SIDE - 2, highest, seen) * across +
                                   clamp((int64_t)x + i % SIDE - 2, 0, across)];
                smooth_block(row + (size_t)x * DCTSIZE2, near, info->quant_table, good ? progress->now[c] : before);
            }
        }
    }
    return STOKER_OK;
}
