/* One image: pixels -> counts of the image and its frames, and predicted objects. */
#ifndef SISOD_MEASURE_H
#define SISOD_MEASURE_H

#include "frames.h"
#include "objects.h"
#include "runs.h"

typedef struct {
    int64_t least; /* area of an object in pixels */
    int connectivity;
    bool minmax;     /* grey values are stretched to [0, 1] */
    bool objects;    /* whether predicted objects are wanted */
    bool histograms; /* and the grey values of each */
} Settings;

typedef struct {
    Runs truth, predicted;
    int32_t *kept, *kept_predicted; /* components, in the order of objects */
    int32_t n_frames, n_predicted;
    int32_t low, high; /* grey values: the least and the largest */
    Background background;
    double *counts;    /* image, frames, union: see count_frames */
    double *histograms; /* of each predicted object: pixels per code */
    Overlaps overlaps;
    int64_t *integers; /* memory of the overlaps */
    double *iou;
} Measurement;

/* Measure an 8-bit image. False without memory; `free_measurement` frees in both cases. */
bool measure_image(const Plane *plane, const Settings *settings, Measurement *out);

void free_measurement(Measurement *measurement);

#endif
