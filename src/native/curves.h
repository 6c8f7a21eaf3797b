/* Counts of one image -> the curves of all metrics of counts, plain and size-invariant. */
#ifndef SISOD_CURVES_H
#define SISOD_CURVES_H

#include <stdint.h>

enum { LEVELS = 256, BINARY = LEVELS, ADAPTIVE, COLUMNS };

/* The metrics with a curve, in the order of the rows of their curves: those that are means over frames,
 * then accuracy, which is a mean over pixels. */
enum { F, PRECISION, RECALL, IOU, DICE, SPECIFICITY, FPR, BER, KAPPA, E, ACCURACY, N_CURVES, N_COMPOSITE = ACCURACY };

/* Values of each frame: columns of the object table. */
enum { F_MEAN, F_MAX, IOU_BINARY, RECALL_BINARY, AUC, N_FRAME_VALUES };

typedef struct {
    const double *counts; /* rows x 2 x n_codes: the image, its frames, the union of the frames */
    int32_t n_frames, n_codes;
    const int64_t *cuts;              /* least code at or above each threshold: COLUMNS, at most n_codes */
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

typedef struct {
    double size;    /* pixels of the image */
    double *plain;  /* N_CURVES x COLUMNS */
    double *si;     /* the same, size-invariant */
    double *frames; /* (1 + frames) x N_FRAME_VALUES: the image, then its frames */
    double *right;  /* rows x COLUMNS, for accuracy: pixels that are classified as they should be */
} Curves;

/* NumPy's sum of an array in one piece. */
double pairwise_sum(const double *values, int32_t n);

/* The largest value; NaN if they are undefined, which all are or none. */
double maximum(const double *values, int32_t n);

/* A mean over pixels, size-invariant (Eq. 7): `sums` are rows x n, of image, frames and union. */
void separable(const ImageCounts *in, const double *sums, double size, int32_t n, double *out);

void compute_curves(const ImageCounts *in, Curves *out);

#endif
