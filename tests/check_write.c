/* SPDX-License-Identifier: Apache-2.0 */
/* check_write.c: writing image files. What is written reads back equal; a write that fails leaves no file, and says
 * why. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/status.h"
#include "image/write.h"
#include "stoker.h"

static char folder[] = "/tmp/stoker-write-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static int files_in_folder(void)
{
    DIR *directory = opendir(folder);
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 2;
}

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static uint8_t *noise(int32_t width, int32_t height)
{
    size_t size = (size_t)width * (size_t)height * 3;
    uint8_t *rgb = malloc(size);
    uint32_t value = 1;

    assert_non_null(rgb);
    for (size_t i = 0; i < size; i++) {
        value = value * 1664525u + 1013904223u;
        rgb[i] = (uint8_t)(value >> 24);
    }
    return rgb;
}

static void reads_back(const char *path, const uint8_t *rgb, int32_t width, int32_t height)
{
    FILE *file = fopen(path, "rb");
    struct stat about;
    stoker_image image;

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &about), 0);
    uint8_t *data = malloc((size_t)about.st_size);

    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)about.st_size, file), about.st_size);
    fclose(file);
    assert_int_equal(stoker_image_decode(data, (size_t)about.st_size, NULL, &image), STOKER_OK);
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_memory_equal(image.pixels, rgb, (size_t)width * (size_t)height * 3);
    stoker_image_free(&image);
    free(data);
}

static void test_png_reads_back(void **state)
{
    static const int32_t sizes[][2] = {{1, 1}, {3, 2}, {1, 900}, {900, 1}, {313, 211}};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *rgb = noise(sizes[i][0], sizes[i][1]);

        assert_int_equal(stoker_png_write(path_of("a.png"), rgb, sizes[i][0], sizes[i][1]), STOKER_OK);
        reads_back(path_of("a.png"), rgb, sizes[i][0], sizes[i][1]);
        assert_int_equal(files_in_folder(), 1);
        free(rgb);
    }
    unlink(path_of("a.png"));
}

static void test_size_without_pixels(void **state)
{
    uint8_t rgb[3] = {0};

    (void)state;
    assert_int_equal(stoker_png_write(path_of("a.png"), rgb, 0, 1), STOKER_ERR_ARGUMENT);
    assert_int_equal(stoker_png_write(path_of("a.png"), rgb, 1, -1), STOKER_ERR_ARGUMENT);
    assert_int_equal(files_in_folder(), 0);
}

static void test_no_such_folder(void **state)
{
    uint8_t rgb[3] = {0};
    const char *path = path_of("missing/a.png");

    (void)state;
    assert_int_equal(stoker_png_write(path, rgb, 1, 1), STOKER_ERR_IO);
    assert_non_null(strstr(stoker_last_error(), path));
    assert_non_null(strstr(stoker_last_error(), "No such file"));
}

static void test_target_is_a_folder(void **state)
{
    uint8_t rgb[3] = {0};

    (void)state;
    assert_int_equal(mkdir(path_of("dir"), 0777), 0);
    assert_int_equal(stoker_png_write(path_of("dir"), rgb, 1, 1), STOKER_ERR_IO);
    assert_int_equal(files_in_folder(), 1);
    assert_int_equal(rmdir(path_of("dir")), 0);
}

/* The kernel refuses to let the file grow, as a full disk does. */
static void test_disk_full_half_way(void **state)
{
    struct rlimit before, small;
    uint8_t *rgb = noise(200, 200);

    (void)state;
    assert_int_equal(stoker_png_write(path_of("old.png"), rgb, 200, 200), STOKER_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 10000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    uint8_t first = rgb[0];

    rgb[0] ^= 1;
    stoker_status status = stoker_png_write(path_of("old.png"), rgb, 200, 200);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, STOKER_ERR_IO);
    assert_non_null(strstr(stoker_last_error(), "File too large"));
    assert_non_null(strstr(stoker_last_error(), path_of("old.png")));
    rgb[0] = first;
    reads_back(path_of("old.png"), rgb, 200, 200); /* the old file is as it was */
    assert_int_equal(files_in_folder(), 1);
    unlink(path_of("old.png"));
    free(rgb);
}

static void test_device_is_written_to_not_replaced(void **state)
{
    uint8_t rgb[3] = {0};
    struct stat about;

    (void)state;
    if (stat("/dev/full", &about) != 0 || !S_ISCHR(about.st_mode))
        skip();
    assert_int_equal(stoker_png_write("/dev/full", rgb, 1, 1), STOKER_ERR_IO);
    assert_non_null(strstr(stoker_last_error(), "No space left"));
    assert_int_equal(stat("/dev/full", &about), 0);
    assert_true(S_ISCHR(about.st_mode));
}

static void test_lack_of_memory(void **state)
{
    uint8_t *rgb = noise(40, 40);
    long n;

    (void)state;
    for (n = 1; n < 1000; n++) {
        sk_memory_fail_after(n);
        stoker_status status = stoker_png_write(path_of("a.png"), rgb, 40, 40);

        sk_memory_fail_after(0);
        if (status == STOKER_OK)
            break;
        assert_int_equal(status, STOKER_ERR_MEMORY);
        assert_int_equal(files_in_folder(), 0);
    }
    assert_true(n > 1 && n < 1000);
    reads_back(path_of("a.png"), rgb, 40, 40);
    unlink(path_of("a.png"));
    free(rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_reads_back),     cmocka_unit_test(test_size_without_pixels),
        cmocka_unit_test(test_no_such_folder),     cmocka_unit_test(test_target_is_a_folder),
        cmocka_unit_test(test_disk_full_half_way), cmocka_unit_test(test_device_is_written_to_not_replaced),
        cmocka_unit_test(test_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
