/* The lines in the middle of objects. */
#ifndef SISOD_THINNING_H
#define SISOD_THINNING_H

#include <stdbool.h>
#include <stdint.h>

/* Thin a plane of zeros and ones in place; its outermost pixels are set to 0. `passes` tells for each of the
 * 256 neighbourhoods what removes the pixel: 1 the first pass, 2 the second, 3 both. False without memory. */
bool thin(uint8_t *pixels, int32_t height, int32_t width, const uint8_t passes[256]);

#endif
