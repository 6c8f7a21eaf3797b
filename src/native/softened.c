/* For the blur a pixel outside has the error of the nearest salient pixel, of equals that on the left, then
 * the upper one. All is computed only around salient pixels that are wrong: first along rows, and of the
 * results along columns. */
#include "softened.h"

#include <string.h>

#include "bytes.h"
#include "memory.h"

enum { SIDE = 4 }; /* of a step: 4^2 <= 18 < 5^2 */

static void list_steps(Softening *out) {
    for (int32_t squared = 1; squared <= 2 * REACH * REACH; squared++)
        for (int32_t dx = -SIDE; dx <= SIDE; dx++)
            for (int32_t dy = -SIDE; dy <= SIDE; dy++)
                if (dy * dy + dx * dx == squared)
                    out->steps[out->n_steps++] = (Step){dy, dx, (ptrdiff_t)dy * out->plane->width + dx};
}

/* Find the rows and columns of salient pixels. */
static void find_extent(Softening *out) {
    int32_t width = out->plane->width;
    out->left = width;
    out->top = -1;
    for (int32_t y = 0; y < out->plane->height; y++) {
        const uint8_t *gt = out->plane->gt + (size_t)y * (size_t)width;
        int32_t first = skip_zeros(gt, 0, width), last = width - 1;
        if (first == width) continue;
        while (!gt[last]) last--;
        if (out->top < 0) out->top = y;
        out->bottom = y + 1;
        if (first < out->left) out->left = first;
        if (last >= out->right) out->right = last + 1;
    }
}

bool start_softening(const Plane *plane, const double *gaussian, int32_t high, Softening *out) {
    size_t width = (size_t)plane->width;
    *out = (Softening){.plane = plane, .gaussian = gaussian, .high = high};
    out->blurred = new_block(TAPS * width, sizeof *out->blurred);
    out->errors = new_array(width + 2 * REACH, sizeof *out->errors); /* the margin stays 0 */
    out->nothing = new_array(width, sizeof *out->nothing);
    out->wrong = new_block(width, 1);
    out->wanted = new_block(width, 1);
    if (!out->blurred || !out->errors || !out->nothing || !out->wrong || !out->wanted) return false;
    for (int32_t place = 0; place < TAPS; place++) out->kept[place] = -1;
    list_steps(out);
    find_extent(out);
    return true;
}

/* Add to `mark` the salient pixels of a row that are wrong. */
static void mark_wrong(const Softening *softening, int32_t y, uint8_t *restrict mark) {
    size_t start = (size_t)y * (size_t)softening->plane->width;
    const uint8_t *grey = softening->plane->codes8 + start, *gt = softening->plane->gt + start;
    uint8_t high = (uint8_t)softening->high;
    int32_t left = softening->left, right = softening->right;
    for (int32_t x = left; x < right; x++) mark[x] |= gt[x] & (uint8_t)(grey[x] != high);
}

/* The error of the salient pixel that is nearest to a pixel in the filter's reach of one. */
static int32_t nearest_error(const Softening *softening, int32_t y, int32_t x) {
    const Plane *plane = softening->plane;
    size_t here = (size_t)y * (size_t)plane->width + (size_t)x;
    if (y >= SIDE && y < plane->height - SIDE && x >= SIDE && x < plane->width - SIDE) {
        for (int32_t i = 0; i < softening->n_steps; i++) { /* no step leaves the image */
            size_t at = here + (size_t)softening->steps[i].offset;
            if (plane->gt[at]) return softening->high - plane->codes8[at];
        }
        return 0;
    }
    for (int32_t i = 0; i < softening->n_steps; i++) {
        int32_t other_y = y + softening->steps[i].dy, other_x = x + softening->steps[i].dx;
        if (other_y < 0 || other_y >= plane->height || other_x < 0 || other_x >= plane->width) continue;
        size_t at = here + (size_t)softening->steps[i].offset;
        if (plane->gt[at]) return softening->high - plane->codes8[at];
    }
    return 0; /* of the gap between two pixels that are looked at together */
}

/* Blur columns [left, right) of a row along it; beside the image there are no errors. */
static void blur_span(const Softening *softening, int32_t y, int32_t left, int32_t right, double *restrict row) {
    int32_t width = softening->plane->width;
    int32_t first = left < REACH ? 0 : left - REACH, last = right > width - REACH ? width : right + REACH;
    size_t start = (size_t)y * (size_t)width;
    const uint8_t *grey = softening->plane->codes8 + start, *gt = softening->plane->gt + start;
    double *restrict errors = softening->errors + REACH, gaussian[TAPS];
    memcpy(gaussian, softening->gaussian, sizeof gaussian);
    for (int32_t x = first; x < last; x++) errors[x] = softening->high - grey[x];
    for (int32_t x = skip_set(gt, first, last); x < last; x = skip_set(gt, x + 1, last))
        errors[x] = nearest_error(softening, y, x);
    for (int32_t x = left; x < right; x++) {
        double sum = gaussian[0] * errors[x - REACH];
        for (int32_t tap = 1; tap < TAPS; tap++) sum += gaussian[tap] * errors[x - REACH + tap];
        row[x] = sum;
    }
}

/* A row that is blurred along itself where a wrong pixel of the rows around it needs it. */
static const double *blurred_row(Softening *softening, int32_t y) {
    if (y < 0 || y >= softening->plane->height) return softening->nothing;
    int32_t place = y % TAPS, left = softening->left, right = softening->right;
    double *row = softening->blurred + (size_t)place * (size_t)softening->plane->width;
    if (softening->kept[place] == y) return row;
    softening->kept[place] = y;
    uint8_t *wanted = softening->wanted;
    memset(wanted + left, 0, (size_t)(right - left));
    for (int32_t other = y - REACH; other <= y + REACH; other++)
        if (other >= softening->top && other < softening->bottom) mark_wrong(softening, other, wanted);
    for (int32_t x = skip_zeros(wanted, left, right); x < right;) {
        int32_t end = skip_set(wanted, x, right), next = skip_zeros(wanted, end, right);
        while (next < right && next < end + TAPS) { /* they share errors */
            end = skip_set(wanted, next, right);
            next = skip_zeros(wanted, end, right);
        }
        blur_span(softening, y, x, end, row);
        x = next;
    }
    return row;
}

/* Blur columns [left, right) along the column and take the lesser of this and the error. */
static void soften_span(
    const Softening *softening, int32_t y, const double *const rows[TAPS], int32_t left, int32_t right,
    double *restrict row) {
    const uint8_t *grey = softening->plane->codes8 + (size_t)y * (size_t)softening->plane->width;
    const double *g = softening->gaussian;
    for (int32_t x = left; x < right; x++) {
        double sum = g[0] * rows[0][x];
        for (int32_t tap = 1; tap < TAPS; tap++) sum += g[tap] * rows[tap][x];
        double error = softening->high - grey[x];
        row[x] = error < sum ? error : sum;
    }
}

bool soften_row(Softening *softening, int32_t y, double *row) {
    int32_t left = softening->left, right = softening->right;
    if (y < softening->top || y >= softening->bottom) return false;
    uint8_t *wrong = softening->wrong;
    memset(wrong + left, 0, (size_t)(right - left));
    mark_wrong(softening, y, wrong);
    int32_t x = skip_zeros(wrong, left, right);
    if (x == right) return false;
    memset(row + left, 0, (size_t)(right - left) * sizeof *row);
    const double *rows[TAPS];
    for (int32_t tap = 0; tap < TAPS; tap++) rows[tap] = blurred_row(softening, y + tap - REACH);
    while (x < right) {
        int32_t end = skip_set(wrong, x, right);
        soften_span(softening, y, rows, x, end, row);
        x = skip_zeros(wrong, end, right);
    }
    return true;
}

void free_softening(Softening *softening) {
    free(softening->blurred);
    free(softening->errors);
    free(softening->nothing);
    free(softening->wrong);
    free(softening->wanted);
}
