/* The lower envelope of parabolas along a row (Felzenszwalb and Huttenlocher, 2012): where each is lowest. */
#ifndef SISOD_ENVELOPE_H
#define SISOD_ENVELOPE_H

#include <stdint.h>

/* (x - column)^2 + height. It begins to be the lowest at rise / run: a fraction of integers, so that all
 * comparisons are exact. Sides of planes are at most 2^20, and the products fit. */
typedef struct {
    int64_t height, rise, run;
    int32_t column;
} Parabola;

/* Find the envelope over columns [left, right), of the parabolas of the columns that are at most `most` rows
 * from something; `rows` are the roots of their heights. It has room for one more than there are columns:
 * the last one begins beyond all columns. Return how many there are. */
int32_t build_envelope(const int32_t *rows, int32_t left, int32_t right, int32_t most, Parabola *envelope);

/* Go on to the parabola that is the lowest at `x`, of equals the first. */
static inline const Parabola *lowest_at(const Parabola *now, int32_t x) {
    while (now[1].rise < x * now[1].run) now++;
    return now;
}

static inline int64_t height_at(const Parabola *parabola, int32_t x) {
    int64_t dx = x - parabola->column;
    return dx * dx + parabola->height;
}

#endif
