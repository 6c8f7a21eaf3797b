/* From the highest threshold down, pixels are only added, and objects only grow and join (union-find): one
 * pass serves for all thresholds. What is added are runs of equal pixels along rows, of which a map has far
 * fewer than pixels; the tallies follow the objects that change. */
#include "thresholds.h"

#include <string.h>

#include "bytes.h"
#include "memory.h"

typedef struct {
    const StepMap *map;
    int32_t *row;     /* first run of each row, and one after the last */
    int32_t *start;   /* first pixel of each run, in raster order, and one after the last */
    int32_t *link;    /* 0: not added yet; -area of the object at its root; else 1 + another of its runs */
    int32_t *salient; /* salient pixels of a run; at a root those of the object */
    int32_t *sorted;  /* the runs by their steps, from the lowest */
    int32_t *near[2]; /* of each run the first one of the row above, and of the row below, that is not left of it */
    int64_t now[N_TALLIES];
    double size; /* of the image */
} Forest;

/* The first pixel from `x` on that differs from that at `x`, or the end. */
static int32_t run_end(const uint8_t *row, int32_t x, int32_t end) {
    uint8_t step = row[x++];
    while (x + 8 <= end && eight(row + x) == step * ONES) x += 8;
    while (x < end && row[x] == step) x++;
    return x;
}

/* Count the runs of a map, and list them if there is room for them. */
static int32_t find_runs(const StepMap *map, int32_t *row, int32_t *start) {
    int32_t n = 0;
    for (int32_t y = 0; y < map->height; y++) {
        if (start) row[y] = n;
        for (int32_t x = y * map->width, end = x + map->width; x < end; x = run_end(map->steps, x, end), n++)
            if (start) start[n] = x;
    }
    if (!start) return n;
    row[map->height] = n;
    start[n] = map->height * map->width;
    return n;
}

/* Order the runs by their steps; `first` begins each, and those above no threshold come first. */
static void sort_runs(Forest *forest, int32_t n, int32_t first[256 + 1]) {
    const uint8_t *steps = forest->map->steps, *gt = forest->map->gt;
    int32_t next[256];
    memset(first, 0, (256 + 1) * sizeof *first);
    for (int32_t run = 0; run < n; run++) {
        first[steps[forest->start[run]] + 1]++;
        int32_t salient = 0;
        for (int32_t pixel = forest->start[run]; pixel < forest->start[run + 1]; pixel++) salient += gt[pixel] != 0;
        forest->salient[run] = salient;
    }
    for (int32_t step = 1; step <= 256; step++) first[step] += first[step - 1];
    memcpy(next, first, sizeof next);
    for (int32_t run = 0; run < n; run++) forest->sorted[next[steps[forest->start[run]]]++] = run;
}

/* Find for each run of row `y` the first one of another row that is not left of it. */
static void find_near(const Forest *forest, int32_t y, int32_t other_y, int32_t *near) {
    const int32_t *start = forest->start;
    int32_t other = forest->row[other_y], shift = (other_y - y) * forest->map->width;
    int32_t reach = forest->map->connectivity == 8;
    for (int32_t run = forest->row[y]; run < forest->row[y + 1]; run++) {
        while (start[other + 1] + reach <= start[run] + shift) other++; /* the last one ends with the row */
        near[run] = other;
    }
}

static int32_t root_of(int32_t *link, int32_t run) {
    while (link[run] > 0) {
        int32_t next = link[run] - 1;
        if (link[next] > 0) link[run] = link[next];
        run = next;
    }
    return run;
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

/* Join an object, given by its root, with that of a run; the larger of the two stays a root. */
static int32_t join(Forest *forest, int32_t root, int32_t run) {
    int32_t other = root_of(forest->link, run);
    if (other == root) return root;
    if (forest->link[other] < forest->link[root]) {
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

/* Join an object with the runs of a row, from `run` on, that begin before `right` and are there already. */
static int32_t join_row(Forest *forest, int32_t root, int32_t run, int32_t end, int32_t right) {
    for (; run < end && forest->start[run] < right; run++)
        if (forest->link[run] != 0) root = join(forest, root, run);
    return root;
}

static void add_run(Forest *forest, int32_t run) {
    const int32_t *start = forest->start, *row = forest->row;
    int32_t width = forest->map->width, y = start[run] / width, root = run;
    int32_t right = start[run + 1] + (forest->map->connectivity == 8);
    forest->link[run] = start[run] - start[run + 1];
    tally(forest, run, 1);
    if (run > row[y] && forest->link[run - 1] != 0) root = join(forest, root, run - 1);
    if (run + 1 < row[y + 1] && forest->link[run + 1] != 0) root = join(forest, root, run + 1);
    if (y > 0) root = join_row(forest, root, forest->near[0][run], row[y], right - width);
    if (y + 1 < forest->map->height) join_row(forest, root, forest->near[1][run], row[y + 2], right + width);
}

static bool allocate(Forest *forest, size_t n) {
    forest->row = new_block((size_t)forest->map->height + 1, sizeof(int32_t));
    forest->start = new_block(n + 1, sizeof(int32_t));
    forest->link = new_array(n, sizeof(int32_t));
    forest->salient = new_block(n, sizeof(int32_t));
    forest->sorted = new_block(n, sizeof(int32_t));
    for (int i = 0; i < 2; i++) forest->near[i] = new_block(n, sizeof(int32_t));
    return forest->row && forest->start && forest->link && forest->salient && forest->sorted && forest->near[0] &&
           forest->near[1];
}

bool count_thresholds(const StepMap *map, int64_t *tallies) {
    Forest forest = {.map = map, .size = (double)map->height * (double)map->width};
    bool done = allocate(&forest, (size_t)find_runs(map, NULL, NULL));
    int32_t first[256 + 1];
    if (done) sort_runs(&forest, find_runs(map, forest.row, forest.start), first);
    for (int32_t y = 1; done && y < map->height; y++) {
        find_near(&forest, y, y - 1, forest.near[0]);
        find_near(&forest, y - 1, y, forest.near[1]);
    }
    for (int32_t step = map->n_thresholds; done && step > 0; step--) {
        for (int32_t i = first[step]; i < first[step + 1]; i++) add_run(&forest, forest.sorted[i]);
        for (int32_t kind = 0; kind < N_TALLIES; kind++)
            tallies[kind * map->n_thresholds + step - 1] = forest.now[kind];
    }
    int32_t *arrays[] = {forest.row,    forest.start,   forest.link,   forest.salient,
                         forest.sorted, forest.near[0], forest.near[1]};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    return done;
}
