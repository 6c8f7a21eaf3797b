#include "envelope.h"

static const int64_t BEYOND = INT64_C(1) << 40; /* more than any column */

int32_t build_envelope(const int32_t *rows, int32_t left, int32_t right, int32_t most, Parabola *envelope) {
    int32_t n = 0;
    for (int32_t x = left; x < right; x++) {
        if (rows[x] > most) continue;
        int64_t height = (int64_t)rows[x] * rows[x], rise = -BEYOND, run = 1;
        for (; n > 0; n--) { /* those that are not the lowest anywhere leave */
            const Parabola *last = envelope + n - 1;
            rise = height - last->height + (int64_t)(x - last->column) * (x + last->column);
            run = 2 * (int64_t)(x - last->column);
            if (rise * last->run >= last->rise * run) break;
        }
        envelope[n] = n > 0 ? (Parabola){height, rise, run, x} : (Parabola){height, -BEYOND, 1, x};
        n++;
    }
    envelope[n] = (Parabola){.rise = BEYOND, .run = 1};
    return n;
}
