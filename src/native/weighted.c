/* An error outside the objects weighs more, the further it is from them. One inside an object counts as
 * the blurred error around it if that is less; for the blur a pixel outside has the error of the nearest
 * salient pixel, of equals that on the left, then the upper one. */
#include "weighted.h"

#include <string.h>

#include "curves.h"
#include "memory.h"
#include "nearest.h"

enum { FURTHEST = 2 * REACH * REACH, STEP = 4, N_STEPS = 12 }; /* squared; in a row; of one length */

/* Steps from the nearest salient pixel to a pixel, by their squared length; the first that fits counts. */
typedef struct {
    int32_t n[FURTHEST + 1];
    int32_t dy[FURTHEST + 1][N_STEPS], dx[FURTHEST + 1][N_STEPS];
} Steps;

typedef struct {
    const Plane *plane;
    const Weighting *weighting;
    Steps steps;
    int32_t left, right; /* columns of salient pixels, half-open */
    int32_t *squared;    /* distance of every pixel */
    uint8_t *errors;     /* of salient pixels, and around them that of the nearest */
    double *blurred;     /* rows, blurred along the row; a row is kept at its number modulo TAPS */
    int32_t kept[TAPS];
    double *row[2]; /* of one row the errors that count, of salient pixels and of the others */
} Work;

static void list_steps(Steps *steps) {
    memset(steps, 0, sizeof *steps);
    for (int32_t dx = STEP; dx >= -STEP; dx--) {
        for (int32_t dy = STEP; dy >= -STEP; dy--) {
            int32_t squared = dx * dx + dy * dy;
            if (squared == 0 || squared > FURTHEST) continue;
            steps->dy[squared][steps->n[squared]] = dy;
            steps->dx[squared][steps->n[squared]++] = dx;
        }
    }
}

/* The error of the salient pixel that is nearest to a pixel not further than the filter reaches. */
static uint8_t nearest_error(const Work *work, int32_t y, int32_t x, int32_t squared) {
    const Plane *plane = work->plane;
    for (int32_t i = 0; i < work->steps.n[squared]; i++) {
        int32_t from_y = y - work->steps.dy[squared][i], from_x = x - work->steps.dx[squared][i];
        if (from_y < 0 || from_y >= plane->height || from_x < 0 || from_x >= plane->width) continue;
        size_t from = (size_t)from_y * (size_t)plane->width + (size_t)from_x;
        if (plane->gt[from]) return (uint8_t)(work->weighting->high - plane->codes8[from]);
    }
    return 0; /* not reached: there is one at this distance */
}

static void spread_errors(Work *work) {
    const Plane *plane = work->plane;
    work->left = plane->width;
    for (int32_t y = 0; y < plane->height; y++) {
        size_t start = (size_t)y * (size_t)plane->width;
        for (int32_t x = 0; x < plane->width; x++) {
            size_t i = start + (size_t)x;
            int32_t squared = work->squared[i];
            if (squared > FURTHEST) continue;
            if (squared > 0) {
                work->errors[i] = nearest_error(work, y, x, squared);
                continue;
            }
            work->errors[i] = (uint8_t)(work->weighting->high - plane->codes8[i]);
            if (x < work->left) work->left = x;
            if (x >= work->right) work->right = x + 1;
        }
    }
}

/* A row blurred along itself, where columns have salient pixels; outside the image there are no errors. */
static const double *blurred_row(Work *work, int32_t y) {
    int32_t width = work->plane->width, place = (y + TAPS) % TAPS;
    double *row = work->blurred + (size_t)place * (size_t)width;
    if (work->kept[place] == y) return row;
    work->kept[place] = y;
    memset(row, 0, (size_t)width * sizeof *row);
    if (y < 0 || y >= work->plane->height) return row;
    const uint8_t *errors = work->errors + (size_t)y * (size_t)width;
    for (int32_t tap = 0; tap < TAPS; tap++) {
        int32_t shift = tap - REACH, from = work->left, end = work->right;
        if (from < -shift) from = -shift;
        if (end > width - shift) end = width - shift;
        for (int32_t x = from; x < end; x++) row[x] += work->weighting->gaussian[tap] * errors[x + shift];
    }
    return row;
}

/* The errors of the salient pixels of one row; false if all are zero. */
static bool soften_row(Work *work, int32_t y) {
    const Plane *plane = work->plane;
    const Weighting *weighting = work->weighting;
    size_t start = (size_t)y * (size_t)plane->width;
    const uint8_t *grey = plane->codes8 + start, *gt = plane->gt + start;
    double *row = work->row[0];
    bool any = false;
    for (int32_t x = work->left; x < work->right && !any; x++) any = gt[x] && grey[x] != weighting->high;
    if (!any) return false;
    memset(row + work->left, 0, (size_t)(work->right - work->left) * sizeof *row);
    for (int32_t tap = 0; tap < TAPS; tap++) {
        const double *blurred = blurred_row(work, y + tap - REACH);
        for (int32_t x = work->left; x < work->right; x++) row[x] += weighting->gaussian[tap] * blurred[x];
    }
    for (int32_t x = work->left; x < work->right; x++) {
        double error = gt[x] ? weighting->high - grey[x] : 0;
        if (error < row[x]) row[x] = error;
    }
    return true;
}

/* The weighted errors of the other pixels of one row; false if all are zero. */
static bool weigh_row(Work *work, int32_t y) {
    const Plane *plane = work->plane;
    const Weighting *weighting = work->weighting;
    size_t start = (size_t)y * (size_t)plane->width;
    const uint8_t *grey = plane->codes8 + start, *gt = plane->gt + start;
    const int32_t *squared = work->squared + start;
    bool any = false;
    for (int32_t x = 0; x < plane->width; x++) {
        bool wrong = !gt[x] && grey[x] != weighting->low; /* most pixels are right */
        int32_t place = squared[x] < weighting->n_weights ? squared[x] : weighting->n_weights - 1;
        work->row[1][x] = wrong ? weighting->weights[place] * (grey[x] - weighting->low) : 0;
        any |= wrong;
    }
    return any;
}

static void sum_rows(Work *work, const Box *boxes, int32_t n_boxes, double *sums) {
    for (int32_t y = 0; y < work->plane->height; y++) {
        bool any[2] = {soften_row(work, y), weigh_row(work, y)};
        for (int32_t i = 0; i < n_boxes && (any[0] || any[1]); i++) {
            const Box *box = boxes + i;
            if (y < box->y0 || y >= box->y1) continue;
            int32_t from = box->x0 > work->left ? box->x0 : work->left;
            int32_t end = box->x1 < work->right ? box->x1 : work->right;
            if (any[0] && from < end) sums[2 * i] += pairwise_sum(work->row[0] + from, end - from);
            if (any[1]) sums[2 * i + 1] += pairwise_sum(work->row[1] + box->x0, box->x1 - box->x0);
        }
    }
}

bool sum_weighted_errors(const Plane *plane, const Weighting *weighting, const Box *boxes, int32_t n_boxes, double *sums) {
    size_t width = (size_t)plane->width, size = (size_t)plane->height * width;
    Work work = {.plane = plane, .weighting = weighting};
    work.squared = new_array(size, sizeof *work.squared);
    work.errors = new_array(size, sizeof *work.errors);
    work.blurred = new_array(TAPS * width, sizeof *work.blurred);
    work.row[0] = new_array(width, sizeof(double));
    work.row[1] = new_array(width, sizeof(double));
    for (int32_t place = 0; place < TAPS; place++) work.kept[place] = INT32_MIN;
    bool done = work.squared && work.errors && work.blurred && work.row[0] && work.row[1];
    for (size_t i = 0; done && i < size; i++) work.squared[i] = plane->gt[i] ? 0 : -1;
    /* of a single object the distances can take the place of its pixels */
    done = done && find_nearest(work.squared, plane->height, plane->width, work.squared);
    if (done) {
        list_steps(&work.steps);
        spread_errors(&work);
        sum_rows(&work, boxes, n_boxes, sums);
    }
    free(work.squared);
    free(work.errors);
    free(work.blurred);
    free(work.row[0]);
    free(work.row[1]);
    return done;
}
