/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stoker.c: the command; one subcommand a file.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char help[] =
    "stoker: feeds image training with torchvision's pixels, bit for bit\n"
    "\n"
    "usage: stoker COMMAND [options] ...\n"
    "\n"
    "  ls DATASET             format, samples, classes, sizes, and every file that is broken or odd\n"
    "  bench DATASET          runs the loader as fast as it goes: images/s, the time of each stage, the limit\n"
    "  show DATASET           a contact sheet of an augmented batch: what the model will see\n"
    "  pack DATASET OUT.stk   one file with the same pixels, several times as fast to read\n"
    "  unpack PACK DIR        gives the dataset back as files\n"
    "  verify PACK            checks every checksum\n"
    "  sample DIR             draws a dataset to try things on, where there is none\n"
    "\n"
    "stoker COMMAND --help tells more. All take --json. stoker --version.\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

typedef struct entry {
    const char *name;
    int (*run)(int argc, char **argv);
} entry;

static const entry entries[] = {{"ls", cli_ls},         {"bench", cli_bench}, {"show", cli_show},
                                {"sample", cli_sample}, {"pack", cli_pack},   {"unpack", cli_unpack},
                                {"verify", cli_verify}};

static int run(const char *name, int argc, char **argv)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (strcmp(entries[i].name, name) == 0)
            return entries[i].run(argc, argv);
    }
    return fail(EXIT_USAGE, "unknown command '%s' (try: stoker --help)", name);
}

int main(int argc, char **argv)
{
    char *ask_help[] = {NULL, "--help", NULL};

    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of writing, told as one */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that may grow no more (ulimit -f) */
    if (argc < 2) {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("stoker %s (%s)\n", stoker_version(), stoker_cpu());
        return finish_output(EXIT_DONE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        if (argc > 2) {
            ask_help[0] = argv[2];
            return run(argv[2], 2, ask_help);
        }
        fputs(help, stdout);
        return finish_output(EXIT_DONE);
    }
    return run(argv[1], argc - 1, argv + 1);
}
