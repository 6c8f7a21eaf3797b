/* Predicted objects at every threshold of the object curve. */
#ifndef SISOD_THRESHOLDS_H
#define SISOD_THRESHOLDS_H

#include <stdbool.h>
#include <stdint.h>

/* Tallies at a threshold: objects that are large enough, those that are salient in at least half of their
 * pixels, and both again of objects below 1 % of the image. */
enum { PREDICTED, PRECISE, PREDICTED_SMALL, PRECISE_SMALL, N_TALLIES };

typedef struct {
    int32_t height, width;
    const uint8_t *steps; /* number of thresholds that each pixel is above, at most n_thresholds */
    const uint8_t *gt;
    int32_t n_thresholds;
    int connectivity;
    int64_t least; /* area of an object in pixels */
} StepMap;

/* Count the objects above each threshold: `tallies` has N_TALLIES rows of n_thresholds. False without
 * memory. */
bool count_thresholds(const StepMap *map, int64_t *tallies);

#endif
