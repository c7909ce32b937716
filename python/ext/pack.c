/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c: writing, checking and unpacking packs.
 */
#include "module.h"

/* What a call tells meanwhile. The library calls from any of its threads, never from two at once. */
typedef struct watching {
    PyObject *problems; /* list of (where, reason) */
    int failed;         /* a Python exception is set in the calling thread, or the list could not grow */
} watching;

static void on_problem(void *context, const char *where, const char *reason)
{
    watching *self = context;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *pair = Py_BuildValue("(NN)", PyUnicode_DecodeFSDefault(where), PyUnicode_DecodeFSDefault(reason));

    if (pair == NULL || PyList_Append(self->problems, pair) != 0) {
        PyErr_Clear();
        self->failed = 1;
    }
    Py_XDECREF(pair);
    PyGILState_Release(state);
}

/* Ctrl-C: seen when it is the calling thread's turn, which works like the others. */
static int on_progress(void *context, int64_t done, int64_t all)
{
    watching *self = context;

    (void)done, (void)all;
    PyGILState_STATE state = PyGILState_Ensure();

    if (PyErr_CheckSignals() != 0)
        self->failed = 1;
    PyGILState_Release(state);
    return self->failed;
}

static int begin(watching *self, stoker_pack_settings *settings)
{
    self->failed = 0;
    self->problems = PyList_New(0);
    stoker_pack_default_settings(settings);
    settings->progress = on_progress;
    settings->problem = on_problem;
    settings->context = self;
    return self->problems != NULL;
}

/* The result, or NULL where the call failed; takes both over. */
static PyObject *finish(watching *self, stoker_status status, PyObject *result)
{
    if (PyErr_Occurred() != NULL || status != STOKER_OK) {
        Py_XDECREF(result);
        result = PyErr_Occurred() != NULL ? NULL : raise_status(status);
    }
    Py_DECREF(self->problems);
    return result;
}

/* pack(dataset, source path or None, path, mode, overwrite) → (samples, bytes in, bytes out, dct, jpeg, raw, original, resumed, odd) */
PyObject *module_pack(PyObject *module, PyObject *args);
PyObject *module_pack(PyObject *module, PyObject *args)
{
    stoker_pack_settings settings;
    stoker_pack_report r;
    watching watch;
    PyObject *dataset, *source, *source_bytes = NULL, *path;
    int mode, overwrite;
    stoker_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOO&ip", &dataset, &source, PyUnicode_FSConverter, &path, &mode, &overwrite))
        return NULL;
    stoker_dataset *handle = dataset_handle(dataset);

    if (handle == NULL || (source != Py_None && !PyUnicode_FSConverter(source, &source_bytes)) ||
        !begin(&watch, &settings)) {
        Py_XDECREF(source_bytes);
        Py_DECREF(path);
        return NULL;
    }
    settings.mode = mode;
    settings.overwrite = overwrite;
    const char *from = source_bytes != NULL ? PyBytes_AsString(source_bytes) : NULL, *to = PyBytes_AsString(path);

    Py_BEGIN_ALLOW_THREADS status = stoker_pack(handle, from, to, &settings, &r);
    Py_END_ALLOW_THREADS Py_XDECREF(source_bytes);
    Py_DECREF(path);
    return finish(&watch, status,
                  Py_BuildValue("(LLLLLLLLO)", (long long)r.samples, (long long)r.bytes_in, (long long)r.bytes_out,
                                (long long)r.dct, (long long)r.jpeg, (long long)r.raw, (long long)r.original,
                                (long long)r.resumed, watch.problems));
}

/* verify(path) → list of (where, reason) of damaged samples */
PyObject *module_verify(PyObject *module, PyObject *args);
PyObject *module_verify(PyObject *module, PyObject *args)
{
    stoker_pack_settings settings;
    watching watch;
    PyObject *path;
    int64_t damaged = 0;
    stoker_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    if (!begin(&watch, &settings)) {
        Py_DECREF(path);
        return NULL;
    }
    const char *text = PyBytes_AsString(path);

    Py_BEGIN_ALLOW_THREADS status = stoker_pack_verify(text, &settings, &damaged);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (status == STOKER_ERR_DATA && damaged > 0)
        status = STOKER_OK;
    return finish(&watch, status, Py_NewRef(watch.problems));
}

/* unpack(path, folder) → (samples, identical, pixels, bytes) */
PyObject *module_unpack(PyObject *module, PyObject *args);
PyObject *module_unpack(PyObject *module, PyObject *args)
{
    stoker_pack_settings settings;
    stoker_unpack_report r;
    watching watch;
    PyObject *path, *folder;
    stoker_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&", PyUnicode_FSConverter, &path, PyUnicode_FSConverter, &folder))
        return NULL;
    if (!begin(&watch, &settings)) {
        Py_DECREF(path);
        Py_DECREF(folder);
        return NULL;
    }
    const char *from = PyBytes_AsString(path), *to = PyBytes_AsString(folder);

    Py_BEGIN_ALLOW_THREADS status = stoker_unpack(from, to, &settings, &r);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    Py_DECREF(folder);
    return finish(
        &watch, status,
        Py_BuildValue("(LLLL)", (long long)r.samples, (long long)r.identical, (long long)r.pixels, (long long)r.bytes));
}
