/* A mask has far fewer runs than pixels. Components are found by joining the runs of neighbouring rows
 * (union-find), and no labelled image is ever written. */
#include "runs.h"

#include <string.h>

#include "bytes.h"
#include "memory.h"

/* Return a row of zeros and ones; `buffer` has room for one. */
static const uint8_t *binary_row(const Threshold *pixels, int32_t y, uint8_t *buffer) {
    size_t width = (size_t)pixels->width, start = (size_t)y * width;
    if (pixels->least == 1) return pixels->bytes + start;
    if (pixels->least > 255) {
        memset(buffer, 0, width);
    } else {
        uint8_t least = (uint8_t)pixels->least; /* bytes with bytes: many at a time */
        for (size_t x = 0; x < width; x++) buffer[x] = pixels->bytes[start + x] >= least;
    }
    return buffer;
}

/* The owner of a run is at first the run itself: the root of a tree of one. */
static bool find_runs(const Threshold *pixels, uint8_t *buffer, Runs *out) {
    size_t capacity = 0, n = 0;
    for (int32_t y = 0; y < out->height; y++) {
        const uint8_t *row = binary_row(pixels, y, buffer);
        out->start[y] = (int32_t)n;
        for (int32_t x = 0;;) {
            int32_t left = skip_zeros(row, x, out->width);
            if (left == out->width) break;
            if (!reserve((void **)&out->runs, &capacity, n + 1, sizeof(Run))) return false;
            x = skip_set(row, left, out->width);
            out->runs[n] = (Run){left, x, (int32_t)n};
            n++;
        }
    }
    out->start[out->height] = (int32_t)n;
    return true;
}

/* The root of a run's tree, which is its earliest run; the path to it is halved on the way. */
static int32_t root_of(Run *runs, int32_t run) {
    while (runs[run].owner != run) {
        runs[run].owner = runs[runs[run].owner].owner;
        run = runs[run].owner;
    }
    return run;
}

/* Join every run with those of the row above that it touches; with 8 neighbours a corner touches too. */
static void join_rows(Runs *out, int32_t reach) {
    Run *runs = out->runs;
    for (int32_t y = 1; y < out->height; y++) {
        int32_t above = out->start[y - 1], end = out->start[y];
        for (int32_t run = out->start[y]; run < out->start[y + 1]; run++) {
            while (above < end && runs[above].right + reach <= runs[run].left) above++;
            for (int32_t other = above; other < end && runs[other].left < runs[run].right + reach; other++) {
                int32_t a = root_of(runs, other), b = root_of(runs, run);
                if (a < b) runs[b].owner = a;
                else runs[a].owner = b;
            }
        }
    }
}

/* Replace roots by numbers of components, in the order of first runs, and measure each component. */
static bool measure_components(Runs *out) {
    Run *runs = out->runs;
    int32_t n_runs = out->start[out->height], n = 0;
    for (int32_t run = 0; run < n_runs; run++) n += runs[run].owner == run;
    out->components = new_array((size_t)n, sizeof(Component));
    if (!out->components) return false;
    out->n_components = n;
    n = 0;
    for (int32_t y = 0; y < out->height; y++) {
        for (int32_t run = out->start[y]; run < out->start[y + 1]; run++) {
            int32_t left = runs[run].left, right = runs[run].right;
            if (runs[run].owner == run) {
                out->components[n] = (Component){y, left, y + 1, right, 0, run, -1};
                runs[run].owner = n++;
            } else { /* what it points to is earlier, and is numbered already */
                runs[run].owner = runs[runs[run].owner].owner;
            }
            Component *component = out->components + runs[run].owner;
            if (left < component->x0) component->x0 = left;
            if (right > component->x1) component->x1 = right;
            component->y1 = y + 1;
            component->area += right - left;
        }
    }
    return true;
}

bool find_components(const Threshold *pixels, int connectivity, Runs *out) {
    *out = (Runs){.height = pixels->height, .width = pixels->width};
    out->start = new_array((size_t)out->height + 1, sizeof *out->start);
    uint8_t *buffer = new_array((size_t)out->width, 1);
    bool done = out->start && buffer && find_runs(pixels, buffer, out);
    free(buffer);
    if (done) {
        join_rows(out, connectivity == 8);
        done = measure_components(out);
    }
    if (!done) free_runs(out);
    return done;
}

/* Components come in the order of their first pixels, so those of one top row need only be ordered by
 * their left side: an insertion sort, since they rarely are out of order. */
static void sort_by_corner(const Component *components, int32_t *kept, int32_t n) {
    for (int32_t i = 1; i < n; i++) {
        int32_t moved = kept[i], j = i;
        const Component *one = components + moved;
        for (; j > 0; j--) {
            const Component *other = components + kept[j - 1];
            if (other->y0 < one->y0 || (other->y0 == one->y0 && other->x0 <= one->x0)) break;
            kept[j] = kept[j - 1];
        }
        kept[j] = moved;
    }
}

int32_t keep_components(Runs *runs, int64_t least, bool keep_one, int32_t *kept) {
    Component *components = runs->components;
    int32_t n = 0, largest = 0;
    for (int32_t i = 0; i < runs->n_components; i++) {
        if (components[i].area >= least) kept[n++] = i;
        if (components[i].area > components[largest].area) largest = i;
    }
    if (n == 0 && keep_one && runs->n_components > 0) kept[n++] = largest;
    sort_by_corner(components, kept, n);
    for (int32_t i = 0; i < n; i++) components[kept[i]].index = i;
    return n;
}

void free_runs(Runs *runs) {
    free(runs->start);
    free(runs->runs);
    free(runs->components);
    *runs = (Runs){0};
}
