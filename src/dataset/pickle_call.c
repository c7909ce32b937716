/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_call.c: the few functions and classes that pickled bytes and NumPy arrays name. Each is a case here; nothing is ever looked up
 * by a name from the file.
 */
#include <string.h>

#include "base/memory.h"
#include "dataset/pickle_machine.h"

typedef enum known_global {
    GLOBAL_NDARRAY,
    GLOBAL_DTYPE,
    GLOBAL_RECONSTRUCT, /* an empty array, which BUILD fills */
    GLOBAL_SCALAR,
    GLOBAL_FROMBUFFER, /* protocol 5 */
    GLOBAL_ENCODE,     /* bytes before protocol 3: Latin-1 text, encoded */
    GLOBAL_BYTES,
    GLOBAL_BYTEARRAY
} known_global;

static const struct {
    const char *module, *name;
    known_global which;
} known[] = {
    {"numpy", "ndarray", GLOBAL_NDARRAY},
    {"numpy", "dtype", GLOBAL_DTYPE},
    {"numpy.core.multiarray", "_reconstruct", GLOBAL_RECONSTRUCT},
    {"numpy._core.multiarray", "_reconstruct", GLOBAL_RECONSTRUCT},
    {"numpy.core.multiarray", "scalar", GLOBAL_SCALAR},
    {"numpy._core.multiarray", "scalar", GLOBAL_SCALAR},
    {"numpy.core.numeric", "_frombuffer", GLOBAL_FROMBUFFER},
    {"numpy._core.numeric", "_frombuffer", GLOBAL_FROMBUFFER},
    {"_codecs", "encode", GLOBAL_ENCODE},
    {"__builtin__", "bytes", GLOBAL_BYTES},
    {"builtins", "bytes", GLOBAL_BYTES},
    {"__builtin__", "bytearray", GLOBAL_BYTEARRAY},
    {"builtins", "bytearray", GLOBAL_BYTEARRAY},
};

static bool equals(const uint8_t *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

stoker_status sk_pickle_global(sk_machine *m, const uint8_t *module, size_t module_length, const uint8_t *name,
                               size_t name_length)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (equals(module, module_length, known[i].module) && equals(name, name_length, known[i].name))
            return sk_pickle_push(m, (sk_pickle_value){.kind = SK_PICKLE_GLOBAL, .number = known[i].which});
    }
    return sk_fail(
        STOKER_ERR_UNSUPPORTED,
        "%s: byte %zu: the pickle asks for %.*s.%.*s, which is refused (arrays, text, numbers, lists and dicts "
        "are read)",
        m->shown, m->op_at, module_length < 200 ? (int)module_length : 200, (const char *)module,
        name_length < 200 ? (int)name_length : 200, (const char *)name);
}

/* ------------------------------------------------------------------------------------------------- arrays -------- */

static const sk_pickle_value *argument(const sk_machine *m, const sk_pickle_value *tuple, uint32_t index,
                                       sk_pickle_kind kind)
{
    if (index >= tuple->count)
        return NULL;
    const sk_pickle_value *value = sk_pickle_item(m->pickle, tuple, index);

    return value->kind == kind ? value : NULL;
}

/* A short word as bytes or text. */
static const sk_pickle_value *word_argument(const sk_machine *m, const sk_pickle_value *tuple, uint32_t index)
{
    const sk_pickle_value *text = argument(m, tuple, index, SK_PICKLE_TEXT);

    return text != NULL ? text : argument(m, tuple, index, SK_PICKLE_BYTES);
}

static bool is_byte_order(uint8_t c)
{
    return c == '<' || c == '>' || c == '|' || c == '=';
}

/* dtype('u1', …) */
static stoker_status make_dtype(sk_machine *m, const sk_pickle_value *arguments)
{
    const sk_pickle_value *word = word_argument(m, arguments, 0);
    sk_pickle_value dtype = {.kind = SK_PICKLE_DTYPE};

    if (word == NULL)
        return sk_pickle_broken(m, "a dtype without a name");
    const uint8_t *text = word->data;
    size_t length = word->size;

    if (length > 0 && is_byte_order(text[0])) {
        dtype.big_endian = text[0] == '>';
        text++;
        length--;
    }
    if (length != 2 || strchr("uibf", text[0]) == NULL || text[0] == 0 || strchr("1248", text[1]) == NULL ||
        text[1] == 0)
        return sk_fail(STOKER_ERR_UNSUPPORTED,
                       "%s: byte %zu: an array of type %.*s; integers, floats and booleans are read", m->shown,
                       m->op_at, word->size < 40 ? (int)word->size : 40, (const char *)word->data);
    dtype.element = (char)text[0];
    dtype.width = (uint8_t)(text[1] - '0');
    return sk_pickle_push(m, dtype);
}

/* Whether extents and the bytes belong together. */
static bool fits(const sk_machine *m, const sk_pickle_value *shape, size_t width, size_t size)
{
    size_t total = width;

    if (shape->count > SK_PICKLE_MAX_DIMENSIONS)
        return false;
    for (uint32_t i = 0; i < shape->count; i++) {
        const sk_pickle_value *extent = argument(m, shape, i, SK_PICKLE_INT);

        if (extent == NULL || extent->number < 0 || !sk_multiply(total, (size_t)extent->number, &total))
            return false;
    }
    return total == size;
}

/* Gives an array its elements. */
static stoker_status fill_array(sk_machine *m, uint32_t array_id, uint32_t shape_id, const sk_pickle_value *dtype,
                                const sk_pickle_value *bytes, bool columns_first)
{
    sk_pickle_value *array = &m->pickle->values[array_id];

    if (!fits(m, &m->pickle->values[shape_id], dtype->width, bytes->size))
        return sk_pickle_broken(m, "an array whose bytes do not fit its shape");
    if (array->items == NULL) {
        array->items = sk_malloc(sizeof *array->items);
        if (array->items == NULL)
            return STOKER_ERR_MEMORY;
    }
    array->items[0] = shape_id;
    array->count = array->room = 1;
    array->element = dtype->element;
    array->width = dtype->width;
    array->big_endian = dtype->big_endian;
    array->columns_first = columns_first;
    array->data = bytes->data;
    array->size = bytes->size;
    return STOKER_OK;
}

/* _frombuffer(bytes, dtype, shape, order) */
static stoker_status make_from_buffer(sk_machine *m, const sk_pickle_value *arguments)
{
    const sk_pickle_value *bytes = argument(m, arguments, 0, SK_PICKLE_BYTES);
    const sk_pickle_value *dtype = argument(m, arguments, 1, SK_PICKLE_DTYPE);
    const sk_pickle_value *shape = argument(m, arguments, 2, SK_PICKLE_TUPLE);
    const sk_pickle_value *order = word_argument(m, arguments, 3);

    if (bytes == NULL || dtype == NULL || shape == NULL)
        return sk_pickle_broken(m, "an array of other arguments than bytes, a type and a shape");
    bool columns_first = order != NULL && equals(order->data, order->size, "F");
    uint32_t bytes_id = arguments->items[0], dtype_id = arguments->items[1], shape_id = arguments->items[2];
    stoker_status status = sk_pickle_push(m, (sk_pickle_value){.kind = SK_PICKLE_ARRAY});

    if (status != STOKER_OK)
        return status;
    /* The push may have moved the values. */
    return fill_array(m, m->pickle->count - 1, shape_id, &m->pickle->values[dtype_id], &m->pickle->values[bytes_id],
                      columns_first);
}

/* scalar(dtype, bytes): a NumPy number. */
static stoker_status make_scalar(sk_machine *m, const sk_pickle_value *arguments)
{
    const sk_pickle_value *dtype = argument(m, arguments, 0, SK_PICKLE_DTYPE);
    const sk_pickle_value *bytes = argument(m, arguments, 1, SK_PICKLE_BYTES);
    sk_pickle_value number = {.kind = SK_PICKLE_FLOAT};

    if (dtype == NULL || bytes == NULL || bytes->size != dtype->width)
        return sk_pickle_broken(m, "a NumPy number of other arguments than a type and its bytes");
    if (dtype->element != 'f') {
        sk_pickle_value one = *dtype;

        one.data = bytes->data;
        one.size = bytes->size;
        number.kind = SK_PICKLE_INT;
        if (!sk_pickle_array_integer(&one, 0, &number.number))
            return sk_pickle_broken(m, "an integer of more than 63 bits");
    }
    return sk_pickle_push(m, number);
}

/* encode(text, 'latin1'), bytearray(text, 'latin-1'): the text's characters as bytes. */
static stoker_status make_latin1(sk_machine *m, const sk_pickle_value *arguments)
{
    const sk_pickle_value *text = argument(m, arguments, 0, SK_PICKLE_TEXT);
    const sk_pickle_value *encoding = word_argument(m, arguments, 1);
    size_t used = 0;
    uint8_t *own;

    if (text == NULL || encoding == NULL ||
        (!equals(encoding->data, encoding->size, "latin1") && !equals(encoding->data, encoding->size, "latin-1")))
        return sk_pickle_broken(m, "bytes in another encoding than Latin-1");
    const uint8_t *from = text->data;
    size_t size = text->size;
    stoker_status status = sk_pickle_own(m, size, &own);

    if (status != STOKER_OK)
        return status;
    for (size_t i = 0; i < size;) {
        bool two = i + 1 < size && (from[i] == 0xc2 || from[i] == 0xc3) && (from[i + 1] & 0xc0) == 0x80;

        if (from[i] >= 0x80 && !two) {
            sk_free(own);
            return sk_pickle_broken(m, "a character beyond Latin-1 in bytes");
        }
        own[used++] = two ? (uint8_t)((from[i] & 3) << 6 | (from[i + 1] & 0x3f)) : from[i];
        i += two ? 2 : 1;
    }
    status = sk_pickle_push(m, (sk_pickle_value){.kind = SK_PICKLE_BYTES, .data = own, .size = used, .own = own});
    if (status != STOKER_OK)
        sk_free(own);
    return status;
}

/* bytes(), bytearray(), bytearray(bytes), bytearray(text, 'latin-1') */
static stoker_status make_bytes(sk_machine *m, const sk_pickle_value *arguments)
{
    if (arguments->count == 0)
        return sk_pickle_push(m, (sk_pickle_value){.kind = SK_PICKLE_BYTES, .data = m->data});
    const sk_pickle_value *bytes = argument(m, arguments, 0, SK_PICKLE_BYTES);

    if (bytes != NULL && arguments->count == 1)
        return sk_pickle_push(m, (sk_pickle_value){.kind = SK_PICKLE_BYTES, .data = bytes->data, .size = bytes->size});
    return make_latin1(m, arguments);
}

stoker_status sk_pickle_reduce(sk_machine *m)
{
    uint32_t arguments_id, called_id;
    stoker_status status = sk_pickle_pop(m, &arguments_id);

    if (status == STOKER_OK)
        status = sk_pickle_pop(m, &called_id);
    if (status != STOKER_OK)
        return status;
    const sk_pickle_value *called = &m->pickle->values[called_id], *arguments = &m->pickle->values[arguments_id];

    if (called->kind != SK_PICKLE_GLOBAL || arguments->kind != SK_PICKLE_TUPLE)
        return sk_pickle_broken(m, "it calls what is no function");
    switch ((known_global)called->number) {
    case GLOBAL_RECONSTRUCT:
        return sk_pickle_push(m, (sk_pickle_value){.kind = SK_PICKLE_ARRAY});
    case GLOBAL_DTYPE:
        return make_dtype(m, arguments);
    case GLOBAL_SCALAR:
        return make_scalar(m, arguments);
    case GLOBAL_FROMBUFFER:
        return make_from_buffer(m, arguments);
    case GLOBAL_ENCODE:
        return make_latin1(m, arguments);
    case GLOBAL_BYTES:
    case GLOBAL_BYTEARRAY:
        return make_bytes(m, arguments);
    case GLOBAL_NDARRAY:
        break;
    }
    return sk_pickle_broken(m, "it calls numpy.ndarray, which is only named");
}

/* The state of a dtype: (version, byte order, …). */
static stoker_status build_dtype(sk_machine *m, sk_pickle_value *dtype, const sk_pickle_value *state)
{
    const sk_pickle_value *order = word_argument(m, state, 1);

    if (order == NULL || order->size != 1 || !is_byte_order(order->data[0]))
        return sk_pickle_broken(m, "a dtype without a byte order");
    dtype->big_endian = order->data[0] == '>';
    return STOKER_OK;
}

/* The state of an array: (version, shape, dtype, Fortran order?, bytes); the oldest have no version. */
static stoker_status build_array(sk_machine *m, uint32_t array_id, const sk_pickle_value *state)
{
    uint32_t first = state->count == 5 ? 1 : 0;

    if (state->count != first + 4)
        return sk_pickle_broken(m, "an array's state of neither 4 nor 5 parts");
    const sk_pickle_value *shape = argument(m, state, first, SK_PICKLE_TUPLE);
    const sk_pickle_value *dtype = argument(m, state, first + 1, SK_PICKLE_DTYPE);
    const sk_pickle_value *columns_first = sk_pickle_item(m->pickle, state, first + 2);
    const sk_pickle_value *bytes = argument(m, state, first + 3, SK_PICKLE_BYTES);

    if (shape == NULL || dtype == NULL || bytes == NULL)
        return sk_pickle_broken(m, "an array without a shape, a type or bytes");
    return fill_array(m, array_id, state->items[first], dtype, bytes, columns_first->number != 0);
}

stoker_status sk_pickle_build(sk_machine *m)
{
    uint32_t state_id;
    stoker_status status = sk_pickle_pop(m, &state_id);

    if (status != STOKER_OK)
        return status;
    const sk_pickle_value *state = &m->pickle->values[state_id];
    sk_pickle_value *built = sk_pickle_top(m);

    if (built == NULL || state->kind != SK_PICKLE_TUPLE)
        return sk_pickle_broken(m, "it sets the state of what has none");
    if (built->kind == SK_PICKLE_DTYPE)
        return build_dtype(m, built, state);
    if (built->kind == SK_PICKLE_ARRAY)
        return build_array(m, m->stack[m->depth - 1], state);
    return sk_pickle_broken(m, "it sets the state of what has none");
}

int sk_pickle_shape(const sk_pickle *pickle, const sk_pickle_value *array, int64_t shape[SK_PICKLE_MAX_DIMENSIONS])
{
    if (array->count == 0)
        return 0;
    const sk_pickle_value *tuple = sk_pickle_item(pickle, array, 0);

    for (uint32_t i = 0; i < tuple->count && i < SK_PICKLE_MAX_DIMENSIONS; i++)
        shape[i] = sk_pickle_item(pickle, tuple, i)->number;
    return (int)tuple->count;
}

bool sk_pickle_array_integer(const sk_pickle_value *array, size_t index, int64_t *out)
{
    const uint8_t *at = array->data + index * array->width;
    uint64_t number = 0;

    for (size_t i = 0; i < array->width; i++)
        number |= (uint64_t)at[array->big_endian ? array->width - 1 - i : i] << (8 * i);
    if (array->element == 'i' && array->width < 8 && (number >> (8 * array->width - 1)) != 0)
        number |= UINT64_MAX << (8 * array->width);
    if (array->element == 'u' && number > INT64_MAX)
        return false;
    *out = (int64_t)number;
    return array->element != 'f' && array->element != 0;
}
