/* Two passes take turns, each of which removes all its pixels at once. Only pixels whose neighbourhood has
 * changed are looked at again, so the time grows with the area of the objects, not with their width. */
#include "thinning.h"

#include <string.h>

#include "memory.h"

typedef struct {
    uint8_t *pixels, *listed; /* `listed`: it is among the candidates */
    const uint8_t *passes;
    ptrdiff_t around[8]; /* steps to the neighbours, clockwise from the upper left one */
    int32_t *candidates, *removed;
} Thinning;

/* The passes that remove a pixel. */
static uint8_t removing_passes(const Thinning *t, int32_t pixel) {
    uint32_t code = 0;
    for (int bit = 0; bit < 8; bit++) code |= (uint32_t)t->pixels[pixel + t->around[bit]] << bit;
    return t->passes[code & 255];
}

/* Keep those of the candidates that a pass can remove; returns how many these are. */
static int32_t keep_removable(Thinning *t, int32_t n) {
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t pixel = t->candidates[i];
        if (removing_passes(t, pixel)) t->candidates[kept++] = pixel;
        else t->listed[pixel] = 0;
    }
    return kept;
}

/* Remove the pixels of one pass and add their neighbours to the candidates, whose new number is returned. */
static int32_t remove_pixels(Thinning *t, int32_t n, uint8_t pass) {
    int32_t n_removed = 0, kept = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t pixel = t->candidates[i];
        if (removing_passes(t, pixel) & pass) t->removed[n_removed++] = pixel;
        else t->candidates[kept++] = pixel;
    }
    for (int32_t i = 0; i < n_removed; i++) t->pixels[t->removed[i]] = t->listed[t->removed[i]] = 0;
    for (int32_t i = 0; i < n_removed; i++) {
        for (int side = 0; side < 8; side++) {
            int32_t pixel = t->removed[i] + (int32_t)t->around[side];
            if (!t->pixels[pixel] || t->listed[pixel]) continue;
            t->listed[pixel] = 1;
            t->candidates[kept++] = pixel;
        }
    }
    return kept;
}

bool thin(uint8_t *pixels, int32_t height, int32_t width, const uint8_t passes[256]) {
    size_t size = (size_t)height * (size_t)width;
    memset(pixels, 0, (size_t)width);
    memset(pixels + size - (size_t)width, 0, (size_t)width);
    int32_t n = 0;
    for (int32_t y = 0; y < height; y++) {
        uint8_t *row = pixels + (size_t)y * (size_t)width;
        row[0] = row[width - 1] = 0;
        for (int32_t x = 0; x < width; x++) n += row[x] = row[x] != 0;
    }
    Thinning t = {
        .pixels = pixels,
        .passes = passes,
        .around = {-width - 1, -width, 1 - width, 1, width + 1, width, width - 1, -1},
        .listed = new_array(size, 1),
        .candidates = new_block((size_t)n, sizeof *t.candidates),
        .removed = new_block((size_t)n, sizeof *t.removed),
    };
    bool done = t.listed && t.candidates && t.removed;
    n = 0;
    for (size_t pixel = 0; done && pixel < size; pixel++) {
        if (!pixels[pixel]) continue;
        t.listed[pixel] = 1;
        t.candidates[n++] = (int32_t)pixel;
    }
    n = done ? keep_removable(&t, n) : 0;
    for (uint8_t pass = 1; n > 0; pass = 3 - pass) n = keep_removable(&t, remove_pixels(&t, n, pass));
    free(t.listed);
    free(t.candidates);
    free(t.removed);
    return done;
}
