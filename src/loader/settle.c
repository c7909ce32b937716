/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a finished batch: failures are settled here, by the loop's thread, in the order of positions, so that
 * the result does not depend on which worker met which failure when.
 *
 * Skip: let `end` be the epoch's end so far. A failed position p < end takes the sample of the last position, end - 1,
 * and end moves down by one; a replacement that fails as well is skipped in its turn. Where p itself is the last, end
 * becomes p.
 *
 * Shared state: see loader.h; a finished entry is the loop's.
 */
#include <stdlib.h>
#include <string.h>

#include "loader/loader.h"

/* Merge sort by place: a list of failures may be as long as a batch. */
static sk_failure *sort_failures(sk_failure *list)
{
    if (list == NULL || list->next == NULL)
        return list;
    sk_failure *middle = list;

    for (sk_failure *end = list->next; end != NULL && end->next != NULL; end = end->next->next)
        middle = middle->next;
    sk_failure *second = middle->next;

    middle->next = NULL;
    sk_failure *first = sort_failures(list);

    second = sort_failures(second);
    sk_failure *head = NULL, **tail = &head;

    while (first != NULL && second != NULL) {
        sk_failure **lower = first->place <= second->place ? &first : &second;

        *tail = *lower;
        *lower = (*lower)->next;
        tail = &(*tail)->next;
    }
    *tail = first != NULL ? first : second;
    return head;
}

static stoker_status fail_with(const sk_failure *failure)
{
    sk_message_set(failure->message);
    return failure->status;
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* Fills a place with the sample of another position of the epoch. Where no sample of the batch could be measured
 * before, this one gives the shape. */
static stoker_status fill_from(stoker_loader *loader, sk_entry *entry, int64_t place, int64_t position, bool *fatal)
{
    int64_t sample = sk_order_at(&entry->order, position);

    *fatal = false;
    if (entry->shape.channels == 0) {
        sk_shape shape;
        stoker_status status = sk_measure_sample(loader->maker, entry->epoch, sample, &shape);

        if (status != STOKER_OK)
            return sk_fail_sample(loader->dataset, sample, entry->epoch, status);
        status = sk_entry_set_shape(loader, entry, shape);
        if (status != STOKER_OK) {
            *fatal = true;
            return status;
        }
        entry->shape_sample = sample;
    }
    return sk_fill_place(loader, loader->maker, entry, place, sample, fatal);
}

static stoker_status remember_move(stoker_loader *loader, int64_t to, int64_t from)
{
    if (loader->move_count == loader->move_capacity) {
        size_t capacity = loader->move_capacity > 0 ? 2 * loader->move_capacity : 64;
        sk_move *moves = sk_realloc_array(loader->moves, capacity, sizeof *moves);

        if (moves == NULL)
            return STOKER_ERR_MEMORY;
        loader->moves = moves;
        loader->move_capacity = capacity;
    }
    loader->moves[loader->move_count++] = (sk_move){to, from};
    return STOKER_OK;
}

/* The position whose sample was delivered as that of `position`. Moves are in the order of `to`. */
static int64_t moved_from(const stoker_loader *loader, int64_t position)
{
    size_t low = 0, high = loader->move_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (loader->moves[middle].to < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < loader->move_count && loader->moves[low].to == position ? loader->moves[low].from : position;
}

/* Finds a sample from the epoch's end for the hole at `place`. */
static stoker_status fill_hole(stoker_loader *loader, sk_entry *entry, int64_t place)
{
    int64_t hole = entry->first + place;
    bool fatal;

    while (loader->effective_end - 1 > hole) {
        int64_t candidate = --loader->effective_end;
        stoker_status status = fill_from(loader, entry, place, candidate, &fatal);

        if (status == STOKER_OK)
            return remember_move(loader, hole, candidate);
        if (fatal)
            return status;
        sk_add_skipped(loader, sk_order_at(&entry->order, candidate), entry->epoch, sk_message());
    }
    loader->effective_end = hole;
    return STOKER_OK;
}

/* The last batch under STOKER_LAST_PAD, where what the workers put there does not hold any more. */
static stoker_status pad_anew(stoker_loader *loader, sk_entry *entry, int64_t valid)
{
    int64_t end = loader->effective_end;
    bool fatal;

    for (int64_t place = valid; place < entry->count; place++) {
        int64_t position = moved_from(loader, (entry->first + place - end) % end);
        stoker_status status = fill_from(loader, entry, place, position, &fatal);

        if (status != STOKER_OK)
            return status;
    }
    return STOKER_OK;
}

static stoker_status settle_skip(stoker_loader *loader, sk_entry *entry, int64_t *count, int64_t *valid)
{
    bool pad = loader->last_batch == STOKER_LAST_PAD;
    bool repeat_failed = false;

    for (const sk_failure *failure = entry->failures; failure != NULL; failure = failure->next) {
        if (entry->first + failure->place >= loader->effective_end) {
            repeat_failed = true;
            break;
        }
        if (failure->fatal)
            return fail_with(failure);
        sk_add_skipped(loader, failure->sample, entry->epoch, failure->message);
        stoker_status status = fill_hole(loader, entry, failure->place);

        if (status != STOKER_OK)
            return status;
    }
    *valid = at_most(loader->effective_end - entry->first, entry->count);
    if (*valid < 0)
        *valid = 0;
    *count = *valid;
    if (*valid == 0 || *valid == entry->count)
        return STOKER_OK;
    if (pad && (repeat_failed || loader->effective_end < loader->positions)) {
        stoker_status status = pad_anew(loader, entry, *valid);

        if (status != STOKER_OK)
            return status;
    }
    if (pad)
        *count = entry->count;
    return STOKER_OK;
}

stoker_status sk_settle(stoker_loader *loader, sk_entry *entry, int64_t *count, int64_t *valid)
{
    if (entry->error != STOKER_OK) {
        sk_message_set(entry->error_message != NULL ? entry->error_message : "out of memory");
        return entry->error;
    }
    if (entry->failure_lost)
        return sk_fail(STOKER_ERR_MEMORY, "out of memory while a batch was made");
    entry->failures = sort_failures(entry->failures);
    if (loader->on_error == STOKER_ON_ERROR_SKIP) {
        stoker_status status = settle_skip(loader, entry, count, valid);

        if (status == STOKER_OK && loader->last_batch == STOKER_LAST_DROP && *count < loader->batch)
            *count = 0;
        return status;
    }
    *count = entry->count;
    *valid = at_most(entry->order.count - entry->first, entry->count);
    for (const sk_failure *failure = entry->failures; failure != NULL; failure = failure->next) {
        if (!failure->replaced)
            return fail_with(failure);
    }
    for (const sk_failure *failure = entry->failures; failure != NULL && failure->place < *valid;
         failure = failure->next)
        sk_add_skipped(loader, failure->sample, entry->epoch, failure->message);
    return STOKER_OK;
}
