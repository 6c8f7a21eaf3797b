/* Wrong pixels are mostly near objects, and a near pixel needs to look at few columns: not further than
 * the nearest salient pixel in its row or column is. */
#include "distances.h"

#include "bytes.h"
#include "memory.h"

/* Columns to look at for the wanted pixels of columns [first, last). */
typedef struct {
    int32_t left, right; /* half-open */
    int32_t first, last; /* half-open */
    int32_t reach; /* the furthest that one of them is from a salient pixel, at most */
} Group;

static inline int32_t smaller_of(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t larger_of(int32_t a, int32_t b) { return a > b ? a : b; }

/* Rows between the pixels of a row and the nearest salient ones of their columns, from those of the row
 * before; without branches, so that the compiler takes many columns at a time. 2^16 - 1 rows stand for
 * more: its square is more than any distance that is told apart. */
static void add_row(
    const uint8_t *restrict gt, const uint16_t *restrict before, int32_t width, uint16_t *restrict rows) {
    for (int32_t x = 0; x < width; x++) {
        uint16_t more = (uint16_t)(before[x] + (before[x] != UINT16_MAX));
        rows[x] = gt[x] ? 0 : more;
    }
}

static void keep_nearer(const uint16_t *restrict after, int32_t width, uint16_t *restrict rows) {
    for (int32_t x = 0; x < width; x++) {
        uint16_t more = (uint16_t)(after[x] + (after[x] != UINT16_MAX));
        rows[x] = more < rows[x] ? more : rows[x];
    }
}

bool start_distances(const Plane *plane, Distances *out) {
    size_t width = (size_t)plane->width, size = (size_t)plane->height * width;
    out->plane = plane;
    out->rows = new_block(size, sizeof *out->rows);
    out->row = new_block(width, sizeof *out->row);
    out->envelope = new_block(width + 1, sizeof *out->envelope);
    if (!out->rows || !out->row || !out->envelope) return false;
    for (size_t x = 0; x < width; x++) out->rows[x] = plane->gt[x] ? 0 : UINT16_MAX;
    for (size_t start = width; start < size; start += width)
        add_row(plane->gt + start, out->rows + start - width, plane->width, out->rows + start);
    for (size_t start = size - width; start > 0; start -= width)
        keep_nearer(out->rows + start, plane->width, out->rows + start - width);
    return true;
}

static void measure_group(
    const Distances *distances, const int32_t *rows, const Group *group, int32_t far, int32_t *restrict squared) {
    int32_t most = smaller_of(group->reach, UINT16_MAX - 1);
    int32_t n = build_envelope(rows, group->left, group->right, most, distances->envelope);
    const Parabola *now = distances->envelope;
    for (int32_t x = group->first; x < group->last; x++) {
        if (n > 0) now = lowest_at(now, x);
        int64_t distance = n > 0 ? height_at(now, x) : far;
        squared[x] = distance < far ? (int32_t)distance : far;
    }
}

/* Measure the wanted pixels of a gap, columns [left, right), between salient pixels or sides of the image. */
static void measure_gap(
    const Distances *distances, const int32_t *rows, const uint8_t *wanted, int32_t left, int32_t right, int32_t far,
    int32_t *squared) {
    int32_t width = distances->plane->width, from = larger_of(left - 1, 0), end = smaller_of(right + 1, width);
    const int32_t nowhere = 1 << 30;
    int32_t beyond_left = left > 0 ? 1 - left : nowhere, beyond_right = right < width ? right : nowhere;
    Group group = {.reach = -1};
    for (int32_t x = skip_zeros(wanted, left, right); x < right; x = skip_zeros(wanted, x, right)) {
        Group run = {.left = x, .right = x, .first = x, .last = skip_set(wanted, x, right)};
        for (; x < run.last; x++) { /* to the nearest salient pixel of the column, on the left, on the right */
            int32_t reach = smaller_of(rows[x], smaller_of(x + beyond_left, beyond_right - x));
            run.left = smaller_of(run.left, x - reach);
            run.right = larger_of(run.right, x + reach + 1);
            run.reach = larger_of(run.reach, reach);
        }
        run.left = larger_of(run.left, from);
        run.right = smaller_of(run.right, end);
        if (group.reach >= 0 && run.left >= group.right) {
            measure_group(distances, rows, &group, far, squared);
            group.reach = -1;
        }
        if (group.reach < 0) {
            group = run;
        } else { /* they look at the same columns */
            group.left = smaller_of(group.left, run.left);
            group.right = larger_of(group.right, run.right);
            group.reach = larger_of(group.reach, run.reach);
            group.last = run.last;
        }
    }
    if (group.reach >= 0) measure_group(distances, rows, &group, far, squared);
}

void measure_row(const Distances *distances, int32_t y, const uint8_t *wanted, int32_t far, int32_t *squared) {
    int32_t width = distances->plane->width;
    size_t start = (size_t)y * (size_t)width;
    const uint8_t *gt = distances->plane->gt + start;
    for (int32_t x = 0; x < width; x++) distances->row[x] = distances->rows[start + (size_t)x];
    for (int32_t right = 0;;) {
        int32_t left = skip_set(gt, right, width);
        if (left == width) break;
        right = skip_zeros(gt, left, width);
        measure_gap(distances, distances->row, wanted, left, right, far, squared);
    }
}

/* Count those of one row, of which `wanted` and `squared` have room for one. */
static int64_t count_near_in_row(
    const Distances *distances, int32_t y, int32_t tolerance, uint8_t *restrict wanted, int32_t *squared) {
    int32_t width = distances->plane->width;
    size_t start = (size_t)y * (size_t)width;
    const uint8_t *pixels = distances->plane->codes8 + start, *gt = distances->plane->gt + start;
    int64_t near = 0;
    for (int32_t x = 0; x < width; x++) {
        near += pixels[x] && gt[x];
        wanted[x] = pixels[x] && !gt[x];
    }
    if (skip_zeros(wanted, 0, width) == width) return near;
    measure_row(distances, y, wanted, tolerance + 1, squared);
    for (int32_t x = 0; x < width; x++) near += wanted[x] && squared[x] <= tolerance;
    return near;
}

int64_t count_near(const Plane *plane, int32_t tolerance) {
    Distances distances;
    uint8_t *wanted = new_block((size_t)plane->width, 1);
    int32_t *squared = new_block((size_t)plane->width, sizeof *squared);
    bool done = start_distances(plane, &distances) && wanted && squared;
    int64_t near = done ? 0 : -1;
    for (int32_t y = 0; done && y < plane->height; y++)
        near += count_near_in_row(&distances, y, tolerance, wanted, squared);
    free_distances(&distances);
    free(wanted);
    free(squared);
    return near;
}

void free_distances(Distances *distances) {
    free(distances->rows);
    free(distances->row);
    free(distances->envelope);
}
