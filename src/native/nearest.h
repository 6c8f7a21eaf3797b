/* The nearest object of every pixel, and its squared distance: exact. */
#ifndef SISOD_NEAREST_H
#define SISOD_NEAREST_H

#include <stdbool.h>
#include <stdint.h>

enum { FAR = INT32_MAX }; /* the squared distance where there is no object at all */

/* Find the nearest object of every pixel.
 *
 * object: the object of every pixel, -1 for none; it becomes the nearest one, of equals the lowest.
 * squared: its squared distance, at most FAR; or NULL.
 * False without memory. */
bool find_nearest(int32_t *object, int32_t height, int32_t width, int32_t *squared);

#endif
