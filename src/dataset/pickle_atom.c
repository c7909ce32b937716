/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_atom.c: a pickle's numbers, bytes and text, as each protocol writes them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "dataset/pickle_machine.h"

stoker_status sk_pickle_take(sk_machine *m, size_t count, const uint8_t **out)
{
    *out = NULL; /* here and below: for the compiler's sake */
    if (count > m->size - m->at)
        return sk_fail(STOKER_ERR_DATA, "%s: byte %zu: the pickle ends early: %zu bytes are announced, %zu are left",
                       m->shown, m->op_at, count, m->size - m->at);
    *out = m->data + m->at;
    m->at += count;
    return STOKER_OK;
}

/* A little-endian unsigned number of 1, 2, 4 or 8 bytes. */
stoker_status sk_pickle_take_number(sk_machine *m, size_t bytes, uint64_t *out)
{
    const uint8_t *at;
    stoker_status status = sk_pickle_take(m, bytes, &at);

    *out = 0;
    for (size_t i = 0; status == STOKER_OK && i < bytes; i++)
        *out |= (uint64_t)at[i] << (8 * i);
    return status;
}

/* The text up to the end of the line, which is left behind. */
stoker_status sk_pickle_take_line(sk_machine *m, const uint8_t **out, size_t *length)
{
    const uint8_t *end = m->at < m->size ? memchr(m->data + m->at, '\n', m->size - m->at) : NULL;

    *out = NULL;
    *length = 0;
    if (end == NULL)
        return sk_pickle_broken(m, "a line without an end");
    *out = m->data + m->at;
    *length = (size_t)(end - *out);
    m->at += *length + 1;
    return STOKER_OK;
}

/* A line that is a decimal integer; a long's trailing L is passed over. */
stoker_status sk_pickle_take_decimal(sk_machine *m, int64_t *out)
{
    char text[32], *end;
    const uint8_t *line;
    size_t length;
    stoker_status status = sk_pickle_take_line(m, &line, &length);

    *out = 0;
    if (status != STOKER_OK)
        return status;
    if (length > 0 && line[length - 1] == 'L')
        length--;
    if (length == 0 || length >= sizeof text)
        return sk_pickle_broken(m, "an integer of no or too many digits");
    memcpy(text, line, length);
    text[length] = '\0';
    errno = 0;
    long long number = strtoll(text, &end, 10);

    if (*end != '\0' || end == text || errno != 0)
        return sk_pickle_broken(m, "not an integer of 64 bits");
    *out = number;
    return STOKER_OK;
}

stoker_status sk_pickle_push_number(sk_machine *m, sk_pickle_kind kind, int64_t number)
{
    return sk_pickle_push(m, (sk_pickle_value){.kind = kind, .number = number});
}

/* INT, whose texts 00 and 01 are protocol 1's booleans. */
static stoker_status do_int(sk_machine *m)
{
    bool boolean = m->size - m->at >= 3 && m->data[m->at] == '0' && m->data[m->at + 2] == '\n' &&
                   (m->data[m->at + 1] == '0' || m->data[m->at + 1] == '1');
    int64_t number;
    stoker_status status = sk_pickle_take_decimal(m, &number);

    return status == STOKER_OK ? sk_pickle_push_number(m, boolean ? SK_PICKLE_BOOL : SK_PICKLE_INT, number) : status;
}

/* An integer in `bytes` bytes of two's complement, little-endian. */
static stoker_status do_binary_int(sk_machine *m, uint64_t bytes)
{
    const uint8_t *at;
    uint64_t number = 0;

    if (bytes > 8)
        return sk_pickle_broken(m, "an integer of more than 64 bits");
    stoker_status status = sk_pickle_take(m, (size_t)bytes, &at);

    if (status != STOKER_OK)
        return status;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << (8 * i);
    if (bytes > 0 && bytes < 8 && at[bytes - 1] >= 0x80)
        number |= UINT64_MAX << (8 * bytes);
    return sk_pickle_push_number(m, SK_PICKLE_INT, (int64_t)number);
}

static stoker_status do_unsigned(sk_machine *m, size_t bytes)
{
    uint64_t number;
    stoker_status status = sk_pickle_take_number(m, bytes, &number);

    return status == STOKER_OK ? sk_pickle_push_number(m, SK_PICKLE_INT, (int64_t)number) : status;
}

static stoker_status do_long(sk_machine *m, size_t length_bytes)
{
    uint64_t bytes;
    stoker_status status = sk_pickle_take_number(m, length_bytes, &bytes);

    return status == STOKER_OK ? do_binary_int(m, bytes) : status;
}

static stoker_status do_float(sk_machine *m, bool binary)
{
    const uint8_t *at;
    size_t length;
    stoker_status status = binary ? sk_pickle_take(m, 8, &at) : sk_pickle_take_line(m, &at, &length);

    return status == STOKER_OK ? sk_pickle_push_number(m, SK_PICKLE_FLOAT, 0) : status;
}

/* Bytes or text behind their length. */
static stoker_status do_counted(sk_machine *m, sk_pickle_kind kind, size_t length_bytes)
{
    sk_pickle_value value = {.kind = kind};
    uint64_t length;
    stoker_status status = sk_pickle_take_number(m, length_bytes, &length);

    if (status == STOKER_OK)
        status = sk_pickle_take(m, (size_t)length, &value.data);
    value.size = (size_t)length;
    return status == STOKER_OK ? sk_pickle_push(m, value) : status;
}

static stoker_status push_own(sk_machine *m, sk_pickle_kind kind, uint8_t *own, size_t size)
{
    stoker_status status = sk_pickle_push(m, (sk_pickle_value){.kind = kind, .data = own, .size = size, .own = own});

    if (status != STOKER_OK)
        sk_free(own);
    return status;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number that `digits` hexadecimal digits at text[at] write; -1 where they do not. */
static int64_t hex_number(const uint8_t *text, size_t length, size_t at, size_t digits)
{
    int64_t number = 0;

    if (digits > length - at)
        return -1;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_digit(text[at + i]);

        if (digit < 0)
            return -1;
        number = number * 16 + digit;
    }
    return number;
}

/* One character behind a backslash of Python's bytes notation. Returns how many bytes of text it took, 0 if it is none. */
static size_t unescape(const uint8_t *text, size_t length, uint8_t *out)
{
    static const char names[] = "abfnrtv\\'\"", bytes[] = "\a\b\f\n\r\t\v\\'\"";
    const char *name = text[0] != 0 ? strchr(names, text[0]) : NULL;

    if (name != NULL) {
        *out = (uint8_t)bytes[name - names];
        return 1;
    }
    if (text[0] == 'x') {
        int64_t number = hex_number(text, length, 1, 2);

        *out = (uint8_t)number;
        return number >= 0 ? 3 : 0;
    }
    size_t digits = 0;
    unsigned number = 0;

    while (digits < 3 && digits < length && text[digits] >= '0' && text[digits] <= '7')
        number = number * 8 + (text[digits++] - (unsigned)'0');
    *out = (uint8_t)number;
    return digits;
}

/* STRING: a Python 2 str as its repr, in quotes. */
static stoker_status do_quoted(sk_machine *m)
{
    const uint8_t *line;
    uint8_t *own;
    size_t length, used = 0;
    stoker_status status = sk_pickle_take_line(m, &line, &length);

    if (status != STOKER_OK)
        return status;
    if (length < 2 || line[0] != line[length - 1] || (line[0] != '\'' && line[0] != '"'))
        return sk_pickle_broken(m, "a string without quotes");
    line++;
    length -= 2;
    status = sk_pickle_own(m, length, &own);
    if (status != STOKER_OK)
        return status;
    for (size_t i = 0; i < length;) {
        if (line[i] != '\\') {
            own[used++] = line[i++];
            continue;
        }
        size_t took = i + 1 < length ? unescape(line + i + 1, length - i - 1, &own[used]) : 0;

        if (took == 0) { /* Python keeps a backslash that means nothing */
            own[used++] = line[i++];
            continue;
        }
        used++;
        i += 1 + took;
    }
    return push_own(m, SK_PICKLE_BYTES, own, used);
}

static size_t write_utf8(uint32_t c, uint8_t *out)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

/* UNICODE: a line of Latin-1 with \uXXXX and \UXXXXXXXX. */
static stoker_status do_raw_unicode(sk_machine *m)
{
    const uint8_t *line;
    uint8_t *own;
    size_t length, used = 0;
    stoker_status status = sk_pickle_take_line(m, &line, &length);

    if (status == STOKER_OK)
        status = sk_pickle_own(m, 2 * length, &own);
    if (status != STOKER_OK)
        return status;
    for (size_t i = 0; i < length;) {
        size_t digits = line[i] != '\\' || i + 1 == length ? 0 : line[i + 1] == 'u' ? 4 : line[i + 1] == 'U' ? 8 : 0;
        int64_t number = digits > 0 ? hex_number(line, length, i + 2, digits) : line[i];

        if (number < 0 || number > 0x10ffff) {
            sk_free(own);
            return sk_pickle_broken(m, "a broken \\u escape");
        }
        used += write_utf8((uint32_t)number, own + used);
        i += digits > 0 ? digits + 2 : 1;
    }
    return push_own(m, SK_PICKLE_TEXT, own, used);
}

stoker_status sk_pickle_atom(sk_machine *m, uint8_t code, bool *known)
{
    int64_t number;
    stoker_status status;

    *known = true;
    switch (code) {
    case OP_INT:
        return do_int(m);
    case OP_BININT:
        return do_binary_int(m, 4);
    case OP_BININT1:
        return do_unsigned(m, 1);
    case OP_BININT2:
        return do_unsigned(m, 2);
    case OP_LONG:
        status = sk_pickle_take_decimal(m, &number);
        return status == STOKER_OK ? sk_pickle_push_number(m, SK_PICKLE_INT, number) : status;
    case OP_LONG1:
        return do_long(m, 1);
    case OP_LONG4:
        return do_long(m, 4);
    case OP_FLOAT:
        return do_float(m, false);
    case OP_BINFLOAT:
        return do_float(m, true);
    case OP_STRING:
        return do_quoted(m);
    case OP_UNICODE:
        return do_raw_unicode(m);
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINBYTES:
        return do_counted(m, SK_PICKLE_BYTES, 1);
    case OP_BINSTRING:
    case OP_BINBYTES:
        return do_counted(m, SK_PICKLE_BYTES, 4);
    case OP_BINBYTES8:
    case OP_BYTEARRAY8:
        return do_counted(m, SK_PICKLE_BYTES, 8);
    case OP_SHORT_BINUNICODE:
        return do_counted(m, SK_PICKLE_TEXT, 1);
    case OP_BINUNICODE:
        return do_counted(m, SK_PICKLE_TEXT, 4);
    case OP_BINUNICODE8:
        return do_counted(m, SK_PICKLE_TEXT, 8);
    default:
        *known = false;
        return STOKER_OK;
    }
}
