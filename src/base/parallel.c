/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.c
 *
 * Shared state: `next` (atomic: each index is taken once), `stop` (atomic). The rest of `loop` is set before a thread starts.
 */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define MOST_THREADS 16
#define ALONE_NS     2000000 /* work that is done by then is not worth a thread's start (about 50 us, and its caches) */

typedef struct loop {
    size_t count;
    bool (*work)(void *context, size_t index);
    void *context;
    atomic_size_t next;
    atomic_bool stop;
} loop;

static bool step(loop *self)
{
    if (atomic_load(&self->stop))
        return false;
    size_t index = atomic_fetch_add(&self->next, 1);

    if (index >= self->count)
        return false;
    if (!self->work(self->context, index))
        atomic_store(&self->stop, true);
    return true;
}

static void *help(void *self)
{
    while (step(self))
        ;
    return NULL;
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int cores(void)
{
    cpu_set_t set;

    /* Where there are more processors than the set holds, there are as many as are of use. */
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : MOST_THREADS;
}

/* Returns how many were started. */
static int start_helpers(loop *self, pthread_t threads[MOST_THREADS - 1])
{
    size_t done = atomic_load(&self->next), left = done < self->count ? self->count - done : 0;
    int wanted = cores() < MOST_THREADS ? cores() : MOST_THREADS, started = 0;
    sigset_t all, before;

    if ((size_t)wanted > left)
        wanted = (int)left;
    /* A thread inherits its creator's mask: signals are for the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < wanted - 1 && pthread_create(&threads[started], NULL, help, self) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void sk_parallel(size_t count, bool (*work)(void *context, size_t index), void *context)
{
    pthread_t threads[MOST_THREADS - 1];
    loop self = {.count = count, .work = work, .context = context};
    int helpers = 0;
    bool alone = true;
    int64_t begin = now_ns();

    while (step(&self)) {
        if (alone && now_ns() - begin > ALONE_NS) {
            alone = false;
            helpers = start_helpers(&self, threads);
        }
    }
    for (int i = 0; i < helpers; i++)
        pthread_join(threads[i], NULL);
}
