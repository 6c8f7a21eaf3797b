/* Sums of bytes first, in loops that the compiler turns into vector instructions; the least grey value is
 * taken off afterwards. All sums are integers. */
#include "structure.h"

#include <math.h>
#include <stddef.h>

#include "bytes.h"

/* The row and the column after the centroid; without salient pixels those after the box. */
static void find_centre(const Plane *plane, const Box *box, int32_t *centre_y, int32_t *centre_x) {
    int64_t n = 0, sum_y = 0, sum_x = 0;
    for (int32_t y = box->y0; y < box->y1; y++) {
        const uint8_t *gt = plane->gt + (size_t)y * (size_t)plane->width;
        int64_t in_row = 0;
        for (int32_t x = skip_zeros(gt, box->x0, box->x1); x < box->x1;) {
            int64_t left = x - box->x0, right;
            x = skip_set(gt, x, box->x1);
            right = x - box->x0;
            in_row += right - left;
            sum_x += (right - left) * (left + right - 1) / 2; /* of the columns of a run */
            x = skip_zeros(gt, x, box->x1);
        }
        n += in_row;
        sum_y += in_row * (y - box->y0);
    }
    *centre_y = box->y1;
    *centre_x = box->x1;
    if (n == 0) return;
    *centre_y = box->y0 + (int32_t)nearbyint((double)sum_y / (double)n) + 1; /* of halves the even one */
    *centre_x = box->x0 + (int32_t)nearbyint((double)sum_x / (double)n) + 1;
}

/* Add number, sum and sum of squares of the grey values of at most 256 pixels, of all and of salient ones:
 * so many that their sums are below 2^16. */
static void add_bytes(const uint8_t *grey, const uint8_t *gt, int32_t n, int64_t sums[CLASSES][POWERS]) {
    uint16_t all = 0, inside = 0, salient = 0;
    int32_t all_squared = 0, inside_squared = 0;
    for (int32_t i = 0; i < n; i++) {
        int16_t level = grey[i], level_inside = (int16_t)(grey[i] & (uint8_t)-gt[i]);
        salient = (uint16_t)(salient + gt[i]);
        all = (uint16_t)(all + level);
        inside = (uint16_t)(inside + level_inside);
        all_squared += level * level;
        inside_squared += level_inside * level_inside;
    }
    sums[0][0] += n;
    sums[0][1] += all;
    sums[0][2] += all_squared;
    sums[1][0] += salient;
    sums[1][1] += inside;
    sums[1][2] += inside_squared;
}

/* Add the pixels of a box: those that are not salient, then those that are. */
static void add_quadrant(const Plane *plane, const Box *box, int64_t low, int64_t *moments) {
    enum { AT_ONCE = 256 };
    int64_t sums[CLASSES][POWERS] = {{0}};
    for (int32_t y = box->y0; y < box->y1; y++) {
        size_t row = (size_t)y * (size_t)plane->width;
        for (int32_t x = box->x0; x < box->x1; x += AT_ONCE) {
            int32_t n = box->x1 - x < AT_ONCE ? box->x1 - x : AT_ONCE;
            add_bytes(plane->codes8 + row + (size_t)x, plane->gt + row + (size_t)x, n, sums);
        }
    }
    for (int class = 0; class < CLASSES; class++) {
        sums[class][2] += low * (low * sums[class][0] - 2 * sums[class][1]);
        sums[class][1] -= low * sums[class][0];
    }
    for (int power = 0; power < POWERS; power++) {
        moments[power] = sums[0][power] - sums[1][power];
        moments[POWERS + power] = sums[1][power];
    }
}

void add_moments(const Plane *plane, const Box *box, int32_t low, int64_t moments[N_MOMENTS]) {
    int32_t y, x;
    find_centre(plane, box, &y, &x);
    const Box quadrants[QUADRANTS] = {
        {box->y0, box->x0, y, x}, {box->y0, x, y, box->x1}, {y, box->x0, box->y1, x}, {y, x, box->y1, box->x1}};
    for (int i = 0; i < QUADRANTS; i++) add_quadrant(plane, quadrants + i, low, moments + i * CLASSES * POWERS);
}
