/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c: JSON on standard output.
 */
#include <math.h>
#include <stdio.h>

#include "cli.h"

static bool first = true; /* nothing stands in the current object or list yet */
static int depth;

/* The length of the UTF-8 sequence at `text`, 0 if it is none. */
static int sequence_length(const unsigned char *text)
{
    int length = text[0] < 0x80 ? 1 : text[0] >= 0xC2 && text[0] < 0xE0 ? 2 : text[0] >= 0xE0 && text[0] < 0xF0 ? 3 : 4;

    if (text[0] >= 0x80 && (text[0] < 0xC2 || text[0] > 0xF4))
        return 0;
    for (int i = 1; i < length; i++) {
        if (text[i] < 0x80 || text[i] > 0xBF)
            return 0;
    }
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return length;
}

static void write_string(const char *string)
{
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)string; *at != '\0';) {
        int length = sequence_length(at);

        if (length == 0) {
            printf("\\u%04x", 0xDC00 + *at++);
        } else if (*at == '"' || *at == '\\') {
            printf("\\%c", *at++);
        } else if (*at < 0x20) {
            printf("\\u%04x", *at++);
        } else {
            fwrite(at, 1, (size_t)length, stdout);
            at += length;
        }
    }
    putchar('"');
}

static void begin(const char *key)
{
    if (!first)
        fputs(", ", stdout);
    first = false;
    if (key != NULL) {
        write_string(key);
        fputs(": ", stdout);
    }
}

void json_open(const char *key, char bracket)
{
    if (depth++ > 0)
        begin(key);
    putchar(bracket);
    first = true;
}

void json_close(char bracket)
{
    putchar(bracket);
    first = false;
    depth--;
}

void json_text(const char *key, const char *text)
{
    begin(key);
    write_string(text);
}

void json_number(const char *key, double number)
{
    begin(key);
    printf("%.6g", isfinite(number) ? number : 0.0);
}

void json_integer(const char *key, int64_t number)
{
    begin(key);
    printf("%lld", (long long)number);
}

void json_end(void)
{
    putchar('\n');
    first = true;
}
