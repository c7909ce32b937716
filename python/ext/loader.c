/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c: Loader handles and the batches they give.
 *
 * Waiting happens without the GIL, in slices, between which signals are looked at: Ctrl-C ends a wait at once. A batch's memory is held by
 * its tensors and by whoever took them, and goes back to the ring when the last of them is gone.
 */
#include <string.h>

#include "dlpack.h"
#include "module.h"

#define SLICE_MILLISECONDS 50 /* how long Ctrl-C may go unnoticed */

typedef struct loader {
    PyObject_HEAD stoker_loader *handle; /* NULL once closed */
    PyObject *dataset;                   /* must outlive the handle */
    int users;                           /* calls that use the handle without the GIL */
    int closing;                         /* closed meanwhile by another thread: the last of them ends it */
} loader;

static PyObject *loader_type;

PyObject *module_open_loader(PyObject *module, PyObject *args);
PyObject *module_open_loader(PyObject *module, PyObject *args)
{
    allocfunc allocate = (allocfunc)(uintptr_t)PyType_GetSlot((PyTypeObject *)loader_type, Py_tp_alloc);
    stoker_loader_settings settings;
    stoker_loader *handle;
    stoker_status status;
    PyObject *dataset;
    const char *ops;
    long long batch, epochs, ring_bytes, order_count;
    unsigned long long seed, first_epoch, order;
    int threads, shuffle, last_batch, on_error, depth, stall_seconds, keep_draws;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsLipKKLiiiiLpKL", &dataset, &ops, &batch, &threads, &shuffle, &seed, &first_epoch,
                          &epochs, &last_batch, &on_error, &depth, &stall_seconds, &ring_bytes, &keep_draws, &order,
                          &order_count))
        return NULL;
    const stoker_dataset *dataset_handle_ = dataset_handle(dataset);

    if (dataset_handle_ == NULL)
        return NULL;
    stoker_loader_default_settings(&settings);
    settings.ops = ops;
    settings.batch = batch;
    settings.threads = threads;
    settings.shuffle = shuffle;
    settings.seed = seed;
    settings.first_epoch = first_epoch;
    settings.epochs = epochs;
    settings.last_batch = last_batch;
    settings.on_error = on_error;
    settings.depth = depth;
    settings.stall_seconds = stall_seconds;
    settings.ring_bytes = ring_bytes;
    settings.keep_draws = keep_draws;
    settings.order = (const int64_t *)(uintptr_t)order;
    settings.order_count = order_count;
    Py_BEGIN_ALLOW_THREADS status = stoker_loader_open(dataset_handle_, &settings, &handle);
    Py_END_ALLOW_THREADS if (status != STOKER_OK) return raise_status(status);
    loader *self = (loader *)allocate((PyTypeObject *)loader_type, 0);

    if (self == NULL) {
        stoker_loader_close(handle);
        return NULL;
    }
    self->handle = handle;
    self->dataset = Py_NewRef(dataset);
    return (PyObject *)self;
}

/* The handle, or NULL and an exception once it is closed. */
static stoker_loader *handle_of(PyObject *object)
{
    loader *self = (loader *)object;

    if (self->handle == NULL || self->closing) {
        PyErr_SetString(PyExc_ValueError, "the loader is closed");
        return NULL;
    }
    return self->handle;
}

static void close_handle(loader *self)
{
    stoker_loader *handle = self->handle;

    if (handle == NULL)
        return;
    if (self->users > 0) {
        self->closing = 1;
        stoker_loader_interrupt(handle);
        return;
    }
    self->handle = NULL;
    Py_BEGIN_ALLOW_THREADS stoker_loader_close(handle);
    Py_END_ALLOW_THREADS
}

/* Around what uses the handle without the GIL. */
static void begin_use(PyObject *object)
{
    Py_INCREF(object);
    ((loader *)object)->users++;
}

static void end_use(PyObject *object)
{
    loader *self = (loader *)object;

    self->users--;
    if (self->closing)
        close_handle(self);
    Py_DECREF(object);
}

static void loader_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);

    close_handle((loader *)object);
    Py_XDECREF(((loader *)object)->dataset);
    release(object);
    Py_DECREF(type);
}

static PyObject *loader_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    close_handle((loader *)self);
    Py_RETURN_NONE;
}

static void release_batch(void *batch)
{
    stoker_batch_release(batch);
}

static PyObject *batch_draws(const stoker_batch *batch)
{
    if (batch->draws == NULL)
        return Py_NewRef(Py_None);
    PyObject *list = PyList_New((Py_ssize_t)batch->count);

    for (int64_t i = 0; list != NULL && i < batch->count; i++) {
        PyObject *one = draws_to_python(batch->draws + i * batch->draws_stride, batch->draw_counts[i]);

        if (one == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SetItem(list, (Py_ssize_t)i, one);
    }
    return list;
}

/* (images, labels, samples, draws or None, epoch, index, valid); the batch belongs to the tensors from here on, also on
 * failure. */
static PyObject *batch_to_python(stoker_batch *batch)
{
    int64_t planar[4] = {batch->count, batch->channels, batch->height, batch->width};
    int64_t interleaved[4] = {batch->count, batch->height, batch->width, batch->channels};
    PyObject *images = NULL, *labels = NULL, *samples = NULL, *draws = NULL;
    shared_memory *shared = shared_memory_make(release_batch, batch);

    if (shared == NULL) {
        stoker_batch_release(batch);
        return NULL;
    }
    PyObject *result = NULL;

    images =
        tensor_make_typed(shared, batch->images, 4, batch->layout == STOKER_NCHW ? planar : interleaved, batch->dtype);
    labels = images != NULL ? tensor_make(shared, batch->labels, 1, &batch->count, DLPACK_INT, 64) : NULL;
    samples = labels != NULL ? tensor_make(shared, batch->samples, 1, &batch->count, DLPACK_INT, 64) : NULL;
    draws = samples != NULL ? batch_draws(batch) : NULL;
    if (draws != NULL)
        result = Py_BuildValue("(OOOOKLL)", images, labels, samples, draws, (unsigned long long)batch->epoch,
                               (long long)batch->index, (long long)batch->valid);
    Py_XDECREF(images);
    Py_XDECREF(labels);
    Py_XDECREF(samples);
    Py_XDECREF(draws);
    shared_memory_drop(shared);
    return result;
}

/* The next batch, or None at the end of an epoch. */
static PyObject *loader_next(PyObject *self, PyObject *unused)
{
    stoker_status status;
    stoker_batch *batch;

    (void)unused;
    do {
        if (PyErr_CheckSignals() != 0)
            return NULL;
        stoker_loader *handle = handle_of(self); /* only now: a signal's handler or another thread may have closed it */

        if (handle == NULL)
            return NULL;
        begin_use(self);
        Py_BEGIN_ALLOW_THREADS status = stoker_loader_next_within(handle, SLICE_MILLISECONDS, &batch);
        Py_END_ALLOW_THREADS if (status != STOKER_OK && ((loader *)self)->closing) status = STOKER_ERR_TIMEOUT;
        end_use(self);
    } while (status == STOKER_ERR_TIMEOUT);
    if (status == STOKER_END)
        Py_RETURN_NONE;
    return status == STOKER_OK ? batch_to_python(batch) : raise_status(status);
}

static PyObject *loader_seek(PyObject *self, PyObject *args)
{
    stoker_loader *handle = handle_of(self);
    unsigned long long epoch;
    stoker_status status;

    if (handle == NULL || !PyArg_ParseTuple(args, "K", &epoch))
        return NULL;
    begin_use(self);
    Py_BEGIN_ALLOW_THREADS status = stoker_loader_seek(handle, epoch);
    Py_END_ALLOW_THREADS end_use(self);
    if (status != STOKER_OK)
        return raise_status(status);
    Py_RETURN_NONE;
}

static PyObject *loader_interrupt(PyObject *self, PyObject *unused)
{
    stoker_loader *handle = handle_of(self);

    (void)unused;
    if (handle == NULL)
        return NULL;
    stoker_loader_interrupt(handle);
    Py_RETURN_NONE;
}

static PyObject *loader_batches(PyObject *self, PyObject *unused)
{
    stoker_loader *handle = handle_of(self);

    (void)unused;
    return handle != NULL ? PyLong_FromLongLong(stoker_loader_batches(handle)) : NULL;
}

static PyObject *loader_samples(PyObject *self, PyObject *unused)
{
    stoker_loader *handle = handle_of(self);

    (void)unused;
    return handle != NULL ? PyLong_FromLongLong(stoker_loader_samples(handle)) : NULL;
}

/* order(epoch, first, count, address of count int64 values) */
static PyObject *loader_order(PyObject *self, PyObject *args)
{
    stoker_loader *handle = handle_of(self);
    unsigned long long epoch, address;
    long long first, count;

    if (handle == NULL || !PyArg_ParseTuple(args, "KLLK", &epoch, &first, &count, &address))
        return NULL;
    stoker_status status = stoker_loader_order(handle, epoch, first, count, (int64_t *)(uintptr_t)address);

    if (status != STOKER_OK)
        return raise_status(status);
    Py_RETURN_NONE;
}

/* Adds value (taken over) under name; -1 and an exception on failure. */
static int put(PyObject *dict, const char *name, PyObject *value)
{
    if (value == NULL)
        return -1;
    int result = PyDict_SetItemString(dict, name, value);

    Py_DECREF(value);
    return result;
}

static PyObject *loader_stats(PyObject *self, PyObject *unused)
{
    stoker_loader *handle = handle_of(self);
    stoker_stats stats;

    (void)unused;
    if (handle == NULL)
        return NULL;
    stoker_loader_stats(handle, &stats);
    PyObject *dict = PyDict_New();
    PyObject *stages = dict != NULL ? PyDict_New() : NULL;

    if (stages == NULL || put(dict, "samples", PyLong_FromLongLong(stats.samples)) != 0 ||
        put(dict, "batches", PyLong_FromLongLong(stats.batches)) != 0 ||
        put(dict, "epochs", PyLong_FromLongLong(stats.epochs)) != 0 ||
        put(dict, "skipped", PyLong_FromLongLong(stats.skipped)) != 0 ||
        put(dict, "bytes", PyLong_FromLongLong(stats.bytes)) != 0 ||
        put(dict, "seconds", PyFloat_FromDouble(stats.seconds)) != 0 ||
        put(dict, "first_batch_s", PyFloat_FromDouble(stats.first_batch_seconds)) != 0 ||
        put(dict, "ring_bytes", PyLong_FromLongLong(stats.ring_bytes)) != 0 ||
        put(dict, "threads", PyLong_FromLong(stats.threads)) != 0 ||
        put(dict, "depth", PyLong_FromLong(stats.depth)) != 0)
        goto fail;
    for (int i = 0; i < STOKER_STAGES; i++) {
        PyObject *stage =
            Py_BuildValue("{s:d,s:L}", "seconds", stats.stage_seconds[i], "bytes", (long long)stats.stage_bytes[i]);

        if (put(stages, stoker_stage_name((stoker_stage)i), stage) != 0)
            goto fail;
    }
    if (put(dict, "stages", Py_NewRef(stages)) != 0)
        goto fail;
    Py_DECREF(stages);
    return dict;
fail:
    Py_XDECREF(stages);
    Py_XDECREF(dict);
    return NULL;
}

/* [(sample, epoch, reason), …] */
static PyObject *loader_skipped(PyObject *self, PyObject *unused)
{
    stoker_loader *handle = handle_of(self);
    PyObject *list = handle != NULL ? PyList_New(0) : NULL;
    char reason[2048];
    int64_t sample;
    uint64_t epoch;

    (void)unused;
    for (int64_t i = 0; list != NULL; i++) {
        if (stoker_loader_skipped(handle, i, &sample, &epoch, reason, sizeof reason) != STOKER_OK)
            break;
        PyObject *text = PyUnicode_DecodeFSDefault(reason);
        PyObject *item =
            text != NULL ? Py_BuildValue("(LKN)", (long long)sample, (unsigned long long)epoch, text) : NULL;

        if (item == NULL || PyList_Append(list, item) != 0) {
            Py_XDECREF(item);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(item);
    }
    return list;
}

static PyMethodDef loader_methods[] = {
    {"next", loader_next, METH_NOARGS, NULL},       {"seek", loader_seek, METH_VARARGS, NULL},
    {"close", loader_close, METH_NOARGS, NULL},     {"interrupt", loader_interrupt, METH_NOARGS, NULL},
    {"batches", loader_batches, METH_NOARGS, NULL}, {"samples", loader_samples, METH_NOARGS, NULL},
    {"order", loader_order, METH_VARARGS, NULL},    {"stats", loader_stats, METH_NOARGS, NULL},
    {"skipped", loader_skipped, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL},
};

static PyType_Slot loader_slots[] = {
    {Py_tp_dealloc, SLOT(loader_dealloc)}, {Py_tp_methods, loader_methods}, {Py_tp_doc, "A stoker_loader."}, {0, NULL}};

static PyType_Spec loader_spec = {.name = "stoker._stoker.Loader",
                                  .basicsize = sizeof(loader),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = loader_slots};

int loader_register(PyObject *module)
{
    return add_type(module, &loader_spec, "Loader", &loader_type);
}
