/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.c: Spec handles: parsing, drawing, applying to one image.
 */
#include "module.h"

typedef struct spec {
    PyObject_HEAD stoker_spec *handle;
} spec;

static PyObject *spec_type;

PyObject *draws_to_python(const stoker_draw *draws, int32_t count)
{
    PyObject *list = PyList_New(count);

    for (int32_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = Py_BuildValue("(iiiiii)", (int)draws[i].transform, (int)draws[i].kind, (int)draws[i].value[0],
                                       (int)draws[i].value[1], (int)draws[i].value[2], (int)draws[i].value[3]);

        if (item == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SetItem(list, i, item);
    }
    return list;
}

int draws_from_python(PyObject *list, stoker_draw *draws, int32_t *count)
{
    Py_ssize_t size = PyList_Size(list);

    if (size < 0)
        return -1;
    if (size > STOKER_MAX_TRANSFORMS) {
        PyErr_Format(PyExc_ValueError, "%zd draws; at most %d are possible", size, STOKER_MAX_TRANSFORMS);
        return -1;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        int v[6];

        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "iiiiii", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]))
            return -1;
        draws[i] = (stoker_draw){.transform = v[0], .kind = v[1], .value = {v[2], v[3], v[4], v[5]}};
    }
    *count = (int32_t)size;
    return 0;
}

PyObject *module_parse_spec(PyObject *module, PyObject *args);
PyObject *module_parse_spec(PyObject *module, PyObject *args)
{
    allocfunc allocate = (allocfunc)(uintptr_t)PyType_GetSlot((PyTypeObject *)spec_type, Py_tp_alloc);
    stoker_spec *handle;
    const char *text;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &text))
        return NULL;
    stoker_status status = stoker_spec_parse(text, &handle);

    if (status != STOKER_OK)
        return raise_status(status);
    spec *self = (spec *)allocate((PyTypeObject *)spec_type, 0);

    if (self == NULL) {
        stoker_spec_free(handle);
        return NULL;
    }
    self->handle = handle;
    return (PyObject *)self;
}

static void spec_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);

    stoker_spec_free(((spec *)object)->handle);
    release(object);
    Py_DECREF(type);
}

static PyObject *spec_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(stoker_spec_text(((spec *)self)->handle));
}

/* (dtype, layout) as numbers of stoker.h */
static PyObject *spec_output(PyObject *self, PyObject *unused)
{
    const stoker_spec *handle = ((spec *)self)->handle;

    (void)unused;
    return Py_BuildValue("(ii)", (int)stoker_spec_dtype(handle), (int)stoker_spec_layout(handle));
}

static PyObject *spec_draw(PyObject *self, PyObject *args)
{
    stoker_draw draws[STOKER_MAX_TRANSFORMS];
    unsigned long long seed, epoch, sample;
    int width, height;
    int32_t count = 0;

    if (!PyArg_ParseTuple(args, "KKKii", &seed, &epoch, &sample, &width, &height))
        return NULL;
    stoker_status status = stoker_spec_draw(((spec *)self)->handle, seed, epoch, sample, width, height, draws, &count);

    return status == STOKER_OK ? draws_to_python(draws, count) : raise_status(status);
}

static void release_memory(void *memory)
{
    stoker_free(memory);
}

static PyObject *result_to_python(stoker_tensor *result)
{
    int64_t planar[3] = {result->channels, result->height, result->width};
    int64_t interleaved[3] = {result->height, result->width, result->channels};
    shared_memory *shared = shared_memory_make(release_memory, result->data);

    if (shared == NULL) {
        stoker_free(result->data);
        return NULL;
    }
    PyObject *made =
        tensor_make_typed(shared, result->data, 3, result->layout == STOKER_NCHW ? planar : interleaved, result->dtype);

    shared_memory_drop(shared);
    return made;
}

/* apply(address of height × width × channels bytes, width, height, channels, draws) */
static PyObject *spec_apply(PyObject *self, PyObject *args)
{
    const stoker_spec *handle = ((spec *)self)->handle;
    stoker_draw draws[STOKER_MAX_TRANSFORMS];
    unsigned long long address;
    int width, height, channels;
    int32_t count = 0;
    PyObject *list;
    stoker_tensor result;
    stoker_status status;

    if (!PyArg_ParseTuple(args, "KiiiO!", &address, &width, &height, &channels, &PyList_Type, &list))
        return NULL;
    if (draws_from_python(list, draws, &count) != 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        stoker_spec_apply(handle, (const uint8_t *)(uintptr_t)address, width, height, channels, draws, count, &result);
    Py_END_ALLOW_THREADS return status == STOKER_OK ? result_to_python(&result) : raise_status(status);
}

static PyObject *spec_apply_encoded(PyObject *self, PyObject *args)
{
    const stoker_spec *handle = ((spec *)self)->handle;
    stoker_draw draws[STOKER_MAX_TRANSFORMS];
    stoker_image_settings settings;
    const char *data;
    Py_ssize_t size;
    int orient;
    int32_t count = 0;
    PyObject *list;
    stoker_tensor result;
    stoker_status status;

    if (!PyArg_ParseTuple(args, "y#O!p", &data, &size, &PyList_Type, &list, &orient))
        return NULL;
    if (draws_from_python(list, draws, &count) != 0)
        return NULL;
    stoker_image_default_settings(&settings);
    settings.exif_orientation = orient;
    Py_BEGIN_ALLOW_THREADS status =
        stoker_spec_apply_encoded(handle, data, (size_t)size, &settings, draws, count, &result);
    Py_END_ALLOW_THREADS return status == STOKER_OK ? result_to_python(&result) : raise_status(status);
}

static PyMethodDef spec_methods[] = {
    {"text", spec_text, METH_NOARGS, NULL},
    {"output", spec_output, METH_NOARGS, NULL},
    {"draw", spec_draw, METH_VARARGS, NULL},
    {"apply", spec_apply, METH_VARARGS, NULL},
    {"apply_encoded", spec_apply_encoded, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot spec_slots[] = {
    {Py_tp_dealloc, SLOT(spec_dealloc)}, {Py_tp_methods, spec_methods}, {Py_tp_doc, "A stoker_spec."}, {0, NULL}};

static PyType_Spec spec_spec = {.name = "stoker._stoker.Spec",
                                .basicsize = sizeof(spec),
                                .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                .slots = spec_slots};

int spec_register(PyObject *module)
{
    return add_type(module, &spec_spec, "Spec", &spec_type);
}
