/* Counts of one image -> the values of all metrics of counts. */
#ifndef SISOD_VALUES_H
#define SISOD_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "curves.h"

/* The forms of a curve; of each form all metrics of curves.h. */
enum { MEAN, MAX, AT_ADAPTIVE, AT_BINARY, N_FORMS };

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

/* How many numbers `compute_values` writes: the values, the plain curves, the size-invariant ones, and the
 * values of the image and its frames, as in `Curves`. */
size_t result_size(int32_t n_frames);

/* Compute the values and curves of one image. False without memory. */
bool compute_values(const ImageCounts *in, double *out);

#endif
