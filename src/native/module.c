/* What Python sees: arrays in, bytes out. The GIL is released while pixels are read. */
#include "arguments.h"

#include <string.h>

#include "distances.h"
#include "measure.h"
#include "memory.h"
#include "nearest.h"
#include "structure.h"
#include "thinning.h"
#include "thresholds.h"
#include "values.h"
#include "weighted.h"

static PyObject *copy_bytes(const void *values, size_t n, size_t item) {
    void *memory;
    PyObject *bytes = new_bytes(n, item, &memory);
    if (bytes) memcpy(memory, values, n * item);
    return bytes;
}

/* Of each object its box, then all areas, then the areas of all boxes: six integers each. */
static PyObject *box_bytes(const Runs *runs, const int32_t *kept, int32_t n) {
    void *memory;
    PyObject *bytes = new_bytes(6 * (size_t)n, sizeof(int64_t), &memory);
    if (!bytes) return NULL;
    int64_t *boxes = memory, *areas = boxes + 4 * (size_t)n, *box_areas = areas + n;
    for (int32_t i = 0; i < n; i++) {
        const Component *one = runs->components + kept[i];
        int64_t box[4] = {one->y0, one->x0, one->y1, one->x1};
        memcpy(boxes + 4 * (size_t)i, box, sizeof box);
        areas[i] = one->area;
        box_areas[i] = (box[2] - box[0]) * (box[3] - box[1]);
    }
    return bytes;
}

/* A tuple of these objects, of which it takes possession; NULL if one of them is. */
static PyObject *pack(PyObject **items, Py_ssize_t n) {
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (tuple && items[i]) PyTuple_SetItem(tuple, i, items[i]);
        else {
            Py_XDECREF(items[i]);
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

/* Boxes, integers of the overlaps, IoU, histograms. */
static PyObject *objects_tuple(const Measurement *m, bool histograms) {
    size_t n = (size_t)m->n_predicted;
    PyObject *items[] = {
        box_bytes(&m->predicted, m->kept_predicted, m->n_predicted),
        copy_bytes(m->integers, 4 * n + 2 * (size_t)m->n_frames, sizeof(int64_t)),
        copy_bytes(m->overlaps.iou, n, sizeof(double)),
        copy_bytes(m->histograms, histograms ? n * 256 : 0, sizeof(double)),
    };
    return pack(items, 4);
}

static PyObject *measured_tuple(const Measurement *m, const Settings *settings) {
    PyObject *items[] = {
        box_bytes(&m->truth, m->kept, m->n_frames),
        copy_bytes(m->counts, ((size_t)m->n_frames + 2) * 2 * 256, sizeof(double)),
        Py_BuildValue("(ii)", m->low, m->high),
        PyLong_FromLongLong(m->background.area),
        PyLong_FromLong(m->truth.n_components - m->n_frames),
        settings->objects ? objects_tuple(m, settings->histograms) : Py_BuildValue(""),
    };
    return pack(items, 6);
}

static PyObject *measure(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *codes, *gt, *result = NULL;
    long long least;
    int connectivity, minmax, objects, histograms;
    if (!PyArg_ParseTuple(args, "OOLippp", &codes, &gt, &least, &connectivity, &minmax, &objects, &histograms))
        return NULL;
    Settings settings = {least, connectivity, minmax, objects, histograms};
    Views views = {0};
    Plane plane;
    bool done = true;
    if (hold_image(&views, codes, gt, 1, &plane)) {
        Measurement measurement;
        Py_BEGIN_ALLOW_THREADS
        done = measure_image(&plane, &settings, &measurement);
        Py_END_ALLOW_THREADS
        if (done) result = measured_tuple(&measurement, &settings);
        free_measurement(&measurement);
    }
    return release_views(&views, result, done);
}

static bool codes_below(const Plane *plane, int32_t n_codes) {
    if (n_codes < 1 || n_codes > UINT16_MAX) return false;
    if (plane->codes8 && n_codes == 256) return true;
    size_t size = (size_t)plane->height * (size_t)plane->width;
    int32_t largest = 0;
    for (size_t i = 0; i < size; i++) {
        int32_t code = plane->codes8 ? plane->codes8[i] : plane->codes16[i];
        if (code > largest) largest = code;
    }
    return largest < n_codes;
}

static PyObject *count(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *codes, *gt, *rows, *result = NULL;
    int32_t n, n_codes;
    if (!PyArg_ParseTuple(args, "OOOi", &codes, &gt, &rows, &n_codes)) return NULL;
    Views views = {0};
    Plane plane;
    void *counts;
    bool done = true;
    Box *boxes = hold_image(&views, codes, gt, 2, &plane) ? copy_boxes(rows, &plane, &n) : NULL;
    if (boxes && !codes_below(&plane, n_codes)) {
        PyErr_SetString(PyExc_ValueError, "expected codes below their number");
    } else if (boxes && (result = new_bytes(2 * (size_t)n_codes * ((size_t)n + 2), sizeof(double), &counts))) {
        plane.n_codes = n_codes;
        Background background;
        Py_BEGIN_ALLOW_THREADS
        done = count_frames(&plane, boxes, n, counts, &background);
        if (done) free_background(&background);
        Py_END_ALLOW_THREADS
    }
    free(boxes);
    return release_views(&views, result, done);
}

static PyObject *values(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *objects[MOST_VIEWS], *result = NULL;
    ImageCounts in = {0};
    long long background;
    if (!PyArg_ParseTuple(
            args, "(OOOOOOOOO)iLdd", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4], &objects[5],
            &objects[6], &objects[7], &objects[8], &in.first, &background, &in.numerator, &in.denominator))
        return NULL;
    in.background = background;
    Views views = {0};
    void *memory;
    bool done = true;
    if (in.first < 0 || in.first >= LEVELS) {
        PyErr_SetString(PyExc_ValueError, "the first threshold must be 0 to 255");
    } else if (
        hold_counts(&views, objects, &in) &&
        (result = new_bytes(result_size(in.n_frames), sizeof(double), &memory))) {
        Py_BEGIN_ALLOW_THREADS
        done = compute_values(&in, memory);
        Py_END_ALLOW_THREADS
    }
    return release_views(&views, result, done);
}

static PyObject *thresholds(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *steps, *gt, *result = NULL;
    StepMap map = {0};
    long long least;
    if (!PyArg_ParseTuple(args, "OOiiL", &steps, &gt, &map.n_thresholds, &map.connectivity, &least)) return NULL;
    map.least = least;
    Views views = {0};
    Plane plane;
    void *tallies;
    bool done = true;
    if (map.n_thresholds < 1 || map.n_thresholds > 255) {
        PyErr_SetString(PyExc_ValueError, "the number of thresholds must be 1 to 255");
    } else if (
        hold_image(&views, steps, gt, 1, &plane) &&
        (result = new_bytes(N_TALLIES * (size_t)map.n_thresholds, sizeof(int64_t), &tallies))) {
        map.height = plane.height;
        map.width = plane.width;
        map.steps = plane.codes8;
        map.gt = plane.gt;
        Py_BEGIN_ALLOW_THREADS
        done = count_thresholds(&map, tallies);
        Py_END_ALLOW_THREADS
    }
    return release_views(&views, result, done);
}

static PyObject *nearest(PyObject *self, PyObject *object) {
    (void)self;
    Views views = {0};
    int32_t height = 0, width = 0;
    bool done = true;
    PyObject *result = NULL;
    const Py_buffer *view = hold_plane(&views, object, sizeof(int32_t), &height, &width);
    if (view && (view->readonly || view->itemsize != sizeof(int32_t))) {
        PyErr_SetString(PyExc_ValueError, "expected a plane of int32 that may be written to");
    } else if (view) {
        Py_BEGIN_ALLOW_THREADS
        done = find_nearest(view->buf, height, width);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("");
    }
    return release_views(&views, result, done);
}

static PyObject *thin_plane(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *object, *table, *result = NULL;
    if (!PyArg_ParseTuple(args, "OO", &object, &table)) return NULL;
    Views views = {0};
    int32_t height = 0, width = 0;
    bool done = true;
    const Py_buffer *view = hold_plane(&views, object, 1, &height, &width), *passes = NULL;
    if (view) passes = hold_array(&views, table);
    if (passes && (view->readonly || passes->len != 256)) {
        PyErr_SetString(PyExc_ValueError, "expected a plane that may be written to and a table of 256 bytes");
    } else if (passes) {
        Py_BEGIN_ALLOW_THREADS
        done = thin(view->buf, height, width, passes->buf);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("");
    }
    return release_views(&views, result, done);
}

static PyObject *near(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *pixels, *others, *result = NULL;
    int tolerance;
    if (!PyArg_ParseTuple(args, "OOi", &pixels, &others, &tolerance)) return NULL;
    Views views = {0};
    Plane plane;
    int64_t n = 0;
    if (tolerance < 0 || tolerance == INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the tolerance must be 0 to 2^31 - 2");
    } else if (hold_image(&views, pixels, others, 1, &plane)) {
        Py_BEGIN_ALLOW_THREADS
        n = count_near(&plane, tolerance);
        Py_END_ALLOW_THREADS
        result = PyLong_FromLongLong(n);
    }
    return release_views(&views, result, n >= 0);
}

static PyObject *moments(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *codes, *gt, *rows, *result = NULL;
    int32_t n, low;
    if (!PyArg_ParseTuple(args, "OOOi", &codes, &gt, &rows, &low)) return NULL;
    Views views = {0};
    Plane plane;
    void *sums;
    Box *boxes = hold_image(&views, codes, gt, 1, &plane) ? copy_boxes(rows, &plane, &n) : NULL;
    if (boxes && (result = new_bytes(N_MOMENTS * (size_t)n, sizeof(int64_t), &sums))) {
        Py_BEGIN_ALLOW_THREADS
        memset(sums, 0, sizeof(int64_t) * N_MOMENTS * (size_t)n);
        for (int32_t i = 0; i < n; i++) add_moments(&plane, boxes + i, low, (int64_t *)sums + N_MOMENTS * (size_t)i);
        Py_END_ALLOW_THREADS
    }
    free(boxes);
    return release_views(&views, result, true);
}

/* Hold the filter and the weights by distance of the weighted F. */
static bool hold_weighting(Views *views, PyObject *gaussian, PyObject *weights, Weighting *out) {
    const Py_buffer *taps = hold_array(views, gaussian), *table = taps ? hold_array(views, weights) : NULL;
    if (!table) return false;
    Py_ssize_t item = (Py_ssize_t)sizeof(double);
    if (taps->len != TAPS * item || taps->itemsize != item || table->itemsize != item || table->len < item ||
        table->len / item > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "expected seven taps of a filter and a table of weights");
        return false;
    }
    out->gaussian = taps->buf;
    out->weights = table->buf;
    out->n_weights = (int32_t)(table->len / item);
    return true;
}

static PyObject *weighted_errors(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *codes, *gt, *rows, *gaussian, *weights, *result = NULL;
    Weighting weighting = {0};
    if (!PyArg_ParseTuple(
            args, "OOOOOii", &codes, &gt, &rows, &gaussian, &weights, &weighting.low, &weighting.high))
        return NULL;
    Views views = {0};
    Plane plane;
    int32_t n;
    void *sums;
    bool done = true;
    Box *boxes = NULL;
    if (hold_image(&views, codes, gt, 1, &plane) && hold_weighting(&views, gaussian, weights, &weighting))
        boxes = copy_boxes(rows, &plane, &n);
    if (boxes && (result = new_bytes(2 * (size_t)n, sizeof(double), &sums))) {
        Py_BEGIN_ALLOW_THREADS
        memset(sums, 0, sizeof(double) * 2 * (size_t)n);
        done = sum_weighted_errors(&plane, &weighting, boxes, n, sums);
        Py_END_ALLOW_THREADS
    }
    free(boxes);
    return release_views(&views, result, done);
}

static PyMethodDef methods[] = {
    {"measure", measure, METH_VARARGS, "Measure one image."},
    {"count", count, METH_VARARGS, "Count the pixels per code and class, of the image and of frames."},
    {"values", values, METH_VARARGS, "Compute all values and curves of one image."},
    {"thresholds", thresholds, METH_VARARGS, "Count the predicted objects above every threshold."},
    {"nearest", nearest, METH_O, "Replace -1 by the nearest object, in place."},
    {"thin", thin_plane, METH_VARARGS, "Leave the lines in the middle of objects, in place."},
    {"near", near, METH_VARARGS, "Count the pixels that are near to another mask."},
    {"moments", moments, METH_VARARGS, "Sum the quadrants of boxes for the structure measure."},
    {"weighted_errors", weighted_errors, METH_VARARGS, "Sum the weighted errors of boxes."},
    {NULL, NULL, 0, NULL},
};

/* To be raised whenever a function takes or returns something else, with that in kernel.py: a kernel that
 * was built from older sources is then not used. */
static int add_version(PyObject *module) { return PyModule_AddIntConstant(module, "VERSION", 3); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_version}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The compiled kernel of the scores.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
