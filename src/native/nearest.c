/* First the nearest object in the column of each pixel, then along rows the lower envelope of parabolas
 * (Felzenszwalb and Huttenlocher, 2012). An object's pixel is its own nearest, so a row falls into the
 * gaps between such pixels, and nothing beyond a gap can be nearer than its ends. */
#include "nearest.h"

#include "memory.h"

/* A parabola that is the lowest somewhere in a gap. It begins to be so at rise / run: a fraction of
 * integers, so that all comparisons are exact. */
typedef struct {
    int64_t height; /* squared distance in the column */
    int64_t rise, run;
    int32_t column, object;
} Parabola;

static const int64_t BEYOND = INT64_C(1) << 40; /* more than any column */

/* More rows than an image has: there is no object in the column. A few rows more mean the same. */
enum { NONE = 1 << 30 };

/* Rows between every pixel and the nearest object in its column. Without branches, so that the compiler
 * can take many columns at a time. */
static void measure_columns(int32_t *object, int32_t *rows, int32_t height, int32_t width) {
    for (int32_t y = 0; y < height; y++) {
        int32_t *here = object + (size_t)y * (size_t)width, *distance = rows + (size_t)y * (size_t)width;
        if (y == 0) {
            for (int32_t x = 0; x < width; x++) distance[x] = here[x] >= 0 ? 0 : NONE;
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

/* Find the parabolas of columns [left, right), from left to right; return how many there are. */
static int32_t build_envelope(
    const int32_t *object, const int32_t *rows, int32_t left, int32_t right, Parabola *envelope) {
    int32_t n = 0;
    for (int32_t x = left; x < right; x++) {
        if (rows[x] >= NONE) continue;
        Parabola one = {.height = (int64_t)rows[x] * rows[x], .column = x, .object = object[x]};
        for (;; n--) {
            if (n == 0) {
                one.rise = -BEYOND;
                one.run = 1;
                break;
            }
            const Parabola *last = envelope + n - 1;
            one.rise = one.height + (int64_t)x * x - last->height - (int64_t)last->column * last->column;
            one.run = 2 * (int64_t)(x - last->column);
            if (one.rise * last->run >= last->rise * one.run) break;
        }
        envelope[n++] = one;
    }
    envelope[n] = (Parabola){.rise = BEYOND, .run = 1};
    return n;
}

/* Find the nearest objects of columns [left, right) of a row. */
static void fill_gap(
    int32_t *object, const int32_t *rows, int32_t left, int32_t right, Parabola *envelope, int32_t *squared) {
    int32_t n = build_envelope(object, rows, left, right, envelope);
    const Parabola *now = envelope;
    for (int32_t x = left; n > 0 && x < right; x++) {
        while (now[1].rise < x * now[1].run) now++;
        int32_t nearest = now->object;
        for (const Parabola *tie = now + 1; tie->rise == x * tie->run; tie++)
            if (tie->object < nearest) nearest = tie->object;
        int64_t dx = x - now->column, distance = dx * dx + now->height;
        object[x] = nearest;
        if (squared) squared[x] = distance < FAR ? (int32_t)distance : FAR;
    }
    for (int32_t x = left; n == 0 && squared && x < right; x++) squared[x] = FAR;
}

static void fill_row(int32_t *object, const int32_t *rows, int32_t width, Parabola *envelope, int32_t *squared) {
    for (int32_t x = 0; x < width;) {
        if (rows[x] == 0) {
            if (squared) squared[x] = 0;
            x++;
            continue;
        }
        int32_t left = x;
        while (x < width && rows[x] != 0) x++;
        /* with the pixels of objects at both ends, which stay what they are */
        fill_gap(object, rows, left ? left - 1 : 0, x < width ? x + 1 : width, envelope, squared);
    }
}

bool find_nearest(int32_t *object, int32_t height, int32_t width, int32_t *squared) {
    size_t size = (size_t)height * (size_t)width;
    int32_t *rows = new_array(size, sizeof *rows);
    Parabola *envelope = new_array((size_t)width + 1, sizeof *envelope);
    bool done = rows && envelope;
    if (done) {
        measure_columns(object, rows, height, width);
        for (size_t start = 0; start < size; start += (size_t)width)
            fill_row(object + start, rows + start, width, envelope, squared ? squared + start : NULL);
    }
    free(rows);
    free(envelope);
    return done;
}
