/* From the highest threshold down, pixels are only added: each is joined with its neighbours that are
 * there already (union-find), and the tallies follow the objects that change. One labelling serves for
 * all thresholds. */
#include "thresholds.h"

#include <string.h>

#include "memory.h"

typedef struct {
    const StepMap *map;
    int32_t *link;    /* 0: not added yet; -area of the object at its root; else 1 + another of its pixels */
    int32_t *salient; /* pixels of the object, at its root */
    int64_t now[N_TALLIES];
    double size; /* of the image */
} Forest;

static int32_t root_of(int32_t *link, int32_t pixel) {
    while (link[pixel] > 0) {
        int32_t next = link[pixel] - 1;
        if (link[next] > 0) link[pixel] = link[next];
        pixel = next;
    }
    return pixel;
}

/* Add an object to the tallies, or take it away. */
static void tally(Forest *forest, int32_t root, int sign) {
    int64_t area = -(int64_t)forest->link[root];
    if (area < forest->map->least) return;
    bool precise = 2 * (int64_t)forest->salient[root] >= area;
    bool small = (double)area / forest->size < 0.01;
    forest->now[PREDICTED] += sign;
    forest->now[PRECISE] += precise ? sign : 0;
    forest->now[PREDICTED_SMALL] += small ? sign : 0;
    forest->now[PRECISE_SMALL] += precise && small ? sign : 0;
}

static int32_t join(Forest *forest, int32_t root, int32_t neighbour) {
    int32_t other = root_of(forest->link, neighbour);
    if (other == root) return root;
    if (forest->link[other] < forest->link[root]) { /* the larger of the two stays a root */
        int32_t swap = other;
        other = root;
        root = swap;
    }
    tally(forest, root, -1);
    tally(forest, other, -1);
    forest->link[root] += forest->link[other];
    forest->salient[root] += forest->salient[other];
    forest->link[other] = root + 1;
    tally(forest, root, 1);
    return root;
}

static void add_pixel(Forest *forest, int32_t pixel) {
    const StepMap *map = forest->map;
    int32_t width = map->width, y = pixel / width, x = pixel % width, root = pixel;
    forest->link[pixel] = -1;
    forest->salient[pixel] = map->gt[pixel] != 0;
    tally(forest, pixel, 1);
    for (int32_t dy = -1; dy <= 1; dy++) {
        if (y + dy < 0 || y + dy >= map->height) continue;
        for (int32_t dx = -1; dx <= 1; dx++) {
            if (x + dx < 0 || x + dx >= width || (dy == 0 && dx == 0)) continue;
            if (map->connectivity == 4 && dy != 0 && dx != 0) continue;
            int32_t neighbour = pixel + dy * width + dx;
            if (forest->link[neighbour] != 0) root = join(forest, root, neighbour);
        }
    }
}

/* Order the pixels that are above a threshold by their steps, from the lowest; `first` begins each. */
static int32_t *sorted_pixels(const StepMap *map, int32_t first[256 + 1]) {
    int32_t n = map->height * map->width, next[256];
    memset(first, 0, (256 + 1) * sizeof *first);
    for (int32_t pixel = 0; pixel < n; pixel++) first[map->steps[pixel] + 1]++;
    first[1] = 0; /* those above none are left out */
    for (int32_t step = 1; step <= 256; step++) first[step] += first[step - 1];
    memcpy(next, first, sizeof next);
    int32_t *sorted = new_array((size_t)first[256], sizeof *sorted);
    for (int32_t pixel = 0; sorted && pixel < n; pixel++)
        if (map->steps[pixel]) sorted[next[map->steps[pixel]]++] = pixel;
    return sorted;
}

bool count_thresholds(const StepMap *map, int64_t *tallies) {
    size_t n = (size_t)map->height * (size_t)map->width;
    int32_t first[256 + 1];
    int32_t *sorted = sorted_pixels(map, first);
    Forest forest = {.map = map, .size = (double)n};
    forest.link = new_array(n, sizeof *forest.link);
    forest.salient = new_array(n, sizeof *forest.salient);
    bool done = sorted && forest.link && forest.salient;
    for (int32_t step = map->n_thresholds; done && step > 0; step--) {
        for (int32_t i = first[step]; i < first[step + 1]; i++) add_pixel(&forest, sorted[i]);
        for (int32_t kind = 0; kind < N_TALLIES; kind++)
            tallies[kind * map->n_thresholds + step - 1] = forest.now[kind];
    }
    free(sorted);
    free(forest.link);
    free(forest.salient);
    return done;
}
