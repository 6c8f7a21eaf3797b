/* Errors of salient pixels, reduced to the blurred error around them where that is less. */
#ifndef SISOD_SOFTENED_H
#define SISOD_SOFTENED_H

#include <stdbool.h>
#include <stddef.h>

#include "frames.h"

enum { REACH = 3, TAPS = 2 * REACH + 1, MOST_STEPS = 80 };

/* A step from a pixel to one that is not further than the corner of the filter. */
typedef struct {
    int32_t dy, dx;
    ptrdiff_t offset; /* in the plane */
} Step;

typedef struct {
    const Plane *plane;
    const double *gaussian; /* TAPS of them */
    int32_t high;           /* the grey value of p = 1 */
    int32_t top, bottom, left, right; /* of the salient pixels, half-open */
    Step steps[MOST_STEPS];           /* from the shortest */
    int32_t n_steps;
    double *blurred; /* rows, blurred along the row; a row is kept at its number modulo TAPS */
    int32_t kept[TAPS];
    double *errors;  /* of one row, with a margin of REACH */
    double *nothing; /* a row of zeros */
    uint8_t *wrong, *wanted; /* pixels of one row */
} Softening;

/* False without memory; `free_softening` frees in both cases. */
bool start_softening(const Plane *plane, const double *gaussian, int32_t high, Softening *out);

/* Compute the errors of the salient pixels of a row, 0 elsewhere, in columns [left, right) of the salient
 * pixels; false if all are zero, and nothing is written. */
bool soften_row(Softening *softening, int32_t y, double *row);

void free_softening(Softening *softening);

#endif
