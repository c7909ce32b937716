/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c: Dataset handles, and decoding of single images.
 */
#include <string.h>

#include "dlpack.h"
#include "module.h"

typedef struct dataset {
    PyObject_HEAD stoker_dataset *handle;
    PyObject *owners; /* what must outlive the handle: arrays, other datasets; NULL if nothing */
} dataset;

static PyObject *dataset_type;

static void release_memory(void *memory)
{
    stoker_free(memory);
}

/* (Tensor, format, warning); frees the image on failure. */
static PyObject *image_to_python(stoker_image *image)
{
    int64_t shape[3] = {image->height, image->width, image->channels};
    shared_memory *shared = shared_memory_make(release_memory, image->pixels);

    if (shared == NULL) {
        stoker_image_free(image);
        return NULL;
    }
    PyObject *pixels = tensor_make(shared, image->pixels, 3, shape, DLPACK_UINT, 8);

    shared_memory_drop(shared); /* the tensor holds it */
    if (pixels == NULL)
        return NULL;
    return Py_BuildValue("(Nss)", pixels, image->format, image->warning);
}

PyObject *module_decode(PyObject *module, PyObject *args);
PyObject *module_decode(PyObject *module, PyObject *args)
{
    stoker_image_settings settings;
    stoker_image image;
    const char *data;
    Py_ssize_t size;
    PyObject *region;
    int orient, left = 0, top = 0, width = 0, height = 0;
    long long max_pixels, max_scans;
    stoker_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "y#OpLL", &data, &size, &region, &orient, &max_pixels, &max_scans))
        return NULL;
    if (region != Py_None && !PyArg_ParseTuple(region, "iiii", &left, &top, &width, &height))
        return NULL;
    stoker_image_default_settings(&settings);
    settings.exif_orientation = orient;
    if (max_pixels > 0)
        settings.max_pixels = max_pixels;
    if (max_scans > 0)
        settings.max_scans = (int32_t)(max_scans < INT32_MAX ? max_scans : INT32_MAX);
    Py_BEGIN_ALLOW_THREADS if (region != Py_None) status =
        stoker_image_decode_region(data, (size_t)size, left, top, width, height, &settings, &image);
    else status = stoker_image_decode(data, (size_t)size, &settings, &image);
    Py_END_ALLOW_THREADS return status == STOKER_OK ? image_to_python(&image) : raise_status(status);
}

static PyObject *wrap(stoker_dataset *handle, PyObject *owners)
{
    allocfunc allocate = (allocfunc)(uintptr_t)PyType_GetSlot((PyTypeObject *)dataset_type, Py_tp_alloc);
    dataset *self = (dataset *)allocate((PyTypeObject *)dataset_type, 0);

    if (self == NULL) {
        stoker_dataset_close(handle);
        return NULL;
    }
    self->handle = handle;
    Py_XINCREF(owners);
    self->owners = owners;
    return (PyObject *)self;
}

stoker_dataset *dataset_handle(PyObject *object)
{
    if (!PyObject_TypeCheck(object, (PyTypeObject *)dataset_type)) {
        PyErr_SetString(PyExc_TypeError, "a stoker dataset is wanted");
        return NULL;
    }
    return ((dataset *)object)->handle;
}

PyObject *module_open_dataset(PyObject *module, PyObject *args);
PyObject *module_open_dataset(PyObject *module, PyObject *args)
{
    stoker_dataset_settings settings;
    stoker_dataset *handle;
    PyObject *path;
    int split, coarse, orient, index;
    long long max_pixels, max_scans;
    stoker_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&ippLLi", PyUnicode_FSConverter, &path, &split, &coarse, &orient, &max_pixels,
                          &max_scans, &index))
        return NULL;
    stoker_dataset_default_settings(&settings);
    settings.split = split;
    settings.coarse_labels = coarse;
    settings.index = index;
    settings.image.exif_orientation = orient;
    if (max_pixels > 0)
        settings.image.max_pixels = max_pixels;
    if (max_scans > 0)
        settings.image.max_scans = (int32_t)(max_scans < INT32_MAX ? max_scans : INT32_MAX);
    const char *text = PyBytes_AsString(path);

    Py_BEGIN_ALLOW_THREADS status = stoker_dataset_open(text, &settings, &handle);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    return status == STOKER_OK ? wrap(handle, NULL) : raise_status(status);
}

/* arrays(images address, count, height, width, channels, labels address or 0, owners) */
PyObject *module_arrays(PyObject *module, PyObject *args);
PyObject *module_arrays(PyObject *module, PyObject *args)
{
    stoker_dataset *handle;
    unsigned long long images, labels;
    long long count;
    int height, width, channels;
    PyObject *owners;

    (void)module;
    if (!PyArg_ParseTuple(args, "KLiiiKO", &images, &count, &height, &width, &channels, &labels, &owners))
        return NULL;
    stoker_status status = stoker_dataset_from_arrays((const uint8_t *)(uintptr_t)images, count, height, width,
                                                      channels, (const int64_t *)(uintptr_t)labels, &handle);

    return status == STOKER_OK ? wrap(handle, owners) : raise_status(status);
}

/* subset(dataset, address of int64 indices, count) */
PyObject *module_subset(PyObject *module, PyObject *args);
PyObject *module_subset(PyObject *module, PyObject *args)
{
    stoker_dataset *handle;
    unsigned long long indices;
    long long count;
    PyObject *base;

    (void)module;
    if (!PyArg_ParseTuple(args, "OKL", &base, &indices, &count))
        return NULL;
    stoker_dataset *base_handle = dataset_handle(base);

    if (base_handle == NULL)
        return NULL;
    stoker_status status = stoker_dataset_subset(base_handle, (const int64_t *)(uintptr_t)indices, count, &handle);

    return status == STOKER_OK ? wrap(handle, base) : raise_status(status);
}

PyObject *module_concat(PyObject *module, PyObject *args);
PyObject *module_concat(PyObject *module, PyObject *args)
{
    PyObject *parts;
    stoker_dataset *handle = NULL;
    stoker_dataset **handles;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &parts))
        return NULL;
    Py_ssize_t count = PyTuple_Size(parts);

    handles = PyMem_Malloc((size_t)(count > 0 ? count : 1) * sizeof *handles);
    if (handles == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        handles[i] = dataset_handle(PyTuple_GetItem(parts, i));
        if (handles[i] == NULL) {
            PyMem_Free(handles);
            return NULL;
        }
    }
    stoker_status status = stoker_dataset_concat(handles, (int32_t)count, &handle);

    PyMem_Free(handles);
    return status == STOKER_OK ? wrap(handle, parts) : raise_status(status);
}

static void dataset_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    dataset *self = (dataset *)object;

    stoker_dataset_close(self->handle);
    Py_XDECREF(self->owners);
    release(object);
    Py_DECREF(type);
}

static stoker_dataset *handle_of(PyObject *object)
{
    return ((dataset *)object)->handle;
}

static PyObject *dataset_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(stoker_dataset_size(handle_of(self)));
}

static PyObject *dataset_split_size(PyObject *self, PyObject *args)
{
    int split;

    if (!PyArg_ParseTuple(args, "i", &split))
        return NULL;
    return PyLong_FromLongLong(stoker_dataset_split_size(handle_of(self), (stoker_split)split));
}

static PyObject *dataset_format(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(stoker_dataset_format(handle_of(self)));
}

/* Names, or None for a class without one. */
static PyObject *dataset_classes(PyObject *self, PyObject *unused)
{
    int32_t count = stoker_dataset_classes(handle_of(self));
    PyObject *names = PyList_New(count);

    (void)unused;
    for (int32_t i = 0; names != NULL && i < count; i++) {
        const char *name = stoker_dataset_class_name(handle_of(self), i);
        PyObject *text = name != NULL ? PyUnicode_DecodeFSDefault(name) : Py_NewRef(Py_None);

        if (text == NULL) {
            Py_DECREF(names);
            return NULL;
        }
        PyList_SetItem(names, i, text);
    }
    return names;
}

static PyObject *dataset_channels(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(stoker_dataset_channels(handle_of(self)));
}

static PyObject *dataset_sample_size(PyObject *self, PyObject *unused)
{
    int32_t width, height;

    (void)unused;
    stoker_dataset_sample_size(handle_of(self), &width, &height);
    return Py_BuildValue("(ii)", (int)height, (int)width);
}

static PyObject *dataset_label(PyObject *self, PyObject *args)
{
    long long index;

    if (!PyArg_ParseTuple(args, "L", &index))
        return NULL;
    return PyLong_FromLongLong(stoker_dataset_label(handle_of(self), index));
}

/* labels(address): writes size int64 values there. */
static PyObject *dataset_labels(PyObject *self, PyObject *args)
{
    unsigned long long address;

    if (!PyArg_ParseTuple(args, "K", &address))
        return NULL;
    int64_t *out = (int64_t *)(uintptr_t)address;
    int64_t size = stoker_dataset_size(handle_of(self));

    for (int64_t i = 0; i < size; i++)
        out[i] = stoker_dataset_label(handle_of(self), i);
    Py_RETURN_NONE;
}

static PyObject *dataset_where(PyObject *self, PyObject *args)
{
    long long index;
    char buffer[8192];

    if (!PyArg_ParseTuple(args, "L", &index))
        return NULL;
    stoker_dataset_where(handle_of(self), index, buffer, sizeof buffer);
    return PyUnicode_DecodeFSDefault(buffer);
}

static PyObject *dataset_decode(PyObject *self, PyObject *args)
{
    stoker_dataset *handle = handle_of(self);
    stoker_image image;
    stoker_status status;
    long long index;

    if (!PyArg_ParseTuple(args, "L", &index))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = stoker_dataset_decode(handle, index, &image);
    Py_END_ALLOW_THREADS return status == STOKER_OK ? image_to_python(&image) : raise_status(status);
}

static PyObject *dataset_bytes(PyObject *self, PyObject *args)
{
    stoker_dataset *handle = handle_of(self);
    stoker_status status;
    void *data;
    size_t size;
    long long index;

    if (!PyArg_ParseTuple(args, "L", &index))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = stoker_dataset_bytes(handle, index, &data, &size);
    Py_END_ALLOW_THREADS if (status != STOKER_OK) return raise_status(status);
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);

    stoker_free(data);
    return bytes;
}

/* (verdict, width, height, bytes, format, reason) */
static PyObject *dataset_check(PyObject *self, PyObject *args)
{
    stoker_dataset *handle = handle_of(self);
    stoker_check check;
    stoker_status status;
    long long index;

    if (!PyArg_ParseTuple(args, "L", &index))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = stoker_dataset_check(handle, index, &check);
    Py_END_ALLOW_THREADS if (status != STOKER_OK) return raise_status(status);
    PyObject *reason = PyUnicode_DecodeFSDefault(check.reason);

    if (reason == NULL)
        return NULL;
    return Py_BuildValue("(iiiLsN)", (int)check.verdict, (int)check.width, (int)check.height, (long long)check.bytes,
                         check.format, reason);
}

static PyMethodDef dataset_methods[] = {
    {"size", dataset_size, METH_NOARGS, NULL},
    {"split_size", dataset_split_size, METH_VARARGS, NULL},
    {"format", dataset_format, METH_NOARGS, NULL},
    {"classes", dataset_classes, METH_NOARGS, NULL},
    {"channels", dataset_channels, METH_NOARGS, NULL},
    {"sample_size", dataset_sample_size, METH_NOARGS, NULL},
    {"label", dataset_label, METH_VARARGS, NULL},
    {"labels", dataset_labels, METH_VARARGS, NULL},
    {"where", dataset_where, METH_VARARGS, NULL},
    {"decode", dataset_decode, METH_VARARGS, NULL},
    {"bytes", dataset_bytes, METH_VARARGS, NULL},
    {"check", dataset_check, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot dataset_slots[] = {{Py_tp_dealloc, SLOT(dataset_dealloc)},
                                      {Py_tp_methods, dataset_methods},
                                      {Py_tp_doc, "A stoker_dataset."},
                                      {0, NULL}};

static PyType_Spec dataset_spec = {.name = "stoker._stoker.Dataset",
                                   .basicsize = sizeof(dataset),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = dataset_slots};

int dataset_register(PyObject *module)
{
    return add_type(module, &dataset_spec, "Dataset", &dataset_type);
}
