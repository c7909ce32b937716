/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c: the command line, and words for people.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFINES_FAIL
#include "cli.h"

_Atomic(int) interrupted;

int fail(int status, const char *format, ...)
{
    va_list arguments;

    progress_clear();
    fputs("stoker: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return status;
}

int fail_library(stoker_status status)
{
    return fail(status == STOKER_ERR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED, "%s", stoker_last_error());
}

int finish_output(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return fail(EXIT_FAILED, "cannot write the output: %s", strerror(errno));
    return status;
}

static const option *find_option(const command *self, const char *name, size_t length)
{
    for (int i = 0; i < self->option_count; i++) {
        if (strlen(self->options[i].name) == length && memcmp(self->options[i].name, name, length) == 0)
            return &self->options[i];
    }
    return NULL;
}

static bool read_number(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    long long number = strtoll(text, &end, 10);

    *out = number;
    return errno == 0 && end != text && *end == '\0';
}

static int set_option(const command *self, const option *o, const char *text)
{
    int64_t number;

    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->target = true;
        return -1;
    case OPTION_TEXT:
        *(const char **)o->target = text;
        return -1;
    case OPTION_NUMBER:
        if (!read_number(text, &number) || number < o->least || number > o->most)
            return fail(EXIT_USAGE, "%s: %s %s: a whole number from %lld to %lld is wanted", self->name, o->name, text,
                        (long long)o->least, (long long)o->most);
        *(int64_t *)o->target = number;
        return -1;
    case OPTION_CHOICE:
        for (int32_t i = 0; o->choices[i] != NULL; i++) {
            if (strcmp(o->choices[i], text) == 0) {
                *(int32_t *)o->target = i;
                return -1;
            }
        }
        fprintf(stderr, "stoker: %s: %s %s: one of", self->name, o->name, text);
        for (int32_t i = 0; o->choices[i] != NULL; i++)
            fprintf(stderr, "%s %s", i > 0 ? "," : "", o->choices[i]);
        fputs(" is wanted\n", stderr);
        return EXIT_USAGE;
    case OPTION_SIZE: {
        int32_t *size = o->target;
        int end = 0;

        if (sscanf(text, "%dx%d%n", &size[0], &size[1], &end) != 2 || text[end] != '\0' || size[0] < 1 || size[1] < 1 ||
            size[0] > 16384 || size[1] > 16384)
            return fail(EXIT_USAGE, "%s: %s %s: a size such as 500x375 is wanted", self->name, o->name, text);
        return -1;
    }
    }
    return -1;
}

int read_options(const command *self, int argc, char **argv, const char **operand)
{
    const char *both[2];
    int status = read_two(self, argc, argv, both);

    *operand = both[0];
    return status;
}

int read_two(const command *self, int argc, char **argv, const char *operands[2])
{
    bool only_operands = false;

    operands[0] = operands[1] = NULL;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];

        if (!only_operands && strcmp(argument, "--") == 0) {
            only_operands = true;
            continue;
        }
        if (only_operands || argument[0] != '-' || argument[1] == '\0') {
            if (operands[0] != NULL && self->second == NULL)
                return fail(EXIT_USAGE, "%s: one %s is wanted, and '%s' is a second", self->name, self->operand,
                            argument);
            if (operands[1] != NULL)
                return fail(EXIT_USAGE, "%s: %s and %s are wanted, and '%s' is a third", self->name, self->operand,
                            self->second, argument);
            operands[operands[0] != NULL] = argument;
            continue;
        }
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            fputs(self->help, stdout);
            return finish_output(EXIT_DONE);
        }
        const char *equals = strchr(argument, '=');
        size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
        const option *o = find_option(self, argument, length);

        if (o == NULL)
            return fail(EXIT_USAGE, "%s: unknown option '%.*s' (try: stoker %s --help)", self->name, (int)length,
                        argument, self->name);
        if (o->kind == OPTION_FLAG && equals != NULL)
            return fail(EXIT_USAGE, "%s: %s takes no value", self->name, o->name);
        if (o->kind != OPTION_FLAG && equals == NULL && i + 1 == argc)
            return fail(EXIT_USAGE, "%s: %s needs a value", self->name, o->name);
        const char *text = equals != NULL ? equals + 1 : o->kind != OPTION_FLAG ? argv[++i] : NULL;
        int status = set_option(self, o, text);

        if (status >= 0)
            return status;
    }
    if (operands[0] == NULL || (operands[1] == NULL && self->second != NULL))
        return fail(EXIT_USAGE, "%s: no %s given (try: stoker %s --help)", self->name,
                    operands[0] == NULL ? self->operand : self->second, self->name);
    return -1;
}

/* ------------------------------------------------------------------------------------------------- words -------- */

static char *next_buffer(void)
{
    static char buffers[4][32];
    static int turn;

    return buffers[turn++ & 3];
}

const char *with_commas(int64_t number)
{
    char digits[24];
    char *out = next_buffer(), *at = out;
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);

    for (int i = 0; i < length; i++) {
        *at++ = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - 1 - i) % 3 == 0)
            *at++ = ',';
    }
    *at = '\0';
    return out;
}

const char *with_unit(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    char *out = next_buffer();
    int unit = 0;

    while (bytes >= 1000.0 && unit < 5) {
        bytes /= 1000.0;
        unit++;
    }
    snprintf(out, 32, unit == 0 ? "%.0f %s" : bytes < 10.0 ? "%.2f %s" : "%.1f %s", bytes, units[unit]);
    return out;
}

double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool shown;

void progress_show(const char *what, int64_t done, int64_t all, double seconds)
{
    static double last;
    double now = now_seconds();

    if (!isatty(STDERR_FILENO) || (now - last < 0.1 && done < all))
        return;
    last = now;
    double rate = seconds > 0 ? (double)done / seconds : 0;
    double left = rate > 0 ? (double)(all - done) / rate : 0;

    fprintf(stderr, "\r\033[K%s: %s of %s (%.0f %%), %s/s, %.0f s left", what, with_commas(done), with_commas(all),
            all > 0 ? 100.0 * (double)done / (double)all : 100.0, with_commas((int64_t)rate), left);
    fflush(stderr);
    shown = true;
}

void progress_clear(void)
{
    if (!shown)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    shown = false;
}

static void on_signal(int signal_number)
{
    if (interrupted) /* the second one does not wait */
        _exit(128 + signal_number);
    interrupted = signal_number;
}

void catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
