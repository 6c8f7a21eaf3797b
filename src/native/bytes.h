/* Rows of zeros and ones, eight pixels at a time. */
#ifndef SISOD_BYTES_H
#define SISOD_BYTES_H

#include <stdint.h>
#include <string.h>

#define ONES UINT64_C(0x0101010101010101)

static inline uint64_t eight(const uint8_t *pixels) {
    uint64_t word;
    memcpy(&word, pixels, sizeof word);
    return word;
}

/* The first set pixel from `x` on, or the width. */
static inline int32_t skip_zeros(const uint8_t *row, int32_t x, int32_t width) {
    while (x + 8 <= width && eight(row + x) == 0) x += 8;
    while (x < width && row[x] == 0) x++;
    return x;
}

/* The first pixel from `x` on that is not set, or the width. */
static inline int32_t skip_set(const uint8_t *row, int32_t x, int32_t width) {
    for (; x + 8 <= width; x += 8) {
        uint64_t word = eight(row + x);
        if ((word - ONES) & ~word & (ONES << 7)) break; /* one of the eight is zero */
    }
    while (x < width && row[x] != 0) x++;
    return x;
}

#endif
