/* From labels to codes at the speed of memory: equal labels get equal codes, in the order in which they first occur.
 *
 * A label is a record of bytes: a string of fixed width, a number, a time, the address of a Python object, or a slice of
 * Arrow's text. Python looks at the first record of each kind only, to rank the values and to reject wrong ones. Records
 * are found in a hash table with linear probing that is at most a quarter full. Where labels are too many, or collide so
 * often that someone must have meant it, the table gives up and Python takes another way.
 *
 * Python checks what it passes; this file checks again that no loop can leave its arrays, and raises ValueError.
 * The NumPy twin of each function is in labels.py.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_arguments.h"

#define SLOT_BITS 10 /* of a new table */
#define SLOTS (1 << SLOT_BITS)
#define PROBES 64  /* slots that are tried for a record */
#define BLOCK 4096 /* codes that are checked together */

struct slot {
    uint64_t hash;
    int32_t code; /* counted from 1; 0: free */
};

struct table {
    struct slot *slots;
    uint64_t mask;  /* number of slots - 1 */
    int shift;      /* from a hash to a slot */
    int64_t *first; /* position of the first record of each code */
    int64_t number, limit;
};

enum outcome { FOUND, GIVEN_UP, NO_MEMORY, WRONG_OFFSETS };

/* ---- records ---- */

static inline uint64_t load(const char *bytes, int64_t width)
{
    uint64_t word = 0;
    uint32_t low, high;
    uint16_t half, other;
    if (width >= 8)
        memcpy(&word, bytes, 8);
    else if (width >= 4) {
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + width - 4, 4);
        word = low | (uint64_t)high << 32;
    } else if (width >= 2) {
        memcpy(&half, bytes, 2);
        memcpy(&other, bytes + width - 2, 2);
        word = half | (uint32_t)other << 16;
    } else if (width)
        word = (unsigned char)*bytes;
    return word;
}

static inline uint64_t fold(uint64_t hash) { return hash ^ hash >> 32; }

/* Hash 32 bytes at a time, as products that do not wait for one another; the words of the rest may overlap, so that
 * nothing beyond the record is read. The upper bits are the good ones. */
static inline uint64_t hash_record(const char *bytes, int64_t width)
{
    const uint64_t a = 0x9E3779B97F4A7C15u, b = 0xC2B2AE3D27D4EB4Fu, c = 0xD6E8FEB86659FD93u, d = 0xA0761D6478BD642Fu;
    uint64_t hash = (uint64_t)width;
    for (; width > 32; width -= 32, bytes += 32)
        hash = fold((hash ^ load(bytes, 8)) * a + load(bytes + 8, 8) * b + load(bytes + 16, 8) * c +
                    load(bytes + 24, 8) * d);
    if (width > 16)
        hash = (hash ^ load(bytes, 8)) * a + load(bytes + 8, 8) * b + load(bytes + width - 16, 8) * c +
               load(bytes + width - 8, 8) * d;
    else if (width > 8)
        hash = (hash ^ load(bytes, 8)) * a + load(bytes + width - 8, 8) * b;
    else
        hash = (hash ^ load(bytes, width)) * a;
    return fold(hash) * c;
}

static inline int equal_records(const char *one, const char *other, int64_t width)
{
    for (; width > 16; width -= 16, one += 16, other += 16)
        if ((load(one, 8) ^ load(other, 8)) | (load(one + 8, 8) ^ load(other + 8, 8)))
            return 0;
    if (width <= 8)
        return load(one, width) == load(other, width);
    return !((load(one, 8) ^ load(other, 8)) | (load(one + width - 8, 8) ^ load(other + width - 8, 8)));
}

/* ---- the table ---- */

static enum outcome start_table(struct table *table, int64_t limit)
{
    *table = (struct table){calloc(SLOTS, sizeof *table->slots), SLOTS - 1, 64 - SLOT_BITS, NULL, 0, limit};
    table->first = malloc(SLOTS / 4 * sizeof *table->first);
    return table->slots && table->first ? FOUND : NO_MEMORY;
}

/* Make room for four times as many records. */
static enum outcome grow(struct table *table)
{
    uint64_t mask = 4 * (table->mask + 1) - 1;
    struct slot *slots = calloc(mask + 1, sizeof *slots);
    int64_t *first = realloc(table->first, (mask + 1) / 4 * sizeof *first);
    table->first = first ? first : table->first;
    if (!slots || !first) {
        free(slots);
        return NO_MEMORY;
    }
    for (uint64_t k = 0; k <= table->mask; k++) {
        if (!table->slots[k].code)
            continue;
        uint64_t at = table->slots[k].hash >> (table->shift - 2);
        while (slots[at].code)
            at = (at + 1) & mask;
        slots[at] = table->slots[k];
    }
    free(table->slots);
    table->slots = slots;
    table->mask = mask;
    table->shift -= 2;
    return FOUND;
}

static enum outcome add(struct table *table, uint64_t at, uint64_t hash, int64_t position)
{
    if (table->number == table->limit)
        return GIVEN_UP;
    table->first[table->number++] = position;
    table->slots[at] = (struct slot){hash, (int32_t)table->number};
    return 4 * (uint64_t)table->number > table->mask ? grow(table) : FOUND;
}

/* Write the code of a record; BEGIN(i) is where record i begins, and `width` its length. */
#define FIND(i, width, BEGIN, SAME_WIDTH) \
    do { \
        const char *bytes = BEGIN(i); \
        uint64_t hash = hash_record(bytes, width), at = hash >> table->shift; \
        int probes = 0; \
        for (; table->slots[at].code; at = (at + 1) & table->mask) { \
            int32_t code = table->slots[at].code - 1; \
            if (table->slots[at].hash == hash && SAME_WIDTH(table->first[code], width) && \
                equal_records(bytes, BEGIN(table->first[code]), width)) { \
                codes[i] = code; \
                break; \
            } \
            if (++probes == PROBES) \
                return GIVEN_UP; \
        } \
        if (!table->slots[at].code) { \
            codes[i] = (int32_t)table->number; \
            enum outcome outcome = add(table, at, hash, i); \
            if (outcome != FOUND) \
                return outcome; \
        } \
    } while (0)

#define FIXED(i) (records + (i) * width)
#define ANY_WIDTH(i, width) 1

static inline enum outcome find_fixed(const char *records, int64_t number, int64_t width, int32_t *codes,
                                      struct table *table)
{
    for (int64_t i = 0; i < number; i++)
        FIND(i, width, FIXED, ANY_WIDTH);
    return FOUND;
}

/* Records of common widths get loops of their own. */
static enum outcome find_records(const char *records, int64_t number, int64_t width, int32_t *codes,
                                 struct table *table)
{
    switch (width) {
    case 1: return find_fixed(records, number, 1, codes, table);
    case 2: return find_fixed(records, number, 2, codes, table);
    case 4: return find_fixed(records, number, 4, codes, table);
    case 8: return find_fixed(records, number, 8, codes, table);
    default: return find_fixed(records, number, width, codes, table);
    }
}

#define SLICE(i) (text + offsets[i])
#define EQUAL_WIDTH(i, width) (offsets[(i) + 1] - offsets[i] == (width))

static enum outcome find_text(const char *text, int64_t size, const int32_t *offsets, int64_t number, int32_t *codes,
                              struct table *table)
{
    for (int64_t i = 0; i < number; i++) {
        if (offsets[i] < 0 || offsets[i + 1] < offsets[i] || offsets[i + 1] > size)
            return WRONG_OFFSETS;
        int64_t width = offsets[i + 1] - offsets[i];
        FIND(i, width, SLICE, EQUAL_WIDTH);
    }
    return FOUND;
}

/* ---- arguments ---- */

/* List the position of the first record of each code, and give the table back. */
static PyObject *list_first(struct arrays *arrays, struct table *table, enum outcome outcome)
{
    PyObject *list = outcome == FOUND ? PyList_New(table->number) : NULL;
    for (int64_t k = 0; list && k < table->number; k++) {
        PyObject *position = PyLong_FromLongLong(table->first[k]);
        if (!position || PyList_SetItem(list, k, position) < 0)
            Py_CLEAR(list);
    }
    if (outcome == NO_MEMORY)
        PyErr_NoMemory();
    refuse(outcome == WRONG_OFFSETS, "the offsets do not fit the text");
    free(table->slots);
    free(table->first);
    return list ? (release(arrays), list) : finish(arrays);
}

/* ---- functions for Python ---- */

PyDoc_STRVAR(find_distinct_doc,
             "find_distinct(records, codes, limit)\n--\n\n"
             "Write the code of each record: bytes of shape (records, width), or objects, compared by address.\n"
             "Return the position of the first record of each code; None: there are more than `limit` codes.");

static PyObject *find_distinct(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *records, *codes;
    Py_ssize_t limit;
    struct arrays arrays = {.number = 0};
    Py_buffer *x, *out;
    if (!PyArg_ParseTuple(arguments, "OOn", &records, &codes, &limit))
        return NULL;
    if (!(x = take(&arrays, records, 1, "O", 0))) {
        PyErr_Clear();
        release(&arrays);
        x = take(&arrays, records, 2, "B", 0);
    }
    if (!x || !(out = take(&arrays, codes, 1, "i", 1)) ||
        refuse(out->shape[0] != x->shape[0] || limit < 0 || limit >= INT32_MAX, "the codes do not fit the records"))
        return finish(&arrays);
    struct table table;
    enum outcome outcome = start_table(&table, limit);
    if (outcome == FOUND) {
        Py_BEGIN_ALLOW_THREADS
        outcome = find_records(x->buf, x->shape[0], x->ndim == 2 ? x->shape[1] : x->itemsize, out->buf, &table);
        Py_END_ALLOW_THREADS
    }
    return list_first(&arrays, &table, outcome);
}

PyDoc_STRVAR(find_distinct_text_doc,
             "find_distinct_text(text, offsets, codes, limit)\n--\n\n"
             "Write the code of each slice text[offsets[i]:offsets[i + 1]] of the bytes of a text.\n"
             "Return the position of the first slice of each code; None: there are more than `limit` codes.");

static PyObject *find_distinct_text(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *text, *offsets, *codes;
    Py_ssize_t limit;
    struct arrays arrays = {.number = 0};
    Py_buffer *bytes, *edges, *out;
    if (!PyArg_ParseTuple(arguments, "OOOn", &text, &offsets, &codes, &limit))
        return NULL;
    if (!(bytes = take(&arrays, text, 1, "B", 0)) || !(edges = take(&arrays, offsets, 1, "i", 0)) ||
        !(out = take(&arrays, codes, 1, "i", 1)) ||
        refuse(edges->shape[0] - 1 != out->shape[0] || limit < 0 || limit >= INT32_MAX, "the codes do not fit the text"))
        return finish(&arrays);
    struct table table;
    enum outcome outcome = start_table(&table, limit);
    if (outcome == FOUND) {
        Py_BEGIN_ALLOW_THREADS
        outcome = find_text(bytes->buf, bytes->shape[0], edges->buf, out->shape[0], out->buf, &table);
        Py_END_ALLOW_THREADS
    }
    return list_first(&arrays, &table, outcome);
}

/* Whether all codes are in the table; a loop of its own, which the compiler makes faster than a check at each use. */
static int in_range(const int32_t *codes, int64_t number, int64_t size)
{
    int32_t last = size > INT32_MAX ? INT32_MAX : (int32_t)size - 1;
    int wrong = 0;
    for (int64_t i = 0; i < number; i++)
        wrong |= (codes[i] < 0) | (codes[i] > last);
    return !wrong;
}

/* Call a loop for some codes at a time, which stay in the cache after their check. */
#define IN_RANGES(codes, number, size, start, LOOP) \
    for (; start < number; start += BLOCK) { \
        int64_t stop = number - start < BLOCK ? number : start + BLOCK; \
        if (!in_range(codes + start, stop - start, size)) \
            break; \
        for (int64_t i = start; i < stop; i++) \
            LOOP; \
    }

PyDoc_STRVAR(mark_doc, "mark(codes, seen)\n--\n\nSet the entry of each code that occurs to 1.");

static PyObject *mark(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *codes, *seen;
    struct arrays arrays = {.number = 0};
    Py_buffer *x, *out;
    if (!PyArg_ParseTuple(arguments, "OO", &codes, &seen))
        return NULL;
    if (!(x = take(&arrays, codes, 1, "i", 0)) || !(out = take(&arrays, seen, 1, "B", 1)))
        return finish(&arrays);
    const int32_t *code = x->buf;
    unsigned char *entry = out->buf;
    int64_t number = x->shape[0], size = out->shape[0], start = 0;
    Py_BEGIN_ALLOW_THREADS
    IN_RANGES(code, number, size, start, entry[code[i]] = 1)
    Py_END_ALLOW_THREADS
    refuse(start < number, "a code is out of range");
    return finish(&arrays);
}

PyDoc_STRVAR(relabel_doc, "relabel(codes, table, out)\n--\n\nWrite table[code] for each code; out may be codes.");

static PyObject *relabel(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *codes, *table, *out;
    struct arrays arrays = {.number = 0};
    Py_buffer *x, *entries, *to;
    if (!PyArg_ParseTuple(arguments, "OOO", &codes, &table, &out))
        return NULL;
    if (!(x = take(&arrays, codes, 1, "i", 0)) || !(entries = take(&arrays, table, 1, "i", 0)) ||
        !(to = take(&arrays, out, 1, "i", 1)) ||
        refuse(x->shape[0] != to->shape[0], "the shapes of the codes differ"))
        return finish(&arrays);
    const int32_t *code = x->buf, *entry = entries->buf;
    int32_t *written = to->buf;
    int64_t number = x->shape[0], size = entries->shape[0], start = 0;
    Py_BEGIN_ALLOW_THREADS
    IN_RANGES(code, number, size, start, written[i] = entry[code[i]])
    Py_END_ALLOW_THREADS
    refuse(start < number, "a code is out of range");
    return finish(&arrays);
}

static PyMethodDef functions[] = {
    {"find_distinct", find_distinct, METH_VARARGS, find_distinct_doc},
    {"find_distinct_text", find_distinct_text, METH_VARARGS, find_distinct_text_doc},
    {"mark", mark, METH_VARARGS, mark_doc},
    {"relabel", relabel, METH_VARARGS, relabel_doc},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_labels", "From labels to codes.", 0, functions, slots,
                                    NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__labels(void) { return PyModuleDef_Init(&module); }
