/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_windows.c: windows of planes (raw samples: crops, pads and flips of CIFAR and its like) by every instruction
 * set of this processor, bit for bit against the scalar table, on random windows with the source at the very end of its
 * memory and guards around the output; and the scalar table against a padded copy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/kernel.h"

#define LARGEST 150 /* pixels a side: more than two strips of 64 */
#define GUARD   64  /* elements */
#define ROUNDS  4000

static float table[3][256];
static const float mean[3] = {0.4914f, 0.4822f, 0.4465f}, deviation[3] = {0.2470f, 0.2435f, 0.2616f};
static sk_inverse inverse[3];

static uint32_t next_random(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static int32_t below(int32_t n)
{
    return (int32_t)(next_random() % (uint32_t)n);
}

static void make_table(void)
{
    for (int c = 0; c < 3; c++) {
        inverse[c] = sk_inverse_of(deviation[c]);
        for (int v = 0; v < 256; v++) {
            float unit = (float)v / 255.0f;

            table[c][v] = (unit - mean[c]) / deviation[c];
        }
    }
}

/* Memory whose last byte lies before a page that cannot be read. */
static uint8_t *before_a_wall(size_t size, void **mapping, size_t *mapped)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    *mapped = (size + page - 1) / page * page + 2 * page;
    uint8_t *memory = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory, page, PROT_NONE), 0);
    assert_int_equal(mprotect(memory + *mapped - page, page, PROT_NONE), 0);
    *mapping = memory;
    return memory + *mapped - page - size;
}

static sk_window random_window(const uint8_t *source, int32_t width, int32_t height)
{
    sk_window window = {.width = 1 + below(LARGEST),
                        .height = 1 + below(20),
                        .flip = below(2),
                        .stream = below(2),
                        .fill = (uint8_t)next_random()};

    int32_t most_columns = width < window.width ? width : window.width;
    int32_t most_rows = height < window.height ? height : window.height;

    window.count = below(most_columns + 1);
    window.rows = below(most_rows + 1);
    window.margin_left = below(window.width - window.count + 1);
    window.margin_top = below(window.height - window.rows + 1);
    bool upside_down = below(2) != 0;
    int32_t left = below(width - window.count + 1), top = below(height - window.rows + 1);

    window.in_stride = upside_down ? -(ptrdiff_t)width : width;
    window.in = source + (ptrdiff_t)(upside_down && window.rows > 0 ? top + window.rows - 1 : top) * width + left;
    return window;
}

/* What the window shows, by painting it: fill everywhere, then each byte of source where it goes. */
static void paint(uint8_t *out, const sk_window *window)
{
    memset(out, window->fill, (size_t)window->width * (size_t)window->height);
    for (int32_t row = 0; row < window->rows; row++) {
        for (int32_t i = 0; i < window->count; i++) {
            int32_t column = window->margin_left + (window->flip ? window->count - 1 - i : i);

            out[(window->margin_top + row) * window->width + column] = window->in[row * window->in_stride + i];
        }
    }
}

static void check_bytes(const sk_kernels *kernels, const sk_window *window, const uint8_t *painted)
{
    static uint8_t out[LARGEST * 20 + 2 * GUARD];
    size_t size = (size_t)window->width * (size_t)window->height;

    memset(out, 0xA5, sizeof out);
    kernels->window_to_u8(out + GUARD, window);
    assert_memory_equal(out + GUARD, painted, size);
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(out[i], 0xA5);
        assert_int_equal(out[GUARD + size + i], 0xA5);
    }
}

static void check_floats(const sk_kernels *kernels, const sk_window *window, const uint8_t *painted,
                         int32_t by_arithmetic)
{
    static _Alignas(64) float out[LARGEST * 20 + 2 * GUARD]; /* so that some windows can be streamed */
    size_t size = (size_t)window->width * (size_t)window->height;
    sk_normal normal = {.table = (const float(*)[256])table,
                        .mean = mean,
                        .deviation = inverse,
                        .unit = sk_inverse_of(255.0f),
                        .by_arithmetic = by_arithmetic};
    int32_t channel = below(3);

    memset(out, 0xA5, sizeof out);
    kernels->window_to_f32(out + GUARD, window, &normal, channel);
    kernels->drain();
    for (size_t i = 0; i < size; i++) {
        if (memcmp(&out[GUARD + i], &table[channel][painted[i]], sizeof(float)) != 0)
            fail_msg("%s: %d wide, element %zu: %.9g, not %.9g", kernels->name, window->width, i, out[GUARD + i],
                     table[channel][painted[i]]);
    }
    for (size_t i = 0; i < GUARD * sizeof(float); i++) {
        assert_int_equal(((uint8_t *)out)[i], 0xA5);
        assert_int_equal(((uint8_t *)(out + GUARD + size))[i], 0xA5);
    }
}

static void test_every_table_gives_the_painted_window(void **state)
{
    static uint8_t painted[LARGEST * 20];
    int32_t count;
    const sk_kernels *const *tables = sk_kernels_all(&count);

    (void)state;
    make_table();
    for (int round = 0; round < ROUNDS; round++) {
        int32_t width = 1 + below(LARGEST), height = 1 + below(24);
        size_t size = (size_t)width * (size_t)height, mapped;
        void *mapping;
        uint8_t *source = before_a_wall(size, &mapping, &mapped);

        for (size_t i = 0; i < size; i++)
            source[i] = (uint8_t)next_random();
        sk_window window = random_window(source, width, height);

        paint(painted, &window);
        for (int32_t t = 0; t < count; t++) {
            check_bytes(tables[t], &window, painted);
            check_floats(tables[t], &window, painted, 0);
            check_floats(tables[t], &window, painted, 1); /* these means and deviations give the table: CIFAR-10's */
        }
        munmap(mapping, mapped);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_table_gives_the_painted_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
