/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c: the module stoker._stoker: functions, exceptions, types.
 */
#include "module.h"

PyObject *module_decode(PyObject *module, PyObject *args);
PyObject *module_open_dataset(PyObject *module, PyObject *args);
PyObject *module_arrays(PyObject *module, PyObject *args);
PyObject *module_subset(PyObject *module, PyObject *args);
PyObject *module_concat(PyObject *module, PyObject *args);
PyObject *module_parse_spec(PyObject *module, PyObject *args);
PyObject *module_open_loader(PyObject *module, PyObject *args);
PyObject *module_pack(PyObject *module, PyObject *args);
PyObject *module_verify(PyObject *module, PyObject *args);
PyObject *module_unpack(PyObject *module, PyObject *args);

/* Given by the Python side: makes an exception of a status and a message. */
static PyObject *make_error;

PyObject *raise_status(stoker_status status)
{
    if (status == STOKER_ERR_INTERRUPTED && PyErr_CheckSignals() != 0)
        return NULL;
    PyObject *message = PyUnicode_DecodeFSDefault(stoker_last_error());

    if (message == NULL)
        return NULL;
    if (make_error == NULL) {
        PyErr_SetObject(PyExc_RuntimeError, message);
        Py_DECREF(message);
        return NULL;
    }
    PyObject *error = PyObject_CallFunction(make_error, "isN", (int)status, stoker_status_name(status), message);

    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyObject **out)
{
#ifdef Py_TPFLAGS_DISALLOW_INSTANTIATION
    spec->flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
#endif
    *out = PyType_FromSpec(spec);
    return *out != NULL ? PyModule_AddObjectRef(module, name, *out) : -1;
}

static PyObject *module_set_error_maker(PyObject *module, PyObject *maker)
{
    (void)module;
    Py_XDECREF(make_error);
    make_error = Py_NewRef(maker);
    Py_RETURN_NONE;
}

static PyObject *module_version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(stoker_version());
}

static PyObject *module_cpu(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(stoker_cpu());
}

/* (cores, reason) */
static PyObject *module_usable_cores(PyObject *module, PyObject *unused)
{
    const char *reason = "";
    int32_t cores = stoker_usable_cores(&reason);

    (void)module, (void)unused;
    return Py_BuildValue("(is)", (int)cores, reason);
}

static PyMethodDef functions[] = {
    {"set_error_maker", module_set_error_maker, METH_O, NULL},
    {"version", module_version, METH_NOARGS, NULL},
    {"cpu", module_cpu, METH_NOARGS, NULL},
    {"usable_cores", module_usable_cores, METH_NOARGS, NULL},
    {"decode", module_decode, METH_VARARGS, NULL},
    {"open_dataset", module_open_dataset, METH_VARARGS, NULL},
    {"arrays", module_arrays, METH_VARARGS, NULL},
    {"subset", module_subset, METH_VARARGS, NULL},
    {"concat", module_concat, METH_VARARGS, NULL},
    {"parse_spec", module_parse_spec, METH_VARARGS, NULL},
    {"open_loader", module_open_loader, METH_VARARGS, NULL},
    {"pack", module_pack, METH_VARARGS, NULL},
    {"verify", module_verify, METH_VARARGS, NULL},
    {"unpack", module_unpack, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "stoker._stoker",
    .m_doc = "Handles over libstoker; use the package stoker.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__stoker(void); /* Python calls it by this name */

PyMODINIT_FUNC PyInit__stoker(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module == NULL || tensor_register(module) != 0 || dataset_register(module) != 0 || spec_register(module) != 0 ||
        loader_register(module) != 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
