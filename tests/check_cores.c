/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_cores.c: cores allowed, not cores seen (pytorch #105841, #82219): made-up /proc and cgroup trees with quotas at
 * every level, and the real affinity mask.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "observe/cpu.h"
#include "stoker.h"

static char root[64];

static void write_file(const char *path, const char *text)
{
    char full[512];

    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/stoker-cores-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static int32_t affinity(void)
{
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

/* The quota where it is the lower one. */
static void expect(int32_t quota)
{
    const char *reason = NULL;
    int32_t cores = sk_usable_cores(root, &reason);

    if (quota > 0 && quota < affinity()) {
        assert_int_equal(cores, quota);
        assert_string_equal(reason, "cgroup");
    } else {
        assert_int_equal(cores, affinity());
        assert_string_equal(reason, "affinity");
    }
}

#define MOUNT2 "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

static void test_without_any_cgroup(void **state)
{
    (void)state;
    expect(0);
    write_file("proc/self/cgroup", "garbage\n::\n0:\n");
    write_file("proc/self/mountinfo", "garbage\n - \n");
    expect(0);
}

static void test_version_2_quota_is_rounded_up(void **state)
{
    static const struct {
        const char *text;
        int32_t cores;
    } cases[] = {{"100000 100000\n", 1},
                 {"max 100000\n", 0},
                 {"1 100000\n", 1},
                 {"100001 100000\n", 2},
                 {"50000 100000\n", 1},
                 {"-5 100000\n", 0},
                 {"100000 0\n", 0},
                 {"words\n", 0},
                 {"", 0},
                 {"99999999999999999999 1\n", 0}};

    (void)state;
    write_file("proc/self/cgroup", "0::/job/step\n");
    write_file("proc/self/mountinfo", MOUNT2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file("sys/fs/cgroup/job/step/cpu.max", cases[i].text);
        expect(cases[i].cores);
    }
}

static void test_version_2_limit_of_any_level_above_holds(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "0::/job/step\n");
    write_file("proc/self/mountinfo", MOUNT2);
    write_file("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
    write_file("sys/fs/cgroup/job/cpu.max", "100000 100000\n");
    expect(1);
    write_file("sys/fs/cgroup/job/cpu.max", "max 100000\n");
    write_file("sys/fs/cgroup/cpu.max", "70000 100000\n"); /* a container's own root has one */
    expect(1);
}

static void test_version_1_beside_version_2(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/docker/abc/inner\n0::/\n");
    write_file("proc/self/mountinfo", "31 24 0:27 /docker/abc /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
                                      "32 24 0:28 /docker/abc /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" MOUNT2);
    write_file("cg/cpu/inner/cpu.cfs_quota_us", "-1\n");
    write_file("cg/cpu/inner/cpu.cfs_period_us", "100000\n");
    expect(0);
    write_file("cg/cpu/cpu.cfs_quota_us", "60000\n"); /* what the container sees as the root */
    write_file("cg/cpu/cpu.cfs_period_us", "100000\n");
    expect(1);
    write_file("proc/self/cgroup", "2:cpu,cpuacct:/elsewhere\n"); /* outside of the mount: its root is all there is */
    expect(1);
}

static void test_affinity_mask_of_this_thread(void **state)
{
    cpu_set_t all, one;
    const char *reason;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(stoker_usable_cores(&reason), 1);
    assert_int_equal(stoker_usable_cores(NULL), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        WITH_ROOT(test_without_any_cgroup),
        WITH_ROOT(test_version_2_quota_is_rounded_up),
        WITH_ROOT(test_version_2_limit_of_any_level_above_holds),
        WITH_ROOT(test_version_1_beside_version_2),
        cmocka_unit_test(test_affinity_mask_of_this_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
