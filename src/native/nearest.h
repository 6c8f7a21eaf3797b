/* The nearest object of every pixel: exact. */
#ifndef SISOD_NEAREST_H
#define SISOD_NEAREST_H

#include <stdbool.h>
#include <stdint.h>

/* Find the nearest object of every pixel; of equals the lowest. `object` has the object of every pixel, -1
 * for none, and becomes the nearest one. False without memory. */
bool find_nearest(int32_t *object, int32_t height, int32_t width);

#endif
