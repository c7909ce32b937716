/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/cpu.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stoker.h"

#define LINE_SIZE 8192 /* bytes of a line of /proc files; longer ones are cut, and then match nothing */
#define MOST_CPUS 65536

#define USUAL_CACHE ((size_t)32 << 20) /* bytes */

/* Cores in the affinity mask; the mask's size is found by growing it. */
static int32_t affinity_cores(void)
{
    for (int cpus = 1024; cpus <= MOST_CPUS; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);

        if (set == NULL)
            break;
        int failed = sched_getaffinity(0, size, set);
        int count = failed == 0 ? CPU_COUNT_S(size, set) : 0;

        CPU_FREE(set);
        if (failed == 0)
            return count > 0 ? count : 1;
        if (errno != EINVAL)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 0 ? (int32_t)online : 1;
}

/* The first two words of a small file; false if it cannot be read. `second` may be NULL. */
static bool read_words(const char *path, char first[32], char second[32])
{
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return false;
    first[0] = '\0';
    int words = second != NULL ? fscanf(file, "%31s %31s", first, second) : fscanf(file, "%31s", first);

    fclose(file);
    return words == (second != NULL ? 2 : 1);
}

/* quota / period rounded up; 0 where there is no limit. */
static int32_t quota_cores(const char *quota_text, const char *period_text)
{
    char *end;
    long long quota = strtoll(quota_text, &end, 10);

    if (end == quota_text || *end != '\0' || quota <= 0) /* "max", or -1 in version 1 */
        return 0;
    long long period = strtoll(period_text, &end, 10);

    if (end == period_text || period <= 0)
        return 0;
    long long cores = (quota - 1) / period + 1;

    return cores > INT32_MAX ? 0 : (int32_t)cores;
}

/* The quota set on one cgroup directory; 0 for none. */
static int32_t directory_quota(const char *directory, bool version2)
{
    char path[2 * LINE_SIZE], quota[32], period[32];

    if (version2) {
        snprintf(path, sizeof path, "%s/cpu.max", directory);
        return read_words(path, quota, period) ? quota_cores(quota, period) : 0;
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
    if (!read_words(path, quota, NULL))
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    return read_words(path, period, NULL) ? quota_cores(quota, period) : 0;
}

/* The least quota from `group` up to the mount point; a limit anywhere above holds for all below. `group` is changed.
 */
static int32_t least_quota(const char *root, const char *mount, char *group, bool version2)
{
    char directory[LINE_SIZE + LINE_SIZE / 2];
    int32_t least = 0;

    for (;;) {
        snprintf(directory, sizeof directory, "%s%s%s", root, mount, strcmp(group, "/") == 0 ? "" : group);
        int32_t cores = directory_quota(directory, version2);

        if (cores > 0 && (least == 0 || cores < least))
            least = cores;
        char *slash = strrchr(group, '/');

        if (slash == NULL || group[0] == '\0' || strcmp(group, "/") == 0)
            return least;
        *slash = '\0';
    }
}

static bool list_holds(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Where the hierarchy is mounted and which group the mount shows as its root (a container sees part of the tree). */
static bool find_mount(const char *root, bool version2, char mount[LINE_SIZE / 4], char shown[LINE_SIZE / 4])
{
    char path[LINE_SIZE], line[LINE_SIZE];
    bool found = false;

    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        char kind[64], options[1024];
        char *rest = strstr(line, " - "); /* proc(5): the fields after the separator are type, source, super options */

        if (rest == NULL || sscanf(line, "%*s %*s %*s %2047s %2047s", shown, mount) != 2)
            continue;
        if (sscanf(rest, " - %63s %*s %1023s", kind, options) != 2)
            continue;
        found = version2 ? strcmp(kind, "cgroup2") == 0 : strcmp(kind, "cgroup") == 0 && list_holds(options, "cpu");
    }
    fclose(file);
    return found;
}

/* Quota of the group named in one line of /proc/self/cgroup ("id:controllers:path"); 0 for none. */
static int32_t line_quota(const char *root, char *line)
{
    char mount[LINE_SIZE / 4], shown[LINE_SIZE / 4];
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

    if (group == NULL)
        return 0;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    bool version2 = controllers[0] == '\0';

    if ((!version2 && !list_holds(controllers, "cpu")) || !find_mount(root, version2, mount, shown) ||
        strlen(group) >= LINE_SIZE / 4)
        return 0;
    size_t hidden = strcmp(shown, "/") == 0 ? 0 : strlen(shown);

    if (strncmp(group, shown, hidden) != 0) /* outside of what is mounted: only the mount's own root can be read */
        group[0] = '\0';
    else
        group += hidden;
    return least_quota(root, mount, group, version2);
}

int32_t sk_usable_cores(const char *root, const char **reason)
{
    char path[LINE_SIZE], line[LINE_SIZE];
    int32_t cores = affinity_cores();
    const char *why = "affinity";

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int32_t quota = line_quota(root, line);

        if (quota > 0 && quota < cores) {
            cores = quota;
            why = "cgroup";
        }
    }
    if (file != NULL)
        fclose(file);
    if (reason != NULL)
        *reason = why;
    return cores;
}

int32_t stoker_usable_cores(const char **reason)
{
    return sk_usable_cores("", reason);
}

size_t sk_cache_bytes(void)
{
    static const int levels[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        long bytes = sysconf(levels[i]);

        if (bytes > 0)
            return (size_t)bytes;
    }
    return USUAL_CACHE;
}
