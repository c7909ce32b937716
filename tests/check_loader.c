/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_loader.c: what a loop sees: order, batches, policies, figures. Right values come from the models in made_up.c
 * and from the content of each sample, which its number gives.
 */
#include "made_up.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_same_batches_whatever_the_threads(void **state)
{
    static const int32_t threads[] = {1, 2, 7};
    stoker_dataset *dataset = fake_open(1003, 5);

    (void)state;
    for (int64_t batch = 1; batch < 200; batch = batch * 5 + 1) {
        stoker_loader_settings settings = usual(batch, 1);
        transcript expected = model(dataset, &settings, 3);

        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
            settings.threads = threads[i];
            transcript log = run(dataset, &settings, 3);

            assert_same(&log, &expected);
            free(log.value);
        }
        free(expected.value);
    }
    fake_close(dataset);
}

static void test_orders_identity_and_explicit(void **state)
{
    static const int64_t listed[] = {3, 3, 0, 9};
    stoker_dataset *dataset = fake_open(10, 2);
    stoker_loader_settings settings = usual(4, 2);
    transcript log, expected = {0};
    int64_t order[10];

    (void)state;
    settings.shuffle = 0;
    for (int64_t i = 0; i < 10; i++)
        order[i] = i;
    model_batches(&expected, &settings, 0, order, 10);
    log = run(dataset, &settings, 1);
    assert_same(&log, &expected);
    free(log.value);
    settings.order = listed;
    settings.order_count = 4;
    settings.batch = 3;
    expected.count = 0;
    model_batches(&expected, &settings, 0, listed, 4);
    model_batches(&expected, &settings, 1, listed, 4);
    log = run(dataset, &settings, 2);
    assert_same(&log, &expected);
    free(log.value);
    free(expected.value);
    fake_close(dataset);
}

static void test_last_batch_policies_at_all_small_sizes(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 7; count++) {
        stoker_dataset *dataset = fake_open(count, 3);

        for (int64_t batch = 1; batch <= 9; batch++) {
            for (int32_t policy = 0; policy < 3; policy++) {
                stoker_loader_settings settings = usual(batch, 2);

                settings.last_batch = policy;
                transcript expected = model(dataset, &settings, 2);
                transcript log = run(dataset, &settings, 2);

                assert_same(&log, &expected);
                free(log.value);
                free(expected.value);
            }
        }
        fake_close(dataset);
    }
}

static void test_broken_samples_under_every_policy(void **state)
{
    static const int percents[] = {1, 10, 50, 95};
    static const int32_t threads[] = {1, 2, 7};

    (void)state;
    for (unsigned round = 0; round < 48; round++) {
        int64_t count = 1 + (int64_t)(round * 37 % 150);
        stoker_dataset *dataset = fake_open(count, 3);
        stoker_loader_settings settings = usual(1 + (int64_t)(round * 7 % 20), 1);

        settings.seed = round;
        settings.last_batch = round % 2 == 0 ? STOKER_LAST_PARTIAL : STOKER_LAST_PAD;
        settings.on_error = round / 2 % 2 == 0 ? STOKER_ON_ERROR_SKIP : STOKER_ON_ERROR_SUBSTITUTE;
        break_samples(dataset, percents[round / 4 % 4], round);
        fake_of(dataset)->broken[0] = 0;
        transcript expected = model(dataset, &settings, 3);

        for (size_t i = 0; i < 3; i++) {
            settings.threads = threads[i];
            transcript log = run(dataset, &settings, 3);

            assert_same(&log, &expected);
            free(log.value);
        }
        free(expected.value);
        fake_close(dataset);
    }
}

/* Under drop, what is skipped behind the last whole batch depends on the settling rule alone, so only batches are
 * compared. */
static void test_skip_keeps_batches_full_under_drop(void **state)
{
    stoker_dataset *dataset = fake_open(100, 3);
    stoker_loader_settings settings = usual(8, 7);
    stoker_batch *batch;
    int64_t batches = 0;

    (void)state;
    break_samples(dataset, 20, 3);
    settings.last_batch = STOKER_LAST_DROP;
    settings.on_error = STOKER_ON_ERROR_SKIP;
    int64_t sound = 0;

    for (int64_t i = 0; i < 100; i++)
        sound += !fake_of(dataset)->broken[i];
    stoker_loader *loader = open_loader(dataset, &settings);

    while (stoker_loader_next(loader, &batch) == STOKER_OK) {
        assert_int_equal(batch->count, 8);
        check_content(dataset, batch);
        stoker_batch_release(batch);
        batches++;
    }
    assert_int_equal(batches, sound / 8);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_everything_broken(void **state)
{
    stoker_dataset *dataset = fake_open(20, 3);
    stoker_batch *batch;
    stoker_stats stats;

    (void)state;
    memset(fake_of(dataset)->broken, 1, 20);
    stoker_loader_settings settings = usual(4, 3);

    settings.on_error = STOKER_ON_ERROR_SKIP;
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_END);
    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.skipped, 20);
    stoker_loader_close(loader);
    settings.on_error = STOKER_ON_ERROR_SUBSTITUTE;
    loader = open_loader(dataset, &settings);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_DATA);
    assert_non_null(strstr(stoker_last_error(), "no sample of the dataset can be read"));
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_raise_names_the_first_failure_and_goes_on(void **state)
{
    stoker_dataset *dataset = fake_open(30, 3);
    stoker_loader_settings settings = usual(10, 4);
    stoker_batch *batch;

    (void)state;
    settings.shuffle = 0;
    settings.first_epoch = 2;
    fake_of(dataset)->broken[17] = 1;
    fake_of(dataset)->broken[12] = 1;
    stoker_loader *loader = open_loader(dataset, &settings);

    for (uint64_t epoch = 2; epoch < 6; epoch++) {
        char expected[128];

        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
        assert_int_equal(batch->samples[0], 0);
        stoker_batch_release(batch);
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_DATA);
        snprintf(expected, sizeof expected, "fake/12.img (sample 12, epoch %llu): image file is truncated",
                 (unsigned long long)epoch);
        assert_string_equal(stoker_last_error(), expected);
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
        assert_int_equal(batch->samples[0], 20);
        assert_int_equal(batch->index, 2);
        assert_int_equal(batch->epoch, epoch);
        stoker_batch_release(batch);
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_END);
    }
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_break_and_seek(void **state)
{
    stoker_dataset *dataset = fake_open(500, 4);
    stoker_loader_settings settings = usual(16, 5);

    (void)state;
    transcript expected = run(dataset, &settings, 1);
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int round = 0; round < 200; round++) {
        transcript log = {0}, ignored = {0};

        assert_int_equal(stoker_loader_seek(loader, (uint64_t)(round * 7)), STOKER_OK);
        for (int i = 0; i < round % 5; i++)
            step(dataset, loader, &ignored);
        assert_int_equal(stoker_loader_seek(loader, 0), STOKER_OK);
        if (round % 20 == 0) {
            while (step(dataset, loader, &log) != STOKER_END)
                ;
            assert_same(&log, &expected);
        }
        free(log.value);
        free(ignored.value);
    }
    stoker_loader_close(loader);
    free(expected.value);
    fake_close(dataset);
}

static void test_odd_counts(void **state)
{
    stoker_dataset *none = fake_open(0, 4);
    stoker_dataset *three = fake_open(3, 4);
    stoker_loader_settings settings = usual(4, 64);
    stoker_loader *loader = (stoker_loader *)1;
    transcript log, expected;

    (void)state;
    assert_int_equal(stoker_loader_open(none, &settings, &loader), STOKER_ERR_ARGUMENT);
    assert_string_equal(stoker_last_error(), "the dataset holds no samples");
    assert_null(loader);
    log = run(three, &settings, 4);
    expected = model(three, &settings, 4);
    assert_same(&log, &expected);
    free(log.value);
    free(expected.value);
    settings.last_batch = STOKER_LAST_DROP; /* no whole batch: an empty epoch, as in torch */
    log = run(three, &settings, 3);
    assert_int_equal(log.count, 3);
    free(log.value);
    fake_close(none);
    fake_close(three);
}

static void test_wrong_settings(void **state)
{
    stoker_dataset *dataset = fake_open(10, 4);
    static const int64_t wrong_order[] = {0, 10};
    stoker_loader_settings settings;
    stoker_loader *loader;

    (void)state;
#define REFUSED(change, words)                                                                                         \
    do {                                                                                                               \
        settings = usual(4, 2);                                                                                        \
        change;                                                                                                        \
        assert_int_equal(stoker_loader_open(dataset, &settings, &loader), STOKER_ERR_ARGUMENT);                        \
        assert_null(loader);                                                                                           \
        if (strstr(stoker_last_error(), words) == NULL)                                                                \
            fail_msg("%s", stoker_last_error());                                                                       \
    } while (0)
    REFUSED(settings.batch = 0, "batch is 0");
    REFUSED(settings.batch = INT64_MAX, "too large");
    REFUSED(settings.threads = -1, "threads");
    REFUSED(settings.threads = 100000, "threads");
    REFUSED(settings.epochs = -1, "epochs");
    REFUSED(settings.last_batch = 9, "last_batch");
    REFUSED(settings.on_error = 9, "on_error");
    REFUSED(settings.depth = -1, "depth");
    REFUSED(settings.stall_seconds = -1, "stall_seconds");
    REFUSED(settings.ring_bytes = -1, "ring_bytes");
    REFUSED((settings.order = wrong_order, settings.order_count = 2), "shuffle");
    REFUSED((settings.order = wrong_order, settings.order_count = 2, settings.shuffle = 0),
            "order[1] is sample 10, which is not in 0..9");
    REFUSED((settings.order = wrong_order, settings.shuffle = 0), "the order holds no samples");
#undef REFUSED
    settings = usual(1000, 2);
    settings.ring_bytes = 100;
    assert_int_equal(stoker_loader_open(dataset, &settings, &loader), STOKER_ERR_LIMIT);
    assert_non_null(strstr(stoker_last_error(), "ring_bytes"));
    fake_close(dataset);
}

static void test_samples_of_different_sizes(void **state)
{
    stoker_dataset *dataset = fake_open(20, 0);
    stoker_loader_settings settings = usual(1, 3);
    transcript log, expected;
    stoker_batch *batch;

    (void)state;
    log = run(dataset, &settings, 3);
    expected = model(dataset, &settings, 3);
    assert_same(&log, &expected);
    free(log.value);
    free(expected.value);
    settings.batch = 2;
    settings.shuffle = 0;
    settings.on_error = STOKER_ON_ERROR_SKIP; /* no broken sample: never skipped in silence */
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_ARGUMENT);
    assert_string_equal(
        stoker_last_error(),
        "samples of different sizes in one batch: fake/0.img (sample 0) is 1 x 2, fake/1.img (sample 1) is "
        "2 x 2; add resize(...) and a crop, so that all are of one size");
    stoker_loader_close(loader);
    fake_close(dataset);
}

/* Broken samples where each batch's first sample gives its shape. */
static void test_samples_of_different_sizes_broken(void **state)
{
    stoker_dataset *dataset = fake_open(30, 0);

    (void)state;
    break_samples(dataset, 40, 11);
    for (int32_t policy = STOKER_ON_ERROR_SKIP; policy <= STOKER_ON_ERROR_SUBSTITUTE; policy++) {
        stoker_loader_settings settings = usual(1, 3);

        settings.on_error = policy;
        transcript expected = model(dataset, &settings, 3);
        transcript log = run(dataset, &settings, 3);

        assert_same(&log, &expected);
        free(log.value);
        free(expected.value);
    }
    fake_close(dataset);
}

static void test_ring_stays_within_its_memory(void **state)
{
    stoker_dataset *fixed = fake_open(200, 16), *different = fake_open(200, 0);
    stoker_loader_settings settings = usual(4, 4);
    transcript log = {0};
    stoker_stats stats;

    (void)state;
    settings.depth = 20;
    settings.ring_bytes = 3 * 4 * 16 * 16 * CHANNELS;
    stoker_loader *loader = open_loader(fixed, &settings);

    for (int i = 0; i < 100; i++) {
        step(fixed, loader, &log);
        stoker_loader_stats(loader, &stats);
        assert_true(stats.ring_bytes <= settings.ring_bytes + 2 * 4 * 16 * 16 * CHANNELS); /* and two kept for loans */
    }
    assert_int_equal(stats.depth, 3);
    stoker_loader_close(loader);
    settings.batch = 1;
    settings.ring_bytes = 40; /* two samples of 18 bytes */
    loader = open_loader(different, &settings);
    for (int i = 0; i < 300; i++)
        assert_true(step(different, loader, &log) >= 0);
    stoker_loader_close(loader);
    settings.ring_bytes = 17;
    loader = open_loader(different, &settings);
    int limits = 0;

    for (stoker_status status = STOKER_OK; status != STOKER_END;) {
        status = step(different, loader, &log);
        limits += status == STOKER_ERR_LIMIT;
    }
    assert_int_equal(limits, 66); /* those of 3 x 2 pixels */
    stoker_loader_close(loader);
    free(log.value);
    fake_close(fixed);
    fake_close(different);
}

/* What a batch says of its draws makes its tensors, and is what stoker_spec_draw says. */
static void test_draws_of_a_batch_give_its_tensors(void **state)
{
    static const char ops[] = "random_crop(5, padding=2) random_horizontal_flip to(f32, nchw)";
    stoker_dataset *dataset = fake_open(50, 6);
    stoker_loader_settings settings = usual(8, 3);
    stoker_draw draws[STOKER_MAX_TRANSFORMS];
    stoker_batch *batch;
    stoker_spec *spec;
    int32_t count;

    (void)state;
    settings.ops = ops;
    settings.keep_draws = 1;
    assert_int_equal(stoker_spec_parse(ops, &spec), STOKER_OK);
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int round = 0; round < 20; round++) {
        if (stoker_loader_next(loader, &batch) != STOKER_OK)
            continue;
        assert_int_equal(batch->dtype, STOKER_F32);
        assert_int_equal(batch->layout, STOKER_NCHW);
        for (int64_t i = 0; i < batch->count; i++) {
            const stoker_draw *kept = batch->draws + i * batch->draws_stride;
            size_t bytes = sizeof(float) * CHANNELS * 5 * 5;
            stoker_tensor tensor;

            assert_int_equal(
                stoker_spec_draw(spec, settings.seed, batch->epoch, (uint64_t)batch->samples[i], 6, 6, draws, &count),
                STOKER_OK);
            assert_int_equal(batch->draw_counts[i], count);
            assert_memory_equal(kept, draws, (size_t)count * sizeof *draws);
            assert_int_equal(stoker_spec_apply(spec,
                                               fake_of(dataset)->pixels + (size_t)batch->samples[i] * 6 * 6 * CHANNELS,
                                               6, 6, CHANNELS, kept, count, &tensor),
                             STOKER_OK);
            assert_memory_equal(tensor.data, (uint8_t *)batch->images + (size_t)i * bytes, bytes);
            stoker_free(tensor.data);
        }
        stoker_batch_release(batch);
    }
    stoker_loader_close(loader);
    stoker_spec_free(spec);
    fake_close(dataset);
}

static void test_figures(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(8, 2);
    transcript log = {0};
    stoker_stats stats;

    (void)state;
    stoker_loader *loader = open_loader(dataset, &settings);

    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.samples, 0);
    assert_true(stats.first_batch_seconds == 0);
    while (step(dataset, loader, &log) != STOKER_END)
        ;
    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.samples, 100);
    assert_int_equal(stats.batches, 13);
    assert_int_equal(stats.epochs, 1);
    assert_int_equal(stats.bytes, 100 * 4 * 4 * CHANNELS);
    assert_true(stats.stage_bytes[STOKER_STAGE_TRANSFORM] >= stats.bytes);
    assert_true(stats.stage_bytes[STOKER_STAGE_READ] >= stats.bytes);
    assert_true(stats.first_batch_seconds > 0 && stats.first_batch_seconds <= stats.seconds);
    assert_int_equal(stats.threads, 2);
    for (int stage = 0; stage < STOKER_STAGES; stage++)
        assert_true(stats.stage_seconds[stage] >= 0 && stats.stage_seconds[stage] <= 2 * stats.seconds);
    stoker_loader_close(loader);
    free(log.value);
    fake_close(dataset);
}

static void test_skipped_list_is_bounded_and_count_is_not(void **state)
{
    stoker_dataset *dataset = fake_open(4000, 2);
    stoker_loader_settings settings = usual(50, 2);
    transcript log = {0};
    stoker_stats stats;
    char reason[8];
    int64_t sample;
    uint64_t epoch;

    (void)state;
    memset(fake_of(dataset)->broken, 1, 3999);
    settings.on_error = STOKER_ON_ERROR_SKIP;
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int ends = 0; ends < 3;)
        ends += step(dataset, loader, &log) == STOKER_END;
    stoker_loader_stats(loader, &stats);
    assert_int_equal(stats.skipped, 3 * 3999);
    assert_int_equal(stoker_loader_skipped(loader, 9999, &sample, &epoch, reason, sizeof reason), STOKER_OK);
    assert_int_equal(epoch, 2);
    assert_int_equal(strlen(reason), 7); /* cut to the buffer */
    assert_int_equal(stoker_loader_skipped(loader, 10000, &sample, &epoch, reason, sizeof reason), STOKER_END);
    assert_int_equal(stoker_loader_skipped(loader, -1, &sample, &epoch, reason, sizeof reason), STOKER_END);
    stoker_loader_close(loader);
    free(log.value);
    fake_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_batches_whatever_the_threads),
        cmocka_unit_test(test_orders_identity_and_explicit),
        cmocka_unit_test(test_last_batch_policies_at_all_small_sizes),
        cmocka_unit_test(test_broken_samples_under_every_policy),
        cmocka_unit_test(test_skip_keeps_batches_full_under_drop),
        cmocka_unit_test(test_everything_broken),
        cmocka_unit_test(test_raise_names_the_first_failure_and_goes_on),
        cmocka_unit_test(test_break_and_seek),
        cmocka_unit_test(test_odd_counts),
        cmocka_unit_test(test_wrong_settings),
        cmocka_unit_test(test_samples_of_different_sizes),
        cmocka_unit_test(test_samples_of_different_sizes_broken),
        cmocka_unit_test(test_ring_stays_within_its_memory),
        cmocka_unit_test(test_draws_of_a_batch_give_its_tensors),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_skipped_list_is_bounded_and_count_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
