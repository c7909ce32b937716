/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_machine.h: what pickle.c's stack machine and pickle_call.c's few known calls share. Nobody else includes it.
 */
#ifndef SK_DATASET_PICKLE_MACHINE_H
#define SK_DATASET_PICKLE_MACHINE_H

#include "dataset/pickle.h"

/* By the names that CPython gives them. */
enum sk_pickle_opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_DUP = '2',
    OP_FLOAT = 'F',
    OP_BINFLOAT = 'G',
    OP_INT = 'I',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_LONG = 'L',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_REDUCE = 'R',
    OP_STRING = 'S',
    OP_BINSTRING = 'T',
    OP_SHORT_BINSTRING = 'U',
    OP_UNICODE = 'V',
    OP_BINUNICODE = 'X',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_APPEND = 'a',
    OP_BUILD = 'b',
    OP_GLOBAL = 'c',
    OP_DICT = 'd',
    OP_APPENDS = 'e',
    OP_GET = 'g',
    OP_BINGET = 'h',
    OP_INST = 'i',
    OP_LONG_BINGET = 'j',
    OP_LIST = 'l',
    OP_PUT = 'p',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_TUPLE = ')',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
    OP_BYTEARRAY8 = 0x96
};

struct sk_pickle {
    sk_pickle_value *values;
    uint32_t count, room;
    uint32_t root;
};

typedef struct sk_machine {
    sk_pickle *pickle;
    const char *shown;
    const uint8_t *data;
    size_t size, at;
    size_t op_at;    /* of the opcode under way, for messages */
    uint32_t *stack; /* values' numbers, and marks */
    size_t depth, room;
    uint32_t *memo;
    size_t memo_count, memo_used;
    size_t own_left; /* bytes that may still be allocated for values */
} sk_machine;

stoker_status sk_pickle_broken(const sk_machine *m, const char *what);

/* Makes a value and puts it on the stack; on failure `value`'s memory stays the caller's. */
stoker_status sk_pickle_push(sk_machine *m, sk_pickle_value value);
stoker_status sk_pickle_pop(sk_machine *m, uint32_t *out);
sk_pickle_value *sk_pickle_top(const sk_machine *m); /* NULL if there is none */
stoker_status sk_pickle_own(sk_machine *m, size_t size, uint8_t **out);

/* pickle_atom.c: taking bytes, a little-endian number, a line (without its end), a line that is an integer; and the opcodes of numbers,
 * bytes and text, *known telling whether `code` is one. */
stoker_status sk_pickle_take(sk_machine *m, size_t count, const uint8_t **out);
stoker_status sk_pickle_take_number(sk_machine *m, size_t bytes, uint64_t *out);
stoker_status sk_pickle_take_line(sk_machine *m, const uint8_t **out, size_t *length);
stoker_status sk_pickle_take_decimal(sk_machine *m, int64_t *out);
stoker_status sk_pickle_push_number(sk_machine *m, sk_pickle_kind kind, int64_t number);
stoker_status sk_pickle_atom(sk_machine *m, uint8_t code, bool *known);

/* pickle_call.c: the opcodes GLOBAL, REDUCE and BUILD. */
stoker_status sk_pickle_global(sk_machine *m, const uint8_t *module, size_t module_length, const uint8_t *name,
                               size_t name_length);
stoker_status sk_pickle_reduce(sk_machine *m);
stoker_status sk_pickle_build(sk_machine *m);

#endif
