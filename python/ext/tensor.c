/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c: Tensor, which hands memory on through DLPack and does nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "dlpack.h"
#include "module.h"

typedef struct tensor {
    PyObject_HEAD shared_memory *shared;
    void *data;
    int ndim;
    int64_t shape[MAX_DIMENSIONS];
    dlpack_dtype dtype;
} tensor;

static PyObject *tensor_type;

shared_memory *shared_memory_make(void (*release)(void *memory), void *memory)
{
    shared_memory *shared = malloc(sizeof *shared);

    if (shared == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&shared->holders, 1);
    shared->release = release;
    shared->memory = memory;
    return shared;
}

static void hold(shared_memory *shared)
{
    atomic_fetch_add(&shared->holders, 1);
}

void shared_memory_drop(shared_memory *shared)
{
    if (shared == NULL || atomic_fetch_sub(&shared->holders, 1) != 1)
        return;
    shared->release(shared->memory);
    free(shared);
}

PyObject *tensor_make(shared_memory *shared, void *data, int ndim, const int64_t *shape, int code, int bits)
{
    allocfunc allocate = (allocfunc)(uintptr_t)PyType_GetSlot((PyTypeObject *)tensor_type, Py_tp_alloc);
    tensor *self = (tensor *)allocate((PyTypeObject *)tensor_type, 0);

    if (self == NULL)
        return NULL;
    hold(shared);
    self->shared = shared;
    self->data = data;
    self->ndim = ndim;
    memcpy(self->shape, shape, (size_t)ndim * sizeof *shape);
    self->dtype = (dlpack_dtype){(uint8_t)code, (uint8_t)bits, 1};
    return (PyObject *)self;
}

PyObject *tensor_make_typed(shared_memory *shared, void *data, int ndim, const int64_t *shape, stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_U8:
        return tensor_make(shared, data, ndim, shape, DLPACK_UINT, 8);
    case STOKER_F16:
        return tensor_make(shared, data, ndim, shape, DLPACK_FLOAT, 16);
    case STOKER_BF16:
        return tensor_make(shared, data, ndim, shape, DLPACK_BFLOAT, 16);
    case STOKER_F32:
        break;
    }
    return tensor_make(shared, data, ndim, shape, DLPACK_FLOAT, 32);
}

static void tensor_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);

    shared_memory_drop(((tensor *)object)->shared);
    release(object);
    Py_DECREF(type);
}

/* What a consumer holds: its own copy of the shape, and a hold on the memory. */
typedef struct loan {
    union {
        dlpack_managed plain;
        dlpack_managed_versioned versioned;
    } managed;
    int64_t shape[MAX_DIMENSIONS];
    int64_t strides[MAX_DIMENSIONS];
    shared_memory *shared;
} loan;

static void end_loan(loan *self)
{
    shared_memory_drop(self->shared);
    free(self);
}

static void delete_plain(dlpack_managed *managed)
{
    end_loan(managed->context);
}

static void delete_versioned(dlpack_managed_versioned *managed)
{
    end_loan(managed->context);
}

/* A capsule that nobody took gives its loan back. */
static void drop_plain(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        delete_plain(PyCapsule_GetPointer(capsule, "dltensor"));
}

static void drop_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static loan *make_loan(const tensor *self, dlpack_tensor *out)
{
    loan *made = calloc(1, sizeof *made);
    int64_t stride = 1;

    if (made == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = self->ndim; i-- > 0;) {
        made->shape[i] = self->shape[i];
        made->strides[i] = stride;
        stride *= self->shape[i] > 0 ? self->shape[i] : 1;
    }
    *out = (dlpack_tensor){.data = self->data,
                           .device = {DLPACK_CPU, 0},
                           .ndim = self->ndim,
                           .dtype = self->dtype,
                           .shape = made->shape,
                           .strides = made->strides};
    made->shared = self->shared;
    hold(self->shared);
    return made;
}

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) */
static PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None, *capsule;
    int major = 0, minor = 0, device_type = DLPACK_CPU, device_id = 0;
    dlpack_tensor described;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO", names, &stream, &version, &device, &copy))
        return NULL;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "a tensor in host memory has no stream");
        return NULL;
    }
    if ((version != Py_None && !PyTuple_Check(version)) || (device != Py_None && !PyTuple_Check(device))) {
        PyErr_SetString(PyExc_TypeError, "max_version and dl_device are pairs of integers");
        return NULL;
    }
    if (version != Py_None && !PyArg_ParseTuple(version, "ii", &major, &minor))
        return NULL;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &device_type, &device_id))
        return NULL;
    if (device_type != DLPACK_CPU) {
        PyErr_SetString(PyExc_BufferError, "the tensor lies in host memory");
        return NULL;
    }
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "the exporter makes no copies; copy what from_dlpack returns");
        return NULL;
    }
    loan *made = make_loan((tensor *)object, &described);

    if (made == NULL)
        return NULL;
    if (major >= 1) {
        made->managed.versioned = (dlpack_managed_versioned){
            .version = {1, 0}, .context = made, .deleter = delete_versioned, .tensor = described};
        capsule = PyCapsule_New(&made->managed.versioned, "dltensor_versioned", drop_versioned);
    } else {
        made->managed.plain = (dlpack_managed){.tensor = described, .context = made, .deleter = delete_plain};
        capsule = PyCapsule_New(&made->managed.plain, "dltensor", drop_plain);
    }
    if (capsule == NULL)
        end_loan(made);
    return capsule;
}

static PyObject *tensor_dlpack_device(PyObject *object, PyObject *unused)
{
    (void)object, (void)unused;
    return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

static PyObject *tensor_shape(PyObject *object, void *unused)
{
    tensor *self = (tensor *)object;
    PyObject *shape = PyTuple_New(self->ndim);

    (void)unused;
    for (int i = 0; shape != NULL && i < self->ndim; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(self->shape[i]));
    return shape;
}

static PyObject *tensor_dtype(PyObject *object, void *unused)
{
    static const char *const kinds[] = {
        [DLPACK_INT] = "int", [DLPACK_UINT] = "uint", [DLPACK_FLOAT] = "float", [DLPACK_BFLOAT] = "bfloat"};
    tensor *self = (tensor *)object;

    (void)unused;
    return PyUnicode_FromFormat("%s%d", kinds[self->dtype.code], (int)self->dtype.bits);
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over this memory, without a copy."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "(1, 0): host memory."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_getset[] = {
    {"shape", tensor_shape, NULL, "Sizes of the dimensions.", NULL},
    {"dtype", tensor_dtype, NULL, "\"uint8\", \"int64\", \"float16\", \"bfloat16\" or \"float32\".", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, SLOT(tensor_dealloc)},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {Py_tp_doc, "C-contiguous host memory, for from_dlpack of numpy, torch, jax."},
    {0, NULL},
};

static PyType_Spec tensor_spec = {.name = "stoker._stoker.Tensor",
                                  .basicsize = sizeof(tensor),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = tensor_slots};

int tensor_register(PyObject *module)
{
    return add_type(module, &tensor_spec, "Tensor", &tensor_type);
}
