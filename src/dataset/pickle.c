/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.c: a stack machine over the opcodes of Python's pickle protocols 0 to 5 (their meaning: Lib/pickletools.py of CPython). Values
 * are known by their number, never by recursion, so depth costs nothing. Numbers and text are pickle_atom.c's, the few
 * calls that are known pickle_call.c's.
 */
#include "dataset/pickle_machine.h"

#include <string.h>

#include "base/memory.h"

#define MARK       UINT32_MAX /* on the stack, and "nothing" in the memo */
#define MAX_VALUES (1u << 22) /* 4 M; a CIFAR batch has 20,000 */

/* Opcodes that would build what is not built here, by the names that CPython gives them. */
static const struct refused_opcode {
    uint8_t code;
    const char *name;
} refused[] = {
    {'P', "PERSID"},       {'Q', "BINPERSID"},
    {'i', "INST"},         {'o', "OBJ"},
    {0x81, "NEWOBJ"},      {0x82, "EXT1"},
    {0x83, "EXT2"},        {0x84, "EXT4"},
    {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},   {0x92, "NEWOBJ_EX"},
    {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

/* ------------------------------------------------------------------------------------------------- values -------- */

stoker_status sk_pickle_broken(const sk_machine *m, const char *what)
{
    return sk_fail(STOKER_ERR_DATA, "%s: byte %zu: not a sound pickle: %s", m->shown, m->op_at, what);
}

/* Makes room for one more on the stack. */
static stoker_status reserve(sk_machine *m)
{
    if (m->depth >= MAX_VALUES)
        return sk_fail(STOKER_ERR_LIMIT, "%s: byte %zu: more than %u values on the pickle's stack", m->shown, m->op_at,
                       MAX_VALUES);
    if (m->depth < m->room)
        return STOKER_OK;
    size_t room = m->room * 2 + 64;
    uint32_t *grown = sk_realloc_array(m->stack, room, sizeof *grown);

    if (grown == NULL)
        return STOKER_ERR_MEMORY;
    m->stack = grown;
    m->room = room;
    return STOKER_OK;
}

static stoker_status push(sk_machine *m, uint32_t id)
{
    stoker_status status = reserve(m);

    if (status == STOKER_OK)
        m->stack[m->depth++] = id;
    return status;
}

stoker_status sk_pickle_push(sk_machine *m, sk_pickle_value value)
{
    sk_pickle *p = m->pickle;
    stoker_status status = reserve(m);

    if (status != STOKER_OK)
        return status;
    if (p->count == p->room) {
        if (p->count >= MAX_VALUES)
            return sk_fail(STOKER_ERR_LIMIT, "%s: byte %zu: more than %u values in the pickle", m->shown, m->op_at,
                           MAX_VALUES);
        uint32_t room = p->room * 2 + 64;
        sk_pickle_value *grown = sk_realloc_array(p->values, room, sizeof *grown);

        if (grown == NULL)
            return STOKER_ERR_MEMORY;
        p->values = grown;
        p->room = room;
    }
    m->stack[m->depth++] = p->count;
    p->values[p->count++] = value;
    return STOKER_OK;
}

stoker_status sk_pickle_own(sk_machine *m, size_t size, uint8_t **out)
{
    *out = NULL;
    /* Text is copied at most twice on its way to an array; a file that asks for more repeats itself through its memo. */
    if (size > m->own_left)
        return sk_fail(STOKER_ERR_LIMIT, "%s: byte %zu: the pickle unfolds to more than 6 times its size", m->shown,
                       m->op_at);
    *out = sk_malloc(size);
    if (*out == NULL)
        return STOKER_ERR_MEMORY;
    m->own_left -= size;
    return STOKER_OK;
}

stoker_status sk_pickle_pop(sk_machine *m, uint32_t *out)
{
    *out = 0;
    if (m->depth == 0 || m->stack[m->depth - 1] == MARK)
        return sk_pickle_broken(m, "a value is missing");
    *out = m->stack[--m->depth];
    return STOKER_OK;
}

sk_pickle_value *sk_pickle_top(const sk_machine *m)
{
    if (m->depth == 0 || m->stack[m->depth - 1] == MARK)
        return NULL;
    return &m->pickle->values[m->stack[m->depth - 1]];
}

/* Adds ids to a list, tuple or dict. */
static stoker_status add_items(sk_machine *m, sk_pickle_value *to, const uint32_t *ids, size_t count)
{
    if (count > MAX_VALUES || to->count + count > MAX_VALUES)
        return sk_fail(STOKER_ERR_LIMIT, "%s: byte %zu: more than %u elements", m->shown, m->op_at, MAX_VALUES);
    uint32_t needed = to->count + (uint32_t)count;

    if (needed > to->room) {
        uint32_t room = needed > 8 ? needed * 2 : needed; /* most tuples stay small */
        uint32_t *grown = sk_realloc_array(to->items, room, sizeof *grown);

        if (grown == NULL)
            return STOKER_ERR_MEMORY;
        to->items = grown;
        to->room = room;
    }
    if (count > 0)
        memcpy(to->items + to->count, ids, count * sizeof *ids);
    to->count = needed;
    return STOKER_OK;
}

/* Where the values above the last mark begin. */
static stoker_status find_mark(const sk_machine *m, size_t *first)
{
    size_t at = m->depth;

    *first = 0;
    while (at > 0 && m->stack[at - 1] != MARK)
        at--;
    if (at == 0)
        return sk_pickle_broken(m, "a mark is missing");
    *first = at;
    return STOKER_OK;
}

/* A list, tuple or dict of the `count` topmost values, which leave the stack, and a mark with them if `marked`. */
static stoker_status collect(sk_machine *m, sk_pickle_kind kind, size_t first, bool marked)
{
    sk_pickle_value value = {.kind = kind};
    size_t count = m->depth - first;

    if (kind == SK_PICKLE_DICT && count % 2 != 0)
        return sk_pickle_broken(m, "a dict of an odd number of values");
    for (size_t i = first; i < m->depth; i++) {
        if (m->stack[i] == MARK)
            return sk_pickle_broken(m, "a mark among values");
    }
    stoker_status status = add_items(m, &value, m->stack + first, count);

    if (status != STOKER_OK)
        return status;
    m->depth = first - (marked ? 1 : 0);
    status = sk_pickle_push(m, value);
    if (status != STOKER_OK)
        sk_free(value.items);
    return status;
}

static stoker_status collect_marked(sk_machine *m, sk_pickle_kind kind)
{
    size_t first;
    stoker_status status = find_mark(m, &first);

    return status == STOKER_OK ? collect(m, kind, first, true) : status;
}

static stoker_status collect_few(sk_machine *m, size_t count)
{
    if (m->depth < count)
        return sk_pickle_broken(m, "a value is missing");
    return collect(m, SK_PICKLE_TUPLE, m->depth - count, false);
}

/* Moves the values from stack[first] on into the list or dict below them (below the mark, if `marked`). */
static stoker_status extend(sk_machine *m, sk_pickle_kind kind, size_t first, bool marked)
{
    size_t below = first - (marked ? 1 : 0), count = m->depth - first;

    if (below == 0 || m->stack[below - 1] == MARK || m->pickle->values[m->stack[below - 1]].kind != kind)
        return sk_pickle_broken(m, kind == SK_PICKLE_LIST ? "no list to add to" : "no dict to add to");
    if (kind == SK_PICKLE_DICT && count % 2 != 0)
        return sk_pickle_broken(m, "a dict of an odd number of values");
    for (size_t i = first; i < m->depth; i++) {
        if (m->stack[i] == MARK)
            return sk_pickle_broken(m, "a mark among values");
    }
    stoker_status status = add_items(m, &m->pickle->values[m->stack[below - 1]], m->stack + first, count);

    m->depth = below;
    return status;
}

static stoker_status extend_marked(sk_machine *m, sk_pickle_kind kind)
{
    size_t first;
    stoker_status status = find_mark(m, &first);

    return status == STOKER_OK ? extend(m, kind, first, true) : status;
}

static stoker_status extend_few(sk_machine *m, sk_pickle_kind kind, size_t count)
{
    if (m->depth < count)
        return sk_pickle_broken(m, "a value is missing");
    return extend(m, kind, m->depth - count, false);
}

/* -------------------------------------------------------------------------------------------------- memo -------- */

static stoker_status put(sk_machine *m, uint64_t index)
{
    if (sk_pickle_top(m) == NULL)
        return sk_pickle_broken(m, "nothing to remember");
    if (index >= MAX_VALUES)
        return sk_fail(STOKER_ERR_LIMIT, "%s: byte %zu: memo number %llu; at most %u are read", m->shown, m->op_at,
                       (unsigned long long)index, MAX_VALUES);
    if (index >= m->memo_count) {
        size_t count = (size_t)index * 2 + 64;
        uint32_t *grown = sk_realloc_array(m->memo, count, sizeof *grown);

        if (grown == NULL)
            return STOKER_ERR_MEMORY;
        for (size_t i = m->memo_count; i < count; i++)
            grown[i] = MARK;
        m->memo = grown;
        m->memo_count = count;
    }
    if (m->memo[index] == MARK)
        m->memo_used++;
    m->memo[index] = m->stack[m->depth - 1];
    return STOKER_OK;
}

static stoker_status get(sk_machine *m, uint64_t index)
{
    if (index >= m->memo_count || m->memo[index] == MARK)
        return sk_pickle_broken(m, "it asks for what was never remembered");
    return push(m, m->memo[index]);
}

static stoker_status do_memo(sk_machine *m, bool store, size_t bytes)
{
    int64_t decimal = 0;
    uint64_t number = 0;
    stoker_status status = bytes == 0 ? sk_pickle_take_decimal(m, &decimal) : sk_pickle_take_number(m, bytes, &number);

    if (status != STOKER_OK)
        return status;
    if (bytes == 0)
        number = decimal >= 0 ? (uint64_t)decimal : UINT64_MAX;
    return store ? put(m, number) : get(m, number);
}

/* ----------------------------------------------------------------------------------------------- machine -------- */

static stoker_status do_global(sk_machine *m)
{
    const uint8_t *module, *name;
    size_t module_length, name_length;
    stoker_status status = sk_pickle_take_line(m, &module, &module_length);

    if (status == STOKER_OK)
        status = sk_pickle_take_line(m, &name, &name_length);
    return status == STOKER_OK ? sk_pickle_global(m, module, module_length, name, name_length) : status;
}

static stoker_status do_stack_global(sk_machine *m)
{
    uint32_t module, name;
    stoker_status status = sk_pickle_pop(m, &name);

    if (status == STOKER_OK)
        status = sk_pickle_pop(m, &module);
    if (status != STOKER_OK)
        return status;
    const sk_pickle_value *a = &m->pickle->values[module], *b = &m->pickle->values[name];

    if (a->kind != SK_PICKLE_TEXT || b->kind != SK_PICKLE_TEXT)
        return sk_pickle_broken(m, "a name that is no text");
    return sk_pickle_global(m, a->data, a->size, b->data, b->size);
}

static stoker_status do_proto(sk_machine *m)
{
    uint64_t version;
    stoker_status status = sk_pickle_take_number(m, 1, &version);

    if (status == STOKER_OK && version > 5)
        return sk_fail(STOKER_ERR_UNSUPPORTED, "%s: pickle protocol %d; protocols 0 to 5 are read", m->shown,
                       (int)version);
    return status;
}

static stoker_status do_pop(sk_machine *m)
{
    if (m->depth == 0)
        return sk_pickle_broken(m, "a value is missing");
    m->depth--;
    return STOKER_OK;
}

static stoker_status do_pop_mark(sk_machine *m)
{
    size_t first;
    stoker_status status = find_mark(m, &first);

    if (status == STOKER_OK)
        m->depth = first - 1;
    return status;
}

static stoker_status refuse(const sk_machine *m, uint8_t code)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i].code == code)
            return sk_fail(
                STOKER_ERR_UNSUPPORTED,
                "%s: byte %zu: the pickle's opcode %s builds other objects than arrays, text, numbers, lists "
                "and dicts, which is refused",
                m->shown, m->op_at, refused[i].name);
    }
    return sk_fail(STOKER_ERR_DATA, "%s: byte %zu: not a pickle: opcode 0x%02x", m->shown, m->op_at, code);
}

static stoker_status step(sk_machine *m, uint8_t code)
{
    uint64_t ignored;
    stoker_status status;
    bool known;

    switch (code) {
    case OP_PROTO:
        return do_proto(m);
    case OP_FRAME:
        return sk_pickle_take_number(m, 8, &ignored); /* a frame only says how much to read ahead */
    case OP_MARK:
        return push(m, MARK);
    case OP_POP:
        return do_pop(m);
    case OP_POP_MARK:
        return do_pop_mark(m);
    case OP_DUP:
        return sk_pickle_top(m) != NULL ? push(m, m->stack[m->depth - 1]) : sk_pickle_broken(m, "a value is missing");
    case OP_NONE:
        return sk_pickle_push_number(m, SK_PICKLE_NONE, 0);
    case OP_NEWTRUE:
        return sk_pickle_push_number(m, SK_PICKLE_BOOL, 1);
    case OP_NEWFALSE:
        return sk_pickle_push_number(m, SK_PICKLE_BOOL, 0);
    case OP_EMPTY_LIST:
        return sk_pickle_push_number(m, SK_PICKLE_LIST, 0);
    case OP_EMPTY_TUPLE:
        return sk_pickle_push_number(m, SK_PICKLE_TUPLE, 0);
    case OP_EMPTY_DICT:
        return sk_pickle_push_number(m, SK_PICKLE_DICT, 0);
    case OP_LIST:
        return collect_marked(m, SK_PICKLE_LIST);
    case OP_TUPLE:
        return collect_marked(m, SK_PICKLE_TUPLE);
    case OP_DICT:
        return collect_marked(m, SK_PICKLE_DICT);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return collect_few(m, (size_t)(code - OP_TUPLE1) + 1);
    case OP_APPEND:
        return extend_few(m, SK_PICKLE_LIST, 1);
    case OP_APPENDS:
        return extend_marked(m, SK_PICKLE_LIST);
    case OP_SETITEM:
        return extend_few(m, SK_PICKLE_DICT, 2);
    case OP_SETITEMS:
        return extend_marked(m, SK_PICKLE_DICT);
    case OP_PUT:
        return do_memo(m, true, 0);
    case OP_BINPUT:
        return do_memo(m, true, 1);
    case OP_LONG_BINPUT:
        return do_memo(m, true, 4);
    case OP_MEMOIZE:
        return put(m, m->memo_used);
    case OP_GET:
        return do_memo(m, false, 0);
    case OP_BINGET:
        return do_memo(m, false, 1);
    case OP_LONG_BINGET:
        return do_memo(m, false, 4);
    case OP_GLOBAL:
        return do_global(m);
    case OP_STACK_GLOBAL:
        return do_stack_global(m);
    case OP_REDUCE:
        return sk_pickle_reduce(m);
    case OP_BUILD:
        return sk_pickle_build(m);
    default:
        status = sk_pickle_atom(m, code, &known);
        return known ? status : refuse(m, code);
    }
}

stoker_status sk_pickle_read(const char *shown, const uint8_t *data, size_t size, sk_pickle **out)
{
    sk_machine m = {.shown = shown, .data = data, .size = size};
    stoker_status status = STOKER_OK;

    *out = NULL;
    m.own_left = size <= SIZE_MAX / 8 ? 6 * size + 4096 : SIZE_MAX;
    m.pickle = sk_calloc(1, sizeof *m.pickle);
    if (m.pickle == NULL)
        return STOKER_ERR_MEMORY;
    for (;;) {
        const uint8_t *code;

        m.op_at = m.at;
        status = sk_pickle_take(&m, 1, &code);
        if (status != STOKER_OK || *code == OP_STOP)
            break;
        status = step(&m, *code);
        if (status != STOKER_OK)
            break;
    }
    if (status == STOKER_OK)
        status = sk_pickle_pop(&m, &m.pickle->root);
    sk_free(m.stack);
    sk_free(m.memo);
    if (status == STOKER_OK)
        *out = m.pickle;
    else
        sk_pickle_free(m.pickle);
    return status;
}

void sk_pickle_free(sk_pickle *pickle)
{
    if (pickle == NULL)
        return;
    for (uint32_t i = 0; i < pickle->count; i++) {
        sk_free(pickle->values[i].items);
        sk_free(pickle->values[i].own);
    }
    sk_free(pickle->values);
    sk_free(pickle);
}

/* ------------------------------------------------------------------------------------------------ looking -------- */

const sk_pickle_value *sk_pickle_root(const sk_pickle *pickle)
{
    return &pickle->values[pickle->root];
}

const sk_pickle_value *sk_pickle_item(const sk_pickle *pickle, const sk_pickle_value *list, uint32_t index)
{
    return &pickle->values[list->items[index]];
}

const sk_pickle_value *sk_pickle_find(const sk_pickle *pickle, const sk_pickle_value *dict, const char *key)
{
    size_t length = strlen(key);

    if (dict->kind != SK_PICKLE_DICT)
        return NULL;
    /* The last of equal keys counts, as in Python. */
    for (uint32_t i = dict->count; i >= 2; i -= 2) {
        const sk_pickle_value *found = sk_pickle_item(pickle, dict, i - 2);

        if ((found->kind == SK_PICKLE_BYTES || found->kind == SK_PICKLE_TEXT) && found->size == length &&
            memcmp(found->data, key, length) == 0)
            return sk_pickle_item(pickle, dict, i - 1);
    }
    return NULL;
}

bool sk_pickle_begins(const uint8_t *head, size_t size)
{
    if (size >= 2 && head[0] == OP_PROTO)
        return head[1] >= 2 && head[1] <= 5;
    return (size >= 3 && head[0] == OP_MARK && head[1] == OP_DICT && (head[2] == OP_PUT || head[2] == OP_STOP)) ||
           (size >= 2 && head[0] == OP_EMPTY_DICT && (head[1] == OP_BINPUT || head[1] == OP_STOP));
}
