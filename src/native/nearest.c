/* First the nearest object in the column of each pixel, then along rows the lower envelope. An object's
 * pixel is its own nearest, so a row falls into the gaps between such pixels, and nothing beyond a gap can
 * be nearer than its ends. */
#include "nearest.h"

#include <string.h>

#include "envelope.h"
#include "memory.h"

/* More rows than an image has: there is nothing in the column. A few rows more mean the same. */
enum { NO_ROWS = 1 << 30 };

/* Rows between every pixel and the nearest object in its column. Without branches, so that the compiler
 * can take many columns at a time. */
static void measure_columns(int32_t *object, int32_t *rows, int32_t height, int32_t width) {
    for (int32_t y = 0; y < height; y++) {
        int32_t *here = object + (size_t)y * (size_t)width, *distance = rows + (size_t)y * (size_t)width;
        if (y == 0) {
            for (int32_t x = 0; x < width; x++) distance[x] = here[x] >= 0 ? 0 : NO_ROWS;
            continue;
        }
        const int32_t *above = here - width, *distance_above = distance - width;
        for (int32_t x = 0; x < width; x++) {
            distance[x] = here[x] >= 0 ? 0 : distance_above[x] + 1;
            here[x] = here[x] >= 0 ? here[x] : above[x];
        }
    }
    for (int32_t y = height - 2; y >= 0; y--) {
        int32_t *here = object + (size_t)y * (size_t)width, *distance = rows + (size_t)y * (size_t)width;
        const int32_t *below = here + width, *distance_below = distance + width;
        for (int32_t x = 0; x < width; x++) {
            int32_t other = distance_below[x] + 1;
            bool nearer = (other < distance[x]) | ((other == distance[x]) & (below[x] < here[x]));
            distance[x] = nearer ? other : distance[x];
            here[x] = nearer ? below[x] : here[x];
        }
    }
}

/* Find the nearest objects of columns [left, right) of a row; `of_column` are those of the columns. */
static void fill_gap(
    const int32_t *of_column, const int32_t *rows, int32_t left, int32_t right, Parabola *envelope, int32_t *object) {
    if (build_envelope(rows, left, right, NO_ROWS - 1, envelope) == 0) return;
    const Parabola *now = envelope;
    for (int32_t x = left; x < right; x++) {
        now = lowest_at(now, x);
        int32_t nearest = of_column[now->column];
        for (const Parabola *tie = now + 1; tie->rise == x * tie->run; tie++)
            if (of_column[tie->column] < nearest) nearest = of_column[tie->column];
        object[x] = nearest;
    }
}

static void fill_row(int32_t *object, const int32_t *rows, int32_t width, Parabola *envelope, int32_t *of_column) {
    memcpy(of_column, object, (size_t)width * sizeof *object);
    for (int32_t x = 0; x < width;) {
        if (rows[x] == 0) {
            x++;
            continue;
        }
        int32_t left = x;
        while (x < width && rows[x] != 0) x++;
        /* with the pixels of objects at both ends, which stay what they are */
        fill_gap(of_column, rows, left ? left - 1 : 0, x < width ? x + 1 : width, envelope, object);
    }
}

bool find_nearest(int32_t *object, int32_t height, int32_t width) {
    size_t size = (size_t)height * (size_t)width;
    int32_t *rows = new_block(size, sizeof *rows), *of_column = new_block((size_t)width, sizeof *of_column);
    Parabola *envelope = new_block((size_t)width + 1, sizeof *envelope);
    bool done = rows && of_column && envelope;
    if (done) {
        measure_columns(object, rows, height, width);
        for (size_t start = 0; start < size; start += (size_t)width)
            fill_row(object + start, rows + start, width, envelope, of_column);
    }
    free(rows);
    free(of_column);
    free(envelope);
    return done;
}
