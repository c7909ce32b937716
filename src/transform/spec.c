/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.c: text → list of transforms, and back to canonical text.
 *
 * The grammar (docs/transforms.md): a spec is transforms apart by spaces; a transform is a name, and arguments in round
 * brackets apart by commas; an argument is a value, or name=value; a value is a number, a fraction (3/4), a word, or a
 * tuple of these in brackets.
 */
#include "transform/spec.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transform/tensor.h"

#define MAX_ARGUMENTS 8
#define MAX_NUMBERS   8
#define MAX_WORD      32
#define MAX_SIDE      (1 << 20) /* pixels: the largest size or padding that a spec may name */

typedef struct value {
    bool is_word, is_tuple;
    int count; /* numbers */
    double number[MAX_NUMBERS];
    char word[MAX_WORD];
} value;

typedef struct argument {
    int parameter; /* index in the transform's list */
    value value;
    size_t start, end; /* place in the text */
} argument;

/* Where the parser is, and the place that an error marks. */
typedef struct parser {
    const char *text;
    size_t at;
    argument argument[MAX_ARGUMENTS];
    int arguments;
    size_t name_start, name_end; /* of the transform being read */
} parser;

typedef struct op_info {
    const char *name;
    const char *parameter[MAX_ARGUMENTS]; /* in order, NULL at the end */
} op_info;

static const op_info infos[] = {
    [SK_OP_RESIZE] = {"resize", {"size", "interpolation", "max_size"}},
    [SK_OP_CENTER_CROP] = {"center_crop", {"size"}},
    [SK_OP_RANDOM_CROP] = {"random_crop", {"size", "padding", "pad_if_needed", "fill", "padding_mode"}},
    [SK_OP_PAD] = {"pad", {"padding", "fill", "padding_mode"}},
    [SK_OP_RANDOM_RESIZED_CROP] = {"random_resized_crop", {"size", "scale", "ratio", "interpolation"}},
    [SK_OP_HORIZONTAL_FLIP] = {"random_horizontal_flip", {"p"}},
    [SK_OP_VERTICAL_FLIP] = {"random_vertical_flip", {"p"}},
    [SK_OP_GRAYSCALE] = {"grayscale", {"num_output_channels"}},
    [SK_OP_TO_TENSOR] = {"to_tensor", {"reciprocal"}},
    [SK_OP_NORMALIZE] = {"normalize", {"mean", "std"}},
    [SK_OP_TO] = {"to", {"dtype", "layout"}},
};

#define OP_COUNT ((int)(sizeof infos / sizeof infos[0]))

static const char *const mode_names[] = {"constant", "edge", "reflect", "symmetric"};
static const char *const dtype_names[] = {"u8", "f16", "bf16", "f32"};
static const char *const layout_names[] = {"nchw", "nhwc"};

const char *sk_op_name(sk_op_kind kind)
{
    return infos[kind].name;
}

static stoker_status fail_at(const parser *p, size_t start, size_t end, const char *format, ...) SK_PRINTF(4, 5);

/* True inside a character of several bytes (UTF-8), where no text may be cut. */
static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

#define SHOWN 150 /* bytes of a long text that an error shows of each part */

/* The reason, the column, and the text with the place between >> and <<. */
static stoker_status fail_at(const parser *p, size_t start, size_t end, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    const char *text = p->text;
    size_t length = strlen(text), column = start + 1;

    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    end = end > length ? length : end;
    end = end > start + SHOWN ? start + SHOWN : end;
    while (continues(text[end]))
        end++;
    size_t from = start > SHOWN ? start - SHOWN : 0, to = length - end > SHOWN ? end + SHOWN : length;

    while (continues(text[from]))
        from++;
    while (continues(text[to]))
        to++;
    return sk_fail(STOKER_ERR_ARGUMENT, "%s at column %zu: %s%.*s>>%.*s<<%.*s%s", reason, column, from > 0 ? "..." : "",
                   (int)(start - from), text + from, (int)(end - start), text + start, (int)(to - end), text + end,
                   to < length ? "..." : "");
}

static void skip_space(parser *p)
{
    while (p->text[p->at] != '\0' && isspace((unsigned char)p->text[p->at]))
        p->at++;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* A plain decimal number, unsigned; strtod would take hexadecimal, "nan" and the locale's comma. */
static bool parse_decimal(const char *text, size_t *length, double *out)
{
    char digits[64];
    size_t n = 0, at = 0;

    while (isdigit((unsigned char)text[at]) || text[at] == '.' || text[at] == 'e' || text[at] == 'E' ||
           ((text[at] == '-' || text[at] == '+') && at > 0 && (text[at - 1] == 'e' || text[at - 1] == 'E'))) {
        if (n + 1 >= sizeof digits)
            return false;
        digits[n++] = text[at++];
    }
    digits[n] = '\0';
    if (n == 0)
        return false;
    char *end;

    *out = strtod(digits, &end);
    *length = n;
    return *end == '\0' && isfinite(*out);
}

static stoker_status parse_number(parser *p, double *out)
{
    size_t start = p->at, length;
    double sign = 1.0, divisor;

    if (p->text[p->at] == '-' || p->text[p->at] == '+') {
        sign = p->text[p->at] == '-' ? -1.0 : 1.0;
        p->at++;
    }
    if (!parse_decimal(p->text + p->at, &length, out))
        return fail_at(p, start, p->at + 1, "not a number");
    p->at += length;
    if (p->text[p->at] == '/') {
        p->at++;
        if (!parse_decimal(p->text + p->at, &length, &divisor) || divisor == 0.0)
            return fail_at(p, start, p->at + 1, "not a fraction");
        p->at += length;
        *out /= divisor;
    }
    *out *= sign;
    return STOKER_OK;
}

static bool starts_number(char c)
{
    return isdigit((unsigned char)c) || c == '.' || c == '-' || c == '+';
}

static stoker_status parse_value(parser *p, value *out)
{
    memset(out, 0, sizeof *out);
    skip_space(p);
    char c = p->text[p->at];

    if (starts_number(c)) {
        out->count = 1;
        return parse_number(p, &out->number[0]);
    }
    if (c == '(' || c == '[') {
        char close = c == '(' ? ')' : ']';
        size_t open = p->at++;

        out->is_tuple = true;
        for (;;) {
            skip_space(p);
            if (p->text[p->at] == close && out->count > 0)
                break;
            if (p->text[p->at] == '\0')
                return fail_at(p, open, p->at, "bracket is not closed");
            if (out->count == MAX_NUMBERS)
                return fail_at(p, open, p->at, "more than %d numbers", MAX_NUMBERS);
            stoker_status status = parse_number(p, &out->number[out->count]);

            if (status != STOKER_OK)
                return status;
            out->count++;
            skip_space(p);
            if (p->text[p->at] == ',')
                p->at++;
            else if (p->text[p->at] != close && p->text[p->at] != '\0')
                return fail_at(p, p->at, p->at + 1, "',' or '%c' is missing", close);
        }
        p->at++;
        return STOKER_OK;
    }
    if (isalpha((unsigned char)c)) {
        size_t start = p->at;

        while (is_name(p->text[p->at]))
            p->at++;
        size_t length = p->at - start;

        if (length >= MAX_WORD)
            return fail_at(p, start, p->at, "unknown word");
        memcpy(out->word, p->text + start, length);
        out->is_word = true;
        return STOKER_OK;
    }
    return fail_at(p, p->at, p->at + 1, "a value is missing");
}

static int find_parameter(const op_info *info, const char *name, size_t length)
{
    for (int i = 0; i < MAX_ARGUMENTS && info->parameter[i] != NULL; i++) {
        if (strlen(info->parameter[i]) == length && memcmp(info->parameter[i], name, length) == 0)
            return i;
    }
    return -1;
}

/* The name of a name=value argument at `at`: its length, or 0. */
static size_t keyword_length(const char *text)
{
    size_t length = 0;

    while (is_name(text[length]))
        length++;
    size_t equals = length;

    while (isspace((unsigned char)text[equals]))
        equals++;
    return length > 0 && text[equals] == '=' ? length : 0;
}

static stoker_status parse_argument(parser *p, const op_info *info, int position)
{
    skip_space(p);
    size_t start = p->at;
    size_t keyword = keyword_length(p->text + p->at);
    int parameter = position;

    if (keyword > 0) {
        parameter = find_parameter(info, p->text + p->at, keyword);
        if (parameter < 0)
            return fail_at(p, start, start + keyword, "%s has no argument '%.*s'", info->name, (int)keyword,
                           p->text + start);
        p->at += keyword;
        skip_space(p);
        p->at++; /* the '=' */
    } else if (position >= MAX_ARGUMENTS || info->parameter[position] == NULL) {
        return fail_at(p, start, start + 1, "%s takes no more arguments", info->name);
    }
    for (int i = 0; i < p->arguments; i++) {
        if (p->argument[i].parameter == parameter)
            return fail_at(p, start, p->at, "argument '%s' is given twice", info->parameter[parameter]);
    }
    argument *a = &p->argument[p->arguments];
    stoker_status status = parse_value(p, &a->value);

    if (status != STOKER_OK)
        return status;
    a->parameter = parameter;
    a->start = start;
    a->end = p->at;
    p->arguments++;
    return STOKER_OK;
}

static stoker_status parse_arguments(parser *p, const op_info *info)
{
    p->arguments = 0;
    if (p->text[p->at] != '(')
        return STOKER_OK;
    size_t open = p->at++;

    skip_space(p);
    if (p->text[p->at] == ')') {
        p->at++;
        return STOKER_OK;
    }
    for (int position = 0;; position++) {
        if (p->arguments == MAX_ARGUMENTS)
            return fail_at(p, open, p->at, "too many arguments");
        stoker_status status = parse_argument(p, info, position);

        if (status != STOKER_OK)
            return status;
        skip_space(p);
        if (p->text[p->at] == ',') {
            p->at++;
            continue;
        }
        if (p->text[p->at] == ')')
            break;
        if (p->text[p->at] == '\0')
            return fail_at(p, open, p->at, "bracket is not closed");
        return fail_at(p, p->at, p->at + 1, "',' or ')' is missing");
    }
    p->at++;
    return STOKER_OK;
}

/* ------------------------------------------------------------------------- arguments → transform's fields -------- */

/* The argument for `name`; NULL if it is not given, or given as none. */
static const argument *find(const parser *p, const op_info *info, const char *name)
{
    for (int i = 0; i < p->arguments; i++) {
        const argument *a = &p->argument[i];

        if (strcmp(info->parameter[a->parameter], name) == 0)
            return a->value.is_word && strcmp(a->value.word, "none") == 0 ? NULL : a;
    }
    return NULL;
}

static stoker_status fail_argument(const parser *p, const argument *a, const char *expected)
{
    return fail_at(p, a->start, a->end, "expected %s", expected);
}

static stoker_status fail_missing(const parser *p, const op_info *info, const char *name)
{
    return fail_at(p, p->name_start, p->name_end, "%s needs the argument '%s'", info->name, name);
}

static bool whole_number(double number, double low, double high, int32_t *out)
{
    if (!(number >= low && number <= high) || number != floor(number))
        return false;
    *out = (int32_t)number;
    return true;
}

/* size: n or (height, width). */
static stoker_status get_size(const parser *p, const op_info *info, bool one_is_square, sk_op *op)
{
    const argument *a = find(p, info, "size");

    if (a == NULL)
        return fail_missing(p, info, "size");
    const value *v = &a->value;

    if (v->is_word || v->count > 2 || !whole_number(v->number[0], 1, MAX_SIDE, &op->height) ||
        (v->count == 2 && !whole_number(v->number[1], 1, MAX_SIDE, &op->width)))
        return fail_argument(p, a, "a size: a whole number from 1, or (height,width)");
    if (v->count == 1)
        op->width = one_is_square ? op->height : 0;
    return STOKER_OK;
}

static stoker_status get_word(const parser *p, const op_info *info, const char *name, const char *const *words,
                              int count, const char *expected, int *out)
{
    const argument *a = find(p, info, name);

    if (a == NULL)
        return STOKER_OK;
    for (int i = 0; i < count && a->value.is_word; i++) {
        if (strcmp(a->value.word, words[i]) == 0) {
            *out = i;
            return STOKER_OK;
        }
    }
    return fail_argument(p, a, expected);
}

static stoker_status get_filter(const parser *p, const op_info *info, sk_op *op)
{
    static const char *const words[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};
    int filter = SK_FILTER_BILINEAR;
    stoker_status status =
        get_word(p, info, "interpolation", words, 6, "nearest, box, bilinear, hamming, bicubic or lanczos", &filter);

    op->filter = (sk_filter)filter;
    return status;
}

/* padding: n, (left/right, top/bottom), or (left, top, right, bottom), as torchvision has it. */
static stoker_status get_padding(const parser *p, const op_info *info, bool required, sk_op *op)
{
    const argument *a = find(p, info, "padding");

    if (a == NULL)
        return required ? fail_missing(p, info, "padding") : STOKER_OK;
    const value *v = &a->value;
    bool good = !v->is_word && (v->count == 1 || v->count == 2 || v->count == 4);

    for (int i = 0; good && i < 4; i++) {
        int from = v->count == 1 ? 0 : v->count == 2 ? i % 2 : i;

        good = whole_number(v->number[from], 0, MAX_SIDE, &op->padding[i]);
    }
    return good ? STOKER_OK
                : fail_argument(p, a, "padding: a whole number, (left/right,top/bottom) or (left,top,right,bottom)");
}

static stoker_status get_fill(const parser *p, const op_info *info, sk_op *op)
{
    const argument *a = find(p, info, "fill");

    if (a == NULL)
        return STOKER_OK;
    const value *v = &a->value;
    bool good = !v->is_word && (v->count == 1 || v->count == 3);

    for (int i = 0; good && i < 3; i++) {
        int32_t fill = 0;

        good = whole_number(v->number[v->count == 1 ? 0 : i], 0, 255, &fill);
        op->fill[i] = (uint8_t)fill;
    }
    return good ? STOKER_OK : fail_argument(p, a, "a fill: a whole number 0..255, or (red,green,blue)");
}

static stoker_status get_mode(const parser *p, const op_info *info, sk_op *op)
{
    int mode = SK_PAD_CONSTANT;
    stoker_status status =
        get_word(p, info, "padding_mode", mode_names, 4, "constant, edge, reflect or symmetric", &mode);

    op->mode = (sk_padding_mode)mode;
    return status;
}

/* A pair of numbers, the first not above the second; above 0, or from 0 on where `zero`. */
static stoker_status get_range(const parser *p, const op_info *info, const char *name, bool zero, double low,
                               double high, double out[2])
{
    const argument *a = find(p, info, name);

    out[0] = low;
    out[1] = high;
    if (a == NULL)
        return STOKER_OK;
    const value *v = &a->value;

    if (v->is_word || v->count != 2 || v->number[0] < 0.0 || (v->number[0] == 0.0 && !zero) ||
        !(v->number[0] <= v->number[1]) || v->number[1] > 1e6)
        return fail_argument(
            p, a, zero ? "a pair (low,high) with 0 <= low <= high" : "a pair (low,high) with 0 < low <= high");
    out[0] = v->number[0];
    out[1] = v->number[1];
    return STOKER_OK;
}

static stoker_status get_probability(const parser *p, const op_info *info, sk_op *op)
{
    const argument *a = find(p, info, "p");

    op->p = 0.5;
    if (a == NULL)
        return STOKER_OK;
    op->p = a->value.number[0];
    if (a->value.is_word || a->value.count != 1 || !(op->p >= 0.0 && op->p <= 1.0))
        return fail_argument(p, a, "a probability 0..1");
    return STOKER_OK;
}

/* Mean and standard deviation of training sets, as the field quotes them: ImageNet from torchvision's documentation of
 * its models; CIFAR and (Fashion-)MNIST as computed over all training pixels, in the rounding that published recipes
 * use. */
static const struct preset {
    const char *name;
    int32_t channels;
    double mean[3], std[3];
} presets[] = {
    {"imagenet", 3, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {"cifar10", 3, {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}},
    {"cifar100", 3, {0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}},
    {"mnist", 1, {0.1307}, {0.3081}},
    {"fashion_mnist", 1, {0.2860}, {0.3530}},
};

static stoker_status get_normal(const parser *p, const op_info *info, sk_op *op)
{
    const argument *mean = find(p, info, "mean");
    const argument *std = find(p, info, "std");

    if (mean == NULL)
        return fail_missing(p, info, "mean");
    if (mean->value.is_word) {
        for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
            if (strcmp(presets[i].name, mean->value.word) != 0)
                continue;
            if (std != NULL)
                return fail_argument(p, std, "no std beside a preset's name");
            op->channels = presets[i].channels;
            for (int c = 0; c < op->channels; c++) {
                op->mean[c] = (float)presets[i].mean[c];
                op->std[c] = (float)presets[i].std[c];
            }
            return STOKER_OK;
        }
        return fail_argument(p, mean, "numbers, or imagenet, cifar10, cifar100, mnist or fashion_mnist");
    }
    if (std == NULL)
        return fail_missing(p, info, "std");
    if (mean->value.count != 1 && mean->value.count != 3)
        return fail_argument(p, mean, "1 or 3 numbers");
    if (std->value.is_word || std->value.count != mean->value.count)
        return fail_argument(p, std, "as many numbers as mean has");
    op->channels = mean->value.count;
    for (int c = 0; c < op->channels; c++) {
        op->mean[c] = (float)mean->value.number[c];
        op->std[c] = (float)std->value.number[c];
        if (!isfinite(op->mean[c]))
            return fail_argument(p, mean, "numbers that fit float32");
        if (op->std[c] == 0.0f || !isfinite(op->std[c]))
            return fail_argument(p, std, "a std that is not 0 and fits float32");
    }
    return STOKER_OK;
}

static stoker_status get_to(const parser *p, const op_info *info, sk_op *op)
{
    int dtype = STOKER_U8, layout = STOKER_NCHW;

    if (find(p, info, "dtype") == NULL)
        return fail_missing(p, info, "dtype");
    stoker_status status = get_word(p, info, "dtype", dtype_names, 4, "u8, f16, bf16 or f32", &dtype);

    if (status == STOKER_OK)
        status = get_word(p, info, "layout", layout_names, 2, "nchw or nhwc", &layout);
    op->dtype = (stoker_dtype)dtype;
    op->layout = (stoker_layout)layout;
    return status;
}

static stoker_status get_max_size(const parser *p, const op_info *info, sk_op *op)
{
    const argument *a = find(p, info, "max_size");

    if (a == NULL)
        return STOKER_OK;
    if (op->width != 0)
        return fail_argument(p, a, "no max_size beside a (height,width)");
    if (a->value.is_word || a->value.count != 1 || !whole_number(a->value.number[0], 1, MAX_SIDE, &op->max_size) ||
        op->max_size <= op->height)
        return fail_argument(p, a, "a max_size greater than size");
    return STOKER_OK;
}

static stoker_status get_bool(const parser *p, const op_info *info, const char *name, bool *out)
{
    static const char *const words[] = {"false", "true"};
    int word = *out;
    stoker_status status = get_word(p, info, name, words, 2, "true or false", &word);

    *out = word != 0;
    return status;
}

static stoker_status get_gray_channels(const parser *p, const op_info *info, sk_op *op)
{
    const argument *a = find(p, info, "num_output_channels");

    op->gray_channels = 1;
    if (a == NULL)
        return STOKER_OK;
    if (a->value.is_word || a->value.count != 1 || !whole_number(a->value.number[0], 1, 3, &op->gray_channels) ||
        op->gray_channels == 2)
        return fail_argument(p, a, "1 or 3");
    return STOKER_OK;
}

static stoker_status build(const parser *p, sk_op *op)
{
    const op_info *info = &infos[op->kind];
    stoker_status status = STOKER_OK;

    switch (op->kind) {
    case SK_OP_RESIZE:
        status = get_size(p, info, false, op);
        if (status == STOKER_OK)
            status = get_filter(p, info, op);
        return status == STOKER_OK ? get_max_size(p, info, op) : status;
    case SK_OP_CENTER_CROP:
        return get_size(p, info, true, op);
    case SK_OP_RANDOM_CROP:
        status = get_size(p, info, true, op);
        if (status == STOKER_OK)
            status = get_padding(p, info, false, op);
        if (status == STOKER_OK)
            status = get_bool(p, info, "pad_if_needed", &op->pad_if_needed);
        if (status == STOKER_OK)
            status = get_fill(p, info, op);
        return status == STOKER_OK ? get_mode(p, info, op) : status;
    case SK_OP_PAD:
        status = get_padding(p, info, true, op);
        if (status == STOKER_OK)
            status = get_fill(p, info, op);
        return status == STOKER_OK ? get_mode(p, info, op) : status;
    case SK_OP_RANDOM_RESIZED_CROP:
        status = get_size(p, info, true, op);
        if (status == STOKER_OK)
            status = get_range(p, info, "scale", true, 0.08, 1.0, op->scale);
        if (status == STOKER_OK)
            status = get_range(p, info, "ratio", false, 3.0 / 4.0, 4.0 / 3.0, op->ratio);
        return status == STOKER_OK ? get_filter(p, info, op) : status;
    case SK_OP_HORIZONTAL_FLIP:
    case SK_OP_VERTICAL_FLIP:
        return get_probability(p, info, op);
    case SK_OP_GRAYSCALE:
        return get_gray_channels(p, info, op);
    case SK_OP_TO_TENSOR:
        return get_bool(p, info, "reciprocal", &op->reciprocal);
    case SK_OP_NORMALIZE:
        return get_normal(p, info, op);
    case SK_OP_TO:
        return get_to(p, info, op);
    }
    return status;
}

/* ---------------------------------------------------------------------------------------- whole specs -------- */

/* Whether `op` gives the same after its input was scaled and normalised as before, so that it may be run on bytes all
 * the same: flips and cuts, and pads but for a fill. (A fill of 0 is 0 after to_tensor too, but not after normalize.)
 */
static bool commutes(const stoker_spec *spec, const sk_op *op)
{
    bool normalised = false;
    bool fills = op->mode == SK_PAD_CONSTANT;

    for (int32_t i = 0; i < spec->count; i++)
        normalised = normalised || spec->op[i].kind == SK_OP_NORMALIZE;
    switch (op->kind) {
    case SK_OP_HORIZONTAL_FLIP:
    case SK_OP_VERTICAL_FLIP:
        return true;
    case SK_OP_CENTER_CROP: /* pads with 0 where the image is too small */
        return !normalised;
    case SK_OP_RANDOM_CROP:
        if (!op->pad_if_needed && op->padding[0] + op->padding[1] + op->padding[2] + op->padding[3] == 0)
            return true;
        break;
    case SK_OP_PAD:
        break;
    default:
        return false;
    }
    return !fills || (!normalised && op->fill[0] == 0 && op->fill[1] == 0 && op->fill[2] == 0);
}

/* What stands where: pixels are worked on as bytes, so once values are floats only what commutes with arithmetic on
 * single values may follow; nothing follows to. */
static stoker_status check_order(const parser *p, const stoker_spec *spec, const sk_op *op)
{
    const char *name = infos[op->kind].name;
    bool is_float = spec->scaled;
    bool ended = spec->count > 0 && spec->op[spec->count - 1].kind == SK_OP_TO;
    bool to_float = op->kind == SK_OP_NORMALIZE || (op->kind == SK_OP_TO && op->dtype != STOKER_U8);

    if (ended)
        return fail_at(p, p->name_start, p->name_end, "nothing can follow to: %s", name);
    if (is_float && op->kind == SK_OP_TO_TENSOR)
        return fail_at(p, p->name_start, p->name_end, "to_tensor after to_tensor or normalize");
    if (is_float && op->kind == SK_OP_TO && op->dtype == STOKER_U8)
        return fail_at(p, p->name_start, p->name_end, "to(u8) after to_tensor or normalize, which make floats");
    if (is_float && !to_float && !commutes(spec, op))
        return fail_at(p, p->name_start, p->name_end, "%s must stand before to_tensor and normalize", name);
    return STOKER_OK;
}

static stoker_status parse_transform(parser *p, stoker_spec *spec)
{
    sk_op op;

    memset(&op, 0, sizeof op);
    p->name_start = p->at;
    while (is_name(p->text[p->at]))
        p->at++;
    p->name_end = p->at;
    size_t length = p->name_end - p->name_start;
    const char *name = p->text + p->name_start;
    int kind = -1;

    if (length == 0)
        return fail_at(p, p->at, p->at + 1, "a transform's name is missing");
    for (int i = 0; i < OP_COUNT; i++) {
        if (strlen(infos[i].name) == length && memcmp(infos[i].name, name, length) == 0)
            kind = i;
    }
    if (kind < 0)
        return fail_at(p, p->name_start, p->name_end, "unknown transform '%.*s'", (int)length, name);
    if (spec->count == STOKER_MAX_TRANSFORMS)
        return fail_at(p, p->name_start, p->name_end, "more than %d transforms", STOKER_MAX_TRANSFORMS);
    stoker_status status = parse_arguments(p, &infos[kind]);

    if (status != STOKER_OK)
        return status;
    op.kind = (sk_op_kind)kind;
    status = build(p, &op);
    if (status == STOKER_OK)
        status = check_order(p, spec, &op);
    if (status != STOKER_OK)
        return status;
    if (op.kind == SK_OP_TO_TENSOR || op.kind == SK_OP_NORMALIZE || (op.kind == SK_OP_TO && op.dtype != STOKER_U8))
        spec->scaled = true;
    spec->op[spec->count++] = op;
    return STOKER_OK;
}

/* Text that grows. */
typedef struct writer {
    char *text;
    size_t used, room;
} writer;

static void put(writer *w, const char *format, ...) SK_PRINTF(2, 3);

static void put(writer *w, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int n = vsnprintf(w->text + w->used, w->room - w->used, format, arguments);

    va_end(arguments);
    w->used += (size_t)n < w->room - w->used ? (size_t)n : w->room - w->used - 1;
}

static void put_floats(writer *w, const float *number, int count)
{
    for (int i = 0; i < count; i++)
        put(w, "%s%.9g", i == 0 ? "(" : ",", (double)number[i]);
    put(w, ")");
}

static void write_op(writer *w, const sk_op *op)
{
    put(w, "%s", infos[op->kind].name);
    switch (op->kind) {
    case SK_OP_RESIZE:
        if (op->width != 0)
            put(w, "(size=(%d,%d)", op->height, op->width);
        else
            put(w, "(size=%d", op->height);
        put(w, ",interpolation=%s,max_size=", sk_filter_name(op->filter));
        if (op->max_size != 0)
            put(w, "%d)", op->max_size);
        else
            put(w, "none)");
        break;
    case SK_OP_CENTER_CROP:
        put(w, "(size=(%d,%d))", op->height, op->width);
        break;
    case SK_OP_RANDOM_CROP:
    case SK_OP_PAD:
        put(w, "(");
        if (op->kind == SK_OP_RANDOM_CROP)
            put(w, "size=(%d,%d),", op->height, op->width);
        put(w, "padding=(%d,%d,%d,%d),", op->padding[0], op->padding[1], op->padding[2], op->padding[3]);
        if (op->kind == SK_OP_RANDOM_CROP)
            put(w, "pad_if_needed=%s,", op->pad_if_needed ? "true" : "false");
        put(w, "fill=(%d,%d,%d),padding_mode=%s)", op->fill[0], op->fill[1], op->fill[2], mode_names[op->mode]);
        break;
    case SK_OP_RANDOM_RESIZED_CROP:
        put(w, "(size=(%d,%d),scale=(%.17g,%.17g),ratio=(%.17g,%.17g),interpolation=%s)", op->height, op->width,
            op->scale[0], op->scale[1], op->ratio[0], op->ratio[1], sk_filter_name(op->filter));
        break;
    case SK_OP_HORIZONTAL_FLIP:
    case SK_OP_VERTICAL_FLIP:
        put(w, "(p=%.17g)", op->p);
        break;
    case SK_OP_GRAYSCALE:
        put(w, "(num_output_channels=%d)", op->gray_channels);
        break;
    case SK_OP_TO_TENSOR:
        if (op->reciprocal)
            put(w, "(reciprocal=true)");
        break;
    case SK_OP_NORMALIZE:
        put(w, "(mean=");
        put_floats(w, op->mean, op->channels);
        put(w, ",std=");
        put_floats(w, op->std, op->channels);
        put(w, ")");
        break;
    case SK_OP_TO:
        put(w, "(dtype=%s,layout=%s)", dtype_names[op->dtype], layout_names[op->layout]);
        break;
    }
}

#define CANONICAL_ROOM 512 /* bytes; the longest transform takes under 250 */

static stoker_status write_canonical(stoker_spec *spec)
{
    writer w = {.room = (size_t)(spec->count + 1) * CANONICAL_ROOM};

    w.text = sk_malloc(w.room);
    if (w.text == NULL)
        return STOKER_ERR_MEMORY;
    w.text[0] = '\0';
    for (int32_t i = 0; i < spec->count; i++) {
        if (i > 0)
            put(&w, " ");
        write_op(&w, &spec->op[i]);
    }
    spec->text = w.text;
    return STOKER_OK;
}

static stoker_status parse_spec(const char *text, stoker_spec *spec)
{
    parser p = {.text = text != NULL ? text : ""};

    for (skip_space(&p); p.text[p.at] != '\0'; skip_space(&p)) {
        stoker_status status = parse_transform(&p, spec);

        if (status != STOKER_OK)
            return status;
    }
    const sk_op *last = spec->count > 0 ? &spec->op[spec->count - 1] : NULL;

    if (last != NULL && last->kind == SK_OP_TO) {
        spec->dtype = last->dtype;
        spec->layout = last->layout;
    } else {
        spec->dtype = spec->scaled ? STOKER_F32 : STOKER_U8;
        spec->layout = spec->scaled ? STOKER_NCHW : STOKER_NHWC;
    }
    sk_tensor_prepare(spec);
    return write_canonical(spec);
}

stoker_status stoker_spec_parse(const char *text, stoker_spec **out)
{
    *out = NULL;
    /* Numbers are read and written with a point whatever locale the program around us has set. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    stoker_spec *spec = sk_calloc(1, sizeof *spec);
    stoker_status status = STOKER_ERR_MEMORY;

    if (plain == (locale_t)0) {
        status = sk_fail(STOKER_ERR_MEMORY, "out of memory: the plain locale");
    } else if (spec != NULL) {
        locale_t before = uselocale(plain);

        status = parse_spec(text, spec);
        uselocale(before);
    }
    if (plain != (locale_t)0)
        freelocale(plain);
    if (status == STOKER_OK)
        *out = spec;
    else
        stoker_spec_free(spec);
    return status;
}

void stoker_spec_free(stoker_spec *spec)
{
    if (spec == NULL)
        return;
    sk_free(spec->text);
    sk_free(spec);
}

const char *stoker_spec_text(const stoker_spec *spec)
{
    return spec->text;
}

stoker_dtype stoker_spec_dtype(const stoker_spec *spec)
{
    return spec->dtype;
}

stoker_layout stoker_spec_layout(const stoker_spec *spec)
{
    return spec->layout;
}
