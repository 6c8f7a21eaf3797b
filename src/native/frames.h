/* Pixels per code and class, of the image and of each frame; and the background. */
#ifndef SISOD_FRAMES_H
#define SISOD_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int32_t y0, x0, y1, x1; /* half-open */
} Box;

/* A map of codes, of one or two bytes, and its ground truth of zeros and ones. */
typedef struct {
    int32_t height, width;
    const uint8_t *codes8;   /* or NULL */
    const uint16_t *codes16; /* or NULL */
    int32_t n_codes;
    const uint8_t *gt;
} Plane;

/* The columns in no frame, band of rows by band of rows. */
typedef struct {
    int32_t n_bands;
    int32_t *top;   /* first row of each band, and one after the last */
    int32_t *start; /* first span of each band, and one after the last */
    int32_t *spans; /* pairs of columns, half-open, in order */
    int64_t area;
} Background;

/* Count the image, each frame and the union of the frames: `counts` has n_frames + 2 rows of two classes
 * (not salient, salient) of n_codes. Frames are ordered by their top row. False without memory. */
bool count_frames(const Plane *plane, const Box *frames, int32_t n_frames, double *counts, Background *background);

void free_background(Background *background);

#endif
