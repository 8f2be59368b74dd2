/* Loops over rows at the speed of memory: moments of groups, influence sums, squared distances, sums of members, rows
 * from columns.
 *
 * The work is one read of the rows, so everything serves the memory bus. Within a tile of some thousand rows, rows are
 * visited group by group, so that the accumulators of a group stay in the first-level cache while its rows pass, four
 * at a time; the rows needed soon are prefetched meanwhile, because that order defeats the hardware's own guess. Sums are float64
 * over short runs around the running mean of the group. The loops are in _loops.h, compiled once per instruction set.
 *
 * Python checks what it passes; this file checks again that no loop can leave its arrays, and raises ValueError.
 * The NumPy twin of each function is in the module that calls it.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "../_base/_arguments.h"

#define RUN 128       /* rows summed around one center */
#define FEATURES 1024 /* features whose accumulators, three float64 each, fit in the first-level cache */
#define ABREAST 4     /* rows that share a visit to the accumulators */
#define AHEAD 4096    /* bytes that are prefetched, in the order in which rows are visited */
#define TOGETHER 16   /* rows whose features are read a part at a time where they are wide */
#define SUBSETS 16    /* of the four rows that `add_members` takes together */
#define STRIP 32      /* features whose sums of all subsets are in a table */
#define TABLES 8      /* tables that fit in the first-level cache */
#define PRODUCTS 8    /* sums per group in `influence` */

struct moments {
    int64_t rows, dim, groups;
    double *origin, *count, *mean, *sumsq;
};

struct scratch {
    int64_t tile, ahead;
    int32_t *order;  /* rows of a tile, group by group, and some beyond */
    int64_t *starts; /* where each group goes in order */
    double *sums;    /* center, sum and square of a run */
};

/* How many rows ahead are prefetched. */
static int64_t rows_ahead(int64_t bytes)
{
    int64_t ahead = bytes ? AHEAD / bytes : 0;
    return ahead > 32 ? 32 : ahead < ABREAST ? ABREAST : ahead;
}

/* Write the rows of a tile to order, group by group and without negative codes; return how many. */
static int64_t sort_tile(const int32_t *codes, int64_t size, int64_t groups, int32_t *order, int64_t *starts)
{
    int64_t descents = codes && codes[0] < 0, kept = 0;
    for (int64_t i = 1; codes && i < size; i++)
        descents += codes[i] < codes[i - 1];
    if (!descents) {
        for (int64_t i = 0; i < size; i++)
            order[i] = (int32_t)i;
        return size;
    }
    memset(starts, 0, groups * sizeof *starts);
    for (int64_t i = 0; i < size; i++)
        if (codes[i] >= 0)
            starts[codes[i]]++;
    for (int64_t g = 0; g < groups; g++) {
        int64_t number = starts[g];
        starts[g] = kept;
        kept += number;
    }
    for (int64_t i = 0; i < size; i++)
        if (codes[i] >= 0)
            order[starts[codes[i]]++] = (int32_t)i;
    return kept;
}

/* Number the subset of every four rows that belong to a set. */
static void number_subsets(const uint8_t *belongs, int64_t number, uint8_t *subsets)
{
    for (int64_t q = 0; q < number / 4; q++, belongs += 4)
        subsets[q] = (uint8_t)((belongs[0] & 1) | (belongs[1] & 1) << 1 | (belongs[2] & 1) << 2 | (belongs[3] & 1) << 3);
    for (int64_t i = 0; i < number % 4; i++)
        subsets[number / 4] |= (uint8_t)((belongs[i] & 1) << i);
}

/* ---- one set of loops per instruction set ---- */

struct loops {
    const char *name;
    void (*accumulate[2])(const void *, const int32_t *, struct moments, struct scratch);
    void (*influence[2])(const void *, const int32_t *, int64_t, int64_t, const double *, const double *,
                         const double *, double, double *);
    void (*interleave[2])(const void *const *, int64_t, int64_t, int64_t, void *);
    void (*squared_distances)(const double *, int64_t, int64_t, int64_t, int64_t, double *);
    void (*add_members)(const uint8_t *, const double *, int64_t, int64_t, int64_t, double *, double *);
};
#define LOOPS(set) \
    {#set, {accumulate_float_##set, accumulate_double_##set}, {influence_float_##set, influence_double_##set}, \
     {interleave_float_##set, interleave_double_##set}, squared_distances_double_##set, \
     add_members_double_##set}

#define TARGET
#define LANES 4
#define ROW float
#define NAME(f) f##_float_baseline
#include "_loops.h"
#define ROW double
#define NAME(f) f##_double_baseline
#define DISTANCES
#include "_loops.h"
#undef TARGET
#undef LANES

#ifdef __x86_64__
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 4
#define ROW float
#define NAME(f) f##_float_avx2
#include "_loops.h"
#define ROW double
#define NAME(f) f##_double_avx2
#define DISTANCES
#include "_loops.h"
#undef TARGET
#undef LANES

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma")))
#define LANES 8
#define ROW float
#define NAME(f) f##_float_avx512
#include "_loops.h"
#define ROW double
#define NAME(f) f##_double_avx512
#define DISTANCES
#include "_loops.h"
#undef TARGET
#undef LANES
#endif

static const struct loops known[] = {
#ifdef __x86_64__
    LOOPS(avx512), LOOPS(avx2),
#endif
    LOOPS(baseline)};
#define KNOWN (int)(sizeof known / sizeof *known)
static const struct loops *loops = &known[KNOWN - 1];

/* Whether processor and system have an instruction set; asked directly, since not every compiler's library knows. */
static int can_run(const struct loops *set)
{
    if (!strcmp(set->name, "baseline"))
        return 1;
#ifdef __x86_64__
    unsigned a, b, c, d, saved, high, avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512VL;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX) || !(c & bit_FMA))
        return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0)); /* registers that survive a switch of threads */
    if ((saved & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
        return 0;
    return !strcmp(set->name, "avx2") || ((saved & 0xe6) == 0xe6 && (b & avx512) == avx512);
#else
    return 0;
#endif
}

/* ---- arguments ---- */

/* Whether all codes are below the number of groups. */
static int in_range(const int32_t *codes, int64_t number, int64_t groups)
{
    int32_t largest = -1;
    for (int64_t i = 0; i < number; i++)
        largest = codes[i] > largest ? codes[i] : largest;
    return largest < groups;
}

/* ---- functions for Python ---- */

PyDoc_STRVAR(accumulate_doc,
             "accumulate(rows, codes, tile, origin, count, mean, sumsq)\n--\n\n"
             "Add rows to the moments of their groups, in place; codes None: one group; negative code: no group.");

static PyObject *accumulate(PyObject *self, PyObject *arguments)
{
    PyObject *rows, *codes, *origin, *count, *mean, *sumsq;
    Py_ssize_t tile;
    struct arrays arrays = {.number = 0};
    Py_buffer *x, *labels = NULL, *origins, *counts, *means, *sums;
    if (!PyArg_ParseTuple(arguments, "OOnOOOO", &rows, &codes, &tile, &origin, &count, &mean, &sumsq))
        return NULL;
    if (!(x = take(&arrays, rows, 2, "fd", 0)) || (codes != Py_None && !(labels = take(&arrays, codes, 1, "i", 0))) ||
        !(origins = take(&arrays, origin, 2, "d", 1)) || !(counts = take(&arrays, count, 1, "d", 1)) ||
        !(means = take(&arrays, mean, 2, "d", 1)) || !(sums = take(&arrays, sumsq, 2, "d", 1)))
        return finish(&arrays);
    struct moments m = {x->shape[0], x->shape[1], counts->shape[0], origins->buf, counts->buf, means->buf, sums->buf};
    Py_buffer *tables[] = {origins, means, sums};
    int wrong = m.dim < 1 || tile < 1 || tile > INT32_MAX / 2 || (labels ? labels->shape[0] != m.rows : m.groups < 1);
    for (int k = 0; k < 3; k++)
        wrong |= tables[k]->shape[0] != m.groups || tables[k]->shape[1] != m.dim;
    const int32_t *group = labels ? labels->buf : NULL;
    if (refuse(wrong, "the shapes of rows, codes and moments do not fit") ||
        refuse(group && !in_range(group, m.rows, m.groups), "a code is not below the number of groups") || !m.rows)
        return finish(&arrays);
    struct scratch s = {tile < m.rows ? tile : m.rows, rows_ahead(m.dim * x->itemsize), NULL, NULL, NULL};
    s.order = malloc((s.tile + s.ahead) * sizeof *s.order);
    s.starts = malloc((m.groups + 1) * sizeof *s.starts);
    s.sums = malloc(3 * m.dim * sizeof *s.sums);
    if (s.order && s.starts && s.sums) {
        Py_BEGIN_ALLOW_THREADS
        loops->accumulate[type_of(x) == 'd'](x->buf, group, m, s);
        Py_END_ALLOW_THREADS
    } else
        PyErr_NoMemory();
    free(s.order);
    free(s.starts);
    free(s.sums);
    return finish(&arrays);
}

PyDoc_STRVAR(influence_doc,
             "influence(rows, codes, mean, direction, dispersion, per_unit, sums)\n--\n\n"
             "Add products of powers of s = (|x - mean|^2 - dispersion) * per_unit and a = <x - mean, direction> *\n"
             "per_unit of each row to the sums of its group, in place; negative code: no group.");

static PyObject *influence(PyObject *self, PyObject *arguments)
{
    PyObject *rows, *codes, *mean, *direction, *dispersion, *sums;
    double per_unit;
    struct arrays arrays = {.number = 0};
    Py_buffer *x, *labels, *means, *directions, *dispersions, *out;
    if (!PyArg_ParseTuple(arguments, "OOOOOdO", &rows, &codes, &mean, &direction, &dispersion, &per_unit, &sums))
        return NULL;
    if (!(x = take(&arrays, rows, 2, "fd", 0)) || !(labels = take(&arrays, codes, 1, "i", 0)) ||
        !(means = take(&arrays, mean, 2, "d", 0)) || !(directions = take(&arrays, direction, 2, "d", 0)) ||
        !(dispersions = take(&arrays, dispersion, 1, "d", 0)) || !(out = take(&arrays, sums, 2, "d", 1)))
        return finish(&arrays);
    int64_t number = x->shape[0], dim = x->shape[1], groups = out->shape[0];
    int wrong = dim < 1 || labels->shape[0] != number || means->shape[0] != groups || means->shape[1] != dim ||
                directions->shape[0] != groups || directions->shape[1] != dim || dispersions->shape[0] != groups ||
                out->shape[1] != PRODUCTS;
    if (refuse(wrong, "the shapes of rows, codes, means and sums do not fit") ||
        refuse(!in_range(labels->buf, number, groups), "a code is not below the number of groups"))
        return finish(&arrays);
    Py_BEGIN_ALLOW_THREADS
    loops->influence[type_of(x) == 'd'](x->buf, labels->buf, number, dim, means->buf, directions->buf,
                                        dispersions->buf, per_unit, out->buf);
    Py_END_ALLOW_THREADS
    return finish(&arrays);
}

PyDoc_STRVAR(squared_distances_doc,
             "squared_distances(points, start, stop, out)\n--\n\n"
             "Write squared distances of points[start:stop] to all points before them, on both sides of the diagonal.");

static PyObject *squared_distances(PyObject *self, PyObject *arguments)
{
    PyObject *points, *out;
    Py_ssize_t start, stop;
    struct arrays arrays = {.number = 0};
    Py_buffer *x, *to;
    if (!PyArg_ParseTuple(arguments, "OnnO", &points, &start, &stop, &out))
        return NULL;
    if (!(x = take(&arrays, points, 2, "d", 0)) || !(to = take(&arrays, out, 2, "d", 1)))
        return finish(&arrays);
    int64_t number = x->shape[0];
    int wrong = start < 0 || stop > number || start > stop || to->shape[0] != number || to->shape[1] != number;
    if (refuse(wrong, "the shapes of points and distances do not fit") || start == stop)
        return finish(&arrays);
    Py_BEGIN_ALLOW_THREADS
    loops->squared_distances(x->buf, number, x->shape[1], start, stop, to->buf);
    Py_END_ALLOW_THREADS
    return finish(&arrays);
}

PyDoc_STRVAR(add_members_doc,
             "add_members(belongs, rows, sums)\n--\n\n"
             "Add the sum of the rows that belong to each set, one set per row of `belongs`, to its sums, in place.");

static PyObject *add_members(PyObject *self, PyObject *arguments)
{
    PyObject *belongs, *rows, *sums;
    struct arrays arrays = {.number = 0};
    Py_buffer *members, *x, *out;
    if (!PyArg_ParseTuple(arguments, "OOO", &belongs, &rows, &sums))
        return NULL;
    if (!(members = take(&arrays, belongs, 2, "?", 0)) || !(x = take(&arrays, rows, 2, "d", 0)) ||
        !(out = take(&arrays, sums, 2, "d", 1)))
        return finish(&arrays);
    int64_t sets = members->shape[0], number = members->shape[1], dim = x->shape[1], quads = (number + 3) / 4;
    int wrong = x->shape[0] != number || out->shape[0] != sets || out->shape[1] != dim || dim < 1;
    if (refuse(wrong, "the shapes of members, rows and sums do not fit") || !sets || !number)
        return finish(&arrays);
    uint8_t *subsets = calloc(sets, quads);
    double *tables = malloc(TABLES * SUBSETS * STRIP * sizeof *tables);
    if (subsets && tables) {
        Py_BEGIN_ALLOW_THREADS
        for (int64_t p = 0; p < sets; p++)
            number_subsets((const uint8_t *)members->buf + p * number, number, subsets + p * quads);
        loops->add_members(subsets, x->buf, sets, number, dim, tables, out->buf);
        Py_END_ALLOW_THREADS
    } else
        PyErr_NoMemory();
    free(subsets);
    free(tables);
    return finish(&arrays);
}

PyDoc_STRVAR(interleave_doc,
             "interleave(addresses, length, start, out)\n--\n\n"
             "Fill rows from columns of `length` numbers at these addresses, beginning at number `start`.");

static PyObject *interleave(PyObject *self, PyObject *arguments)
{
    PyObject *addresses, *out;
    Py_ssize_t length, start;
    struct arrays arrays = {.number = 0};
    Py_buffer *columns, *to;
    if (!PyArg_ParseTuple(arguments, "OnnO", &addresses, &length, &start, &out))
        return NULL;
    if (!(columns = take(&arrays, addresses, 1, "LQ", 0)) || !(to = take(&arrays, out, 2, "fd", 1)))
        return finish(&arrays);
    int wrong = columns->itemsize != sizeof(void *) || columns->shape[0] != to->shape[1] || to->shape[1] < 1 ||
                start < 0 || start > length || to->shape[0] > length - start;
    if (refuse(wrong, "the rows do not fit the columns"))
        return finish(&arrays);
    Py_BEGIN_ALLOW_THREADS
    loops->interleave[type_of(to) == 'd'](columns->buf, start, to->shape[0], to->shape[1], to->buf);
    Py_END_ALLOW_THREADS
    return finish(&arrays);
}

PyDoc_STRVAR(instructions_doc,
             "instructions(name=None)\n--\n\n"
             "Name of the instruction set in use; with a name, use that one from now on.");

static PyObject *instructions(PyObject *self, PyObject *arguments)
{
    const char *name = NULL;
    if (!PyArg_ParseTuple(arguments, "|z", &name))
        return NULL;
    const struct loops *wanted = name ? NULL : loops;
    for (int k = 0; name && k < KNOWN; k++)
        if (!strcmp(known[k].name, name) && can_run(&known[k]))
            wanted = &known[k];
    if (refuse(!wanted, "this processor cannot run that instruction set"))
        return NULL;
    loops = wanted;
    return PyUnicode_FromString(loops->name);
}

static PyMethodDef functions[] = {
    {"accumulate", accumulate, METH_VARARGS, accumulate_doc},
    {"influence", influence, METH_VARARGS, influence_doc},
    {"squared_distances", squared_distances, METH_VARARGS, squared_distances_doc},
    {"add_members", add_members, METH_VARARGS, add_members_doc},
    {"interleave", interleave, METH_VARARGS, interleave_doc},
    {"instructions", instructions, METH_VARARGS, instructions_doc},
    {NULL, NULL, 0, NULL}};

static int start_module(PyObject *module)
{
    (void)module;
    for (int k = 0; k < KNOWN; k++)
        if (can_run(&known[k])) {
            loops = &known[k];
            break;
        }
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, start_module}, {0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", "Loops over rows at the speed of memory.", 0,
                                    functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }
