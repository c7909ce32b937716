/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.h: the parts of the extension `stoker._stoker`, over stoker.h and the limited C API of Python 3.10. Everything that people
 * see is python/stoker/'s; here are only handles.
 */
#ifndef STOKER_PYTHON_MODULE_H
#define STOKER_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <stdint.h>

#include "stoker.h"

/* Memory that several tensors, and the consumers they were handed to, hold together. Its release may run on any thread, without the
 * GIL, and after the interpreter is gone. */
typedef struct shared_memory {
    atomic_long holders;
    void (*release)(void *memory);
    void *memory;
} shared_memory;

shared_memory *shared_memory_make(void (*release)(void *memory), void *memory); /* one holder; NULL and MemoryError */
void shared_memory_drop(shared_memory *shared);

#define MAX_DIMENSIONS 4

/* A function in a PyType_Slot (and back, from PyType_GetSlot): ISO C converts between the two kinds of pointers only by way of an integer. */
#define SLOT(function) ((void *)(uintptr_t)(function))

/* A new Tensor object over `data`; takes a hold on `shared` of its own. code and bits as in DLPack. */
PyObject *tensor_make(shared_memory *shared, void *data, int ndim, const int64_t *shape, int code, int bits);

/* The same for a dtype of the library. */
PyObject *tensor_make_typed(shared_memory *shared, void *data, int ndim, const int64_t *shape, stoker_dtype dtype);

/* Raises the exception that stands for `status`, with this thread's message; returns NULL. */
PyObject *raise_status(stoker_status status);

/* A Python list of (transform, kind, value0 … value3), and the way back: at most STOKER_MAX_TRANSFORMS, -1 and an exception. */
PyObject *draws_to_python(const stoker_draw *draws, int32_t count);
int draws_from_python(PyObject *list, stoker_draw *draws, int32_t *count);

/* The stoker_dataset of a Dataset object, NULL and an exception if it is none or closed. */
stoker_dataset *dataset_handle(PyObject *object);

int tensor_register(PyObject *module);
int dataset_register(PyObject *module);
int spec_register(PyObject *module);
int loader_register(PyObject *module);

/* Makes a type from its spec and adds it to the module under `name`. */
int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyObject **out);

#endif
