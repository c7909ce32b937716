/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_kernels.c: every table of kernels against the scalar one, bit for bit, on random input: all widths 1..300,
 * any alignment, input that ends (or begins) at memory that may not be touched, output with canaries around it.
 *
 *   check_kernels            prints "N passed, N failed"; exit 1 if any failed
 *   check_kernels --bench    times each kernel of each table
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "kernel/kernel.h"
#include "transform/resample.h"
#include "transform/spec.h"

#define ROOM   ((size_t)1 << 21) /* bytes that a guarded block can hold */
#define CANARY 0xA5

/* Memory with a page on each side that faults when touched. */
typedef struct guarded {
    uint8_t *begin, *end;
} guarded;

static sk_random dice;
static long passed, failed;

static int32_t between(int32_t low, int32_t high)
{
    return low + (int32_t)sk_random_below(&dice, (uint32_t)(high - low + 1));
}

static guarded guarded_make(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = mmap(NULL, ROOM + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0 ||
        mprotect(memory + page + ROOM, page, PROT_NONE) != 0) {
        fprintf(stderr, "no memory for guarded pages\n");
        exit(1);
    }
    return (guarded){memory + page, memory + page + ROOM};
}

/* `size` random bytes that end where the guard begins, or begin where the other guard ends. */
static uint8_t *place(const guarded *memory, size_t size)
{
    uint8_t *at = between(0, 1) == 0 ? memory->end - size : memory->begin;

    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)sk_random_u32(&dice);
    if (between(0, 7) == 0) /* extremes make the largest sums */
        memset(at, between(0, 1) * 255, size);
    return at;
}

/* An output of `size` bytes for each side; what is around it must stay. */
typedef struct outputs {
    uint8_t *scalar, *vector; /* whole, with canaries */
    size_t before, size, whole;
} outputs;

static outputs outputs_make(size_t size, size_t element)
{
    outputs o = {.before = 64 + element * (size_t)between(0, 15), .size = size};

    o.whole = o.before + size + 128;
    o.scalar = malloc(o.whole);
    o.vector = malloc(o.whole);
    if (o.scalar == NULL || o.vector == NULL)
        exit(1);
    memset(o.scalar, CANARY, o.whole);
    memset(o.vector, CANARY, o.whole);
    return o;
}

static void outputs_compare(outputs *o, const sk_kernels *table, const char *what, int32_t width, int32_t flip)
{
    if (memcmp(o->scalar, o->vector, o->whole) == 0) {
        passed++;
    } else {
        failed++;
        size_t at = 0;

        while (o->scalar[at] == o->vector[at])
            at++;
        fprintf(stderr, "%s: %s differs from scalar (width %d, flip %d) at byte %td of %zu\n", table->name, what, width,
                flip, (ptrdiff_t)at - (ptrdiff_t)o->before, o->size);
    }
    free(o->scalar);
    free(o->vector);
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* ---------------------------------------------------------------------------------------------- resampling -------- */

static void check_rows(const sk_kernels *table, const guarded *memory)
{
    sk_axis axis = {0};
    int32_t in = between(1, between(0, 3) == 0 ? 3000 : 300), out = between(1, 300);
    sk_filter filter = (sk_filter)between(SK_FILTER_NEAREST, SK_FILTER_LANCZOS);

    if (sk_axis_make(&axis, in, out, filter) != STOKER_OK)
        fail(sk_message());
    const sk_taps *taps = &axis.taps;
    int32_t from = between(0, out - 1), to = between(from + 1, out);
    int32_t first = taps->first[from], last = taps->first[to - 1] + taps->count[to - 1];
    int32_t channels = between(0, 3) == 0 ? 1 : 3, rows = between(1, 9);
    size_t in_bytes = (size_t)(last - first) * (size_t)channels, out_bytes = (size_t)(to - from) * (size_t)channels;
    size_t in_stride = in_bytes + (size_t)between(0, 20), out_stride = out_bytes + (size_t)between(0, 20);
    uint8_t *source = place(memory, (size_t)(rows - 1) * in_stride + in_bytes);
    outputs o = outputs_make((size_t)rows * out_stride, 1);
    sk_rows work = {.out_stride = out_stride,
                    .in = source,
                    .in_stride = in_stride,
                    .in_first = first,
                    .in_width = last - first,
                    .rows = rows,
                    .channels = channels,
                    .from = from,
                    .to = to};
    size_t packed_size = table->resample_packed_size(taps, from, to, channels);
    void *packed = sk_aligned_malloc(packed_size + 1);

    if (packed == NULL)
        fail(sk_message());
    table->resample_pack(taps, from, to, channels, packed);
    work.out = o.scalar + o.before;
    sk_kernels_scalar.resample_rows(&work, taps, NULL);
    work.out = o.vector + o.before;
    table->resample_rows(&work, taps, packed);
    outputs_compare(&o, table, "resample_rows", in, out);
    sk_aligned_free(packed);
    sk_axis_free(&axis);
}

static void check_column(const sk_kernels *table, const guarded *memory)
{
    sk_axis axis = {0};
    int32_t in = between(1, 300), out = between(1, 300);
    sk_filter filter = (sk_filter)between(SK_FILTER_NEAREST, SK_FILTER_LANCZOS);

    if (sk_axis_make(&axis, in, out, filter) != STOKER_OK)
        fail(sk_message());
    const sk_taps *taps = &axis.taps;
    int32_t i = between(0, out - 1), count = taps->count[i];
    size_t bytes = (size_t)between(1, 900), stride = bytes + (size_t)between(0, 70);
    uint8_t *source = place(memory, (size_t)(count - 1) * stride + bytes);
    const int32_t *weight = taps->weight + (size_t)i * (size_t)taps->size;
    outputs o = outputs_make(bytes, 1);

    sk_kernels_scalar.resample_column(o.scalar + o.before, source, stride, bytes, weight, count);
    table->resample_column(o.vector + o.before, source, stride, bytes, weight, count);
    outputs_compare(&o, table, "resample_column", (int32_t)bytes, count);
    sk_axis_free(&axis);
}

/* ------------------------------------------------------------------------------------------------- tensors -------- */

/* A spec with a normalisation: the usual ones, any other, and two, for which there is no arithmetic but the table. */
static stoker_spec *any_spec(void)
{
    static const char *const usual[] = {"normalize(imagenet)",
                                        "normalize(cifar10)",
                                        "to(f32)",
                                        "normalize(0.5,0.5)",
                                        "normalize(imagenet) normalize(0.1,0.3)",
                                        "to_tensor(reciprocal=true) normalize(imagenet)"};
    char text[200];
    stoker_spec *spec;

    if (between(0, 1) == 0)
        snprintf(text, sizeof text, "%s", usual[between(0, 5)]);
    else
        snprintf(text, sizeof text, "normalize((%g,%g,%g),(%g,%g,%g))", between(-900, 900) / 1000.0,
                 between(-900, 900) / 1000.0, between(-9, 9) / 7.0, between(1, 900) / 1000.0, -between(1, 900) / 1000.0,
                 between(1, 9) / 7.0);
    if (stoker_spec_parse(text, &spec) != STOKER_OK)
        fail(sk_message());
    return spec;
}

static sk_normal normal_of(const stoker_spec *spec)
{
    return (sk_normal){.table = spec->table,
                       .mean = spec->mean,
                       .deviation = spec->deviation,
                       .unit = spec->unit,
                       .by_arithmetic = spec->by_arithmetic};
}

static void check_pixels(const sk_kernels *table, const guarded *memory, int32_t width)
{
    int32_t flip = between(0, 1);
    size_t n = (size_t)width, plane = n + (size_t)between(0, 40), floats = 2 * plane + n;
    uint8_t *in = place(memory, 3 * n);
    stoker_spec *spec = any_spec();
    sk_normal normal = normal_of(spec);
    outputs o = outputs_make(4 * floats, 4);

    sk_kernels_scalar.rgb_to_planes_f32((float *)(void *)(o.scalar + o.before), plane, in, width, flip, &normal);
    table->rgb_to_planes_f32((float *)(void *)(o.vector + o.before), plane, in, width, flip, &normal);
    outputs_compare(&o, table, "rgb_to_planes_f32", width, flip);

    o = outputs_make(12 * n, 4);
    sk_kernels_scalar.rgb_to_rgb_f32((float *)(void *)(o.scalar + o.before), in, width, flip, &normal);
    table->rgb_to_rgb_f32((float *)(void *)(o.vector + o.before), in, width, flip, &normal);
    outputs_compare(&o, table, "rgb_to_rgb_f32", width, flip);

    o = outputs_make(floats, 1);
    sk_kernels_scalar.rgb_to_planes_u8(o.scalar + o.before, plane, in, width, flip);
    table->rgb_to_planes_u8(o.vector + o.before, plane, in, width, flip);
    outputs_compare(&o, table, "rgb_to_planes_u8", width, flip);

    o = outputs_make(3 * n, 1);
    sk_kernels_scalar.rgb_to_rgb_u8(o.scalar + o.before, in, width, flip);
    table->rgb_to_rgb_u8(o.vector + o.before, in, width, flip);
    outputs_compare(&o, table, "rgb_to_rgb_u8", width, flip);
    stoker_spec_free(spec);
}

static void check_planes(const sk_kernels *table, const guarded *memory, int32_t width)
{
    int32_t flip = between(0, 1), channel = between(0, 2);
    uint8_t *in = place(memory, (size_t)width);
    stoker_spec *spec = any_spec();
    sk_normal normal = normal_of(spec);
    outputs o = outputs_make(4 * (size_t)width, 4);

    sk_kernels_scalar.plane_to_f32((float *)(void *)(o.scalar + o.before), in, width, flip, &normal, channel);
    table->plane_to_f32((float *)(void *)(o.vector + o.before), in, width, flip, &normal, channel);
    outputs_compare(&o, table, "plane_to_f32", width, flip);

    o = outputs_make((size_t)width, 1);
    sk_kernels_scalar.plane_to_u8(o.scalar + o.before, in, width, flip);
    table->plane_to_u8(o.vector + o.before, in, width, flip);
    outputs_compare(&o, table, "plane_to_u8", width, flip);
    stoker_spec_free(spec);
}

static void check_windows(const sk_kernels *table, const guarded *memory)
{
    sk_window window = {.width = between(1, between(0, 1) == 0 ? 40 : 300),
                        .height = between(1, 12),
                        .flip = between(0, 1),
                        .stream = between(0, 1),
                        .fill = (uint8_t)between(0, 255)};

    window.rows = between(0, window.height);
    window.margin_top = between(0, window.height - window.rows);
    window.count = between(0, window.width);
    window.margin_left = between(0, window.width - window.count);
    size_t stride = (size_t)(window.count + between(0, 9));
    size_t rows = (size_t)(window.rows > 0 ? window.rows : 1);
    uint8_t *in = place(memory, (rows - 1) * stride + (size_t)window.count);
    bool upwards = between(0, 1) == 1;
    int32_t channel = between(0, 2);
    stoker_spec *spec = any_spec();
    sk_normal normal = normal_of(spec);

    window.in = upwards ? in + (rows - 1) * stride : in;
    window.in_stride = upwards ? -(ptrdiff_t)stride : (ptrdiff_t)stride;
    size_t size = (size_t)window.height * (size_t)window.width;
    outputs o = outputs_make(4 * size, 4);

    sk_kernels_scalar.window_to_f32((float *)(void *)(o.scalar + o.before), &window, &normal, channel);
    table->window_to_f32((float *)(void *)(o.vector + o.before), &window, &normal, channel);
    outputs_compare(&o, table, "window_to_f32", window.width, window.flip);

    o = outputs_make(size, 1);
    sk_kernels_scalar.window_to_u8(o.scalar + o.before, &window);
    table->window_to_u8(o.vector + o.before, &window);
    outputs_compare(&o, table, "window_to_u8", window.width, window.flip);
    stoker_spec_free(spec);
}

static void check_planes_to_rgb(const sk_kernels *table, const guarded *memory, int32_t count)
{
    size_t plane = (size_t)count + (size_t)between(0, 9);
    uint8_t *in = place(memory, 2 * plane + (size_t)count);
    outputs o = outputs_make(3 * (size_t)count, 1);

    sk_kernels_scalar.planes_to_rgb_u8(o.scalar + o.before, in, plane, count);
    table->planes_to_rgb_u8(o.vector + o.before, in, plane, count);
    outputs_compare(&o, table, "planes_to_rgb_u8", count, 0);
}

/* All 2^32 floats would take minutes: random bits of every exponent, NaN and infinity among them. */
static void check_halves(const sk_kernels *table, const guarded *memory, int32_t count)
{
    float *in = (float *)(void *)place(memory, 4 * (size_t)count);
    outputs o = outputs_make(2 * (size_t)count, 2);

    sk_kernels_scalar.f32_to_f16((uint16_t *)(void *)(o.scalar + o.before), in, count);
    table->f32_to_f16((uint16_t *)(void *)(o.vector + o.before), in, count);
    outputs_compare(&o, table, "f32_to_f16", count, 0);

    o = outputs_make(2 * (size_t)count, 2);
    sk_kernels_scalar.f32_to_bf16((uint16_t *)(void *)(o.scalar + o.before), in, count);
    table->f32_to_bf16((uint16_t *)(void *)(o.vector + o.before), in, count);
    outputs_compare(&o, table, "f32_to_bf16", count, 0);
}

/* -------------------------------------------------------------------------------------------------- timing -------- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define TIME(what, bytes, call)                                                                                        \
    do {                                                                                                               \
        double best = 1e9;                                                                                             \
        for (int trial = 0; trial < 7; trial++) {                                                                      \
            double start = seconds();                                                                                  \
            for (int repeat = 0; repeat < 200; repeat++)                                                               \
                call;                                                                                                  \
            double taken = (seconds() - start) / 200;                                                                  \
            best = taken < best ? taken : best;                                                                        \
        }                                                                                                              \
        printf("%-7s %-18s %9.2f us %8.2f GB/s written\n", table->name, what, best * 1e6,                              \
               (double)(bytes) / best / 1e9);                                                                          \
    } while (0)

/* One row of 224 pixels, 16 rows for the horizontal pass, 28 × 28 of 32 × 32 for windows. */
static void bench(const sk_kernels *table)
{
    static uint8_t in[16 * 3 * 400];
    static float out[3 * 224 * 16];
    static uint16_t half[3 * 224 * 16];
    sk_axis axis = {0};
    stoker_spec *spec;

    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)sk_random_u32(&dice);
    if (stoker_spec_parse("normalize(imagenet)", &spec) != STOKER_OK ||
        sk_axis_make(&axis, 320, 224, SK_FILTER_BILINEAR) != STOKER_OK)
        fail(sk_message());
    sk_normal normal = normal_of(spec);
    uint8_t *bytes = (uint8_t *)out;
    sk_rows rows = {.out = bytes,
                    .out_stride = 672,
                    .in = in,
                    .in_stride = 960,
                    .in_width = 320,
                    .rows = 16,
                    .channels = 3,
                    .to = 224};
    sk_window window = {.in = in,
                        .in_stride = 32,
                        .width = 32,
                        .height = 32,
                        .margin_top = 2,
                        .rows = 30,
                        .margin_left = 3,
                        .count = 29};
    void *packed = sk_aligned_malloc(table->resample_packed_size(&axis.taps, 0, 224, 3) + 1);

    if (packed == NULL)
        fail(sk_message());
    TIME("resample_pack", 672, table->resample_pack(&axis.taps, 0, 224, 3, packed));
    TIME("resample_rows", 16 * 672, table->resample_rows(&rows, &axis.taps, packed));
    TIME("resample_column", 672, table->resample_column(bytes, in, 960, 672, axis.taps.weight, 4));
    TIME("rgb_to_planes_f32", 2688, table->rgb_to_planes_f32(out, 224, in, 224, 0, &normal));
    TIME("rgb_to_rgb_f32", 2688, table->rgb_to_rgb_f32(out, in, 224, 0, &normal));
    TIME("plane_to_f32", 896, table->plane_to_f32(out, in, 224, 0, &normal, 0));
    TIME("rgb_to_planes_u8", 672, table->rgb_to_planes_u8(bytes, 224, in, 224, 0));
    TIME("rgb_to_rgb_u8 flip", 672, table->rgb_to_rgb_u8(bytes, in, 224, 1));
    TIME("plane_to_u8 flip", 224, table->plane_to_u8(bytes, in, 224, 1));
    TIME("window_to_f32", 4096, table->window_to_f32(out, &window, &normal, 0));
    TIME("window_to_u8", 1024, table->window_to_u8(bytes, &window));
    TIME("planes_to_rgb_u8", 3072, table->planes_to_rgb_u8(bytes, in, 1024, 1024));
    TIME("f32_to_f16", 1344, table->f32_to_f16(half, out, 672));
    TIME("f32_to_bf16", 1344, table->f32_to_bf16(half, out, 672));
    sk_aligned_free(packed);
    sk_axis_free(&axis);
    stoker_spec_free(spec);
}

int main(int argc, char **argv)
{
    int32_t count;
    const sk_kernels *const *tables = sk_kernels_all(&count);
    guarded memory = guarded_make();

    sk_random_make(&dice, 20, 26, 0, 0);
    for (int32_t i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
            bench(tables[i]);
            continue;
        }
        for (int round = 0; round < 1500; round++) {
            check_rows(tables[i], &memory);
            check_column(tables[i], &memory);
            check_pixels(tables[i], &memory, 1 + round % 300);
            check_planes(tables[i], &memory, 1 + round % 300);
            check_windows(tables[i], &memory);
            check_planes_to_rgb(tables[i], &memory, 1 + round % 300);
            check_halves(tables[i], &memory, 1 + round % 300);
        }
        printf("%s: checked\n", tables[i]->name);
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
