/* Counts of one image -> the curves of all metrics of counts, plain and size-invariant. */
#ifndef SISOD_CURVES_H
#define SISOD_CURVES_H

#include <stdint.h>

enum { LEVELS = 256, BINARY = LEVELS, ADAPTIVE, COLUMNS };

/* The metrics with a curve that are means over frames, in the order of the rows of their curves. */
enum { F, PRECISION, RECALL, IOU, DICE, SPECIFICITY, FPR, BER, KAPPA, E, N_METRICS };

/* Values of each frame: columns of the object table. */
enum { F_MEAN, F_MAX, IOU_BINARY, RECALL_BINARY, AUC, N_FRAME_VALUES };

typedef struct {
    double *plain;  /* N_METRICS x COLUMNS */
    double *si;     /* the same: means over the frames where the metric is defined */
    double *frames; /* (1 + frames) x N_FRAME_VALUES: the image, then its frames */
} Curves;

/* NumPy's sum of an array in one piece. */
double pairwise_sum(const double *values, int32_t n);

/* The largest value; NaN if one is. */
double maximum(const double *values, int32_t n);

/* Compute the curves of an image.
 *
 * counts: rows x 2 x n_codes: the image, then its n_frames frames.
 * cuts: least code at or above each threshold, COLUMNS of them, at most n_codes.
 * first: the threshold at which the curves of frames begin. */
void compute_curves(
    const double *counts, int32_t n_frames, int32_t n_codes, const int64_t *cuts, int32_t first, Curves *out);

#endif
