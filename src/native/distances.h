/* Squared distances to the nearest salient pixel, exact, of those pixels that ask for it. */
#ifndef SISOD_DISTANCES_H
#define SISOD_DISTANCES_H

#include <stdbool.h>
#include <stdint.h>

#include "envelope.h"
#include "frames.h"

typedef struct {
    const Plane *plane;
    uint16_t *rows; /* between every pixel and the nearest salient one in its column, at most 2^16 - 1 */
    int32_t *row;   /* the same of one row */
    Parabola *envelope;
} Distances;

/* False without memory; `free_distances` frees in both cases. */
bool start_distances(const Plane *plane, Distances *out);

/* Find the squared distances of the wanted pixels of a row, none of which is salient, at most `far`. Others
 * may be written, too. */
void measure_row(const Distances *distances, int32_t y, const uint8_t *wanted, int32_t far, int32_t *squared);

/* Count the pixels of `plane->codes8` whose squared distance to a salient one is at most `tolerance`; -1
 * without memory. */
int64_t count_near(const Plane *plane, int32_t tolerance);

void free_distances(Distances *distances);

#endif
