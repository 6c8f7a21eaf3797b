/* Every pixel is read once, however many frames hold it. Rows are cut into bands in which the set of
 * frames is the same; a band is cut into columns that are held by the same frames. */
#include "frames.h"

#include <string.h>

#include "bytes.h"
#include "memory.h"

/* Columns of a band that the same frames hold. */
typedef struct {
    int32_t x0, x1;
    int32_t first, n; /* the frames, in the list of the band */
} Segment;

/* A side of a frame, met from left to right. */
typedef struct {
    int32_t x, frame;
    bool opens;
} Side;

typedef struct {
    const Plane *plane;
    const Box *frames;
    uint32_t *rows;   /* counts: background, then the frames */
    uint64_t *excess; /* pixels of several frames, as often as they are counted beyond once */
    uint32_t *scratch;
    int32_t *active, n_active; /* frames of the band */
    Side *sides;
    Segment *segments;
    int32_t n_segments;
    int32_t *held; /* of each segment the frames, one after the other */
    size_t held_capacity;
} Counting;

static inline void count_span8(
    const uint8_t *codes, const uint8_t *gt, int32_t n, int32_t n_codes, uint32_t *rows) {
    int32_t i = 0;
    for (; i + 8 <= n; i += 8) { /* most of a map is constant: eight equal pixels at a time */
        uint64_t a = eight(codes + i), b = eight(gt + i);
        if (a == (a & 255) * ONES && b == (b & 255) * ONES) {
            rows[(b ? (uint32_t)n_codes : 0) + (uint32_t)(a & 255)] += 8;
        } else {
            for (int32_t j = i; j < i + 8; j++) rows[(gt[j] ? n_codes : 0) + codes[j]]++;
        }
    }
    for (; i < n; i++) rows[(gt[i] ? n_codes : 0) + codes[i]]++;
}

/* Count the pixels of a segment in the rows of a band. */
static void count_segment(const Plane *plane, int32_t top, int32_t bottom, const Segment *segment, uint32_t *counts) {
    for (int32_t y = top; y < bottom; y++) {
        size_t start = (size_t)y * (size_t)plane->width + (size_t)segment->x0;
        int32_t n = segment->x1 - segment->x0;
        if (plane->codes8) {
            count_span8(plane->codes8 + start, plane->gt + start, n, plane->n_codes, counts);
        } else {
            for (size_t i = start; i < start + (size_t)n; i++)
                counts[(plane->gt[i] ? plane->n_codes : 0) + plane->codes16[i]]++;
        }
    }
}

static int compare_sides(const void *a, const void *b) {
    int32_t left = ((const Side *)a)->x, right = ((const Side *)b)->x;
    return (left > right) - (left < right);
}

static int compare_rows(const void *a, const void *b) {
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Cut the rows of a band at the sides of its frames. */
static bool cut_band(Counting *c) {
    int32_t n_sides = 0, x = 0, n_held = 0, current = 0;
    for (int32_t i = 0; i < c->n_active; i++) {
        const Box *frame = c->frames + c->active[i];
        c->sides[n_sides++] = (Side){frame->x0, c->active[i], true};
        c->sides[n_sides++] = (Side){frame->x1, c->active[i], false};
    }
    if (n_sides > 2) qsort(c->sides, (size_t)n_sides, sizeof *c->sides, compare_sides);
    c->n_segments = 0;
    for (int32_t i = 0; i <= n_sides; i++) {
        int32_t end = i < n_sides ? c->sides[i].x : c->plane->width;
        /* `current` frames are at the end of the list; a segment takes them, the next has a copy */
        if (!reserve((void **)&c->held, &c->held_capacity, (size_t)n_held + 2 * (size_t)current + 2, sizeof *c->held))
            return false;
        if (end > x) {
            c->segments[c->n_segments++] = (Segment){x, end, n_held, current};
            memcpy(c->held + n_held + current, c->held + n_held, (size_t)current * sizeof *c->held);
            n_held += current;
            x = end;
        }
        if (i == n_sides) break;
        if (c->sides[i].opens) {
            c->held[n_held + current++] = c->sides[i].frame;
        } else {
            int32_t *frame = c->held + n_held;
            while (*frame != c->sides[i].frame) frame++;
            *frame = c->held[n_held + --current];
        }
    }
    return true;
}

/* Count a segment of several frames once, and add it to each of them. */
static void count_shared(Counting *c, int32_t top, int32_t bottom, const Segment *segment) {
    size_t n = 2 * (size_t)c->plane->n_codes;
    memset(c->scratch, 0, n * sizeof *c->scratch);
    count_segment(c->plane, top, bottom, segment, c->scratch);
    for (int32_t i = 0; i < segment->n; i++) {
        uint32_t *row = c->rows + n * (size_t)(c->held[segment->first + i] + 1);
        for (size_t code = 0; code < n; code++) row[code] += c->scratch[code];
    }
    for (size_t code = 0; code < n; code++) c->excess[code] += (uint64_t)(segment->n - 1) * c->scratch[code];
}

static bool count_band(Counting *c, int32_t top, int32_t bottom, Background *background, size_t *capacity) {
    if (!cut_band(c)) return false;
    size_t n = 2 * (size_t)c->plane->n_codes;
    int32_t n_spans = background->start[background->n_bands];
    for (int32_t i = 0; i < c->n_segments; i++) {
        const Segment *segment = c->segments + i;
        if (segment->n > 1) {
            count_shared(c, top, bottom, segment);
            continue;
        }
        size_t row = segment->n ? (size_t)c->held[segment->first] + 1 : 0;
        count_segment(c->plane, top, bottom, segment, c->rows + n * row);
        if (segment->n == 0) {
            if (!reserve((void **)&background->spans, capacity, 2 * (size_t)n_spans + 2, sizeof(int32_t))) return false;
            background->spans[2 * n_spans] = segment->x0;
            background->spans[2 * n_spans + 1] = segment->x1;
            background->area += (int64_t)(bottom - top) * (segment->x1 - segment->x0);
            n_spans++;
        }
    }
    background->top[background->n_bands++] = top;
    background->top[background->n_bands] = bottom;
    background->start[background->n_bands] = n_spans;
    return true;
}

/* Put together what was counted: the image is its background and the union of its frames. */
static void add_rows(const Counting *c, int32_t n_frames, double *counts) {
    size_t n = 2 * (size_t)c->plane->n_codes;
    for (size_t code = 0; code < n; code++) {
        uint64_t all = 0;
        for (size_t frame = 1; frame <= (size_t)n_frames; frame++) {
            uint32_t count = c->rows[n * frame + code];
            counts[n * frame + code] = count;
            all += count;
        }
        all -= c->excess[code];
        counts[n * ((size_t)n_frames + 1) + code] = (double)all;
        counts[code] = (double)(all + c->rows[code]);
    }
}

static bool count_bands(Counting *c, int32_t n_frames, int32_t *edges, Background *background) {
    int32_t n_edges = 0, next = 0;
    size_t capacity = 0;
    edges[n_edges++] = 0;
    edges[n_edges++] = c->plane->height;
    for (int32_t i = 0; i < n_frames; i++) {
        edges[n_edges++] = c->frames[i].y0;
        edges[n_edges++] = c->frames[i].y1;
    }
    qsort(edges, (size_t)n_edges, sizeof *edges, compare_rows);
    for (int32_t i = 0; i + 1 < n_edges; i++) {
        int32_t top = edges[i], bottom = edges[i + 1], n = 0;
        if (top == bottom) continue;
        for (int32_t j = 0; j < c->n_active; j++)
            if (c->frames[c->active[j]].y1 > top) c->active[n++] = c->active[j];
        for (; next < n_frames && c->frames[next].y0 == top; next++) c->active[n++] = next;
        c->n_active = n;
        if (!count_band(c, top, bottom, background, &capacity)) return false;
    }
    return true;
}

bool count_frames(const Plane *plane, const Box *frames, int32_t n_frames, double *counts, Background *background) {
    size_t n = 2 * (size_t)plane->n_codes, n_sides = 2 * (size_t)n_frames + 2;
    int32_t *edges = new_array(n_sides, sizeof *edges);
    Counting c = {
        .plane = plane,
        .frames = frames,
        .rows = new_array(((size_t)n_frames + 1) * n, sizeof *c.rows),
        .excess = new_array(n, sizeof *c.excess),
        .scratch = new_array(n, sizeof *c.scratch),
        .active = new_array((size_t)n_frames, sizeof *c.active),
        .sides = new_array(n_sides, sizeof *c.sides),
        .segments = new_array(n_sides, sizeof *c.segments),
    };
    *background = (Background){
        .top = new_array(n_sides, sizeof *background->top),
        .start = new_array(n_sides, sizeof *background->start),
    };
    bool done = edges && c.rows && c.excess && c.scratch && c.active && c.sides && c.segments && background->top &&
                background->start && count_bands(&c, n_frames, edges, background);
    if (done) add_rows(&c, n_frames, counts);
    else free_background(background);
    free(edges);
    free(c.rows);
    free(c.excess);
    free(c.scratch);
    free(c.active);
    free(c.sides);
    free(c.segments);
    free(c.held);
    return done;
}

void free_background(Background *background) {
    free(background->top);
    free(background->start);
    free(background->spans);
    *background = (Background){0};
}
