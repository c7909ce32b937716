/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h: how many cores this process may use, and how large their cache is. (What the processor can do is in kernel/.)
 */
#ifndef SK_OBSERVE_CPU_H
#define SK_OBSERVE_CPU_H

#include <stddef.h>
#include <stdint.h>

/* The least of the affinity mask and of the CPU quotas of the process's cgroups (version 1 and 2, and all levels
 * above), at least 1. `root` is put before /proc/self/cgroup, /proc/self/mountinfo and the mount points: "" but in
 * tests. *reason: static, "affinity" or "cgroup". */
int32_t sk_usable_cores(const char *root, const char **reason);

/* Bytes of the last-level cache, or a usual size where the system does not tell. */
size_t sk_cache_bytes(void);

#endif
