#include "structure.h"

#include <math.h>
#include <stddef.h>

/* The row and the column after the centroid; without salient pixels those after the box. */
static void find_centre(const Plane *plane, const Box *box, int32_t *centre_y, int32_t *centre_x) {
    int64_t n = 0, sum_y = 0, sum_x = 0;
    for (int32_t y = box->y0; y < box->y1; y++) {
        const uint8_t *gt = plane->gt + (size_t)y * (size_t)plane->width;
        int32_t in_row = 0;
        for (int32_t x = box->x0; x < box->x1; x++) {
            int32_t salient = gt[x] != 0;
            in_row += salient;
            sum_x += salient * (x - box->x0);
        }
        n += in_row;
        sum_y += (int64_t)in_row * (y - box->y0);
    }
    *centre_y = box->y1;
    *centre_x = box->x1;
    if (n == 0) return;
    *centre_y = box->y0 + (int32_t)nearbyint((double)sum_y / (double)n) + 1; /* of halves the even one */
    *centre_x = box->x0 + (int32_t)nearbyint((double)sum_x / (double)n) + 1;
}

/* Add the pixels [left, right) of a row; at most 2^16 of them, so that 32 bits hold the sums. */
static void add_span(const uint8_t *grey, const uint8_t *gt, int32_t n, int32_t low, int64_t *moments) {
    uint32_t sums[CLASSES][POWERS] = {{0}};
    for (int32_t i = 0; i < n; i++) {
        uint32_t level = (uint32_t)(grey[i] - low), salient = gt[i] != 0, inside = level & (0u - salient);
        sums[0][1] += level;
        sums[0][2] += level * level;
        sums[1][0] += salient;
        sums[1][1] += inside;
        sums[1][2] += inside * inside;
    }
    moments[0] += n - (int64_t)sums[1][0];
    for (int power = 1; power < POWERS; power++) moments[power] += (int64_t)sums[0][power] - (int64_t)sums[1][power];
    for (int power = 0; power < POWERS; power++) moments[POWERS + power] += sums[1][power];
}

void add_moments(const Plane *plane, const Box *box, int32_t low, int64_t moments[N_MOMENTS]) {
    const int32_t most = 1 << 16;
    int32_t centre_y, centre_x;
    find_centre(plane, box, &centre_y, &centre_x);
    for (int32_t y = box->y0; y < box->y1; y++) {
        size_t row = (size_t)y * (size_t)plane->width;
        for (int right = 0; right < 2; right++) {
            int64_t *part = moments + ((y >= centre_y) * 2 + right) * CLASSES * POWERS;
            int32_t end = right ? box->x1 : centre_x;
            for (int32_t x = right ? centre_x : box->x0; x < end; x += most) {
                size_t start = row + (size_t)x;
                add_span(plane->codes8 + start, plane->gt + start, end - x < most ? end - x : most, low, part);
            }
        }
    }
}
