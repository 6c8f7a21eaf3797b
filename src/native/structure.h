/* Sums of the structure measure: the quadrants around the centroid of the salient pixels. */
#ifndef SISOD_STRUCTURE_H
#define SISOD_STRUCTURE_H

#include <stdint.h>

#include "frames.h"

enum { QUADRANTS = 4, CLASSES = 2, POWERS = 3, N_MOMENTS = QUADRANTS * CLASSES * POWERS };

/* Number, sum and sum of squares of the levels (grey value - low) of each quadrant of a box, of the pixels
 * that are not salient and of those that are. */
void add_moments(const Plane *plane, const Box *box, int32_t low, int64_t moments[N_MOMENTS]);

#endif
