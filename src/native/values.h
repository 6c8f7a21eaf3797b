/* Counts of one image -> the values of all metrics of counts. */
#ifndef SISOD_VALUES_H
#define SISOD_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "curves.h"

/* The forms of a curve; of each form all metrics of curves.h, then accuracy. */
enum { MEAN, MAX, AT_ADAPTIVE, AT_BINARY, N_FORMS, N_CURVES = N_METRICS + 1 };

/* Then the values without a curve, and those of objects. */
enum { MAE, SI_MAE, MSE, SI_MSE, PLAIN_AUC, SI_AUC, SI_F_MAX_FRAME, N_SCALARS };
enum {
    N_PREDICTED,
    N_FALSE,
    N_FOUND,
    BSI_IOU,
    BSI_DICE,
    BSI_F,
    OBJECT_RECALL,
    OBJECT_PRECISION,
    OBJECT_F1,
    OBJECT_RECALL_SMALL,
    OBJECT_PRECISION_SMALL,
    OBJECT_F1_SMALL,
    FALSE_OBJECTS,
    FALSE_AREA,
    PQ,
    SQ,
    RQ,
    N_OBJECT_VALUES
};
enum { N_VALUES = 2 * N_FORMS * N_CURVES + N_SCALARS + N_OBJECT_VALUES };

typedef struct {
    const double *counts; /* rows x 2 x n_codes: the image, its frames, the union of the frames */
    int32_t n_frames, n_codes;
    const int64_t *cuts;
    int32_t first;                    /* threshold at which size-invariant curves begin */
    const double *absolute, *squared; /* sums of errors of each row */
    const int64_t *areas;             /* of the component of each frame */
    const int64_t *frame_areas;
    int64_t background;            /* pixels in no frame */
    double numerator, denominator; /* of alpha */
    int64_t n_predicted;
    const int64_t *predicted_areas, *salient;
    const double *iou;
} ImageCounts;

/* Compute all values; those of objects only if `salient` is given. False without memory. */
bool compute_values(const ImageCounts *in, double out[N_VALUES]);

#endif
