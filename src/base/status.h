/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h: how a fault is told.
 *
 * The one message of a fault is set where the fault is seen (sk_fail) in the calling thread's slot, and callers that know
 * more (the file, the sample) put their part before it (sk_fail_context). Nothing here knows of images.
 */
#ifndef SK_BASE_STATUS_H
#define SK_BASE_STATUS_H

#include "stoker.h"

#define SK_MESSAGE_SIZE 1024 /* bytes with the NUL; longer messages are cut */

#if defined(__GNUC__)
#define SK_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define SK_PRINTF(format_index, first)
#endif

/* Sets this thread's message and returns `status`, so that `return sk_fail(...)` reads well. Control characters and
 * newlines in the finished text become '?'. */
stoker_status sk_fail(stoker_status status, const char *format, ...) SK_PRINTF(2, 3);

/* "<strerror(code)>" appended to the text: sk_fail_errno(errno, "cannot open %s", path) → STOKER_ERR_IO (or
 * STOKER_ERR_MEMORY for ENOMEM). */
stoker_status sk_fail_errno(int code, const char *format, ...) SK_PRINTF(2, 3);

/* Puts "<text>: " before the message already there and returns `status` as it was. */
stoker_status sk_fail_context(stoker_status status, const char *format, ...) SK_PRINTF(2, 3);

#if defined(__clang_analyzer__) && !defined(SK_STATUS_C)
/* The analyzer sees one file at a time: tell it that what these return is never STOKER_OK. */
#define sk_fail(status, ...)         ((void)(sk_fail)((status), __VA_ARGS__), (status))
#define sk_fail_errno(code, ...)     ((void)(sk_fail_errno)((code), __VA_ARGS__), STOKER_ERR_IO)
#define sk_fail_context(status, ...) ((void)(sk_fail_context)((status), __VA_ARGS__), (status))
#endif

/* This thread's message, and setting it whole (the loader carries a worker's message to the loop's thread). */
const char *sk_message(void);
void sk_message_set(const char *message);
void sk_message_clear(void);

#endif
