/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c: which table is used.
 *
 * Shared state: `chosen`, an atomic pointer, set once by the first sk_kernel_init that succeeds.
 */
#include "kernel/kernel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

#include "kernel/x86/x86.h"
#elif defined(__aarch64__)
#include "kernel/arm/arm.h"
#endif

static _Atomic(const sk_kernels *) chosen;

#define MAX_TABLES 4

#if defined(__x86_64__)
/* Half-precision conversion: CPUID leaf 1, ECX bit 29. Older clang knows no such name for
 * __builtin_cpu_supports. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1) != 0;
}
#endif

/* The tables that this processor can run, the scalar one first and the best last. */
static int32_t runnable(const sk_kernels *tables[MAX_TABLES])
{
    int32_t count = 0;

    tables[count++] = &sk_kernels_scalar;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        tables[count++] = &sk_kernels_avx2;
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("bmi2"))
        tables[count++] = &sk_kernels_avx512;
#elif defined(__aarch64__)
    tables[count++] = &sk_kernels_neon;
#endif
    return count;
}

stoker_status sk_kernel_init(void)
{
    const sk_kernels *tables[MAX_TABLES];

    if (atomic_load_explicit(&chosen, memory_order_acquire) != NULL)
        return STOKER_OK;
    int32_t count = runnable(tables);
    const char *forced = getenv("STOKER_CPU");
    const sk_kernels *table = tables[count - 1];

    if (forced != NULL && forced[0] != '\0') {
        table = NULL;
        for (int32_t i = 0; i < count; i++) {
            if (strcmp(forced, tables[i]->name) == 0)
                table = tables[i];
        }
        if (table == NULL)
            return sk_fail(STOKER_ERR_ARGUMENT,
                           "STOKER_CPU=%s: not an instruction set of this processor and build (the best here is %s)",
                           forced, tables[count - 1]->name);
    }
    atomic_store_explicit(&chosen, table, memory_order_release);
    return STOKER_OK;
}

const sk_kernels *sk_kernels_get(void)
{
    const sk_kernels *table = atomic_load_explicit(&chosen, memory_order_acquire);

    return table != NULL ? table : &sk_kernels_scalar;
}

const sk_kernels *const *sk_kernels_all(int32_t *count)
{
    static _Thread_local const sk_kernels *tables[MAX_TABLES];

    *count = runnable(tables);
    return tables;
}

const char *sk_cpu_name(void)
{
    return sk_kernel_init() == STOKER_OK ? sk_kernels_get()->name : "scalar";
}
