/* Sums of the weighted F (Margolin et al., 2014) of an 8-bit map. */
#ifndef SISOD_WEIGHTED_H
#define SISOD_WEIGHTED_H

#include <stdbool.h>

#include "frames.h"
#include "softened.h"

typedef struct {
    const double *gaussian; /* TAPS of them */
    const double *weights;  /* of an error, by the squared distance to the nearest salient pixel */
    int32_t n_weights;      /* the last one serves for all larger distances */
    int32_t low, high;      /* grey values of p = 0 and p = 1 */
} Weighting;

/* Sum the weighted errors over boxes, in grey levels: `sums` has two of each box, of its salient pixels and
 * of the others. At least one pixel is salient. False without memory. */
bool sum_weighted_errors(
    const Plane *plane, const Weighting *weighting, const Box *boxes, int32_t n_boxes, double *sums);

#endif
