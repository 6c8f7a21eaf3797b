/* Runs of set pixels along rows, and the connected components that they form. */
#ifndef SISOD_RUNS_H
#define SISOD_RUNS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int32_t left, right; /* columns, half-open */
    int32_t owner;       /* the component */
} Run;

typedef struct {
    int32_t y0, x0, y1, x1; /* bounding box, half-open */
    int64_t area;
    int32_t first; /* its first run: the order of first pixels */
    int32_t index; /* its place among the objects that are kept, -1 if it is not */
} Component;

/* The runs of a plane, in raster order, and its components. */
typedef struct {
    int32_t height, width;
    int32_t *start; /* first run of each row, and one after the last */
    Run *runs;
    int32_t n_components;
    Component *components;
} Runs;

/* The pixels of a map that are at least `least`. */
typedef struct {
    int32_t height, width;
    const uint8_t *bytes;
    int32_t least; /* 256: none */
} Threshold;

/* Find the runs of pixels at or above a threshold and join them to components. False without memory. */
bool find_components(const Threshold *pixels, int connectivity, Runs *out);

/* Number the components of at least `least` pixels by top, left and first pixel: `kept` lists them.
 * If none is large enough and `keep_one`, the largest is kept, of equals the first. `kept` has room for
 * all components; returns how many are kept. */
int32_t keep_components(Runs *runs, int64_t least, bool keep_one, int32_t *kept);

void free_runs(Runs *runs);

#endif
