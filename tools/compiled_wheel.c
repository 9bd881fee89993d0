/* What every module of compiled kernels begins with (compiled_wheel.py): the memory of numba's
   arrays, the few functions that its code calls, arguments, results and errors. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* The memory of an array that a kernel allocates, laid out as numba's code expects it. */
typedef struct {
    atomic_size_t references;
    void (*destructor)(void *, size_t, void *);
    void *destructor_data;
    void *data;
    size_t size;
    void *allocator;
} Memory;

Memory *NRT_MemInfo_alloc_aligned(size_t size, unsigned alignment)
{
    char *block = malloc(sizeof(Memory) + size + alignment);
    if (block == NULL)
        return NULL;
    uintptr_t data = (uintptr_t)(block + sizeof(Memory));
    if (alignment)
        data = (data + alignment - 1) / alignment * alignment;
    Memory *memory = (Memory *)block;
    *memory = (Memory){.references = 1, .data = (void *)data, .size = size};
    return memory;
}

void NRT_MemInfo_call_dtor(Memory *memory)
{
    free(memory);
}

static void release(PyObject *capsule)
{
    Memory *memory = PyCapsule_GetPointer(capsule, NULL);
    if (atomic_fetch_sub(&memory->references, 1) == 1)
        free(memory);
}

/* The product of matrices, from the BLAS of scipy, which numba uses as well. */
typedef void (*Product)(char *, char *, int *, int *, int *, double *, double *, int *, double *,
                        int *, double *, double *, int *);

static Product product_of_scipy(void)
{
    static Product found = NULL;
    PyGILState_STATE state = PyGILState_Ensure();
    if (found == NULL) {
        PyObject *blas = PyImport_ImportModule("scipy.linalg.cython_blas");
        PyObject *names = blas ? PyObject_GetAttrString(blas, "__pyx_capi__") : NULL;
        PyObject *capsule = names ? PyMapping_GetItemString(names, "dgemm") : NULL;
        if (capsule)
            found = (Product)PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
        Py_XDECREF(capsule);
        Py_XDECREF(names);
        Py_XDECREF(blas);
    }
    PyGILState_Release(state);
    return found;
}

int numba_xxgemm(char kind, char transa, char transb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
                 void *alpha, void *a, Py_ssize_t lda, void *b, Py_ssize_t ldb, void *beta,
                 void *c, Py_ssize_t ldc)
{
    int sizes[] = {(int)m, (int)n, (int)k, (int)lda, (int)ldb, (int)ldc};
    Product product = product_of_scipy();
    if (product == NULL || kind != 'd')
        return -1;
    product(&transa, &transb, sizes, sizes + 1, sizes + 2, alpha, a, sizes + 3, b, sizes + 4, beta,
            c, sizes + 5);
    return 0;
}

int numba_xxgemv(char kind, char trans, Py_ssize_t m, Py_ssize_t n, void *alpha, void *a,
                 Py_ssize_t lda, void *x, void *beta, void *y)
{
    Py_ssize_t rows = trans == 'n' || trans == 'N' ? m : n, columns = m + n - rows;
    return numba_xxgemm(kind, trans, 'n', rows, 1, columns, alpha, a, lda, x, columns, beta, y,
                        rows);
}

int numba_xxdot(char kind, char conjugate, Py_ssize_t n, void *x, void *y, void *result)
{
    double one = 1.0, zero = 0.0;
    return numba_xxgemm(kind, 't', 'n', 1, 1, n, &one, x, n, y, n, &zero, result, 1);
}

double numba_frexp(double x, int *exponent)
{
    *exponent = 0;
    return isfinite(x) && x ? frexp(x, exponent) : x;
}

double numba_ldexp(double x, int exponent)
{
    return ldexp(x, exponent);
}

/* A contiguous array in another shape; numba raises an error if this returns 0. */
int numba_attempt_nocopy_reshape(npy_intp dimensions, const npy_intp *sizes,
                                 const npy_intp *strides, npy_intp new_dimensions,
                                 const npy_intp *new_sizes, npy_intp *new_strides,
                                 npy_intp itemsize, int fortran)
{
    npy_intp step = itemsize;
    for (npy_intp i = dimensions - 1; i >= 0; step *= sizes[i], i--)
        if (sizes[i] > 1 && strides[i] != step)
            return 0;
    step = itemsize;
    for (npy_intp i = new_dimensions - 1; i >= 0; step *= new_sizes[i], i--)
        new_strides[i] = step;
    return !fortran;
}

/* Numba asks for the interpreter's lock around a call of BLAS that fails. */
int numba_gil_ensure(PyGILState_STATE *state)
{
    *state = PyGILState_Ensure();
    return 0;
}

void numba_gil_release(PyGILState_STATE *state)
{
    PyGILState_Release(*state);
}

#define STRUCTURE(n)                                                                               \
    typedef struct {                                                                               \
        Memory *memory;                                                                            \
        void *parent;                                                                              \
        int64_t items, itemsize;                                                                   \
        void *data;                                                                                \
        int64_t shape[n], strides[n];                                                              \
    } Array##n;
STRUCTURE(1)
STRUCTURE(2)
STRUCTURE(3)

#define TYPES(n) void *, void *, int64_t, int64_t, void *, TYPES##n
#define TYPES1 int64_t, int64_t
#define TYPES2 int64_t, int64_t, int64_t, int64_t
#define TYPES3 int64_t, int64_t, int64_t, int64_t, int64_t, int64_t
#define WHOLE(o)                                                                                   \
    NULL, (o), PyArray_SIZE((PyArrayObject *)(o)), PyArray_ITEMSIZE((PyArrayObject *)(o)),         \
        PyArray_DATA((PyArrayObject *)(o))
#define SIZE(o, i) PyArray_DIM((PyArrayObject *)(o), i)
#define STRIDE(o, i) PyArray_STRIDE((PyArrayObject *)(o), i)
#define GIVE1(o) WHOLE(o), SIZE(o, 0), STRIDE(o, 0)
#define GIVE2(o) WHOLE(o), SIZE(o, 0), SIZE(o, 1), STRIDE(o, 0), STRIDE(o, 1)
#define GIVE3(o)                                                                                   \
    WHOLE(o), SIZE(o, 0), SIZE(o, 1), SIZE(o, 2), STRIDE(o, 0), STRIDE(o, 1), STRIDE(o, 2)

static inline int is_array(PyObject *o, int dimensions, int type)
{
    if (!PyArray_Check(o))
        return 0;
    PyArrayObject *array = (PyArrayObject *)o;
    return PyArray_NDIM(array) == dimensions && PyArray_EquivTypenums(PyArray_TYPE(array), type)
        && PyArray_ISCARRAY(array);
}

static inline int is_float64(PyObject *o) { return PyFloat_Check(o); }
static inline int is_bool(PyObject *o) { return PyBool_Check(o) || PyArray_IsScalar(o, Bool); }
static inline int is_uint64(PyObject *o) { return PyArray_IsScalar(o, UInt64); }

static inline int is_int64(PyObject *o)
{
    if (PyArray_IsScalar(o, Int64))
        return 1;
    int overflow = 0;
    if (!PyLong_CheckExact(o))
        return 0;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}

static inline int64_t to_int64(PyObject *o)
{
    return PyLong_Check(o) ? PyLong_AsLongLong(o) : PyArrayScalar_VAL(o, Int64);
}

#define TO_float64(o) PyFloat_AS_DOUBLE(o)
#define TO_int64(o) to_int64(o)
#define TO_uint64(o) PyArrayScalar_VAL(o, UInt64)
#define TO_bool(o)                                                                                 \
    ((uint8_t)((o) == Py_True || (PyArray_IsScalar(o, Bool) && PyArrayScalar_VAL(o, Bool))))

static PyObject *from_array(int dimensions, int type, Memory *memory, void *data, int64_t *shape,
                            int64_t *strides)
{
    npy_intp sizes[3], steps[3];
    for (int i = 0; i < dimensions; i++) {
        sizes[i] = shape[i];
        steps[i] = strides[i];
    }
    PyObject *owner = PyCapsule_New(memory, NULL, release);
    PyObject *array = owner ? PyArray_New(&PyArray_Type, dimensions, sizes, type, steps, data, 0,
                                          NPY_ARRAY_WRITEABLE, NULL) : NULL;
    if (array == NULL) {
        Py_XDECREF(owner);
        return NULL;
    }
    PyArray_SetBaseObject((PyArrayObject *)array, owner);
    PyArray_UpdateFlags((PyArrayObject *)array, NPY_ARRAY_UPDATE_ALL);
    return array;
}

/* Called where the types fit no form of a kernel. */
static PyObject *undeclared(const char *name, PyObject *const *given, Py_ssize_t count)
{
    PyObject *loader = PyImport_ImportModule("fastpriv.kernels.loader");
    PyObject *arguments = PyTuple_New(count), *result = NULL;
    for (Py_ssize_t i = 0; arguments && i < count; i++) {
        Py_INCREF(given[i]);
        PyTuple_SET_ITEM(arguments, i, given[i]);
    }
    if (loader && arguments)
        result = PyObject_CallMethod(loader, "undeclared", "sO", name, arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(loader);
    return result;
}

typedef struct {
    const char *pickled;
    int32_t size;
    void *rest[2];
    int32_t dynamic;
} Error;

static PyObject *failed(int status, Error *error)
{
    if (status < 1 || error == NULL || error->dynamic > 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_RuntimeError, "a kernel ended with status %d", status);
        return NULL;
    }
    PyObject *loader = PyImport_ImportModule("fastpriv.kernels.loader");
    PyObject *none = loader ? PyObject_CallMethod(loader, "failed", "y#", error->pickled,
                                                  (Py_ssize_t)error->size) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(loader);
    return NULL;
}
