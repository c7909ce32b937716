/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlpack.h: the DLPack structures, written down from the layout that its specification publishes (version 1.0, and the unversioned
 * form before it). Only what the package exports: CPU tensors.
 */
#ifndef STOKER_PYTHON_DLPACK_H
#define STOKER_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_CPU = 1 };
enum { DLPACK_INT = 0, DLPACK_UINT = 1, DLPACK_FLOAT = 2, DLPACK_BFLOAT = 4 };

typedef struct dlpack_device {
    int32_t type;
    int32_t id;
} dlpack_device;

typedef struct dlpack_dtype {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} dlpack_dtype;

typedef struct dlpack_tensor {
    void *data;
    dlpack_device device;
    int32_t ndim;
    dlpack_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: C contiguous */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

typedef struct dlpack_managed_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dlpack_managed_versioned *self);
    uint64_t flags; /* bit 0: read-only */
    dlpack_tensor tensor;
} dlpack_managed_versioned;

#endif
