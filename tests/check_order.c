/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_order.c: the shuffle is one: a bijection at every count, another one each epoch, without preference for any
 * place or neighbour. Right values come from counting, and from the distribution that chance would give. Seeds are
 * fixed, so nothing here is a matter of luck.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "order/order.h"

/* Fails where chi-square of `cells` equally likely cells lies beyond 4.5 standard deviations of its mean, on either
 * side: counts that are too even are not chance either. */
static void assert_chance(const char *what, const int64_t *count, int64_t cells, int64_t total)
{
    double expected = (double)total / (double)cells, chi = 0;

    for (int64_t i = 0; i < cells; i++)
        chi += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    double freedom = (double)(cells - 1);
    /* Wilson and Hilferty: the cube root of chi-square / freedom is nearly normal. */
    double z = (cbrt(chi / freedom) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom));

    if (!(fabs(z) < 4.5))
        fail_msg("%s: chi-square %.1f with %.0f degrees of freedom, z = %.2f", what, chi, freedom, z);
}

static void test_bijection_at_every_count(void **state)
{
    uint8_t *seen = malloc(70000);
    sk_permutation permutation;

    (void)state;
    for (uint64_t count = 1; count <= 66000; count = count < 1100 ? count + 1 : count * 5 / 4 + 1) {
        sk_permutation_make(&permutation, count, 3, count % 5);
        memset(seen, 0, count);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t value = sk_permutation_at(&permutation, i);

            assert_true(value < count);
            assert_int_equal(seen[value], 0);
            seen[value] = 1;
        }
    }
    free(seen);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void test_no_repeats_among_billions(void **state)
{
    static const uint64_t counts[] = {
        1281167, UINT64_C(1) << 31, (UINT64_C(1) << 32) + 1, UINT64_C(1000000007), UINT64_C(1) << 62, INT64_MAX};
    static uint64_t values[20000];
    sk_permutation permutation;

    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        sk_permutation_make(&permutation, counts[c], 1, 2);
        for (uint64_t i = 0; i < 20000; i++) {
            values[i] = sk_permutation_at(&permutation, i % 2 == 0 ? i : counts[c] - 1 - i);
            assert_true(values[i] < counts[c]);
        }
        qsort(values, 20000, sizeof values[0], compare);
        for (size_t i = 1; i < 20000; i++)
            assert_true(values[i - 1] != values[i]);
    }
}

/* The number of a permutation among all of its length. */
static int64_t rank_of(const uint64_t *values, int count)
{
    int64_t rank = 0;

    for (int i = 0; i < count; i++) {
        int smaller = 0;

        for (int j = i + 1; j < count; j++)
            smaller += values[j] < values[i];
        rank = rank * (count - i) + smaller;
    }
    return rank;
}

static void test_all_orders_of_a_few_samples_are_equally_likely(void **state)
{
    static const int counts[] = {2, 3, 4, 5, 6};
    int64_t seen[720], factorial = 1;

    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint64_t values[6];

        factorial *= counts[c];
        memset(seen, 0, sizeof seen);
        for (uint64_t epoch = 0; epoch < (uint64_t)factorial * 200; epoch++) {
            sk_permutation permutation;

            sk_permutation_make(&permutation, (uint64_t)counts[c], 11, epoch);
            for (int i = 0; i < counts[c]; i++)
                values[i] = sk_permutation_at(&permutation, (uint64_t)i);
            seen[rank_of(values, counts[c])]++;
        }
        assert_chance("all orders", seen, factorial, factorial * 200);
    }
}

/* Which sample stands at a place, and how far the next one is away: at counts with a table and in the network, at the
 * first places and the last. */
static void test_places_and_neighbours_are_without_preference(void **state)
{
    static const uint64_t counts[] = {10, 100, 256, 257, 300, 512, 513, 1000, 1024};
    static int64_t at_place[1024], distance[1024], epochs_seen[1024];

    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint64_t count = counts[c], rounds = 100 * count;

        for (int side = 0; side < 2; side++) {
            uint64_t place = side == 0 ? 0 : count - 2;

            memset(at_place, 0, sizeof at_place);
            memset(distance, 0, sizeof distance);
            memset(epochs_seen, 0, sizeof epochs_seen);
            uint64_t before = 0;

            for (uint64_t epoch = 0; epoch < rounds; epoch++) {
                sk_permutation permutation;

                sk_permutation_make(&permutation, count, 5, epoch);
                uint64_t first = sk_permutation_at(&permutation, place);
                uint64_t second = sk_permutation_at(&permutation, place + 1);

                at_place[first]++;
                distance[(second + count - first) % count]++;
                epochs_seen[(first + count - before) % count]++;
                before = first;
            }
            assert_int_equal(distance[0], 0);
            assert_chance("place", at_place, (int64_t)count, (int64_t)rounds);
            assert_chance("neighbours", distance + 1, (int64_t)count - 1, (int64_t)rounds);
            assert_chance("epochs", epochs_seen, (int64_t)count, (int64_t)rounds);
        }
    }
}

/* Sorted by class, as a folder dataset is, 20 classes must mix within each batch (DALI #2688, #4996). */
static void test_classes_mix_within_a_batch(void **state)
{
    int64_t classes[20] = {0};
    sk_permutation permutation;
    const uint64_t count = 26000, batch = 64;
    int fewest = 20;

    (void)state;
    sk_permutation_make(&permutation, count, 0, 0);
    for (uint64_t first = 0; first + batch <= count; first += batch) {
        uint32_t met = 0;

        for (uint64_t i = 0; i < batch; i++) {
            uint64_t label = sk_permutation_at(&permutation, first + i) / (count / 20);

            met |= 1u << label;
            classes[label]++;
        }
        if (__builtin_popcount(met) < fewest)
            fewest = __builtin_popcount(met);
    }
    assert_true(fewest >= 14); /* the expected number is 19.2 of 20 */
}

static void test_another_seed_is_another_order(void **state)
{
    sk_permutation a, b;
    int64_t same_seed = 0, same_epoch = 0;

    (void)state;
    for (uint64_t i = 0; i < 64; i++) { /* each bit of the seed matters, and of epochs below 2^48 */
        sk_permutation_make(&a, 50000, 1, 1);
        sk_permutation_make(&b, 50000, 1 ^ UINT64_C(1) << i, 1);
        for (uint64_t p = 0; p < 1000; p++)
            same_seed += sk_permutation_at(&a, p) == sk_permutation_at(&b, p);
        if (i >= 48)
            continue;
        sk_permutation_make(&b, 50000, 1, 1 ^ UINT64_C(1) << i);
        for (uint64_t p = 0; p < 1000; p++)
            same_epoch += sk_permutation_at(&a, p) == sk_permutation_at(&b, p);
    }
    assert_true(same_seed < 12 && same_epoch < 12); /* chance: 1.3 of 64,000 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bijection_at_every_count),
        cmocka_unit_test(test_no_repeats_among_billions),
        cmocka_unit_test(test_all_orders_of_a_few_samples_are_equally_likely),
        cmocka_unit_test(test_places_and_neighbours_are_without_preference),
        cmocka_unit_test(test_classes_mix_within_a_batch),
        cmocka_unit_test(test_another_seed_is_another_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
