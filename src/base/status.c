/* SPDX-License-Identifier: Apache-2.0 */
#define SK_STATUS_C
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[SK_MESSAGE_SIZE];

/* A message is one line: file names may hold anything, so control characters are made visible. */
static void make_one_line(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

stoker_status sk_fail(stoker_status status, const char *format, ...)
{
    char text[SK_MESSAGE_SIZE]; /* apart, since an argument may be the old message */
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    make_one_line(text);
    memcpy(message, text, sizeof message);
    return status;
}

stoker_status sk_fail_errno(int code, const char *format, ...)
{
    char text[SK_MESSAGE_SIZE];
    char reason[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
#if defined(__GLIBC__)
    const char *words = strerror_r(code, reason, sizeof reason); /* the GNU form returns the text */
#else
    const char *words = strerror_r(code, reason, sizeof reason) == 0 ? reason : "unknown error";
#endif
    return sk_fail(code == ENOMEM ? STOKER_ERR_MEMORY : STOKER_ERR_IO, "%s: %s", text, words);
}

stoker_status sk_fail_context(stoker_status status, const char *format, ...)
{
    char text[SK_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sk_fail(status, "%s: %s", text, message);
}

const char *sk_message(void)
{
    return message;
}

void sk_message_set(const char *text)
{
    snprintf(message, sizeof message, "%s", text);
}

void sk_message_clear(void)
{
    message[0] = '\0';
}
