/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_loader_life.c: a loader's life among threads, processes and failures: closing early, loans that outlive it,
 * fork, interrupts, stalls, lack of memory and of threads.
 */
#include "made_up.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

static void *release_all(void *argument)
{
    stoker_batch **held = argument;

    for (; *held != NULL; held++)
        stoker_batch_release(*held);
    return NULL;
}

static void test_all_batches_held_and_released_after_close(void **state)
{
    stoker_dataset *dataset = fake_open(400, 4);
    stoker_loader_settings settings = usual(8, 3);
    stoker_batch *held[64] = {0};
    pthread_t thread;
    int count = 0;

    (void)state;
    settings.depth = 2;
    stoker_loader *loader = open_loader(dataset, &settings);

    while (stoker_loader_next(loader, &held[count]) == STOKER_OK)
        count++;
    assert_int_equal(count, 50);
    for (int i = 0; i < 10; i++) /* a few more of the next epoch */
        assert_int_equal(stoker_loader_next(loader, &held[count++]), STOKER_OK);
    stoker_loader_close(loader);
    for (int i = 0; i < count; i++)
        check_content(dataset, held[i]);
    assert_int_equal(pthread_create(&thread, NULL, release_all, held), 0);
    pthread_join(thread, NULL);
    stoker_batch_release(NULL);
    fake_close(dataset);
}

static void test_released_while_it_runs_by_another_thread(void **state)
{
    stoker_dataset *dataset = fake_open(400, 4);
    stoker_loader_settings settings = usual(8, 3);

    (void)state;
    for (int round = 0; round < 20; round++) {
        stoker_loader *loader = open_loader(dataset, &settings);
        stoker_batch *held[17] = {0};
        pthread_t thread;

        for (int i = 0; i < 16; i++)
            assert_int_equal(stoker_loader_next(loader, &held[i]), STOKER_OK);
        assert_int_equal(pthread_create(&thread, NULL, release_all, held), 0);
        for (int i = 0; i < round; i++) {
            stoker_batch *batch;

            assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
            stoker_batch_release(batch);
        }
        stoker_loader_close(loader);
        pthread_join(thread, NULL);
    }
    fake_close(dataset);
}

static void test_epochs_end(void **state)
{
    stoker_dataset *dataset = fake_open(10, 4);
    stoker_loader_settings settings = usual(4, 3);
    transcript log = {0};

    (void)state;
    settings.epochs = 2;
    settings.first_epoch = 5;
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_batches(loader), 3);
    assert_int_equal(stoker_loader_samples(loader), 10);
    for (int i = 0; i < 2;)
        i += step(dataset, loader, &log) == STOKER_END;
    assert_int_equal(step(dataset, loader, &log), STOKER_ERR_STATE);
    assert_int_equal(step(dataset, loader, &log), STOKER_ERR_STATE);
    assert_int_equal(stoker_loader_seek(loader, 6), STOKER_OK);
    assert_int_equal(step(dataset, loader, &log), STOKER_OK);
    stoker_loader_close(loader);
    free(log.value);
    fake_close(dataset);
}

static void test_fork(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(4, 2);
    stoker_batch *batch, *other;
    int result;

    (void)state;
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
    pid_t child = fork();

    if (child == 0) {
        int right = stoker_loader_next(loader, &other) == STOKER_ERR_STATE &&
                    strstr(stoker_last_error(), "opened before fork()") != NULL &&
                    stoker_loader_seek(loader, 3) == STOKER_ERR_STATE;

        stoker_loader_close(loader);
        stoker_batch_release(batch);
#if !SANITIZED
        if (stoker_loader_open(dataset, &settings, &loader) != STOKER_OK ||
            stoker_loader_next(loader, &other) != STOKER_OK)
            right = 0;
        stoker_batch_release(other);
        stoker_loader_close(loader);
#endif
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    check_content(dataset, batch);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static stoker_loader *signal_target;

static void on_signal(int number)
{
    (void)number;
    stoker_loader_interrupt(signal_target);
}

static void *signal_soon(void *argument)
{
    struct timespec wait = {0, 50000000};

    nanosleep(&wait, NULL);
    pthread_kill(*(pthread_t *)argument, SIGUSR1);
    return NULL;
}

static void *interrupt_soon(void *argument)
{
    struct timespec wait = {0, 50000000};

    nanosleep(&wait, NULL);
    stoker_loader_interrupt(argument);
    return NULL;
}

static void test_interrupt_is_never_lost(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(4, 2);
    struct sigaction action = {.sa_handler = on_signal}, before;
    pthread_t thread, self = pthread_self();
    stoker_batch *batch;

    (void)state;
    settings.shuffle = 0;
    atomic_store(&fake_of(dataset)->asleep, 0);
    stoker_loader *loader = open_loader(dataset, &settings);

    stoker_loader_interrupt(loader); /* before the call */
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_INTERRUPTED);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, loader), 0); /* during, by another thread */
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_INTERRUPTED);
    pthread_join(thread, NULL);
    signal_target = loader;
    sigaction(SIGUSR1, &action, &before);
    assert_int_equal(pthread_create(&thread, NULL, signal_soon, &self), 0); /* during, by a signal handler */
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_INTERRUPTED);
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, loader), 0); /* a seek that waits for a worker */
    assert_int_equal(stoker_loader_seek(loader, 4), STOKER_ERR_INTERRUPTED);
    pthread_join(thread, NULL);
    fake_wake(dataset);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK); /* which ends the seek first */
    assert_int_equal(batch->samples[0], 0);
    assert_int_equal(batch->epoch, 4);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static void test_stall_names_stage_and_sample(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(1, 2);
    stoker_batch *batch;

    (void)state;
    settings.shuffle = 0;
    settings.stall_seconds = 1;
    atomic_store(&fake_of(dataset)->asleep, 3);
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
        stoker_batch_release(batch);
    }
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_STALL);
    assert_string_equal(stoker_last_error(), "nothing for 1 s: 1 of 2 threads in read, oldest sample 3 (fake/3.img)");
    assert_int_equal(stoker_loader_seek(loader, 9), STOKER_ERR_STALL);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_ERR_STALL);
    fake_wake(dataset);
    assert_int_equal(stoker_loader_next(loader, &batch), STOKER_OK);
    assert_int_equal(batch->epoch, 9);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    fake_close(dataset);
}

/* A wait in slices is one wait: nothing is lost between them, and a stall is noticed across them. */
static void test_wait_in_slices(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(4, 2);
    stoker_batch *batch = (stoker_batch *)1;
    int slices = 0;

    (void)state;
    settings.shuffle = 0;
    settings.stall_seconds = 1;
    atomic_store(&fake_of(dataset)->asleep, 0);
    stoker_loader *loader = open_loader(dataset, &settings);

    assert_int_equal(stoker_loader_next_within(loader, 0, &batch), STOKER_ERR_ARGUMENT);
    stoker_status status = stoker_loader_next_within(loader, 20, &batch);

    assert_int_equal(status, STOKER_ERR_TIMEOUT);
    assert_null(batch);
    for (; status == STOKER_ERR_TIMEOUT; slices++)
        status = stoker_loader_next_within(loader, 20, &batch);
    assert_int_equal(status, STOKER_ERR_STALL);
    assert_true(slices > 3);
    fake_wake(dataset);
    do
        status = stoker_loader_next_within(loader, 20, &batch);
    while (status == STOKER_ERR_TIMEOUT);
    assert_int_equal(status, STOKER_OK);
    assert_int_equal(batch->samples[0], 0);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    fake_close(dataset);
}

static int entries_of(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static void open_use_close(stoker_dataset *dataset, int round)
{
    stoker_loader_settings settings = usual(8, 3);
    transcript log = {0};
    stoker_loader *loader = open_loader(dataset, &settings);

    for (int i = 0; i < round % 7; i++)
        step(dataset, loader, &log);
    stoker_loader_close(loader);
    free(log.value);
}

static void test_hundred_open_and_close_leave_nothing(void **state)
{
    stoker_dataset *dataset = fake_open(100, 8);

    (void)state;
    for (int i = 0; i < 20; i++)
        open_use_close(dataset, i);
    int threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd");
#if !SANITIZED
    size_t bytes = mallinfo2().uordblks;
#endif

    for (int i = 0; i < 100; i++)
        open_use_close(dataset, i);
    assert_int_equal(entries_of("/proc/self/task"), threads);
    assert_int_equal(entries_of("/proc/self/fd"), files);
#if !SANITIZED
    size_t after = mallinfo2().uordblks;

    if (after > bytes + 4096) /* what stdio and the C library keep for themselves */
        fail_msg("%zu bytes in use, %zu before", after, bytes);
#endif
    fake_close(dataset);
}

static void test_each_allocation_failing_at_open(void **state)
{
    stoker_dataset *dataset = fake_open(100, 4);
    stoker_loader_settings settings = usual(8, 3);
    static const int64_t listed[] = {1, 2, 3};

    (void)state;
    settings.on_error = STOKER_ON_ERROR_SKIP;
    settings.shuffle = 0;
    settings.order = listed;
    settings.order_count = 3;
    settings.ops = "random_crop(2)";
    for (long n = 1;; n++) {
        stoker_loader *loader = (stoker_loader *)1;

        sk_memory_fail_after(n);
        stoker_status status = stoker_loader_open(dataset, &settings, &loader);

        sk_memory_fail_after(0);
        if (status == STOKER_OK) {
            stoker_loader_close(loader);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(status, STOKER_ERR_MEMORY);
        assert_null(loader);
        assert_non_null(strstr(stoker_last_error(), "out of memory"));
    }
    fake_close(dataset);
}

static void test_each_allocation_failing_while_it_runs(void **state)
{
    (void)state;
    for (int32_t policy = 0; policy < 3; policy++) {
        for (int32_t side = 0; side <= 4; side += 4) {
            stoker_dataset *dataset = fake_open(24, side);
            stoker_loader_settings settings = usual(side > 0 ? 4 : 1, 3);

            break_samples(dataset, 20, 5);
            settings.on_error = policy;
            for (long n = 1; n < 60; n++) {
                stoker_loader *loader = open_loader(dataset, &settings);
                transcript log = {0};

                sk_memory_fail_after(n);
                for (int i = 0; i < 60; i++) {
                    stoker_status status = step(dataset, loader, &log);

                    if (status == STOKER_ERR_MEMORY)
                        assert_non_null(strstr(stoker_last_error(), "out of memory"));
                    else
                        assert_true(status >= 0 || status == STOKER_ERR_DATA);
                }
                sk_memory_fail_after(0);
                stoker_loader_close(loader);
                free(log.value);
            }
            fake_close(dataset);
        }
    }
}

static void test_no_thread_to_be_had(void **state)
{
    (void)state;
#if SANITIZED
    skip(); /* sanitizers reserve address space without limit */
#else
    stoker_dataset *dataset = fake_open(100, 4);
    int result;
    pid_t child = fork();

    if (child == 0) {
        struct rlimit limit = {(rlim_t)256 << 20, (rlim_t)256 << 20};
        stoker_loader_settings settings = usual(4, 512);
        stoker_loader *loader;

        setrlimit(RLIMIT_AS, &limit);
        stoker_status status = stoker_loader_open(dataset, &settings, &loader);
        int threads = entries_of("/proc/self/task");

        if (status >= 0 || strstr(stoker_last_error(), "cannot start thread") == NULL || threads != 3) {
            fprintf(stderr, "%d, %s, %d entries\n", status, stoker_last_error(), threads);
            _exit(1);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    fake_close(dataset);
#endif
}

/* Reads figures and releases what it is given, all the time, beside the loop. */
typedef struct beside {
    stoker_loader *loader;
    _Atomic(stoker_batch *) given;
    atomic_bool stop;
} beside;

static void *work_beside(void *argument)
{
    beside *shared = argument;
    struct timespec pause = {0, 100000};
    char reason[64];
    int64_t sample;
    uint64_t epoch;
    stoker_stats stats;

    while (!atomic_load(&shared->stop)) {
        stoker_loader_stats(shared->loader, &stats);
        stoker_loader_skipped(shared->loader, 0, &sample, &epoch, reason, sizeof reason);
        stoker_batch_release(atomic_exchange(&shared->given, NULL));
        nanosleep(&pause, NULL);
    }
    stoker_batch_release(atomic_exchange(&shared->given, NULL));
    return NULL;
}

/* Any calls in any order; each batch that comes must be the one that its number says. */
static void test_any_calls_in_any_order(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 24; round++) {
        unsigned seed = round;
        stoker_dataset *dataset = fake_open(1 + (int64_t)(round * 13 % 90), round % 3 == 0 ? 0 : 4);
        stoker_loader_settings settings =
            usual(round % 3 == 0 ? 1 : 1 + (int64_t)(round % 11), 1 + (int32_t)(round % 6));
        beside shared = {0};
        pthread_t thread;

        settings.on_error = (int32_t)(round / 3 % 3);
        settings.last_batch = (int32_t)(round / 2 % 3);
        settings.depth = (int32_t)(round % 4);
        break_samples(dataset, 10, round);
        fake_of(dataset)->broken[0] = 0;
        stoker_loader *loader = open_loader(dataset, &settings);

        shared.loader = loader;
        assert_int_equal(pthread_create(&thread, NULL, work_beside, &shared), 0);
        for (int i = 0; i < 400; i++) {
            int choice = rand_r(&seed) % 100;
            stoker_batch *batch;

            if (choice < 8) {
                stoker_status status = stoker_loader_seek(loader, (uint64_t)(rand_r(&seed) % 4));

                assert_true(status == STOKER_OK || status == STOKER_ERR_INTERRUPTED);
            } else if (choice < 11) {
                stoker_loader_interrupt(loader);
            } else if (stoker_loader_next(loader, &batch) == STOKER_OK) {
                int64_t position = batch->index * settings.batch, first;

                check_content(dataset, batch);
                assert_int_equal(stoker_loader_order(loader, batch->epoch, position, 1, &first), STOKER_OK);
                if (!fake_of(dataset)->broken[first])
                    assert_int_equal(batch->samples[0], first);
                stoker_batch_release(atomic_exchange(&shared.given, batch));
            }
        }
        atomic_store(&shared.stop, true);
        pthread_join(thread, NULL);
        stoker_loader_close(loader);
        fake_close(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_batches_held_and_released_after_close),
        cmocka_unit_test(test_released_while_it_runs_by_another_thread),
        cmocka_unit_test(test_epochs_end),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_interrupt_is_never_lost),
        cmocka_unit_test(test_stall_names_stage_and_sample),
        cmocka_unit_test(test_wait_in_slices),
        cmocka_unit_test(test_hundred_open_and_close_leave_nothing),
        cmocka_unit_test(test_each_allocation_failing_at_open),
        cmocka_unit_test(test_each_allocation_failing_while_it_runs),
        cmocka_unit_test(test_no_thread_to_be_had),
        cmocka_unit_test(test_any_calls_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
