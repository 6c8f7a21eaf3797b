#include "arguments.h"

#include "memory.h"

enum { LONGEST_SIDE = 1 << 20 }; /* products of squared distances fit into 64 bits */

const Py_buffer *hold_array(Views *views, PyObject *object) {
    Py_buffer *view = views->held + views->n;
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS) < 0) return NULL;
    views->n++;
    return view;
}

const Py_buffer *hold_plane(Views *views, PyObject *object, Py_ssize_t largest_item, int32_t *height, int32_t *width) {
    const Py_buffer *view = hold_array(views, object);
    if (!view) return NULL;
    bool fits = view->ndim == 2 && view->itemsize >= 1 && view->itemsize <= largest_item;
    if (fits && *height == 0) {
        fits = view->shape[0] > 0 && view->shape[0] <= LONGEST_SIDE && view->shape[1] > 0 &&
               view->shape[1] <= LONGEST_SIDE && view->shape[0] <= INT32_MAX / view->shape[1] - 1;
        if (fits) {
            *height = (int32_t)view->shape[0];
            *width = (int32_t)view->shape[1];
        }
    } else if (fits) {
        fits = view->shape[0] == *height && view->shape[1] == *width;
    }
    if (!fits) PyErr_SetString(PyExc_ValueError, "expected planes of one shape, below 2^31 pixels, no side above 2^20");
    return fits ? view : NULL;
}

bool hold_image(Views *views, PyObject *codes, PyObject *gt, Py_ssize_t largest_item, Plane *plane) {
    *plane = (Plane){.n_codes = 256};
    const Py_buffer *view = hold_plane(views, codes, largest_item, &plane->height, &plane->width);
    if (!view) return false;
    if (view->itemsize == 1) plane->codes8 = view->buf;
    else plane->codes16 = view->buf;
    view = hold_plane(views, gt, 1, &plane->height, &plane->width);
    if (view) plane->gt = view->buf;
    return view != NULL;
}

static bool is_inside(const int64_t *row, const Plane *plane) {
    return 0 <= row[0] && row[0] <= row[2] && row[2] <= plane->height && 0 <= row[1] && row[1] <= row[3] &&
           row[3] <= plane->width;
}

Box *copy_boxes(PyObject *object, const Plane *plane, int32_t *n) {
    Views views = {0};
    const Py_buffer *rows = hold_array(&views, object);
    if (!rows) return NULL;
    Py_ssize_t row_size = 4 * (Py_ssize_t)sizeof(int64_t);
    bool fits = rows->itemsize == sizeof(int64_t) && rows->len % row_size == 0 && rows->len / row_size < INT32_MAX;
    *n = fits ? (int32_t)(rows->len / row_size) : 0;
    Box *boxes = new_array((size_t)*n, sizeof *boxes);
    for (int32_t i = 0; boxes && fits && i < *n; i++) {
        const int64_t *row = (const int64_t *)rows->buf + 4 * (size_t)i;
        fits = is_inside(row, plane);
        boxes[i] = (Box){(int32_t)row[0], (int32_t)row[1], (int32_t)row[2], (int32_t)row[3]};
    }
    release_views(&views, NULL, true);
    if (boxes && fits) return boxes;
    if (boxes) PyErr_SetString(PyExc_ValueError, "expected boxes of int64 inside the image");
    else PyErr_NoMemory();
    free(boxes);
    return NULL;
}

/* Counts of at least two rows (image and union), two classes and codes; no cut lies beyond the codes. */
static bool are_counts(const Py_buffer *counts, const Py_buffer *cuts) {
    bool fits = counts->ndim == 3 && counts->shape[0] >= 2 && counts->shape[0] < INT32_MAX && counts->shape[1] == 2 &&
                counts->shape[2] >= 1 && counts->shape[2] <= COLUMNS && counts->itemsize == sizeof(double) &&
                cuts->itemsize == sizeof(int64_t) && cuts->len == COLUMNS * (Py_ssize_t)sizeof(int64_t);
    for (int32_t i = 0; fits && i < COLUMNS; i++) {
        int64_t cut = ((const int64_t *)cuts->buf)[i];
        fits = cut >= 0 && cut <= counts->shape[2];
    }
    return fits;
}

/* An array of `n` items of eight bytes; NULL if it is not one. */
static const void *eight_bytes(const Py_buffer *view, int64_t n) {
    return view->itemsize == 8 && view->len == 8 * n ? view->buf : NULL;
}

bool hold_counts(Views *views, PyObject *const objects[MOST_VIEWS], ImageCounts *in) {
    enum { COUNTS, CUTS, ABSOLUTE, SQUARED, AREAS, FRAME_AREAS, PREDICTED_AREAS, SALIENT, MATCHED_IOU };
    for (int i = 0; i < MOST_VIEWS; i++)
        if (!hold_array(views, objects[i])) return false;
    const Py_buffer *held = views->held;
    bool fits = are_counts(held + COUNTS, held + CUTS);
    if (fits) {
        in->counts = held[COUNTS].buf;
        in->n_frames = (int32_t)held[COUNTS].shape[0] - 2;
        in->n_codes = (int32_t)held[COUNTS].shape[2];
        in->cuts = held[CUTS].buf;
        in->absolute = eight_bytes(held + ABSOLUTE, in->n_frames + 2);
        in->squared = eight_bytes(held + SQUARED, in->n_frames + 2);
        in->areas = eight_bytes(held + AREAS, in->n_frames);
        in->frame_areas = eight_bytes(held + FRAME_AREAS, in->n_frames);
        in->n_predicted = held[SALIENT].len / 8;
        in->predicted_areas = eight_bytes(held + PREDICTED_AREAS, in->n_predicted);
        in->salient = eight_bytes(held + SALIENT, in->n_predicted);
        in->iou = eight_bytes(held + MATCHED_IOU, in->n_predicted);
        fits = in->absolute && in->squared && in->areas && in->frame_areas && in->predicted_areas && in->salient &&
               in->iou;
    }
    if (!fits)
        PyErr_SetString(
            PyExc_ValueError, "expected counts (rows, two classes, codes), a cut per threshold, and numbers of "
                              "eight bytes for each row, frame and object");
    return fits;
}

PyObject *release_views(Views *views, PyObject *result, bool done) {
    for (int i = 0; i < views->n; i++) PyBuffer_Release(views->held + i);
    if (done) return result;
    Py_XDECREF(result);
    return PyErr_NoMemory();
}

PyObject *new_bytes(size_t n, size_t item, void **memory) {
    if (n > (size_t)PY_SSIZE_T_MAX / item) return PyErr_NoMemory();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(n * item));
    if (bytes) *memory = PyBytes_AsString(bytes);
    return bytes;
}
