/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h: what the subcommands share: options, JSON, progress, failing. The command is a client of stoker.h and knows nothing else of
 * the library.
 */
#ifndef STOKER_CLI_H
#define STOKER_CLI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

/* Exit statuses. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

int cli_ls(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_sample(int argc, char **argv);
int cli_pack(int argc, char **argv);
int cli_unpack(int argc, char **argv);
int cli_verify(int argc, char **argv);

/* ------------------------------------------------------------------------------------------------ options -------- */

typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_CHOICE, OPTION_SIZE } option_kind;

typedef struct option {
    const char *name; /* with its dashes: "--batch"; "-o" */
    option_kind kind;
    void *target; /* bool *, const char **, int64_t *, int32_t * (the choice's place), int32_t[2] (width, height) */
    int64_t least, most;        /* of a number */
    const char *const *choices; /* NULL at the end */
} option;

typedef struct command {
    const char *name;
    const char *help; /* the whole --help text */
    const option *options;
    int option_count;
    const char *operand; /* what stands without dashes: "DATASET"; exactly one, … */
    const char *second;  /* … or two, where this is not NULL: "OUT" */
} command;

/* Reads argv[1 ..]. Returns -1 to go on, or the status to exit with (help was asked for, or wrong usage was told). */
int read_options(const command *self, int argc, char **argv, const char **operand);

/* The same for a command with two operands. */
int read_two(const command *self, int argc, char **argv, const char *operands[2]);

/* "stoker: <text>" to standard error; returns `status`. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#if defined(__clang_analyzer__) && !defined(DEFINES_FAIL)
/* The analyzer sees one file at a time: tell it what fail returns. */
#define fail(status, ...) ((void)(fail)((status), __VA_ARGS__), (status))
#endif

/* The library's last error. Status EXIT_FAILED, or EXIT_USAGE where the arguments were wrong. */
int fail_library(stoker_status status);

/* Flushes standard output; a full disk or a closed pipe is a failure. */
int finish_output(int status);

/* ---------------------------------------------------------------------------------------------------- json -------- */

/* Writes JSON to standard output. Commas are put where they belong. Bytes that are not UTF-8 are written as U+DC80 + byte - 0x80, as
 * Python's surrogateescape has them, so that a path can be got back. */
void json_open(const char *key, char bracket); /* '{' or '['; key NULL within a list or at the top */
void json_close(char bracket);                 /* '}' or ']' */
void json_text(const char *key, const char *text);
void json_number(const char *key, double number);
void json_integer(const char *key, int64_t number);
void json_end(void); /* a newline after the outermost value */

/* ------------------------------------------------------------------------------------------------ progress -------- */

/* A line on standard error, only if that is a terminal, at most ten times a second. */
void progress_show(const char *what, int64_t done, int64_t all, double seconds);
void progress_clear(void);

double now_seconds(void);

/* 1234567 → "1,234,567"; 12345678 bytes → "12.3 MB". Each call uses one of four buffers by turns. */
const char *with_commas(int64_t number);
const char *with_unit(double bytes);

/* Set by Ctrl-C and SIGTERM; long loops, in whatever thread, look at it. Caught only once such a loop is about to begin: until then
 * (a large dataset being opened) the system's way, which ends the process at once, is the right one. */
extern _Atomic(int) interrupted;
void catch_interrupt(void);

#endif
