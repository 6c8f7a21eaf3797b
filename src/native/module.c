/* What Python sees: arrays in, bytes out. The GIL is released while an image is measured. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <string.h>

#include "curves.h"
#include "measure.h"
#include "memory.h"
#include "nearest.h"
#include "structure.h"
#include "thresholds.h"
#include "values.h"
#include "weighted.h"

/* Get a C-contiguous plane of this shape (or any, if height is 0) and of one of two item sizes. */
static bool get_plane(PyObject *object, Py_buffer *view, int32_t *height, int32_t *width, Py_ssize_t largest_item) {
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS) < 0) return false;
    bool fits = view->ndim == 2 && view->itemsize >= 1 && view->itemsize <= largest_item;
    if (fits && *height == 0) {
        fits = view->shape[0] > 0 && view->shape[1] > 0 && view->shape[0] <= INT32_MAX / view->shape[1] - 1;
        if (fits) {
            *height = (int32_t)view->shape[0];
            *width = (int32_t)view->shape[1];
        }
    } else if (fits) {
        fits = view->shape[0] == *height && view->shape[1] == *width;
    }
    if (!fits) {
        PyBuffer_Release(view);
        PyErr_SetString(PyExc_ValueError, "expected planes of one shape, below 2^31 pixels");
    }
    return fits;
}

static void set_codes(Plane *plane, const Py_buffer *codes) {
    if (codes->itemsize == 1) plane->codes8 = codes->buf;
    else plane->codes16 = codes->buf;
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

static PyObject *as_bytes(const void *values, size_t n, size_t item) {
    return PyBytes_FromStringAndSize(values, (Py_ssize_t)(n * item));
}

/* Boxes, then areas: five integers for each object. */
static PyObject *boxes_and_areas(const Runs *runs, const int32_t *kept, int32_t n) {
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n * 5 * (Py_ssize_t)sizeof(int64_t));
    if (!bytes) return NULL;
    char *memory = PyBytes_AsString(bytes);
    for (int32_t i = 0; i < n; i++) {
        const Component *one = runs->components + kept[i];
        int64_t box[4] = {one->y0, one->x0, one->y1, one->x1};
        memcpy(memory + (size_t)i * sizeof box, box, sizeof box);
        memcpy(memory + (size_t)n * sizeof box + (size_t)i * sizeof one->area, &one->area, sizeof one->area);
    }
    return bytes;
}

/* Boxes and areas, integers of the overlaps, histograms; None if no objects are wanted. */
static PyObject *objects_tuple(const Measurement *m, bool objects) {
    if (!objects) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    size_t n = (size_t)m->n_predicted;
    PyObject *predicted = boxes_and_areas(&m->predicted, m->kept_predicted, m->n_predicted);
    PyObject *integers = as_bytes(m->integers, 4 * n + 2 * (size_t)m->n_frames, sizeof(int64_t));
    PyObject *histograms = as_bytes(m->histograms, n * 256, sizeof(double));
    if (predicted && integers && histograms) return Py_BuildValue("(NNN)", predicted, integers, histograms);
    Py_XDECREF(predicted);
    Py_XDECREF(integers);
    Py_XDECREF(histograms);
    return NULL;
}

static PyObject *as_tuple(const Measurement *m, bool objects) {
    PyObject *truth = boxes_and_areas(&m->truth, m->kept, m->n_frames);
    PyObject *counts = as_bytes(m->counts, ((size_t)m->n_frames + 2) * 2 * 256, sizeof(double));
    PyObject *predicted = objects_tuple(m, objects);
    if (truth && counts && predicted)
        return Py_BuildValue("(NNiN)", truth, counts, m->truth.n_components - m->n_frames, predicted);
    Py_XDECREF(truth);
    Py_XDECREF(counts);
    Py_XDECREF(predicted);
    return NULL;
}

static PyObject *measure(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *codes_object, *gt_object;
    Plane plane = {0};
    Settings settings = {0};
    long long least;
    int minmax, objects;
    if (!PyArg_ParseTuple(
            args, "OOLipp", &codes_object, &gt_object, &least, &settings.connectivity, &minmax, &objects))
        return NULL;
    plane.n_codes = 256;
    settings.least = least;
    settings.minmax = minmax;
    settings.objects = objects;
    Py_buffer codes, gt;
    if (!get_plane(codes_object, &codes, &plane.height, &plane.width, 1)) return NULL;
    if (!get_plane(gt_object, &gt, &plane.height, &plane.width, 1)) {
        PyBuffer_Release(&codes);
        return NULL;
    }
    plane.gt = gt.buf;
    set_codes(&plane, &codes);
    Measurement measurement;
    bool done;
    Py_BEGIN_ALLOW_THREADS
    done = measure_image(&plane, &settings, &measurement);
    Py_END_ALLOW_THREADS
    PyObject *result = done ? as_tuple(&measurement, objects) : PyErr_NoMemory();
    free_measurement(&measurement);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&gt);
    return result;
}

/* Get the counts and the cuts of `curves`, and check that no cut lies beyond the codes. */
static bool get_counts(PyObject *const objects[2], Py_buffer views[2], int32_t *n_frames, int32_t *n_codes) {
    if (PyObject_GetBuffer(objects[0], views, PyBUF_C_CONTIGUOUS) < 0) return false;
    if (PyObject_GetBuffer(objects[1], views + 1, PyBUF_C_CONTIGUOUS) < 0) {
        PyBuffer_Release(views);
        return false;
    }
    const Py_buffer *counts = views, *cuts = views + 1;
    bool fits = counts->ndim == 3 && counts->shape[0] >= 1 && counts->shape[0] < INT32_MAX && counts->shape[1] == 2 &&
                counts->shape[2] >= 1 && counts->shape[2] <= COLUMNS && counts->itemsize == sizeof(double) &&
                cuts->len == COLUMNS * (Py_ssize_t)sizeof(int64_t);
    for (int32_t i = 0; fits && i < COLUMNS; i++) {
        int64_t cut = ((const int64_t *)cuts->buf)[i];
        fits = cut >= 0 && cut <= counts->shape[2];
    }
    if (fits) {
        *n_frames = (int32_t)counts->shape[0] - 1;
        *n_codes = (int32_t)counts->shape[2];
        return true;
    }
    PyBuffer_Release(views);
    PyBuffer_Release(views + 1);
    PyErr_SetString(PyExc_ValueError, "expected counts of rows, two classes and codes, and a cut per threshold");
    return false;
}

static PyObject *curves(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *objects[2];
    int first;
    if (!PyArg_ParseTuple(args, "OOi", &objects[0], &objects[1], &first)) return NULL;
    Py_buffer views[2];
    int32_t n_frames, n_codes;
    if (!get_counts(objects, views, &n_frames, &n_codes)) return NULL;
    PyObject *result = NULL;
    size_t curve = N_METRICS * COLUMNS;
    size_t frames = ((size_t)n_frames + 1) * N_FRAME_VALUES;
    if (first < 0 || first >= LEVELS) {
        PyErr_SetString(PyExc_ValueError, "the first threshold must be 0 to 255");
    } else if ((result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((2 * curve + frames) * sizeof(double))))) {
        double *memory = (double *)(void *)PyBytes_AsString(result);
        Curves out = {.plain = memory, .si = memory + curve, .frames = memory + 2 * curve};
        Py_BEGIN_ALLOW_THREADS
        compute_curves(views[0].buf, n_frames, n_codes, views[1].buf, first, &out);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(views);
    PyBuffer_Release(views + 1);
    return result;
}

static PyObject *thresholds(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *objects[2], *result = NULL;
    StepMap map = {0};
    long long least;
    if (!PyArg_ParseTuple(args, "OOiiL", &objects[0], &objects[1], &map.n_thresholds, &map.connectivity, &least))
        return NULL;
    map.least = least;
    Py_buffer steps, gt;
    if (!get_plane(objects[0], &steps, &map.height, &map.width, 1)) return NULL;
    if (!get_plane(objects[1], &gt, &map.height, &map.width, 1)) {
        PyBuffer_Release(&steps);
        return NULL;
    }
    map.steps = steps.buf;
    map.gt = gt.buf;
    if (map.n_thresholds < 1 || map.n_thresholds > 255) {
        PyErr_SetString(PyExc_ValueError, "the number of thresholds must be 1 to 255");
    } else if ((result = PyBytes_FromStringAndSize(
                    NULL, N_TALLIES * (Py_ssize_t)sizeof(int64_t) * map.n_thresholds))) {
        int64_t *tallies = (int64_t *)(void *)PyBytes_AsString(result);
        bool done;
        Py_BEGIN_ALLOW_THREADS
        done = count_thresholds(&map, tallies);
        Py_END_ALLOW_THREADS
        if (!done) {
            Py_DECREF(result);
            result = PyErr_NoMemory();
        }
    }
    PyBuffer_Release(&steps);
    PyBuffer_Release(&gt);
    return result;
}

static PyObject *nearest(PyObject *self, PyObject *object) {
    (void)self;
    Py_buffer view;
    int32_t height = 0, width = 0;
    if (!get_plane(object, &view, &height, &width, sizeof(int32_t))) return NULL;
    bool done = false;
    if (view.readonly || view.itemsize != sizeof(int32_t)) {
        PyErr_SetString(PyExc_ValueError, "expected a plane of int32 that may be written to");
    } else {
        Py_BEGIN_ALLOW_THREADS
        done = find_nearest(view.buf, height, width, NULL);
        Py_END_ALLOW_THREADS
        if (!done) PyErr_NoMemory();
    }
    PyBuffer_Release(&view);
    if (!done) return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

/* Get a grey map, its ground truth and rows y0, x0, y1, x1 of int64 as boxes, which must be inside. */
static Box *get_boxes(
    PyObject *const objects[3], Py_buffer views[2], Plane *plane, int32_t *n, Py_ssize_t largest_code) {
    Py_buffer rows;
    plane->n_codes = 256;
    if (!get_plane(objects[0], views, &plane->height, &plane->width, largest_code)) return NULL;
    if (!get_plane(objects[1], views + 1, &plane->height, &plane->width, 1)) {
        PyBuffer_Release(views);
        return NULL;
    }
    set_codes(plane, views);
    plane->gt = views[1].buf;
    Box *boxes = NULL;
    if (PyObject_GetBuffer(objects[2], &rows, PyBUF_C_CONTIGUOUS) == 0) {
        bool fits = rows.itemsize == sizeof(int64_t) && rows.len % (Py_ssize_t)(4 * sizeof(int64_t)) == 0 &&
                    rows.len / (Py_ssize_t)(4 * sizeof(int64_t)) < INT32_MAX;
        *n = fits ? (int32_t)(rows.len / (Py_ssize_t)(4 * sizeof(int64_t))) : 0;
        boxes = new_array((size_t)*n, sizeof *boxes);
        for (int32_t i = 0; boxes && i < *n; i++) {
            const int64_t *row = (const int64_t *)rows.buf + 4 * (size_t)i;
            fits = fits && 0 <= row[0] && row[0] <= row[2] && row[2] <= plane->height && 0 <= row[1] &&
                   row[1] <= row[3] && row[3] <= plane->width;
            if (fits) boxes[i] = (Box){(int32_t)row[0], (int32_t)row[1], (int32_t)row[2], (int32_t)row[3]};
        }
        PyBuffer_Release(&rows);
        if (!boxes) PyErr_NoMemory();
        else if (!fits) PyErr_SetString(PyExc_ValueError, "expected boxes of int64 inside the image");
        if (boxes && !fits) {
            free(boxes);
            boxes = NULL;
        }
    }
    if (!boxes) {
        PyBuffer_Release(views);
        PyBuffer_Release(views + 1);
    }
    return boxes;
}

static PyObject *moments(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *objects[3];
    Py_buffer views[2];
    Plane plane = {0};
    int32_t n;
    int low;
    if (!PyArg_ParseTuple(args, "OOOi", &objects[0], &objects[1], &objects[2], &low)) return NULL;
    Box *boxes = get_boxes(objects, views, &plane, &n, 1);
    if (!boxes) return NULL;
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(int64_t) * N_MOMENTS * n);
    if (result) {
        int64_t *sums = (int64_t *)(void *)PyBytes_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        memset(sums, 0, sizeof(int64_t) * N_MOMENTS * (size_t)n);
        for (int32_t i = 0; i < n; i++) add_moments(&plane, boxes + i, low, sums + N_MOMENTS * (size_t)i);
        Py_END_ALLOW_THREADS
    }
    free(boxes);
    PyBuffer_Release(views);
    PyBuffer_Release(views + 1);
    return result;
}

static PyObject *weighted_errors(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *objects[3], *result = NULL;
    Py_buffer views[2], gaussian, weights;
    Plane plane = {0};
    Weighting weighting = {0};
    int32_t n;
    if (!PyArg_ParseTuple(
            args, "OOOy*y*ii", &objects[0], &objects[1], &objects[2], &gaussian, &weights, &weighting.low,
            &weighting.high))
        return NULL;
    Box *boxes = NULL;
    if (gaussian.len != TAPS * (Py_ssize_t)sizeof(double) || weights.len < (Py_ssize_t)sizeof(double) ||
        weights.len / (Py_ssize_t)sizeof(double) > INT32_MAX)
        PyErr_SetString(PyExc_ValueError, "expected seven taps of a filter and a table of weights");
    else boxes = get_boxes(objects, views, &plane, &n, 1);
    if (boxes) {
        weighting.gaussian = gaussian.buf;
        weighting.weights = weights.buf;
        weighting.n_weights = (int32_t)(weights.len / (Py_ssize_t)sizeof(double));
        result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(double) * 2 * n);
        double *sums = result ? (double *)(void *)PyBytes_AsString(result) : NULL;
        bool done = true;
        if (sums) {
            Py_BEGIN_ALLOW_THREADS
            memset(sums, 0, sizeof(double) * 2 * (size_t)n);
            done = sum_weighted_errors(&plane, &weighting, boxes, n, sums);
            Py_END_ALLOW_THREADS
        }
        if (!done) {
            Py_DECREF(result);
            result = PyErr_NoMemory();
        }
        free(boxes);
        PyBuffer_Release(views);
        PyBuffer_Release(views + 1);
    }
    PyBuffer_Release(&gaussian);
    PyBuffer_Release(&weights);
    return result;
}

static PyObject *count(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *objects[3], *result = NULL;
    Py_buffer views[2];
    Plane plane = {0};
    int32_t n, n_codes;
    if (!PyArg_ParseTuple(args, "OOOi", &objects[0], &objects[1], &objects[2], &n_codes)) return NULL;
    Box *boxes = get_boxes(objects, views, &plane, &n, 2);
    if (!boxes) return NULL;
    plane.n_codes = n_codes;
    if (!codes_below(&plane, n_codes)) {
        PyErr_SetString(PyExc_ValueError, "expected codes below their number");
    } else if ((result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(double) * 2 * n_codes * (n + 2)))) {
        double *counts = (double *)(void *)PyBytes_AsString(result);
        Background background;
        bool done;
        Py_BEGIN_ALLOW_THREADS
        done = count_frames(&plane, boxes, n, counts, &background);
        if (done) free_background(&background);
        Py_END_ALLOW_THREADS
        if (!done) {
            Py_DECREF(result);
            result = PyErr_NoMemory();
        }
    }
    free(boxes);
    PyBuffer_Release(views);
    PyBuffer_Release(views + 1);
    return result;
}

/* Get an array of `n` items of eight bytes; NULL if it is not one. */
static const void *eight_bytes(const Py_buffer *view, Py_ssize_t n) {
    return view->itemsize == 8 && view->len == 8 * n ? view->buf : NULL;
}

static PyObject *values(PyObject *self, PyObject *args) {
    (void)self;
    enum { COUNTS, CUTS, ABSOLUTE, SQUARED, AREAS, FRAME_AREAS, PREDICTED_AREAS, SALIENT, MATCHED_IOU, N_ARRAYS };
    PyObject *objects[N_ARRAYS], *result = NULL;
    Py_buffer views[N_ARRAYS];
    ImageCounts in = {0};
    int first, n_views = 0;
    long long background;
    if (!PyArg_ParseTuple(
            args, "(OOOOOOOOO)iLdd", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4], &objects[5],
            &objects[6], &objects[7], &objects[8], &first, &background, &in.numerator, &in.denominator))
        return NULL;
    if (!get_counts(objects, views, &in.n_frames, &in.n_codes)) return NULL;
    in.n_frames -= 1; /* the last row is the union of the frames */
    for (n_views = 2; n_views < N_ARRAYS; n_views++)
        if (PyObject_GetBuffer(objects[n_views], views + n_views, PyBUF_C_CONTIGUOUS) < 0) break;
    if (n_views == N_ARRAYS) {
        in.counts = views[COUNTS].buf;
        in.cuts = views[CUTS].buf;
        in.first = first;
        in.background = background;
        in.n_predicted = views[SALIENT].len / 8;
        in.absolute = eight_bytes(views + ABSOLUTE, in.n_frames + 2);
        in.squared = eight_bytes(views + SQUARED, in.n_frames + 2);
        in.areas = eight_bytes(views + AREAS, in.n_frames);
        in.frame_areas = eight_bytes(views + FRAME_AREAS, in.n_frames);
        in.predicted_areas = eight_bytes(views + PREDICTED_AREAS, in.n_predicted);
        in.salient = eight_bytes(views + SALIENT, in.n_predicted);
        in.iou = eight_bytes(views + MATCHED_IOU, in.n_predicted);
        bool fits = in.n_frames >= 0 && first >= 0 && first < LEVELS && in.absolute && in.squared && in.areas &&
                    in.frame_areas && in.predicted_areas && in.salient && in.iou;
        if (!fits) PyErr_SetString(PyExc_ValueError, "expected arrays of eight bytes for each row, frame and object");
        else result = PyBytes_FromStringAndSize(NULL, N_VALUES * (Py_ssize_t)sizeof(double));
        if (result && !compute_values(&in, (double *)(void *)PyBytes_AsString(result))) {
            Py_DECREF(result);
            result = PyErr_NoMemory();
        }
    }
    for (int i = 0; i < n_views; i++) PyBuffer_Release(views + i);
    return result;
}

static PyMethodDef methods[] = {
    {"values", values, METH_VARARGS, "Compute all values of one image."},
    {"count", count, METH_VARARGS, "Count the pixels per code and class, of the image and of frames."},
    {"moments", moments, METH_VARARGS, "Sum the quadrants of boxes for the structure measure."},
    {"weighted_errors", weighted_errors, METH_VARARGS, "Sum the weighted errors of boxes."},
    {"thresholds", thresholds, METH_VARARGS, "Count the predicted objects above every threshold."},
    {"nearest", nearest, METH_O, "Replace -1 by the nearest object, in place."},
    {"curves", curves, METH_VARARGS, "Compute the curves of one image."},
    {"measure", measure, METH_VARARGS, "Measure one image."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The compiled kernel of the scores.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
