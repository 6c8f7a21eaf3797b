/* An error outside the objects weighs more, the further it is from them. One inside an object counts as
 * the blurred error around it if that is less. */
#include "weighted.h"

#include <string.h>

#include "bytes.h"
#include "curves.h"
#include "distances.h"
#include "memory.h"

typedef struct {
    const Plane *plane;
    const Weighting *weighting;
    Softening softening;
    Distances distances;
    uint8_t *wrong;   /* pixels of one row that are not salient and not black */
    int32_t *squared; /* their distances */
    double *row[2];   /* of one row the errors that count, of salient pixels and of the others */
} Work;

/* The weighted errors of the pixels of one row that are not salient; false if all are zero. */
static bool weigh_row(Work *work, int32_t y) {
    int32_t width = work->plane->width, far = work->weighting->n_weights - 1;
    size_t start = (size_t)y * (size_t)width;
    const uint8_t *grey = work->plane->codes8 + start, *gt = work->plane->gt + start;
    uint8_t low = (uint8_t)work->weighting->low, *restrict wrong = work->wrong;
    for (int32_t x = 0; x < width; x++) wrong[x] = (uint8_t)(gt[x] == 0) & (uint8_t)(grey[x] != low);
    int32_t x = skip_zeros(wrong, 0, width);
    if (x == width) return false; /* most are right */
    measure_row(&work->distances, y, wrong, far, work->squared);
    memset(work->row[1], 0, (size_t)width * sizeof *work->row[1]);
    for (; x < width; x = skip_zeros(wrong, x, width))
        for (; x < width && wrong[x]; x++)
            work->row[1][x] = work->weighting->weights[work->squared[x]] * (grey[x] - low);
    return true;
}

static void sum_rows(Work *work, const Box *boxes, int32_t n_boxes, double *sums) {
    for (int32_t y = 0; y < work->plane->height; y++) {
        bool any[2] = {soften_row(&work->softening, y, work->row[0]), weigh_row(work, y)};
        for (int32_t i = 0; i < n_boxes && (any[0] || any[1]); i++) {
            const Box *box = boxes + i;
            if (y < box->y0 || y >= box->y1) continue;
            int32_t from = box->x0 > work->softening.left ? box->x0 : work->softening.left;
            int32_t end = box->x1 < work->softening.right ? box->x1 : work->softening.right;
            if (any[0] && from < end) sums[2 * i] += pairwise_sum(work->row[0] + from, end - from);
            if (any[1]) sums[2 * i + 1] += pairwise_sum(work->row[1] + box->x0, box->x1 - box->x0);
        }
    }
}

bool sum_weighted_errors(
    const Plane *plane, const Weighting *weighting, const Box *boxes, int32_t n_boxes, double *sums) {
    size_t width = (size_t)plane->width;
    Work work = {.plane = plane, .weighting = weighting};
    work.wrong = new_block(width, 1);
    work.squared = new_block(width, sizeof *work.squared);
    work.row[0] = new_block(width, sizeof(double));
    work.row[1] = new_block(width, sizeof(double));
    bool done = work.wrong && work.squared && work.row[0] && work.row[1];
    done = start_softening(plane, weighting->gaussian, weighting->high, &work.softening) && done;
    done = start_distances(plane, &work.distances) && done;
    if (done) sum_rows(&work, boxes, n_boxes, sums);
    free_softening(&work.softening);
    free_distances(&work.distances);
    free(work.wrong);
    free(work.squared);
    free(work.row[0]);
    free(work.row[1]);
    return done;
}
