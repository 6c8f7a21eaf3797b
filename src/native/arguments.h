/* Arrays of Python -> what the kernel takes. Every shape and every number is checked here. */
#ifndef SISOD_ARGUMENTS_H
#define SISOD_ARGUMENTS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdbool.h>

#include "curves.h"
#include "frames.h"

/* The arrays that a call reads, until it releases all of them. */
enum { MOST_VIEWS = 9 };
typedef struct {
    Py_buffer held[MOST_VIEWS];
    int n;
} Views;

/* Hold a C-contiguous array of any shape; NULL with an exception. */
const Py_buffer *hold_array(Views *views, PyObject *object);

/* Hold a plane of items of at most so many bytes. With a height of 0 it may have any shape below 2^31
 * pixels, which is stored; else it must have this one. NULL with an exception. */
const Py_buffer *hold_plane(Views *views, PyObject *object, Py_ssize_t largest_item, int32_t *height, int32_t *width);

/* Hold a map of codes and its ground truth; `n_codes` is 256. */
bool hold_image(Views *views, PyObject *codes, PyObject *gt, Py_ssize_t largest_item, Plane *plane);

/* Copy rows y0, x0, y1, x1 of int64, which must be inside the image; NULL with an exception. */
Box *copy_boxes(PyObject *object, const Plane *plane, int32_t *n);

/* Hold the arrays of an image's counts, in the order of their names in `ImageCounts`. */
bool hold_counts(Views *views, PyObject *const objects[MOST_VIEWS], ImageCounts *in);

/* Release the arrays and return the result; without memory that is an exception. */
PyObject *release_views(Views *views, PyObject *result, bool done);

/* New bytes for an array, and its memory; NULL with an exception. */
PyObject *new_bytes(size_t n, size_t item, void **memory);

#endif
