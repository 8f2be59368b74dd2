/* Arrays that Python passes to C: taken as buffers, checked, and released together.
 *
 * Included by each extension after Python.h; what is wrong becomes a ValueError.
 */
#include <stdint.h>
#include <string.h>

/* Arrays of one call; all are released together. */
struct arrays {
    Py_buffer view[8];
    int number;
};

static void release(struct arrays *arrays)
{
    while (arrays->number)
        PyBuffer_Release(&arrays->view[--arrays->number]);
}

/* Type of the numbers of an array, whether it says that they are in the byte order of this machine or not; 0: none. */
static char type_of(const Py_buffer *view)
{
    static const uint16_t one = 1;
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == (*(const char *)&one ? '<' : '>'))
        format++;
    return strlen(format) == 1 ? *format : 0;
}

/* Take a C-contiguous array of some axes and of one of the given formats; NULL, with an exception, if it is not one. */
static Py_buffer *take(struct arrays *arrays, PyObject *object, int axes, const char *formats, int writable)
{
    Py_buffer *view = &arrays->view[arrays->number];
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0)
        return NULL;
    arrays->number++;
    if (view->ndim == axes && type_of(view) && strchr(formats, type_of(view)) &&
        (!view->len || (uintptr_t)view->buf % view->itemsize == 0))
        return view;
    PyErr_Format(PyExc_ValueError, "expected an aligned array of %d axes and of type %s, got %d axes and type %s",
                 axes, formats, view->ndim, view->format ? view->format : "B");
    return NULL;
}

static int refuse(int wrong, const char *problem)
{
    if (wrong && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, problem);
    return wrong;
}

static PyObject *finish(struct arrays *arrays)
{
    release(arrays);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
