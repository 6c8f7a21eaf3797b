/* Predicted objects: what they share with the objects of the ground truth. */
#ifndef SISOD_OBJECTS_H
#define SISOD_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "frames.h"
#include "runs.h"

/* What is known of predicted objects, in the order in which they are kept, and of true ones. */
typedef struct {
    int64_t *salient; /* pixels that are salient */
    int64_t *spilled; /* pixels that are not, outside every frame */
    int64_t *match;   /* the true object that shares most pixels, of equals the first; -1 for none */
    int64_t *shared;  /* how many these are */
    double *iou;      /* with that true object; 0 for none */
    int64_t *holder;  /* of each true object: the predicted one with more than half of it, or -1 */
    int64_t *missed;  /* of each true object: its pixels that are not predicted */
} Overlaps;

/* Compare the components of the prediction and of the ground truth, both numbered by `keep_components`.
 * The arrays of `out` are the caller's. False without memory. */
bool compare_objects(const Runs *predicted, const Runs *truth, const Background *background, Overlaps *out);

#endif
